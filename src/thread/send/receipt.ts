import { isPlainObject, orderedJSON } from '../../base/json.ts'
import type { MessageRow } from '../../message/row.ts'
import { createdSignal, rowToSignal } from '../../signals/conversions.ts'
import type { CreatedAgentSignal, Signal } from '../../signals/signal.ts'
import type { Accepted } from '../../store/contract/threads.ts'

/** What became of a signal, once that is certain. */
export interface SignalOutcome {
  /**
   * `delivered`: it entered a running loop. `woke`: it started a run. `queued`: it waits for a run of its own, or for a thread that
   * is suspended. `persisted`: it is in history only. `discarded`: it was not wanted. `rejected`: it was refused.
   */
  action: 'delivered' | 'woke' | 'queued' | 'persisted' | 'discarded' | 'rejected'
  runId?: string
  /** The step whose prompt it is in first. */
  step?: number
  /** The thread had this id already; this describes the first. */
  duplicate?: boolean
  reason?: string
  /** For `rejected`: the code of the error; `tripwire` where a processor refused it before a model read it. */
  code?: string
  /** The processor that refused it. */
  processorId?: string
}

/** What a send answers at once. */
export interface SendReceipt {
  accepted: true
  /**
   * The active run as far as it is known here, else the run that this send starts if it wakes; where it does neither (`persist`,
   * `discard`), the signal's id. `outcome` is authoritative.
   */
  runId: string
  signal: CreatedAgentSignal
  /** With `persist` behaviour: resolves when the signal is in history. */
  persisted?: Promise<void>
  /**
   * Resolves when the signal would survive a power cut. Rejects when it was refused; need not be handled. The disk is asked when
   * this is first read: whoever doesn't want to know doesn't wait for it, and others share the wait.
   */
  readonly stored: Promise<void>
  /** What the thread has of it: of a repeated send, the first. Rejects when it was refused; need not be handled. */
  readonly acceptance: Promise<Acceptance>
  /** Never rejects. */
  outcome: Promise<SignalOutcome>
}

/** What a state signal comes to: a receipt, or nothing new. */
export type StateReceipt = (SendReceipt & { skipped: false }) | { accepted: true; skipped: true; reason: 'unchanged' }

/** What a thread has of a signal, whether this send brought it or an earlier one with the same id. */
export interface Acceptance {
  /** The thread had this id already; the rest describes the first. */
  duplicate: boolean
  /** The run that was promised to it, or took it. None where it is in history only, or nowhere. */
  runId?: string
  signal: CreatedAgentSignal
  /** The first says something else than this send does. */
  differs: boolean
}

/** The answer of the store to a send, and the outcome of its signal. */
export interface AcceptedSend {
  answer: Accepted
  /** As the store was given it. */
  content: MessageRow['content']
  outcome: Promise<SignalOutcome>
}

interface ReceiptParts {
  runId: string
  signal: Signal
  /** In one of the branches it goes into history at once. */
  persists: boolean
  work: Promise<AcceptedSend>
  outcome: Promise<SignalOutcome>
  flush(): Promise<void>
}

/** The receipt of a send. Its fields are own properties, so that copies have them; `stored` is a getter, since reading it costs a flush. */
export class Receipt implements SendReceipt {
  readonly accepted = true as const
  readonly runId: string
  signal: CreatedAgentSignal
  readonly outcome: Promise<SignalOutcome>
  /** Where the other branch was chosen, it is in history when its run drained it. */
  declare readonly persisted?: Promise<void>
  readonly #parts: ReceiptParts
  #stored: Promise<void> | undefined
  #acceptance: Promise<Acceptance> | undefined

  constructor(parts: ReceiptParts) {
    const { work, outcome } = parts
    this.runId = parts.runId
    this.signal = createdSignal(parts.signal)
    this.outcome = outcome
    if (parts.persists) this.persisted = optional(work.then(() => outcome).then(() => {}))
    this.#parts = parts
  }

  get stored(): Promise<void> {
    this.#stored ??= optional(this.#parts.work.then(this.#parts.flush))
    return this.#stored
  }

  get acceptance(): Promise<Acceptance> {
    this.#acceptance ??= optional(this.#parts.work.then((accepted) => acceptanceOf(this.#parts.signal, this.signal, accepted)))
    return this.#acceptance
  }

  toJSON(): Pick<SendReceipt, 'accepted' | 'runId' | 'signal'> {
    return { accepted: true, runId: this.runId, signal: this.signal }
  }
}

function acceptanceOf(sent: Signal, created: CreatedAgentSignal, { answer, content }: AcceptedSend): Acceptance {
  const { duplicate, runId, rows: [row] } = answer
  const about = runId === undefined ? {} : { runId }
  // The store accepted the row unchanged, so that the signal of the receipt describes it.
  if (!duplicate && row?.content === content) return { duplicate, ...about, signal: created, differs: false }
  const first = row && (row.role === 'signal' || row.role === 'user') ? rowToSignal(row) : sent
  return { duplicate, ...about, signal: createdSignal(first), differs: duplicate && essence(first) !== essence(sent) }
}

/** What the sender wrote. Attributes depend on the state of the thread, and states get a version: neither is part of it. */
function essence({ type, tagName, contents, metadata = {}, providerOptions = {} }: Signal): string {
  const { state, ...rest } = metadata
  const { version: _, ...written } = type === 'state' && isPlainObject(state) ? state : { state }
  return orderedJSON([type, tagName, contents, rest, written, providerOptions])
}

/** The same promise; a rejection need not be handled. */
export function optional<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}
