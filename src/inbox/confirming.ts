import type { NotificationRecord, NotificationStore } from '../store/notifications.ts'
import { isHeedError } from '../errors.ts'
import type { ThreadRuntime } from '../thread/runtime.ts'

/** When a run that may refuse a notification is looked after, should nobody who waits for it be left. */
export const confirmMs = 60_000

/**
 * What became of a notification whose run may have refused it, by the word of its thread: refused, it is `failed`; taken in or gone, there is
 * nothing to look for; otherwise it is looked at again when its claim ends.
 */
export async function confirmDelivery(runtime: ThreadRuntime, store: NotificationStore, { threadId, id, deliveredSignalId }: NotificationRecord): Promise<void> {
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
