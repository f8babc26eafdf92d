import type { AgentClient } from 'heed/client'
import { useLive } from '../app/live.tsx'
import { useAction, useQuery } from '../app/query.ts'
import { Link } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { Time } from '../app/time.tsx'
import { Json } from '../parts/json.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import { listMs } from './thread-list.ts'

type WatchRecord = Awaited<ReturnType<AgentClient['listWatches']>>['watches'][number]

/** The watches of all agents, or one of them. */
export function WatchesView({ watchId }: { watchId: string | undefined }) {
  const { client, agents } = useSession()
  const { data, error, isLoading, reload } = useQuery(
    `watches ${agents.map(({ id }) => id).join(' ')}`,
    async () => {
      const pages = await Promise.all(agents.map(({ id }) => client.getAgent(id).listWatches({ limit: 100 })))
      return pages.flatMap(({ watches }) => watches).toSorted((one, other) => other.createdAt.localeCompare(one.createdAt))
    },
    // A hit changes its thread; a message that was only considered changes none.
    useLive(undefined, listMs),
  )
  const cancel = useAction(async ({ id, agentId, resourceId }: WatchRecord) => {
    await client.getAgent(agentId).cancelWatch({ id, resourceId })
    reload()
  })
  const shown = watchId === undefined ? data : data?.filter(({ id }) => id === watchId)
  return (
    <div className="page">
      <header className="page-head">
        <h1>Watches</h1>
      </header>
      <Failed error={error ?? cancel.error} onRetry={reload} />
      {isLoading && <Loading />}
      {shown?.length === 0 && (
        <Empty title={watchId === undefined ? 'No agent waits for a message.' : 'There is no such watch.'}>
          <p>
            An agent with <code>watches</code> waits for messages of channels with the tool <code>await_signal</code>.
          </p>
        </Empty>
      )}
      <div className="cards">
        {shown?.map((watch) => (
          <WatchCard
            key={watch.id}
            watch={watch}
            agent={client.getAgent(watch.agentId)}
            onCancel={() => void cancel.run(watch)}
            withThread
          />
        ))}
      </div>
    </div>
  )
}

/** What a watch waits for, and every message that it considered: the verdict, and what crossed. The texts of messages stay outside. */
export function WatchCard({
  watch,
  agent,
  onCancel,
  withThread = false,
}: {
  watch: WatchRecord
  agent: AgentClient
  onCancel: () => void
  withThread?: boolean
}) {
  const { id, resourceId, evaluations, hits } = watch
  const live = useLive(watch.threadId, listMs)
  const { data, error } = useQuery(`explained ${id}`, () => agent.explain({ watchId: id, resourceId }), {
    ...live,
    version: `${live.version} ${watch.state} ${evaluations} ${hits}`,
  })
  return (
    <article className="card watch">
      <header>
        <b>{watch.description}</b>
        <span className={`chip ${watch.state === 'open' ? 'is-open' : ''}`}>
          {watch.state === 'open' ? 'open' : `ended: ${watch.reason ?? ''}`}
        </span>
        {withThread && (
          <Link to={['threads', watch.threadId]} className="mono">
            {watch.threadId}
          </Link>
        )}
      </header>
      <p className="meta">
        {watch.mode}, {evaluations} of {watch.maxEvaluations} evaluations,{' '}
        {watch.state === 'open' ? (
          <>
            expires <Time at={watch.expiresAt} />
          </>
        ) : (
          <>
            ended <Time at={watch.endedAt} />
          </>
        )}
      </p>
      <p className="meta">{criteriaOf(watch)}</p>
      <Failed error={error} />
      {data?.messages.length === 0 && <p className="meta">No message was considered yet.</p>}
      {data !== undefined && data.messages.length > 0 && (
        <table className="list verdicts">
          <caption className="visually-hidden">Messages that were considered</caption>
          <thead>
            <tr>
              <th scope="col">Received</th>
              <th scope="col">From</th>
              <th scope="col">Verdict</th>
              <th scope="col">Crossed</th>
            </tr>
          </thead>
          <tbody>
            {data.messages.map((message) => (
              <tr key={message.seq}>
                <td className="meta">
                  <Time at={message.receivedAt} />
                </td>
                <td className="mono">
                  {message.kind}/{message.channelId}
                </td>
                <td>
                  <b className={`verdict verdict-${message.reason}`}>{message.reason}</b>
                  {message.detail === undefined ? '' : ` ${message.detail}`}
                </td>
                <td>
                  {message.value === undefined ? (
                    <span className="meta">nothing</span>
                  ) : (
                    <span className="crossed">{typeof message.value === 'string' ? message.value : JSON.stringify(message.value)}</span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <div className="actions">
        {watch.state === 'open' && (
          <button type="button" onClick={onCancel}>
            End this watch
          </button>
        )}
        <details>
          <summary className="meta">Raw</summary>
          <Json value={watch} />
        </details>
      </div>
    </article>
  )
}

function criteriaOf({ criteria: { categories, channels, contacts } }: WatchRecord): string {
  const said = [
    ['categories', categories],
    ['channels', channels],
    ['contacts', contacts],
  ] as const
  return said
    .filter(([, values]) => values.length > 0)
    .map(([name, values]) => `${name}: ${values.join(', ')}`)
    .join('; ')
}
