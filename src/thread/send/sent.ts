import { createdSignal } from '../../signals/created.ts'
import type { CreatedAgentSignal, Signal } from '../../signals/signal.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Accepted } from '../../store/contract/threads.ts'
import { acceptanceOf, type Acceptance } from './acceptance.ts'
import { optional, type SendReceipt, type SignalOutcome } from './receipt.ts'

/** What the store answered to a send, and what becomes of it. */
export interface Work {
  answer: Accepted
  /** As it was given to the store. */
  content: MessageRow['content']
  outcome: Promise<SignalOutcome>
}

export interface SentSignal {
  runId: string
  signal: Signal
  /** It goes into history at once, in one of the cases. */
  persists: boolean
  work: Promise<Work>
  outcome: Promise<SignalOutcome>
  flush(): Promise<void>
}

/** The receipt of a send. What it tells is its own, and goes along where it is copied; only `stored` is asked of it, since asking costs a wait for the disk. */
export class Sent implements SendReceipt {
  readonly accepted = true as const
  readonly runId: string
  signal: CreatedAgentSignal
  readonly outcome: Promise<SignalOutcome>
  /** Where the other branch was taken, it is in history when its run took it. */
  declare readonly persisted?: Promise<void>
  readonly #sent: SentSignal
  #stored: Promise<void> | undefined
  #acceptance: Promise<Acceptance> | undefined

  constructor(sent: SentSignal) {
    const { work, outcome } = sent
    this.runId = sent.runId
    this.signal = createdSignal(sent.signal)
    this.outcome = outcome
    if (sent.persists) this.persisted = optional(work.then(() => outcome).then(() => {}))
    this.#sent = sent
  }

  get stored(): Promise<void> {
    this.#stored ??= optional(this.#sent.work.then(this.#sent.flush))
    return this.#stored
  }

  get acceptance(): Promise<Acceptance> {
    this.#acceptance ??= optional(this.#sent.work.then(({ answer, content }) => acceptanceOf({ signal: this.#sent.signal, created: this.signal, content }, answer)))
    return this.#acceptance
  }

  toJSON(): Pick<SendReceipt, 'accepted' | 'runId' | 'signal'> {
    return { accepted: true, runId: this.runId, signal: this.signal }
  }
}
