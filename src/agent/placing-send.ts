import { createdSignal } from '../signals/created.ts'
import type { Signal } from '../signals/signal.ts'
import { optional, type Acceptance, type SendReceipt } from '../thread/send/receipt.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { rejected } from '../thread/send/send.ts'
import { hasRun, persists, type SendOptions } from '../thread/send/send-options.ts'

/** Sends whose place is still being found. Those of one thread reach it in the order in which they were made. */
export class PlacingSends {
  readonly #last = new Map<string, Promise<unknown>>()

  /** Whether a send of this thread is under way: what is sent now comes after it. */
  has({ threadId }: SendOptions): boolean {
    return threadId !== undefined && this.#last.has(threadId)
  }

  /** Answers at once, like any send. `send` is asked when the place is known, with the id of the run that it starts if it wakes. */
  receipt(runtime: ThreadRuntime, signal: Signal, options: SendOptions, send: (runId: string) => Promise<SendReceipt>): SendReceipt {
    const runId = runtime.newId()
    const accepted: Signal = { ...signal, acceptedAt: new Date(runtime.clock.now()).toISOString() }
    const before = options.threadId === undefined ? undefined : this.#last.get(options.threadId)
    const sent = (before ?? Promise.resolve()).then(() => send(runId))
    if (options.threadId !== undefined) this.#follow(options.threadId, sent)
    let stored: Promise<void> | undefined
    let acceptance: Promise<Acceptance> | undefined
    return {
      accepted: true,
      runId: hasRun(options.ifIdle) ? runId : signal.id,
      signal: createdSignal(accepted),
      ...(persists(options) && !signal.transient ? { persisted: optional(sent.then((receipt) => receipt.persisted)) } : {}),
      get stored() {
        stored ??= optional(sent.then((receipt) => receipt.stored))
        return stored
      },
      get acceptance() {
        acceptance ??= optional(sent.then((receipt) => receipt.acceptance))
        return acceptance
      },
      outcome: sent.then((receipt) => receipt.outcome, rejected),
    }
  }

  #follow(threadId: string, sent: Promise<unknown>): void {
    const last = sent.then(() => {}, () => {}).then(() => {
      if (this.#last.get(threadId) === last) this.#last.delete(threadId)
    })
    this.#last.set(threadId, last)
  }
}
