import { isHeedError } from '../base/errors.ts'
import type { Dispatcher } from '../schedule/dispatcher.ts'
import type { NotificationRecord, NotificationStore } from '../store/contract/notifications.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'

/** When a run that may refuse a notification is looked after, should nobody who waits for it be left. */
export const confirmMs = 60_000

export type Unconfirmed = Pick<NotificationRecord, 'threadId' | 'id' | 'deliveredSignalId'>

/** So many threads are remembered; the others are looked after when their time has come. */
const mostThreads = 1_000

/** What runs of this process may refuse, by the thread that they run on. */
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

  /** A run may refuse it until its end, which may have been before. */
  expect(record: Unconfirmed, at: number): void {
    this.#dispatcher.expect(at)
    const others = this.#byThread.get(record.threadId)
    if (others) others.push(record)
    else if (this.#byThread.size < mostThreads) this.#byThread.set(record.threadId, [record])
    if (!this.#runtime.hostOf(record.threadId)) this.ended(record.threadId)
  }

  /** Nothing runs on the thread any more. */
  ended(threadId: string): void {
    const records = this.#byThread.get(threadId)
    if (!records) return
    this.#byThread.delete(threadId)
    const confirm = async () => {
      const store = await this.#store()
      await Promise.all(records.map((record) => confirmDelivery(this.#runtime, store, record)))
    }
    this.#dispatcher.track(confirm(), 'what became of a notification could not be found out; it is looked up later')
  }
}

/**
 * What became of a notification whose run may have refused it, by the word of its thread: refused, it is `failed`; taken in or gone, there is
 * nothing to look for; otherwise it is looked at again when its claim ends.
 */
export async function confirmDelivery(runtime: ThreadRuntime, store: NotificationStore, { threadId, id, deliveredSignalId }: Unconfirmed): Promise<void> {
  const mail = deliveredSignalId === undefined ? null : await signalOf(runtime, threadId, deliveredSignalId)
  if (mail?.state === 'rejected') await store.failed({ threadId, id, error: mail.reason ?? 'rejected', now: runtime.clock.now() })
  else if (mail?.state !== 'pending' && mail?.state !== 'taken') await store.confirm([{ threadId, id }])
}

async function signalOf(runtime: ThreadRuntime, threadId: string, signalId: string) {
  try {
    return await runtime.store.getSignal({ threadId }, signalId)
  } catch (error) {
    if (isHeedError(error) && error.code === 'thread_not_found') return null
    throw error
  }
}
