import { useMemo, useState } from 'react'
import { isHeedError } from 'heed/client'
import { useThread, type Thread } from 'heed/react'
import { useAction, useQuery } from '../app/query.ts'
import { hrefOf, Link, navigate, setQuery, usePlace } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { Empty, Failed, Loading, Status } from '../parts/states.tsx'
import { Approvals } from './approval.tsx'
import { Composer } from './composer.tsx'
import { ThreadPanel } from './panel.tsx'
import type { RowActions } from './row.tsx'
import { SignalDialog } from './signal-dialog.tsx'
import { TourCard, tourOf } from './tour.tsx'
import { Transcript } from './transcript.tsx'

/** One thread: its transcript, the decisions that it waits for, the composer, and the panels beside it. */
export function ThreadPage({ threadId }: { threadId: string }) {
  const { client, agents } = useSession()
  const { query } = usePlace()
  const row = useQuery(`thread ${threadId}`, () =>
    client
      .memory()
      .getThreadById({ threadId })
      .catch((error: unknown) => {
        if (isHeedError(error) && error.code === 'thread_not_found') return null
        throw error
      }),
  )
  if (row.isLoading) return <Loading rows={6} />
  if (row.error !== undefined)
    return (
      <div className="page">
        <Failed error={row.error} onRetry={row.reload} />
      </div>
    )
  const agentId = query.get('agent') ?? row.data?.agentId ?? agents[0]?.id
  if (agentId === undefined)
    return (
      <Empty title="This server has no agents.">
        <p>Add one to the Heed that it serves.</p>
      </Empty>
    )
  const resourceId = row.data?.resourceId ?? query.get('resource') ?? undefined
  return <OpenThread key={agentId} threadId={threadId} resourceId={resourceId} agentId={agentId} title={row.data?.title ?? ''} />
}

/** The messages up to this one: by their ids where all are loaded, else by the time of this one. */
function upTo({ messages, hasOlder }: Thread, messageId: string): { messageIds: string[] } | { endDate: Date } {
  const at = messages.findIndex(({ id }) => id === messageId)
  const createdAt = messages[at]?.metadata?.createdAt
  if (hasOlder && createdAt !== undefined) return { endDate: new Date(createdAt) }
  return { messageIds: messages.slice(0, at + 1).map(({ id }) => id) }
}

interface OpenThreadProps {
  threadId: string
  resourceId: string | undefined
  agentId: string
  title: string
}

function OpenThread({ threadId, resourceId, agentId, title }: OpenThreadProps) {
  const { client, agents } = useSession()
  const { query } = usePlace()
  const thread = useThread({ threadId, agent: agentId, client, ...(resourceId === undefined ? {} : { resourceId }) })
  const [isSignalOpen, setSignalOpen] = useState(false)
  const agent = agents.find(({ id }) => id === agentId)
  const agentName = agent?.name ?? agentId
  const tour = agent && tourOf(agent)
  const { retry, discard } = thread
  const actions = useMemo<RowActions>(() => ({ agentName, retry: (id) => void retry(id), discard }), [agentName, retry, discard])
  const fork = useAction(async (messageId: string) => {
    const memory = client.getAgent(agentId).memory(resourceId === undefined ? {} : { resourceId })
    const messageFilter = upTo(thread, messageId)
    const { thread: clone } = await memory.cloneThread({
      sourceThreadId: threadId,
      title: `Fork of ${title || threadId}`,
      options: { messageFilter },
    })
    navigate(hrefOf(['threads', clone.id], { agent: agentId }))
  })
  const scope = { threadId, ...(resourceId === undefined ? {} : { resourceId }) }
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
          <Transcript thread={thread} actions={actions} at={query.get('at')} onFork={(id) => void fork.run(id)} />
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

function ThreadHead({ threadId, resourceId, agentId, title, thread }: OpenThreadProps & { thread: Thread }) {
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
