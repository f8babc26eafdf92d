import { isHeedError } from '../../base/errors.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Tripwire } from '../../processors/processor.ts'
import type { RunCommitEnd } from '../../run/loop/run-contract.ts'
import { isAnswer, isSent } from '../../run/loop/unanswered.ts'
import type { MailboxRow } from '../../store/contract/threads.ts'
import type { SignalOutcome } from '../send/receipt.ts'
import type { ThreadRuntime } from './runtime.ts'

/**
 * The signals that a run has drained and whose outcome is not resolved yet. It is resolved at once; where processors may reject input, it
 * is resolved when they have passed it and the model is about to read it. Rejected input is resolved as `rejected`, and that of a run which
 * fails before that as `persisted`.
 */
export class DrainedSignals {
  readonly #runtime: ThreadRuntime
  #held: Array<{ mail: MailboxRow; step: number }> = []
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

  /** `step`: the first step whose prompt contains them. `mayReject`: processors may still reject them. */
  add(signals: readonly MailboxRow[], step: number, mayReject: boolean): void {
    for (const mail of signals) this.#held.push({ mail, step })
    if (mayReject) this.#unread ||= signals.length > 0
    else this.confirm()
  }

  /** For a resumed run: the outcomes of its input were resolved before, or are looked up where they are awaited. */
  resume(unread: boolean): void {
    this.#unread = unread
  }

  /** Resolves the outcomes: the signals have entered the run. */
  confirm(): void {
    if (this.#held.length > 0) this.#resolve(({ mail, step }) => ({ action: actionOf(mail.route, step), step }))
    this.#unread = false
  }

  /** Resolves the outcomes by the end of the run. Those of a run that failed before a model read them are in history. */
  settle(end: RunCommitEnd | undefined): void {
    const outcome = end?.status === 'rejected' ? rejectedOutcome(end.tripwire)
      : end?.status === 'failed' && this.#unread ? unreadOutcome(codeOf(end.error)) : undefined
    if (!outcome) return this.confirm()
    if (this.#held.length > 0) this.#resolve(() => outcome)
    this.#unread = false
  }

  /** The next owner of the run resolves the outcomes from the store. */
  forget(): void {
    this.#held = []
    this.#unread = false
  }

  /** No processor rejects them from here on: peers need not wait for the model to read them. */
  #resolve(outcomeOf: (held: { mail: MailboxRow; step: number }) => SignalOutcome): void {
    const { waiters, peers } = this.#runtime
    const held = this.#held
    this.#held = []
    const elsewhere = held.find(({ mail: { threadId, id } }) => !waiters.awaitsOutcome(threadId, id))
    if (elsewhere) peers.announceOutcomes(elsewhere.mail.threadId, true)
    for (const one of held) {
      const { threadId, id, runId } = one.mail
      waiters.resolveOutcome(threadId, id, { ...outcomeOf(one), ...(runId === undefined ? {} : { runId }) })
    }
  }
}

/** How a signal entered a run. One that was accepted for the run that takes it was delivered, also where the run begins with it. */
export function actionOf(route: string, step: number | undefined): 'woke' | 'delivered' {
  return step === 0 && route !== 'deliver' && route !== 'interrupt' ? 'woke' : 'delivered'
}

/** The outcome of a signal that a processor rejected before a model read it. */
export function rejectedOutcome({ reason, processorId }: Pick<Tripwire, 'reason'> & { processorId?: string | undefined }): SignalOutcome {
  return { action: 'rejected', code: 'tripwire', reason, ...(processorId === undefined ? {} : { processorId }) }
}

/** The code of the error that ended a run; `run_failed` for one that the program threw. */
export function codeOf(error: Error | undefined): string {
  return isHeedError(error) ? error.code : 'run_failed'
}

/** The outcome of a signal whose run failed, with this code, before a model read it. */
export function unreadOutcome(code: string): SignalOutcome {
  return { action: 'persisted', code, reason: 'The run failed before a model read it. It is in history.' }
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
