import type { NotificationStore, SummaryBatch } from '../store/notifications.ts'
import { cancelQueued } from '../thread/queue.ts'
import type { SendReceipt } from '../thread/receipt.ts'
import type { ThreadRuntime } from '../thread/runtime.ts'
import { sendAccepted } from '../thread/sending.ts'
import { batchIdOf, pendingIn, summarySignal, summarySignalId } from './signals.ts'
import { Turns } from './turns.ts'

/** Where more waits on a thread than this, what its mailbox has behind it is not looked through. */
const mostLookedAt = 100
/** So often one is taken back because another came at the same moment. */
const mostRounds = 4

/** Sends summaries: at any time at most one waits on a thread for a run to take it in. */
export class Summaries {
  readonly #runtime: ThreadRuntime
  /** Two of one thread at once would not see each other. */
  readonly #turns = new Turns()

  constructor(runtime: ThreadRuntime) {
    this.#runtime = runtime
  }

  /** Sends what still waits in a batch; nothing where nothing does. What is of low priority only wakes no model. */
  send(store: NotificationStore, batch: SummaryBatch): Promise<SendReceipt | undefined> {
    return this.#turns.take(batch.threadId, () => this.#send(store, batch))
  }

  async #send(store: NotificationStore, batch: SummaryBatch): Promise<SendReceipt | undefined> {
    const runtime = this.#runtime
    const first = await this.#firstRound(batch)
    for (let round = first; ; round++) {
      const whole = pendingIn(batch) === 0 ? batch : await this.#withUnseen(store, batch, round > first)
      if (pendingIn(whole) === 0) {
        await store.summarised(batch.id, undefined)
        return undefined
      }
      const options = { ...scopeOf(batch), ...(whole.wakes ? {} : { ifIdle: { behavior: 'persist' as const } }) }
      const receipt = await sendAccepted(runtime, runtime.agent(batch.agentId), 'now', summarySignal(whole, runtime.clock.now(), round), options)
      if (round - first === mostRounds || !(await this.#isTakenBack(batch, receipt.signal.id))) return receipt
    }
  }

  /** Whoever had sent one and took it back, and died before it sent the next, is followed by it. */
  async #firstRound(batch: SummaryBatch): Promise<number> {
    const { store } = this.#runtime
    const scope = scopeOf(batch)
    if (!(await store.getThread(scope))) return 0
    for (let round = 0; ; round++) if ((await store.getSignal(scope, summarySignalId(batch, round)))?.state !== 'cancelled') return round
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

  /**
   * The batch, with what earlier summaries counted that no run has taken in: they are cancelled. That comes last, so that whoever dies in
   * between leaves one summary too many and never one too few.
   */
  async #withUnseen(store: NotificationStore, batch: SummaryBatch, isAgain: boolean): Promise<SummaryBatch> {
    const unseen = (await this.#waiting(batch)).filter(({ batchId }) => batchId !== batch.id)
    if (unseen.length === 0 && !isAgain) return batch
    const whole = await store.joinBatches(batch.id, unseen.map(({ batchId }) => batchId))
    await cancelQueued(this.#runtime, scopeOf(batch), unseen.map(({ id }) => id))
    return whole ?? batch
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
