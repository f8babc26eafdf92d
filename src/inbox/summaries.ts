import type { NotificationStore, SummaryBatch } from '../store/contract/notifications.ts'
import { cancelQueued } from '../thread/send/queue.ts'
import type { SendReceipt } from '../thread/send/receipt.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { claimMs } from '../schedule/dispatcher.ts'
import { batchIdOf, pendingIn, summarySignal, summarySignalId } from './signals.ts'
import { KeyedMutex } from '../base/promises.ts'

/** How many pending signals of a thread are searched for summaries. */
const maxPending = 100
/** How many times a summary is replaced because another process sent one at the same time. */
const maxRounds = 4

/** A summary that its thread has accepted. */
interface SentSummary {
  signalId: string
  /** Absent where an earlier attempt sent it. */
  receipt?: SendReceipt
}

/** Sends summaries. At most one is pending on a thread at any time. */
export class Summaries {
  readonly #runtime: ThreadRuntime
  readonly #flush: (store: NotificationStore) => Promise<void>
  /** Concurrent summaries of one thread would not find each other. */
  readonly #mutex = new KeyedMutex()

  /** `flush`: resolves when the writes of the inbox are durable no later than the next write of the thread. */
  constructor(runtime: ThreadRuntime, flush: (store: NotificationStore) => Promise<void>) {
    this.#runtime = runtime
    this.#flush = flush
  }

  /**
   * Sends a summary of the pending notifications in a batch; undefined where there are none. Notifications of low priority alone start no
   * run.
   */
  send(store: NotificationStore, batch: SummaryBatch): Promise<SentSummary | undefined> {
    return this.#mutex.run(batch.threadId, () => this.#send(store, batch))
  }

  async #send(store: NotificationStore, batch: SummaryBatch): Promise<SentSummary | undefined> {
    const runtime = this.#runtime
    const { round: first, isThere } = await this.#firstRound(batch)
    // The process that sent it stopped before it stored that: nothing can be added to it.
    if (isThere) return { signalId: summarySignalId(batch, first) }
    for (let round = first; ; round++) {
      const whole = pendingIn(batch) === 0 ? batch : await this.#withPending(store, batch, round > first)
      if (pendingIn(whole) === 0) {
        await store.summarised(batch.id, undefined)
        return undefined
      }
      const options = { ...scopeOf(batch), ...(whole.wakes ? {} : { ifIdle: { behavior: 'persist' as const } }) }
      const receipt = await runtime.sends.sendAccepted(
        runtime.agent(batch.agentId), 'now', summarySignal(whole, runtime.clock.now(), round), options,
      )
      // A signal whose claim ended while it was sent does not count what joined the batch since.
      const isShort = whole !== batch && (await receipt.acceptance).duplicate
      if (round - first === maxRounds || (!isShort && !(await this.#cancelIfLater(batch, receipt.signal.id))))
        return { signalId: receipt.signal.id, receipt }
    }
  }

  /** The first round without a cancelled signal: a process may have stopped between the cancellation and the next round. */
  async #firstRound(batch: SummaryBatch): Promise<{ round: number; isThere: boolean }> {
    const { store } = this.#runtime
    const scope = scopeOf(batch)
    if (!(await store.getThread(scope))) return { round: 0, isThere: false }
    for (let round = 0; ; round++) {
      const state = (await store.getSignal(scope, summarySignalId(batch, round)))?.state
      if (state !== 'cancelled') return { round, isThere: state !== undefined }
    }
  }

  /**
   * Another process may have sent a summary at the same time. Of two that are pending, the later is cancelled, and its sender sends one for
   * both.
   */
  async #cancelIfLater(batch: SummaryBatch, signalId: string): Promise<boolean> {
    const waiting = await this.#pendingSummaries(batch)
    if (waiting.findIndex(({ id }) => id === signalId) <= 0) return false
    return (await cancelQueued(this.#runtime, scopeOf(batch), [signalId])).length > 0
  }

  /** The batch, joined with those of summaries that are still pending. */
  async #withPending(store: NotificationStore, batch: SummaryBatch, isAgain: boolean): Promise<SummaryBatch> {
    const pending = (await this.#pendingSummaries(batch)).filter(({ batchId }) => batchId !== batch.id)
    if (pending.length === 0 && !isAgain) return batch
    const takenBack = pending.length === 0 ? [] : await this.#cancelPending(store, batch, pending)
    return (await store.joinBatches(batch.id, takenBack)) ?? batch
  }

  /** Cancels pending summaries and returns their batches. If the process stops before these are joined with another, they are due again. */
  async #cancelPending(
    store: NotificationStore, batch: SummaryBatch, pending: ReadonlyArray<{ id: string; batchId: string }>,
  ): Promise<string[]> {
    const runtime = this.#runtime
    const scope = scopeOf(batch)
    await store.holdBatches(pending.map(({ batchId }) => batchId), runtime.clock.now() + claimMs)
    await this.#flush(store)
    const cancelled = new Set(
      await cancelQueued(
        runtime, scope, pending.map(({ id }) => id),
      ),
    )
    for (const { id, batchId } of pending) {
      // A run drained it first: it is sent. One that another process cancelled belongs to that process.
      if (!cancelled.has(id) && (await runtime.store.getSignal(scope, id))?.state !== 'cancelled') await store.summarised(batchId, id)
    }
    return pending.flatMap(({ id, batchId }) => (cancelled.has(id) ? batchId : []))
  }

  /** The pending summaries of an agent on a thread, in their order. */
  async #pendingSummaries(batch: SummaryBatch): Promise<Array<{ id: string; batchId: string }>> {
    const { store } = this.#runtime
    const scope = scopeOf(batch)
    const thread = await store.getThread(scope)
    if (!thread || thread.status === 'idle') return []
    const pending = await store.listSignals(scope, { states: ['pending'], limit: maxPending })
    return pending
      .filter(({ agentId }) => agentId === batch.agentId)
      .flatMap(({ id }) => {
        const batchId = batchIdOf(id)
        return batchId === undefined ? [] : [{ id, batchId }]
      })
  }
}

function scopeOf({ threadId, resourceId }: SummaryBatch): { threadId: string; resourceId: string } {
  return { threadId, resourceId }
}
