import type { NotificationStore, SummaryBatch } from '../store/notifications.ts'
import { cancelQueued } from '../thread/queue.ts'
import type { SendReceipt } from '../thread/receipt.ts'
import type { ThreadRuntime } from '../thread/runtime.ts'
import { sendAccepted } from '../thread/sending.ts'
import { batchIdOf, pendingIn, summarySignal, summarySignalId } from './signals.ts'
import { Turns } from './turns.ts'

/** Where more waits on a thread than this, what its mailbox has behind it is not looked through. */
const mostLookedAt = 100

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
    const { threadId, resourceId, agentId, id } = batch
    const whole = pendingIn(batch) === 0 ? batch : await this.#withUnseen(store, batch)
    if (pendingIn(whole) === 0) {
      await store.summarised(id, undefined)
      return undefined
    }
    const runtime = this.#runtime
    const options = { threadId, resourceId, ...(whole.wakes ? {} : { ifIdle: { behavior: 'persist' as const } }) }
    return sendAccepted(runtime, runtime.agent(agentId), 'now', summarySignal(whole, runtime.clock.now()), options)
  }

  /**
   * The batch, with what earlier summaries counted that no run has taken in: they are cancelled. That comes last, so that whoever dies in
   * between leaves one summary too many and never one too few.
   */
  async #withUnseen(store: NotificationStore, batch: SummaryBatch): Promise<SummaryBatch> {
    const { threadId, resourceId, agentId, id } = batch
    const scope = { threadId, resourceId }
    const thread = await this.#runtime.store.getThread(scope)
    if (!thread || thread.status === 'idle') return batch
    const waiting = await this.#runtime.store.listSignals(scope, { states: ['pending'], limit: mostLookedAt })
    const unseen = waiting.filter((mail) => mail.agentId === agentId).flatMap((mail) => batchIdOf(mail.id) ?? []).filter((other) => other !== id)
    if (unseen.length === 0) return batch
    const whole = await store.joinBatches(id, unseen)
    await cancelQueued(this.#runtime, scope, unseen.map((other) => summarySignalId({ id: other })))
    return whole ?? batch
  }
}
