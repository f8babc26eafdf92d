import { useMemo, useState } from 'react'
import type { Thread } from 'heed/react'
import { useAction } from '../app/query.ts'
import { hrefOf, Link, navigate, setQuery, usePlace } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { Empty, Failed, Status } from '../parts/states.tsx'
import { Approvals } from './approval.tsx'
import { Composer } from './composer.tsx'
import { useHistory, type History } from './history.ts'
import { scopeOf, WithThread, type KnownThread } from './known-thread.tsx'
import { useOpenThread } from './open-thread.ts'
import { ThreadPanel } from './panel.tsx'
import type { RowActions } from './row.tsx'
import { SignalDialog } from './signal-dialog.tsx'
import { TourCard, tourOf } from './tour.tsx'
import { Transcript } from './transcript.tsx'

/** One thread: its transcript, the decisions that it waits for, the composer, and the panels beside it. */
export function ThreadPage({ threadId }: { threadId: string }) {
  return <WithThread threadId={threadId}>{(thread) => <OpenThread key={thread.agentId} {...thread} />}</WithThread>
}

/** The messages up to this one: by their ids where all are loaded, else by the time of this one. */
function upTo({ messages, hasOlder }: Thread, history: History, messageId: string): { messageIds: string[] } | { endDate: Date } {
  const at = messages.findIndex(({ id }) => id === messageId)
  const createdAt = (messages[at] ?? history.find(messageId))?.metadata?.createdAt
  if (hasOlder && createdAt !== undefined) return { endDate: new Date(createdAt) }
  return { messageIds: messages.slice(0, at + 1).map(({ id }) => id) }
}

function OpenThread({ threadId, resourceId, agentId, title }: KnownThread) {
  const { client, agents } = useSession()
  const { query } = usePlace()
  const thread = useOpenThread(client.getAgent(agentId), { threadId, ...(resourceId === undefined ? {} : { resourceId }) })
  const [isSignalOpen, setSignalOpen] = useState(false)
  const agent = agents.find(({ id }) => id === agentId)
  const agentName = agent?.name ?? agentId
  const tour = agent && tourOf(agent)
  const { retry, discard } = thread
  const actions = useMemo<RowActions>(() => ({ agentName, retry: (id) => void retry(id), discard }), [agentName, retry, discard])
  const memory = useMemo(
    () => client.getAgent(agentId).memory(resourceId === undefined ? {} : { resourceId }),
    [client, agentId, resourceId],
  )
  const history = useHistory(memory, threadId, thread.hasOlder ? thread.messages[0]?.id : undefined)
  const fork = useAction(async (messageId: string) => {
    const messageFilter = upTo(thread, history, messageId)
    const { thread: clone } = await memory.cloneThread({
      sourceThreadId: threadId,
      title: `Fork of ${title || threadId}`,
      options: { messageFilter },
    })
    navigate(hrefOf(['threads', clone.id], { agent: agentId }))
  })
  const scope = scopeOf({ threadId, resourceId, agentId, title })
  return (
    <div className="thread" data-panel={query.get('panel') ?? undefined}>
      <section className="thread-main" aria-label="Thread">
        <ThreadHead {...{ threadId, resourceId, agentId, title, thread }} />
        <Failed error={fork.error} />
        {thread.messages.length === 0 && thread.connection === 'live' ? (
          <div className="transcript-frame">
            <Empty title="This thread has no messages yet.">
              <p>Write below. The thread begins with its first message.</p>
            </Empty>
          </div>
        ) : (
          <Transcript thread={thread} history={history} actions={actions} at={query.get('at')} onFork={(id) => void fork.run(id)} />
        )}
        <div className="thread-foot">
          {tour?.threadId === threadId && <TourCard tour={tour} agentId={agentId} thread={thread} />}
          <Approvals thread={thread} />
        </div>
        <Composer thread={thread} threadId={threadId} onSignal={() => setSignalOpen(true)} />
      </section>
      <ThreadPanel thread={thread} scope={scope} agentId={agentId} />
      {isSignalOpen && <SignalDialog scope={scope} agentId={agentId} onClose={() => setSignalOpen(false)} />}
    </div>
  )
}

function ThreadHead({ threadId, resourceId, agentId, title, thread }: KnownThread & { thread: Thread }) {
  const { agents } = useSession()
  return (
    <header className="thread-head">
      <Link className="back" to={['threads']} aria-label="All threads">
        ‹
      </Link>
      <div className="thread-name">
        <h1>{title || threadId}</h1>
        <p className="meta">
          {title !== '' && <span className="mono">{threadId}</span>}
          {resourceId !== undefined && <span>resource {resourceId}</span>}
          {agents.length > 1 ? (
            <label>
              agent{' '}
              <select value={agentId} onChange={(event) => setQuery({ agent: event.target.value })}>
                {agents.map(({ id }) => (
                  <option key={id} value={id}>
                    {id}
                  </option>
                ))}
              </select>
            </label>
          ) : (
            <span>agent {agentId}</span>
          )}
        </p>
      </div>
      <Link className="button timeline-link" to={['threads', threadId, 'timeline']}>
        Timeline
      </Link>
      <Connection thread={thread} />
      <Status status={thread.status} />
      <button type="button" className="panel-toggle" onClick={() => setQuery({ panel: 'queue' })}>
        Panels
      </button>
    </header>
  )
}

/** Whether the page shows the present: a break is shown as long as it lasts. */
function Connection({ thread: { connection } }: { thread: Thread }) {
  return <span className={`connection connection-${connection}`}>{connection}</span>
}
