import { isHeedError } from '../base/errors.ts'
import type { JSONValue } from '../base/json.ts'
import { normalizeSignal } from '../signals/normalize.ts'
import type { Signal } from '../signals/signal.ts'
import type { WatchDelivery, WatchRecord, WatchStore } from '../store/contract/watches.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { annotationGraceMs, type WatchEnd } from './machine.ts'
import { compileResultSchema } from './result-schema.ts'
import { renderResult } from './result-text.ts'

interface DeliveriesOptions {
  /** Whether policies deny that the agent of the watch receives the message. */
  ask(watch: WatchRecord, inbound: NonNullable<WatchDelivery['inbound']>): Promise<{ deniedBy?: string; awaitsCategories?: true }>
  /** The thread has the signal of the end, or never will. */
  onEnd(watch: WatchRecord, reason: WatchEnd): void
  /** When an attempt after this one begins. */
  retryAt(attempt: number): number
  wakeAt(at: number): void
}

/** Threads that this process sends to at the same time, before it claims more. */
const maxInFlight = 256

/** Sends to threads what their watches led to. */
export class Deliveries {
  readonly #runtime: ThreadRuntime
  readonly #options: DeliveriesOptions
  readonly #inFlight = new Set<Promise<void>>()

  constructor(runtime: ThreadRuntime, options: DeliveriesOptions) {
    this.#runtime = runtime
    this.#options = options
  }

  /** Begins to send them, those of one agent to one thread in their order. Returns the work of each thread. */
  start(store: WatchStore, deliveries: readonly WatchDelivery[]): Array<Promise<void>> {
    const lines = Map.groupBy(deliveries, ({ watch }) => JSON.stringify([watch.threadId, watch.agentId])).values()
    return Array.from(lines, (line) => {
      const work = this.#deliverInOrder(store, line).finally(() => this.#inFlight.delete(work))
      this.#inFlight.add(work)
      return work
    })
  }

  /** Resolves when fewer threads are sent to than may be at a time: policies that do not answer hold only their own. */
  async whenFree(): Promise<void> {
    while (this.#inFlight.size >= maxInFlight) await Promise.race(Array.from(this.#inFlight, (work) => work.catch(() => {})))
  }

  async #deliverInOrder(store: WatchStore, deliveries: readonly WatchDelivery[]): Promise<void> {
    for (const delivery of deliveries) if (!(await this.#deliver(store, delivery))) return
  }

  /** False where it is sent later, and those after it too. */
  async #deliver(store: WatchStore, delivery: WatchDelivery): Promise<boolean> {
    const runtime = this.#runtime
    const { id, watch, inbound, reason, threadCreatedAt } = delivery
    try {
      // A policy may have changed since the message was judged.
      const answer = inbound === undefined ? {} : await this.#options.ask(watch, inbound)
      const isRecent = runtime.clock.now() <= delivery.createdAt.getTime() + annotationGraceMs
      const mayGetOthers = isRecent && inbound?.rulesOnly !== 'for_good'
      if (answer.awaitsCategories && mayGetOthers) return await this.#onUnsent(store, delivery, 'categories_unknown')
      const isDenied = answer.deniedBy !== undefined
      const signal = deliverySignal(delivery, isDenied, runtime.clock.now())
      const { threadId, resourceId } = watch
      // What is answered in a conversation is the text of one run: like a message of it, the signal starts its own.
      const mode = delivery.answered ? 'queue' : 'now'
      await runtime.sends.sendAccepted(runtime.agent(watch.agentId), mode, signal, { threadId, resourceId }, { threadCreatedAt })
      await runtime.store.flush()
      await store.confirmDelivery({ id, now: runtime.clock.now() })
      if (reason !== 'hit') this.#options.onEnd(watch, reason)
      return true
    } catch (error) {
      if (runtime.closing) return false
      return this.#onUnsent(store, delivery, failureOf(error))
    }
  }

  /** The signal of a delivery could not be sent. True where it never will be. */
  async #onUnsent(store: WatchStore, { id, watch, reason, attempts }: WatchDelivery, error: string): Promise<boolean> {
    const now = this.#runtime.clock.now()
    // The thread has no place for it: the watch ends with its thread.
    if (error === 'thread_deleted') {
      await store.forgetWatch({ id: watch.id, now })
      return true
    }
    this.#runtime.logger.warn('the result of a watch could not be sent', { watch: watch.id, error })
    const isFinal = error === 'thread_forbidden' || error === 'id_taken'
    const retryAt = this.#options.retryAt(attempts + 1)
    await store.deferDelivery({ id, error, now, ...(isFinal ? {} : { retryAt }) })
    if (!isFinal) this.#options.wakeAt(retryAt)
    else if (reason !== 'hit') this.#options.onEnd(watch, reason)
    return isFinal
  }
}

/** The signal that wakes the thread of a watch: its reason, and the value that passed the schema. */
function deliverySignal({ id, watch, reason, value, inbound }: WatchDelivery, isDenied: boolean, now: number): Signal {
  const shownReason = isDenied ? 'denied' : reason
  const shown = isDenied || value === undefined ? {} : { value }
  const { untrustedText } = compileResultSchema(watch.resultSchema)
  const origin: Record<string, JSONValue> = inbound
    ? { inboundId: inbound.id, channel: `${inbound.kind}/${inbound.channelId}`, verified: inbound.sender.verified }
    : {}
  const taintedBy = inbound === undefined || isDenied ? {} : { taintedBy: [inbound.kind, `${inbound.kind}/${inbound.channelId}`] }
  return normalizeSignal(
    {
      type: 'notification',
      tagName: 'watch',
      contents: renderResult({ watchId: watch.id, description: watch.description, reason: shownReason, untrustedText, ...shown }),
      attributes: { id: watch.id, reason: shownReason, open: reason === 'hit' },
      metadata: { watch: { id: watch.id, reason: shownReason, ...shown, ...origin }, ...taintedBy },
    },
    { id, now },
  )
}

/** The code of a failure. Messages of providers may quote the prompt, in which a sender's text is. */
export function failureOf(error: unknown): string {
  return isHeedError(error) ? error.code : 'unexpected_error'
}
