import type { NotificationStore } from '../store/contract/notifications.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { checkNotifications, type NotificationInput } from './input.ts'

/** Keeps what happened for an agent that is not in this process. One that has it decides about it. Resolves when it would survive a power cut. */
export async function leaveNotification(
  runtime: ThreadRuntime, store: NotificationStore, input: NotificationInput, { agentId, threadId, resourceId }: { agentId: string; threadId: string; resourceId: string },
): Promise<void> {
  const checked = checkNotifications([input])
  await runtime.open()
  // Refused where the thread is another's.
  await runtime.store.getThread({ threadId, resourceId })
  const now = runtime.clock.now()
  await store.ingest(checked.map((item) => ({ ...item, id: item.id ?? runtime.newId(), threadId, resourceId, agentId, now, undecidedUntil: now })))
  await store.flush()
}
