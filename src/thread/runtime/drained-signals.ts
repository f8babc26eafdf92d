import type { Tripwire } from '../../processors/processor.ts'
import type { MailboxRow } from '../../store/contract/threads.ts'
import type { SignalOutcome } from '../send/receipt.ts'
import type { ThreadRuntime } from './runtime.ts'

type Entered = Pick<SignalOutcome, 'action' | 'step'>

/**
 * What a run took, until its senders are told so: at once; where processors may refuse it, when they have let it pass and the model is about to
 * read it. What they refuse was never read, and is told as such.
 */
export class TakenMail {
  readonly #runtime: ThreadRuntime
  #held: Array<{ mail: MailboxRow; entered: Entered }> = []
  #unread = false

  constructor(runtime: ThreadRuntime) {
    this.#runtime = runtime
  }

  /** Whether the model is still to read what was taken last. */
  get unread(): boolean {
    return this.#unread
  }

  holds(signalId: string): boolean {
    return this.#held.some(({ mail }) => mail.id === signalId)
  }

  take(taken: readonly MailboxRow[], entered: Entered, hold: boolean): void {
    for (const mail of taken) this.#held.push({ mail, entered })
    if (hold) this.#unread ||= taken.length > 0
    else this.tell()
  }

  /** A run that is taken up again; what it took was told, or is looked for, where it was sent. */
  resume(unread: boolean): void {
    this.#unread = unread
  }

  /** They entered. */
  tell(): void {
    if (this.#held.length > 0) this.#settle(({ entered }) => entered, this.#unread)
    this.#unread = false
  }

  refuse(tripwire: Tripwire): void {
    if (this.#held.length > 0) this.#settle(() => refused(tripwire), true)
    this.#unread = false
  }

  /** Whoever goes on with the run, or the store, tells it. */
  forget(): void {
    this.#held = []
    this.#unread = false
  }

  #settle(outcomeOf: (held: { entered: Entered }) => SignalOutcome, read: boolean): void {
    const { waiters, neighbours } = this.#runtime
    const held = this.#held
    this.#held = []
    const elsewhere = held.find(({ mail: { threadId, id } }) => !waiters.awaitsOutcome(threadId, id))
    if (elsewhere) neighbours.settled(elsewhere.mail.threadId, read)
    for (const one of held) {
      const { threadId, id, runId } = one.mail
      waiters.settle(threadId, id, { ...outcomeOf(one), ...(runId === undefined ? {} : { runId }) })
    }
  }
}

/** What a refusal before a model read it comes to for its sender. */
export function refused({ reason, processorId }: Pick<Tripwire, 'reason'> & { processorId?: string | undefined }): SignalOutcome {
  return { action: 'rejected', code: 'tripwire', reason, ...(processorId === undefined ? {} : { processorId }) }
}
