import { useState } from 'react'
import type { NotificationsClient } from 'heed/client'
import { useLive } from '../app/live.tsx'
import { useAction, useQuery } from '../app/query.ts'
import { Link, setQuery, usePlace } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { clockOf, Time } from '../app/time.tsx'
import { Json } from '../parts/json.tsx'
import { Empty, Failed, Loading, OutsideText } from '../parts/states.tsx'
import { Priority } from '../thread/row.tsx'

type NotificationRecord = Awaited<ReturnType<NotificationsClient['get']>>

const priorities = ['urgent', 'high', 'medium', 'low'] as const
const statuses = ['pending', 'delivered', 'seen', 'dismissed', 'archived', 'discarded', 'failed'] as const

/** How many pending notifications are listed, and how many of all. */
const perList = 100

/** The pending notifications and the newest ones, by priority, each with the decision about it and the reason. */
export function InboxView() {
  const { client, agents } = useSession()
  const { query } = usePlace()
  const priority = query.get('priority') ?? ''
  const status = query.get('status') ?? ''
  const text = (query.get('q') ?? '').toLowerCase()
  const { data, error, isLoading, reload } = useQuery(
    'all notifications',
    async () => {
      if (agents.length === 0) return []
      const [pending, newest] = await Promise.all([
        client.listNotifications({ status: ['pending'], limit: perList }),
        client.listNotifications({ limit: perList }),
      ])
      const all = new Map([...newest.notifications, ...pending.notifications].map((record) => [`${record.threadId} ${record.id}`, record]))
      return [...all.values()].toSorted((one, other) => rank(one) - rank(other) || other.createdAt.localeCompare(one.createdAt))
    },
    // A delivery changes its thread; a notification that is pending, or was marked, changes none.
    useLive(undefined, 5_000),
  )
  const count = (one: string) => data?.filter((record) => record.priority === one && record.status === 'pending').length ?? 0
  const records = data?.filter(
    (record) =>
      (priority === '' || record.priority === priority) &&
      (status === '' || record.status === status) &&
      (text === '' || `${record.summary} ${record.source} ${record.kind}`.toLowerCase().includes(text)),
  )
  return (
    <div className="page">
      <header className="page-head">
        <h1>Inbox</h1>
      </header>
      <div className="filters" role="search">
        <input
          type="search"
          aria-label="Search notifications"
          placeholder="Search"
          value={query.get('q') ?? ''}
          onChange={(event) => setQuery({ q: event.target.value })}
        />
        <div className="choices" role="group" aria-label="Priority">
          {priorities.map((one) => (
            <button
              key={one}
              type="button"
              aria-pressed={priority === one}
              onClick={() => setQuery({ priority: priority === one ? undefined : one })}
            >
              <Priority priority={one} /> {count(one) > 0 && <b className="count">{count(one)} pending</b>}
            </button>
          ))}
        </div>
        <select aria-label="Status" value={status} onChange={(event) => setQuery({ status: event.target.value })}>
          <option value="">any status</option>
          {statuses.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </div>
      <Failed error={error} onRetry={reload} />
      {isLoading && <Loading />}
      {data?.length === 0 && (
        <Empty title="No notifications.">
          <p>
            A source such as <code>GithubSource</code> sends them to threads; the delivery policy decides when an agent reads one.
          </p>
        </Empty>
      )}
      {data && data.length > 0 && records?.length === 0 && (
        <Empty title="No notification matches.">
          <button type="button" onClick={() => setQuery({ q: undefined, priority: undefined, status: undefined })}>
            Clear filters
          </button>
        </Empty>
      )}
      {records && <NotificationList records={records} onChanged={reload} withThread />}
    </div>
  )
}

function rank({ priority }: NotificationRecord): number {
  return priorities.indexOf(priority)
}

export function NotificationList({
  records,
  onChanged,
  withThread = false,
}: {
  records: readonly NotificationRecord[]
  onChanged: () => void
  withThread?: boolean
}) {
  return (
    <ul className="notifications">
      {records.map((record) => (
        <li key={`${record.threadId} ${record.id}`}>
          <NotificationItem record={record} onChanged={onChanged} withThread={withThread} />
        </li>
      ))}
    </ul>
  )
}

function NotificationItem({ record, onChanged, withThread }: { record: NotificationRecord; onChanged: () => void; withThread: boolean }) {
  const { client } = useSession()
  const [isOpen, setOpen] = useState(false)
  const { id, threadId, resourceId, agentId } = record
  const inbox = client.getAgent(agentId).notifications
  const act = useAction(async (action: 'seen' | 'dismissed' | 'archived' | 'retry') => {
    if (action === 'retry') await inbox.retry({ threadId, resourceId, ids: [id] })
    else await inbox.mark({ threadId, resourceId, ids: [id], status: action })
    onChanged()
  })
  return (
    <article className={`notification notification-${record.status}`}>
      <div className="line">
        <Priority priority={record.priority} />
        <b>{record.source}</b> <span className="meta">{record.kind}</span>
        {record.coalescedCount > 1 && <span className="chip">×{record.coalescedCount}</span>}
        <span className="chip">{record.status}</span>
        {withThread && (
          <Link to={['threads', threadId]} className="mono">
            {threadId}
          </Link>
        )}
        <span className="meta">
          <Time at={record.createdAt} />
        </span>
      </div>
      <OutsideText label={`from ${record.source}`}>{record.summary}</OutsideText>
      <p className="decision">{decisionOf(record)}</p>
      <div className="actions">
        <button type="button" className="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Less' : 'Details'}
        </button>
        {(record.status === 'pending' || record.status === 'delivered') && (
          <button type="button" className="quiet" onClick={() => void act.run('seen')}>
            Seen
          </button>
        )}
        {record.status !== 'dismissed' && record.status !== 'archived' && (
          <button type="button" className="quiet" onClick={() => void act.run('dismissed')}>
            Dismiss
          </button>
        )}
        {record.status === 'failed' && (
          <button type="button" onClick={() => void act.run('retry')}>
            Retry
          </button>
        )}
        {record.deliveredSignalId !== undefined && (
          <Link to={['threads', threadId]} query={{ at: record.deliveredSignalId }}>
            In the thread
          </Link>
        )}
      </div>
      {isOpen && <Json value={record} />}
      <Failed error={act.error} />
    </article>
  )
}

/** The decision in words, with the reason of the policy and the rule that decided, where the record has them. */
function decisionOf(record: NotificationRecord): string {
  const { deliveryAction, deliveryReason, deliverAt, summaryAt, lastDeliveryError, deliveryAttempts } = record
  const { deliveryRule } = record as { deliveryRule?: string }
  const why = [deliveryReason, deliveryRule === undefined ? undefined : `rule ${deliveryRule}`]
    .filter((one) => one !== undefined)
    .join(', ')
  const failed = lastDeliveryError === undefined ? '' : `; attempt ${deliveryAttempts} failed: ${lastDeliveryError}`
  const due = deliverAt ?? summaryAt
  const when = due === undefined ? '' : `, due ${clockOf(due)}`
  return `${deliveryAction ?? 'not decided yet'}${why === '' ? '' : ` (${why})`}${when}${failed}`
}
