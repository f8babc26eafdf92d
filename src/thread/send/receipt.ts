import { isPlainObject, orderedJSON } from '../../base/json.ts'
import type { MessageRow } from '../../message/row.ts'
import { createdSignal, rowToSignal } from '../../signals/conversions.ts'
import type { CreatedAgentSignal, Signal } from '../../signals/signal.ts'
import type { Accepted } from '../../store/contract/threads.ts'

/** What became of a signal. */
export interface SignalOutcome {
  /**
   * `delivered`: it entered a running loop. `woke`: it started a run. `queued`: it is pending until a run of its own begins, or until a
   * suspended thread continues. `persisted`: it is in history only. `discarded`: nothing of it is stored. `rejected`: it was refused.
   */
  action: 'delivered' | 'woke' | 'queued' | 'persisted' | 'discarded' | 'rejected'
  runId?: string
  /** The first step whose prompt contains it. */
  step?: number
  /** The thread had a signal of this id already; the outcome is that of the first. */
  duplicate?: boolean
  reason?: string
  /**
   * For `rejected`: the code of the error; `tripwire` where a processor rejected it before a model read it. For `persisted`: that of the
   * error which ended the run before a model read it.
   */
  code?: string
  /** The processor that rejected it. */
  processorId?: string
}

/** The synchronous result of a send. */
export interface SendReceipt {
  accepted: true
  /**
   * The active run as far as it is known here, else the run that this send starts if it wakes; where it does neither (`persist`,
   * `discard`), the signal's id. `outcome` is authoritative.
   */
  runId: string
  signal: CreatedAgentSignal
  /** With `persist` behavior: resolves when the signal is in history. */
  persisted?: Promise<void>
  /**
   * Resolves when the signal would survive a power cut. Rejects when it was rejected; need not be handled. The flush starts when this is
   * first read, and concurrent flushes share one sync.
   */
  readonly stored: Promise<void>
  /** The stored signal; for a repeated send, the first. Rejects when it was rejected; need not be handled. */
  readonly acceptance: Promise<Acceptance>
  /** Never rejects. */
  outcome: Promise<SignalOutcome>
}

/** The result of sending a state: a receipt, or the note that the lane has this state already. */
export type StateReceipt = (SendReceipt & { skipped: false }) | { accepted: true; skipped: true; reason: 'unchanged' }

/** The stored signal, whether this send or an earlier one with the same id stored it. */
export interface Acceptance {
  /** The thread had a signal of this id already; the other fields describe the first. */
  duplicate: boolean
  /** The run that is reserved for it or drained it. Absent where it is in history only or not stored. */
  runId?: string
  signal: CreatedAgentSignal
  /** The contents of the first differ from those of this send. */
  differs: boolean
}

/** The answer of the store to a send, and the outcome of its signal. */
export interface AcceptedSend {
  answer: Accepted
  /** As it was passed to the store. */
  content: MessageRow['content']
  outcome: Promise<SignalOutcome>
}

interface ReceiptParts {
  runId: string
  signal: Signal
  /** In one of the branches the signal is persisted without a run. */
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
  /** In the other branch, the signal is in history when a run has drained it. */
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

/** The fields that the sender wrote. Attributes depend on the state of the thread, and states get a version: neither is included. */
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
