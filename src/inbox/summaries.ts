import type { NotificationStore, SummaryBatch } from '../store/contract/notifications.ts'
import { cancelQueued } from '../thread/send/queue.ts'
import type { SendReceipt } from '../thread/send/receipt.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { claimMs } from '../schedule/dispatcher.ts'
import { batchIdOf, pendingIn, summarySignal, summarySignalId } from './signals.ts'
import { KeyedMutex } from '../base/promises.ts'

/** Where more waits on a thread than this, what its mailbox has behind it is not looked through. */
const mostLookedAt = 100
/** So often one is taken back because another came at the same moment. */
const mostRounds = 4

/** A summary that is in its thread. */
export interface Told {
  signalId: string
  /** Absent where it was there already. */
  receipt?: SendReceipt
}

/** Sends summaries: at any time at most one waits on a thread for a run to take it in. */
export class Summaries {
  readonly #runtime: ThreadRuntime
  readonly #keep: (store: NotificationStore) => Promise<void>
  /** Two of one thread at once would not see each other. */
  readonly #mutex = new KeyedMutex()

  /** `keep`: resolves when what the inbox wrote is kept no later than what its thread writes next. */
  constructor(runtime: ThreadRuntime, keep: (store: NotificationStore) => Promise<void>) {
    this.#runtime = runtime
    this.#keep = keep
  }

  /** Sends what still waits in a batch; nothing where nothing does. What is of low priority only wakes no model. */
  send(store: NotificationStore, batch: SummaryBatch): Promise<Told | undefined> {
    return this.#mutex.run(batch.threadId, () => this.#send(store, batch))
  }

  async #send(store: NotificationStore, batch: SummaryBatch): Promise<Told | undefined> {
    const runtime = this.#runtime
    const { round: first, isThere } = await this.#firstRound(batch)
    // Whoever sent it died before that was written down: nothing more can be told with it.
    if (isThere) return { signalId: summarySignalId(batch, first) }
    for (let round = first; ; round++) {
      const whole = pendingIn(batch) === 0 ? batch : await this.#withUnseen(store, batch, round > first)
      if (pendingIn(whole) === 0) {
        await store.summarised(batch.id, undefined)
        return undefined
      }
      const options = { ...scopeOf(batch), ...(whole.wakes ? {} : { ifIdle: { behavior: 'persist' as const } }) }
      const receipt = await runtime.sends.sendAccepted(runtime.agent(batch.agentId), 'now', summarySignal(whole, runtime.clock.now(), round), options)
      // One whose claim ended while it was sent is there without what joined it since.
      const isShort = whole !== batch && (await receipt.acceptance).duplicate
      if (round - first === mostRounds || (!isShort && !(await this.#isTakenBack(batch, receipt.signal.id)))) return { signalId: receipt.signal.id, receipt }
    }
  }

  /** Whoever had sent one and took it back, and died before it sent the next, is followed by it. */
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
   * Another process may have told of something at the same moment, so that neither saw the other's. Of two that wait, the later is taken back:
   * its sender sends one of both.
   */
  async #isTakenBack(batch: SummaryBatch, signalId: string): Promise<boolean> {
    const waiting = await this.#waiting(batch)
    if (waiting.findIndex(({ id }) => id === signalId) <= 0) return false
    return (await cancelQueued(this.#runtime, scopeOf(batch), [signalId])).length > 0
  }

  /** The batch, with what earlier summaries counted that no run has taken in. */
  async #withUnseen(store: NotificationStore, batch: SummaryBatch, isAgain: boolean): Promise<SummaryBatch> {
    const unseen = (await this.#waiting(batch)).filter(({ batchId }) => batchId !== batch.id)
    if (unseen.length === 0 && !isAgain) return batch
    const takenBack = unseen.length === 0 ? [] : await this.#takeBack(store, batch, unseen)
    return (await store.joinBatches(batch.id, takenBack)) ?? batch
  }

  /** Takes summaries back that no run has taken in, and answers of which batches. Whoever dies before these are counted elsewhere leaves them due. */
  async #takeBack(store: NotificationStore, batch: SummaryBatch, unseen: ReadonlyArray<{ id: string; batchId: string }>): Promise<string[]> {
    const runtime = this.#runtime
    const scope = scopeOf(batch)
    await store.holdBatches(unseen.map(({ batchId }) => batchId), runtime.clock.now() + claimMs)
    await this.#keep(store)
    const cancelled = new Set(await cancelQueued(runtime, scope, unseen.map(({ id }) => id)))
    for (const { id, batchId } of unseen) {
      // A run was faster: that is told. What another process took back meanwhile is with that one.
      if (!cancelled.has(id) && (await runtime.store.getSignal(scope, id))?.state !== 'cancelled') await store.summarised(batchId, id)
    }
    return unseen.flatMap(({ id, batchId }) => (cancelled.has(id) ? batchId : []))
  }

  /** The summaries for an agent that wait on a thread for a run to take them in, in their order. */
  async #waiting(batch: SummaryBatch): Promise<Array<{ id: string; batchId: string }>> {
    const { store } = this.#runtime
    const scope = scopeOf(batch)
    const thread = await store.getThread(scope)
    if (!thread || thread.status === 'idle') return []
    const pending = await store.listSignals(scope, { states: ['pending'], limit: mostLookedAt })
    return pending.filter(({ agentId }) => agentId === batch.agentId).flatMap(({ id }) => {
      const batchId = batchIdOf(id)
      return batchId === undefined ? [] : [{ id, batchId }]
    })
  }
}

function scopeOf({ threadId, resourceId }: SummaryBatch): { threadId: string; resourceId: string } {
  return { threadId, resourceId }
}
