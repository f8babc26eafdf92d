import { isHeedError } from '../base/errors.ts'
import type { Dispatcher } from '../schedule/dispatcher.ts'
import type { NotificationRecord, NotificationStore } from '../store/contract/notifications.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'

/** When a delivery to a run that may reject it is looked up, in case the process that waits for the outcome is gone. */
export const confirmMs = 60_000

type Unconfirmed = Pick<NotificationRecord, 'threadId' | 'id' | 'deliveredSignalId'>

/** How many threads are remembered; deliveries on others are looked up when they are due. */
const maxThreads = 1_000

/** Deliveries that runs of this process may still reject, by thread. */
export class Confirmations {
  readonly #runtime: ThreadRuntime
  readonly #dispatcher: Dispatcher
  readonly #store: () => Promise<NotificationStore>
  readonly #byThread = new Map<string, Unconfirmed[]>()

  constructor(runtime: ThreadRuntime, dispatcher: Dispatcher, store: () => Promise<NotificationStore>) {
    this.#runtime = runtime
    this.#dispatcher = dispatcher
    this.#store = store
  }

  /** The run may reject the notification until it ends, which may be already. */
  expect(record: Unconfirmed, at: number): void {
    this.#dispatcher.wakeAt(at)
    const others = this.#byThread.get(record.threadId)
    if (others) others.push(record)
    else if (this.#byThread.size < maxThreads) this.#byThread.set(record.threadId, [record])
    if (!this.#runtime.hostOf(record.threadId)) this.confirmThread(record.threadId)
  }

  /** The last run of the thread ended. */
  confirmThread(threadId: string): void {
    const records = this.#byThread.get(threadId)
    if (!records) return
    this.#byThread.delete(threadId)
    const confirm = async () => {
      const store = await this.#store()
      await Promise.all(records.map((record) => confirmDelivery(this.#runtime, store, record)))
    }
    this.#dispatcher.track(confirm(), 'the outcome of a notification could not be read; it is looked up later')
  }
}

/**
 * Looks up the outcome of a delivery in the mailbox of its thread: rejected, the record is `failed`; consumed or deleted, it is confirmed;
 * otherwise it is looked up again when its claim ends.
 */
export async function confirmDelivery(
  runtime: ThreadRuntime, store: NotificationStore, { threadId, id, deliveredSignalId }: Unconfirmed,
): Promise<void> {
  const mail = deliveredSignalId === undefined ? null : await signalOf(runtime, threadId, deliveredSignalId)
  if (mail?.state === 'rejected') {
    await store.failed({ threadId, id, error: mail.reason ?? 'rejected', signalId: mail.id, now: runtime.clock.now() })
  } else if (mail?.state !== 'pending' && mail?.state !== 'taken') await store.confirm([{ threadId, id }])
}

async function signalOf(runtime: ThreadRuntime, threadId: string, signalId: string) {
  try {
    return await runtime.store.getSignal({ threadId }, signalId)
  } catch (error) {
    if (isHeedError(error) && error.code === 'thread_not_found') return null
    throw error
  }
}
