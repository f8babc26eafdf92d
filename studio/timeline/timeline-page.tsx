import { useMemo } from 'react'
import { isHeedError, type AgentClient, type ThreadRun } from 'heed/client'
import { useShortcut } from '../app/keys.tsx'
import { useLive } from '../app/live.tsx'
import { useQuery } from '../app/query.ts'
import { hrefOf, Link, navigate, setQuery, usePlace } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { useNow } from '../app/time.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import { scopeOf, WithThread, type KnownThread } from '../thread/known-thread.tsx'
import { leasesOf, ms, type ListedSignal } from './leases.ts'
import { Picture } from './picture.tsx'
import { SignalFacts, SignalTable } from './signal-table.tsx'

/** How many signals a page of the timeline has. */
const perPage = 60
const runsPerPage = 100
/** How many pages of runs are read at most to find those of the signals. */
const maxRunPages = 10
/** How often it is read while a run is active: the commit of a step is announced by nothing else than the stream of its thread. */
const activeMs = 3_000

/** What became of each signal, as a picture over the runs and the processes that did them. */
export function TimelinePage({ threadId }: { threadId: string }) {
  return <WithThread threadId={threadId}>{(thread) => <Timeline {...thread} />}</WithThread>
}

type Scope = ReturnType<typeof scopeOf>

async function readTimeline(agent: AgentClient, scope: Scope, before: number | undefined) {
  const { signals, more } = await agent.listSignals({ ...scope, limit: perPage, ...(before === undefined ? {} : { before }) })
  const oldest = signals.at(-1)?.acceptedAt
  const runs: ThreadRun[] = []
  for (let page = 0; page < maxRunPages; page += 1) {
    const found = await agent.listRuns({ ...scope, page, perPage: runsPerPage })
    runs.push(...found.runs)
    const last = found.runs.at(-1)
    if (!last || oldest === undefined || last.startedAt < oldest || runs.length >= found.total) break
  }
  return { signals, more, runs: before === undefined ? runs : runs.filter((run) => ofSignals(run, signals)) }
}

/** Whether something may still happen with what is shown. */
function isActiveIn(read: Awaited<ReturnType<typeof readTimeline>> | undefined): boolean {
  if (!read) return false
  return read.runs.some(({ status }) => status === 'running') || read.signals.some(({ state }) => state === 'pending')
}

function ofSignals({ runId }: ThreadRun, signals: readonly ListedSignal[]): boolean {
  return signals.some((signal) => signal.runId === runId)
}

function Timeline(thread: KnownThread) {
  const { threadId, agentId, title } = thread
  const { client } = useSession()
  const { query } = usePlace()
  const before = query.get('before') === null ? undefined : Number(query.get('before'))
  const { version, everyMs } = useLive(threadId)
  const { data, error, isLoading, reload } = useQuery(
    `timeline ${agentId} ${threadId} ${before ?? ''}`,
    () => readTimeline(client.getAgent(agentId), scopeOf(thread), before),
    before === undefined ? { version, everyMs: (read) => everyMs ?? (isActiveIn(read) ? activeMs : undefined) } : {},
  )
  const processes = useQuery(`processes ${agentId}`, () => processesOf(client, agentId), {
    version,
    everyMs: everyMs ?? (isActiveIn(data) ? activeMs : undefined),
  })
  const isTable = query.get('as') === 'table'
  const onlyErrors = query.get('errors') !== null
  const selected = query.get('signal')
  const now = useNow()
  const shown = useMemo(
    () => (data?.signals ?? []).filter((signal) => !onlyErrors || isError(signal, data?.runs ?? [])),
    [data, onlyErrors],
  )
  const isActive = isActiveIn(data)
  // The line ends at the last event where nothing goes on, so that it does not move.
  const end = isActive ? now : lastTime(data?.signals ?? [], data?.runs ?? [])
  const leases = useMemo(
    () => leasesOf(data?.runs ?? [], { signals: data?.signals ?? [], processes: processes.data ?? [], now: end }),
    [data, processes.data, end],
  )
  useShortcut('v', 'Picture or table', 'Timeline', () => setQuery({ as: isTable ? undefined : 'table' }))
  useShortcut('Escape', 'Back to the thread', 'Timeline', () => navigate(hrefOf(['threads', threadId])))
  const found = data?.signals.find(({ id }) => id === selected)
  return (
    <div className="page timeline-page">
      <header className="page-head">
        <h1>
          <Link to={['threads', threadId]}>{title || threadId}</Link> › timeline
        </h1>
        <TimelineTools isTable={isTable} onlyErrors={onlyErrors} end={end} />
      </header>
      {isLoading && <Loading rows={8} />}
      <Failed error={error} onRetry={reload} />
      <Failed error={processes.error} />
      {data?.signals.length === 0 && (
        <Empty title="This thread has no signals yet.">
          <p>
            <Link to={['threads', threadId]}>Write to the thread</Link>: each message is a line here, from its acceptance to its answer.
          </p>
        </Empty>
      )}
      {data !== undefined && data.signals.length > 0 && shown.length === 0 && (
        <Empty title="No signal was rejected or cancelled, and no run failed.">
          <button type="button" onClick={() => setQuery({ errors: undefined })}>
            Show all signals
          </button>
        </Empty>
      )}
      {data !== undefined && shown.length > 0 && (
        <>
          {isTable ? (
            <SignalTable signals={shown} runs={data.runs} thread={thread} />
          ) : (
            <Picture signals={shown} runs={data.runs} leases={leases} processes={processes.data ?? []} thread={thread} end={end} />
          )}
          {found && !isTable && <SignalFacts signal={found} runs={data.runs} thread={thread} />}
        </>
      )}
      {(before !== undefined || data?.more) && (
        <nav className="pages" aria-label="Pages">
          <button type="button" disabled={before === undefined} onClick={() => setQuery({ before: undefined })}>
            Newest
          </button>
          <button
            type="button"
            disabled={!data?.more}
            onClick={() => setQuery({ before: String(data?.signals.at(-1)?.ord ?? 0), from: undefined, to: undefined })}
          >
            Older
          </button>
        </nav>
      )}
    </div>
  )
}

/** Only operators may list processes; others see the leases with the ids of their holders. */
async function processesOf(client: ReturnType<typeof useSession>['client'], agentId: string) {
  try {
    return (await client.listProcesses({ agentId })).processes
  } catch (error) {
    if (isHeedError(error) && error.code === 'forbidden') return []
    throw error
  }
}

function isError({ state, runId }: ListedSignal, runs: readonly ThreadRun[]): boolean {
  return state === 'rejected' || state === 'cancelled' || runs.some((run) => run.runId === runId && run.error !== undefined)
}

function lastTime(signals: readonly ListedSignal[], runs: readonly ThreadRun[]): number {
  const times = [
    ...signals.flatMap(({ acceptedAt, drainedAt, settledAt }) => [acceptedAt, drainedAt, settledAt]),
    ...runs.flatMap(({ startedAt, suspendedAt, endedAt }) => [startedAt, suspendedAt, endedAt]),
  ]
  return times.reduce((last, time) => (time === undefined ? last : Math.max(last, ms(time))), 0)
}

const ranges = [
  { label: '1 min', ms: 60_000 },
  { label: '15 min', ms: 900_000 },
] as const

function TimelineTools({ isTable, onlyErrors, end }: { isTable: boolean; onlyErrors: boolean; end: number }) {
  const { query } = usePlace()
  const from = query.get('from')
  return (
    <div className="actions">
      {!isTable && (
        <>
          <button type="button" aria-pressed={from === null} onClick={() => setQuery({ from: undefined, to: undefined })}>
            All
          </button>
          {ranges.map(({ label, ms: length }) => (
            <button
              key={label}
              type="button"
              title={`The last ${label}`}
              onClick={() => setQuery({ from: String(end - length), to: String(end) })}
            >
              {label}
            </button>
          ))}
        </>
      )}
      <button type="button" aria-pressed={onlyErrors} onClick={() => setQuery({ errors: onlyErrors ? undefined : '1' })}>
        Errors only
      </button>
      <button type="button" aria-pressed={isTable} onClick={() => setQuery({ as: isTable ? undefined : 'table' })}>
        Table <kbd>v</kbd>
      </button>
    </div>
  )
}
