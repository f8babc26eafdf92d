import { useState } from 'react'
import type { AgentClient } from 'heed/client'
import { useAction, useQuery } from '../app/query.ts'
import { useSession } from '../app/session.tsx'
import { Time } from '../app/time.tsx'
import { Json } from '../parts/json.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import type { PanelProps } from '../thread/panel.tsx'
import { WatchCard } from '../views/watches.tsx'

type LaneHistory = Awaited<ReturnType<AgentClient['listLaneHistory']>>

/** The lanes of the thread: the present value of each, and the changes that led to it. */
export function LanesPanel({ thread, scope, agentId }: PanelProps) {
  const { client } = useSession()
  const agent = client.getAgent(agentId)
  const {
    data: lanes,
    error,
    isLoading,
    reload,
  } = useQuery(
    `lanes ${agentId} ${scope.threadId}`,
    () => agent.listLanes(scope),
    // Each state is a message of the thread.
    { version: thread.messages.length, everyMs: thread.connection === 'live' ? undefined : 5_000 },
  )
  if (isLoading) return <Loading />
  return (
    <>
      <Failed error={error} onRetry={reload} />
      {lanes?.length === 0 && (
        <Empty title="This thread has no lanes.">
          <p>
            A program sends its state with <code>sendStateSignal()</code>, or you do: “Signal…” below the transcript.
          </p>
        </Empty>
      )}
      {lanes?.map((lane) => (
        <Lane key={lane.id} id={lane.id} version={lane.version} agent={agent} scope={scope} />
      ))}
    </>
  )
}

function Lane({ id, version, agent, scope }: { id: string; version: number; agent: AgentClient; scope: PanelProps['scope'] }) {
  const [isOpen, setOpen] = useState(true)
  const { data: lane, error } = useQuery(`lane ${scope.threadId} ${id}`, () => agent.getLane({ ...scope, id }), { version })
  const history = useQuery(
    isOpen ? `history ${scope.threadId} ${id}` : null,
    () => agent.listLaneHistory({ ...scope, id, limit: 20 }),
    { version },
  )
  return (
    <section className="card lane">
      <header>
        <b className="label">{id}</b> <span className="meta">version {version}</span>
      </header>
      <Failed error={error} />
      {lane && <Json value={lane.value ?? [lane.snapshot, ...lane.deltas].map((one) => one?.signal.contents)} />}
      <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary className="meta">History</summary>
        <ul className="history">
          {history.data?.signals.map((signal) => (
            <LaneChange key={signal.version} signal={signal} />
          ))}
        </ul>
      </details>
    </section>
  )
}

function LaneChange({ signal }: { signal: LaneHistory['signals'][number] }) {
  const {
    version,
    mode,
    delta,
    waiting,
    signal: { contents, acceptedAt, createdAt },
  } = signal
  return (
    <li>
      <span className="versions">v{version}</span>{' '}
      <span className="meta">
        {mode}
        {waiting ? ', waits' : ''}
      </span>{' '}
      <Time at={acceptedAt ?? createdAt} />
      <pre className="json">
        {delta === undefined ? (typeof contents === 'string' ? contents : JSON.stringify(contents)) : JSON.stringify(delta, null, 2)}
      </pre>
    </li>
  )
}

/** What this thread waits for from outside. */
export function WatchesPanel({ thread, scope, agentId }: PanelProps) {
  const { client } = useSession()
  const agent = client.getAgent(agentId)
  const { data, error, isLoading, reload } = useQuery(
    `watches ${agentId} ${scope.threadId}`,
    () => agent.listWatches({ ...scope, limit: 50 }),
    // The stream of the thread has what happens to its watches. Older servers do not send it.
    { version: thread.watches, everyMs: thread.connection === 'live' && thread.watches.length > 0 ? undefined : 5_000 },
  )
  const cancel = useAction(async (id: string) => {
    await agent.cancelWatch({ id, ...(scope.resourceId === undefined ? {} : { resourceId: scope.resourceId }) })
    reload()
  })
  if (isLoading) return <Loading />
  return (
    <>
      <Failed error={error ?? cancel.error} onRetry={reload} />
      {data?.watches.length === 0 && (
        <Empty title="This thread waits for no message.">
          <p>
            An agent with <code>watches</code> waits with the tool <code>await_signal</code>.
          </p>
        </Empty>
      )}
      {data?.watches.map((watch) => (
        <WatchCard key={watch.id} watch={watch} agent={agent} onCancel={() => void cancel.run(watch.id)} />
      ))}
    </>
  )
}
