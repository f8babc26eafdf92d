import type { Agent } from '../../agent/agent.ts'
import { describe } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { NotificationStatus } from '../../store/contract/notifications.ts'
import type { SideChannel } from './event-stream.ts'
import type { StreamedChunk } from './frames.ts'

/** The data of a `data-inbox` chunk: how many notifications of a thread are in which state. */
export interface InboxCounts {
  /** Not yet delivered. */
  pending: number
  /** Pending, or delivered and not marked as seen. */
  unread: number
  counts: Partial<Record<NotificationStatus, number>>
}

/**
 * Emits the counts of a thread's inbox, now and after each change. One count runs at a time, however fast the inbox changes, and equal
 * counts are emitted once.
 */
export function inboxCounts(agent: Agent, scope: { threadId: string; resourceId: string }, logger: Logger): SideChannel {
  return (emit) => {
    let stopped = false
    let changed = true
    let lastJSON = ''
    let unsubscribe = () => {}

    const count = async () => {
      const store = await agent.site().inbox.store()
      while (changed && !stopped) {
        changed = false
        const counts = await store.countNotifications(scope)
        const data: InboxCounts = { pending: counts.pending ?? 0, unread: (counts.pending ?? 0) + (counts.delivered ?? 0), counts }
        const json = JSON.stringify(data)
        if (!stopped && json !== lastJSON) emit({ type: 'data-inbox', data } as StreamedChunk)
        lastJSON = json
      }
    }

    let counting: Promise<void> | undefined
    const recount = () => {
      changed = true
      counting ??= count().catch(warn).finally(() => (counting = undefined))
    }
    const warn = (error: unknown) => {
      if (!stopped) logger.warn('the inbox of a thread could not be counted', { threadId: scope.threadId, error: describe(error) })
    }
    const watch = async () => {
      const subscription = await agent.subscribeToInbox(scope)
      unsubscribe = () => subscription.unsubscribe()
      if (stopped) return unsubscribe()
      // Counted after the subscription is open, so that no change is missed.
      recount()
      for await (const _ of subscription.stream) recount()
    }
    watch().catch(warn)
    return () => {
      stopped = true
      unsubscribe()
    }
  }
}
