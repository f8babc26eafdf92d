import type { Agent } from '../../agent/agent.ts'
import { describe } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { NotificationStatus } from '../../store/contract/notifications.ts'
import type { Streamed } from './frames.ts'

/** How many notifications of a thread are in which state. */
export interface InboxCounts {
  /** Nobody was told of them yet. */
  pending: number
  /** Pending, or in the conversation and not marked as seen. */
  unread: number
  counts: Partial<Record<NotificationStatus, number>>
}

/**
 * Tells how the inbox of a thread stands, now and whenever it changes. However fast it changes, it is counted once at a time, and only what
 * is another count than the last is told. Answers how to stop that.
 */
export function tellInbox(agent: Agent, scope: { threadId: string; resourceId: string }, tell: (chunk: Streamed) => void, logger: Logger): () => void {
  let over = false
  let changed = true
  let told = ''
  let end = () => {}

  const count = async () => {
    const store = await agent.site().inbox.store()
    while (changed && !over) {
      changed = false
      const counts = await store.countNotifications(scope)
      const data: InboxCounts = { pending: counts.pending ?? 0, unread: (counts.pending ?? 0) + (counts.delivered ?? 0), counts }
      const words = JSON.stringify(data)
      if (!over && words !== told) tell({ type: 'data-inbox', data } as Streamed)
      told = words
    }
  }

  let counting: Promise<void> | undefined
  const recount = () => {
    changed = true
    counting ??= count().catch(failed).finally(() => (counting = undefined))
  }
  const failed = (error: unknown) => {
    if (!over) logger.warn('the inbox of a thread could not be counted', { threadId: scope.threadId, error: describe(error) })
  }
  const watch = async () => {
    const subscription = await agent.subscribeToInbox(scope)
    end = () => subscription.unsubscribe()
    if (over) return end()
    // After it watches: what changes from here on is heard.
    recount()
    for await (const _ of subscription.stream) recount()
  }
  watch().catch(failed)
  return () => {
    over = true
    end()
  }
}
