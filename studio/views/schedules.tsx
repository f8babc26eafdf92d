import type { SchedulesClient } from 'heed/client'
import { useLive } from '../app/live.tsx'
import { useAction, useQuery } from '../app/query.ts'
import { Link } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { spanOf, Time } from '../app/time.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import { listMs } from './thread-list.ts'

type ScheduleRecord = Awaited<ReturnType<SchedulesClient['get']>>

/** The schedules of all agents. */
export function SchedulesView() {
  const { client, agents } = useSession()
  const { data, error, isLoading, reload } = useQuery(
    `schedules ${agents.map(({ id }) => id).join(' ')}`,
    async () => {
      const pages = await Promise.all(agents.map(({ id }) => client.getAgent(id).schedules.list({ limit: 100 })))
      return pages.flatMap(({ schedules }) => schedules)
    },
    // What a schedule sends changes its thread; a pause, and a new schedule, changes none.
    useLive(undefined, listMs),
  )
  const act = useAction(async (record: ScheduleRecord, action: 'pause' | 'resume' | 'remove') => {
    await client.getAgent(record.agentId).schedules[action]({ id: record.id, resourceId: record.resourceId })
    reload()
  })
  return (
    <div className="page">
      <header className="page-head">
        <h1>Schedules</h1>
      </header>
      <Failed error={error ?? act.error} onRetry={reload} />
      {isLoading && <Loading />}
      {data?.length === 0 && (
        <Empty title="No schedules.">
          <p>
            Create one with <code>agent.schedules.create()</code>, or with “Signal…” on a thread.
          </p>
        </Empty>
      )}
      {data !== undefined && data.length > 0 && (
        <table className="list">
          <thead>
            <tr>
              <th scope="col">Schedule</th>
              <th scope="col">When</th>
              <th scope="col">Next</th>
              <th scope="col">Last</th>
              <th scope="col">State</th>
              <th scope="col">Actions</th>
            </tr>
          </thead>
          <tbody>
            {data.map((record) => (
              <tr key={record.id}>
                <td>
                  <span className="clip">{textOf(record)}</span>
                  <br />
                  <Link to={['threads', record.threadId]} className="mono">
                    {record.threadId}
                  </Link>
                </td>
                <td>
                  {whenOf(record)}
                  <br />
                  <span className="meta">
                    overlap {record.overlap}, missed {record.missed}
                  </span>
                </td>
                <td data-label="next">
                  <Time at={record.nextAt} />
                </td>
                <td data-label="last">
                  <Time at={record.lastAt} />
                  {record.lastError !== undefined && <code className="problem">{record.lastError}</code>}
                </td>
                <td>
                  <span className="chip">{record.status}</span>
                </td>
                <td className="actions">
                  {record.status === 'active' && (
                    <button type="button" onClick={() => void act.run(record, 'pause')}>
                      Pause
                    </button>
                  )}
                  {record.status === 'paused' && (
                    <button type="button" onClick={() => void act.run(record, 'resume')}>
                      Resume
                    </button>
                  )}
                  <button type="button" className="quiet" onClick={() => void act.run(record, 'remove')}>
                    Remove
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  )
}

function textOf({ signal: { contents } }: ScheduleRecord): string {
  return typeof contents === 'string' ? contents : JSON.stringify(contents)
}

function whenOf({ timing }: ScheduleRecord): string {
  const { cron, timeZone, every, at } = timing as { cron?: string; timeZone?: string; every?: number; at?: string | number }
  if (cron !== undefined) return `${cron}${timeZone === undefined ? '' : ` (${timeZone})`}`
  if (every !== undefined) return `every ${spanOf(every)}`
  return at === undefined ? '' : new Date(at).toLocaleString()
}
