import { useLive } from '../app/live.tsx'
import { useQuery } from '../app/query.ts'
import { useSession } from '../app/session.tsx'
import { Time } from '../app/time.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import { listMs } from './thread-list.ts'

/** The processes on the storage, and those that ended within a week. */
export function ProcessesView() {
  const { client, agents } = useSession()
  const agentId = agents[0]?.id
  const { data, error, isLoading, reload } = useQuery(
    `processes ${agentId ?? ''}`,
    () => client.listProcesses(agentId === undefined ? {} : { agentId }),
    // No message announces that a process begins, goes on or ends.
    useLive(undefined, listMs),
  )
  return (
    <div className="page">
      <header className="page-head">
        <h1>Processes</h1>
      </header>
      <Failed error={error} onRetry={reload} />
      {isLoading && <Loading />}
      {data?.processes.length === 0 && (
        <Empty title="No process has used this storage within a week.">
          <p>A process is here from its first heartbeat on.</p>
        </Empty>
      )}
      {data !== undefined && data.processes.length > 0 && (
        <table className="list">
          <thead>
            <tr>
              {['Process', 'State', 'Threads', 'Host', 'Version', 'Started', 'Last heartbeat'].map((title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {data.processes.map((process) => (
              <tr key={process.owner}>
                <td>
                  <b>{process.pid ?? '?'}</b> <span className="meta mono">{process.owner}</span>
                </td>
                <td>
                  <span className={`chip ${process.end === undefined ? 'is-open' : process.end === 'expired' ? 'is-lost' : ''}`}>
                    {process.end ?? 'alive'}
                  </span>
                </td>
                <td data-label="threads">{process.threads}</td>
                <td data-label="host">{process.host}</td>
                <td className="mono" data-label="version">
                  {process.version}
                </td>
                <td className="meta" data-label="started">
                  <Time at={process.startedAt} />
                </td>
                <td className="meta" data-label="heartbeat">
                  <Time at={process.seenAt} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  )
}
