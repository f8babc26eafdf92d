import { createdSignal } from '../signals/created.ts'
import type { CreatedAgentSignal, Signal } from '../signals/signal.ts'
import type { Accepted } from '../store/contract.ts'
import { acceptanceOf, type Acceptance } from './acceptance.ts'
import { optional, type SendReceipt, type SignalOutcome } from './receipt.ts'

/** What the store answered to a send, and what becomes of it. */
export interface Work {
  answer: Accepted
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

/** The receipt of a send. What it tells is made when somebody looks at it: of a thousand sends, few are looked at in every way. */
export class Sent implements SendReceipt {
  readonly accepted = true as const
  readonly runId: string
  readonly outcome: Promise<SignalOutcome>
  readonly #sent: SentSignal
  #signal: CreatedAgentSignal | undefined
  #persisted: Promise<void> | undefined
  #stored: Promise<void> | undefined
  #acceptance: Promise<Acceptance> | undefined

  constructor(sent: SentSignal) {
    this.runId = sent.runId
    this.outcome = sent.outcome
    this.#sent = sent
  }

  get signal(): CreatedAgentSignal {
    this.#signal ??= createdSignal(this.#sent.signal)
    return this.#signal
  }

  set signal(signal: CreatedAgentSignal) {
    this.#signal = signal
  }

  /** Where the other branch was taken, it is in history when its run took it. */
  get persisted(): Promise<void> | undefined {
    const { persists, work, outcome } = this.#sent
    if (persists) this.#persisted ??= optional(work.then(() => outcome).then(() => {}))
    return this.#persisted
  }

  get stored(): Promise<void> {
    this.#stored ??= optional(this.#sent.work.then(this.#sent.flush))
    return this.#stored
  }

  get acceptance(): Promise<Acceptance> {
    this.#acceptance ??= optional(this.#sent.work.then(({ answer }) => acceptanceOf(this.#sent.signal, answer)))
    return this.#acceptance
  }

  toJSON(): Pick<SendReceipt, 'accepted' | 'runId' | 'signal'> {
    return { accepted: true, runId: this.runId, signal: this.signal }
  }
}
