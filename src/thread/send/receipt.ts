import type { CreatedAgentSignal } from '../../signals/signal.ts'
import type { Acceptance } from './acceptance.ts'

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
   * The active run as far as it is known here, else the run that this send starts if it wakes; where it does neither (`persist`, `discard`), the signal's id.
   * `outcome` is authoritative.
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

/** A promise that nobody has to look at. */
export function optional<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}
