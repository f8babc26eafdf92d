import { useQuery } from '../app/query.ts'
import { useSession } from '../app/session.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import type { PanelProps } from '../thread/panel.tsx'
import { NotificationList } from '../views/inbox.tsx'

/** The notifications of this thread. */
export function InboxPanel({ thread, scope, agentId }: PanelProps) {
  const { client } = useSession()
  const { notifications } = client.getAgent(agentId)
  const counts = `${thread.inbox?.pending ?? 0} ${thread.inbox?.unread ?? 0} ${thread.messages.length}`
  const { data, error, isLoading, reload } = useQuery(
    `inbox ${agentId} ${scope.threadId}`,
    () => notifications.list({ ...scope, limit: 100 }),
    // The stream of the thread has the numbers, and the messages that notifications become.
    { version: counts, everyMs: thread.connection === 'live' && thread.inbox !== null ? undefined : 5_000 },
  )
  if (isLoading) return <Loading />
  return (
    <>
      <Failed error={error} onRetry={reload} />
      {data?.notifications.length === 0 && (
        <Empty title="No notifications.">
          <p>A source sends them, or you do: “Signal…” below the transcript.</p>
        </Empty>
      )}
      {data && <NotificationList records={data.notifications} onChanged={reload} />}
    </>
  )
}
