import { useLive } from '../app/live.tsx'
import { useQuery } from '../app/query.ts'
import { Link } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { exactOf } from '../app/time.tsx'
import { Json } from '../parts/json.tsx'
import { Failed, Loading } from '../parts/states.tsx'

/** What became of a signal, as `explain()` has it. */
export function SignalPage({ threadId, signalId }: { threadId: string; signalId: string }) {
  const { client, agents } = useSession()
  // A step that takes the signal changes no row of the list of threads: it is read again until the signal is settled.
  const { version, everyMs } = useLive(threadId)
  const { data, error, isLoading, reload } = useQuery(
    `signal ${threadId} ${signalId}`,
    () => client.getAgent(agents[0]?.id ?? '').explain({ threadId, signalId }),
    { version, everyMs: (found) => everyMs ?? (found?.state === 'pending' || found?.state === 'taken' ? 3_000 : undefined) },
  )
  return (
    <div className="page">
      <header className="page-head">
        <h1>Signal</h1>
      </header>
      <p className="meta">
        <Link to={['threads', threadId]} query={{ at: signalId }}>
          {threadId}
        </Link>{' '}
        <span className="mono">{signalId}</span>{' '}
        <Link to={['threads', threadId, 'timeline']} query={{ signal: signalId }}>
          Timeline
        </Link>
      </p>
      {isLoading && <Loading />}
      <Failed error={error} onRetry={reload} />
      {data && (
        <dl className="facts">
          <dt>State</dt>
          <dd>
            <b>{data.state}</b>
            {data.reason === undefined ? '' : `: ${data.reason}`}
          </dd>
          <dt>Route</dt>
          <dd>{routes[data.route] ?? data.route}</dd>
          <dt>Accepted</dt>
          <dd>{exactOf(data.acceptedAt)}</dd>
          {data.drainedAt !== undefined && (
            <>
              <dt>Taken</dt>
              <dd>
                {exactOf(data.drainedAt)}, by process <span className="mono">{data.owner}</span> under epoch {data.epoch}
              </dd>
            </>
          )}
          {data.settledAt !== undefined && (
            <>
              <dt>Settled</dt>
              <dd>{exactOf(data.settledAt)}</dd>
            </>
          )}
          {data.ahead !== undefined && (
            <>
              <dt>Before it</dt>
              <dd>{data.ahead} signals</dd>
            </>
          )}
          {data.runId !== undefined && (
            <>
              <dt>Run</dt>
              <dd className="mono">
                {data.runId}
                {data.step !== undefined && (
                  <>
                    , first in the prompt of{' '}
                    <Link to={['threads', threadId, 'runs', data.runId, 'steps', String(data.step)]}>step {data.step}</Link>
                  </>
                )}
              </dd>
            </>
          )}
          <dt>Agent</dt>
          <dd>{data.agentId}</dd>
        </dl>
      )}
      {data && (
        <details>
          <summary className="meta">Raw</summary>
          <Json value={data} />
        </details>
      )}
    </div>
  )
}

const routes: Readonly<Record<string, string>> = {
  wake: 'wake: it started a run',
  deliver: 'deliver: it entered the active run',
  interrupt: 'interrupt: it cut the stream and entered the run',
  queue: 'queue: it started a run of its own',
  persist: 'persist: it was stored in history without a run',
  discard: 'discard',
}
