import type { NotificationRecord, NotificationStore } from '../store/notifications.ts'
import { isHeedError } from '../errors.ts'
import type { ThreadRuntime } from '../thread/runtime.ts'

/** When a run that may refuse a notification is looked after, should nobody who waits for it be left. */
export const confirmMs = 60_000

export type Unconfirmed = Pick<NotificationRecord, 'threadId' | 'id' | 'deliveredSignalId'>

/** So many threads are remembered; the others are looked after when their time has come. */
const mostThreads = 1_000

/** What runs of this process may refuse, by the thread that they run on. */
export class Confirmations {
  readonly #byThread = new Map<string, Unconfirmed[]>()

  add(record: Unconfirmed): void {
    const others = this.#byThread.get(record.threadId)
    if (others) others.push(record)
    else if (this.#byThread.size < mostThreads) this.#byThread.set(record.threadId, [record])
  }

  /** Nothing runs on the thread any more. */
  take(threadId: string): Unconfirmed[] {
    const found = this.#byThread.get(threadId) ?? []
    this.#byThread.delete(threadId)
    return found
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
