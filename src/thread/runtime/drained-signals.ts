import type { MessageRow } from '../../message/row.ts'
import type { Tripwire } from '../../processors/processor.ts'
import { isAnswer, isSent } from '../../run/loop/unanswered.ts'
import type { MailboxRow } from '../../store/contract/threads.ts'
import type { SignalOutcome } from '../send/receipt.ts'
import type { ThreadRuntime } from './runtime.ts'

type Entered = Pick<SignalOutcome, 'action' | 'step'>

/**
 * The signals that a run has drained and whose outcome is not resolved yet. It is resolved at once; where processors may reject input, it
 * is resolved when they have passed it and the model is about to read it. Rejected input is resolved as `rejected`.
 */
export class DrainedSignals {
  readonly #runtime: ThreadRuntime
  #held: Array<{ mail: MailboxRow; entered: Entered }> = []
  #unread = false

  constructor(runtime: ThreadRuntime) {
    this.#runtime = runtime
  }

  /** Whether the model has not yet read the last drained signals. */
  get unread(): boolean {
    return this.#unread
  }

  isUnconfirmed(signalId: string): boolean {
    return this.#held.some(({ mail }) => mail.id === signalId)
  }

  take(taken: readonly MailboxRow[], entered: Entered, hold: boolean): void {
    for (const mail of taken) this.#held.push({ mail, entered })
    if (hold) this.#unread ||= taken.length > 0
    else this.confirm()
  }

  /** For a resumed run: the outcomes of its input were resolved before, or are looked up where they are awaited. */
  resume(unread: boolean): void {
    this.#unread = unread
  }

  /** Resolves the outcomes: the signals have entered the run. */
  confirm(): void {
    if (this.#held.length > 0) this.#resolve(({ entered }) => entered, this.#unread)
    this.#unread = false
  }

  refuse(tripwire: Tripwire): void {
    if (this.#held.length > 0) this.#resolve(() => rejectedOutcome(tripwire), true)
    this.#unread = false
  }

  /** The next owner of the run resolves the outcomes from the store. */
  forget(): void {
    this.#held = []
    this.#unread = false
  }

  #resolve(outcomeOf: (held: { entered: Entered }) => SignalOutcome, read: boolean): void {
    const { waiters, peers } = this.#runtime
    const held = this.#held
    this.#held = []
    const elsewhere = held.find(({ mail: { threadId, id } }) => !waiters.awaitsOutcome(threadId, id))
    if (elsewhere) peers.announceOutcomes(elsewhere.mail.threadId, read)
    for (const one of held) {
      const { threadId, id, runId } = one.mail
      waiters.resolveOutcome(threadId, id, { ...outcomeOf(one), ...(runId === undefined ? {} : { runId }) })
    }
  }
}

/** The outcome of a signal that a processor rejected before a model read it. */
export function rejectedOutcome({ reason, processorId }: Pick<Tripwire, 'reason'> & { processorId?: string | undefined }): SignalOutcome {
  return { action: 'rejected', code: 'tripwire', reason, ...(processorId === undefined ? {} : { processorId }) }
}

export function drainedRows(signals: readonly MailboxRow[]): readonly MessageRow[] {
  const [only] = signals
  if (only && signals.length === 1) return only.rows
  return signals.flatMap((mail) => mail.rows)
}

/** The `seq` of the last row before this run: its own input counts as part of the run. */
export function seqBefore(rows: readonly MessageRow[], signals: readonly MailboxRow[]): number {
  const [first] = drainedRows(signals)
  return first?.seq === undefined ? (rows.at(-1)?.seq ?? 0) : first.seq - 1
}

/** Whether the last input of a resumed run was never answered. */
export function unreadInput(rows: readonly MessageRow[], runId: string): boolean {
  const own = rows.filter((row) => row.runId === runId)
  return own.findLastIndex(isSent) > own.findLastIndex(isAnswer)
}
