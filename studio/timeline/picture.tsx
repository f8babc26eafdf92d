import { useMemo, type ReactNode } from 'react'
import type { ThreadRun } from 'heed/client'
import { hrefOf, Link, navigate, setQuery, usePlace } from '../app/router.tsx'
import { clockOf, spanOf } from '../app/time.tsx'
import type { KnownThread } from '../thread/known-thread.tsx'
import { ms, type Lease, type ListedSignal, type ServerProcess } from './leases.ts'
import { scaleOf, type Scale } from './scale.ts'
import { nameOf, shortId } from './signal-table.tsx'

interface PictureProps {
  signals: readonly ListedSignal[]
  runs: readonly ThreadRun[]
  leases: readonly Lease[]
  processes: readonly ServerProcess[]
  thread: KnownThread
  end: number
}

/** Rows over one line of time: the processes with their leases, the signals from acceptance to answer, and the decisions. */
export function Picture({ signals, runs, leases, processes, thread, end }: PictureProps) {
  const { query } = usePlace()
  const scale = useScale({ signals, runs, leases, end, from: query.get('from'), to: query.get('to') })
  const owners = [...new Set(leases.map(({ owner }) => owner))]
  const selected = query.get('signal')
  return (
    <div className="timeline" role="group" aria-label="Timeline. The same data is in the table.">
      <Axis scale={scale} />
      {owners.map((owner) => (
        <Line
          key={owner}
          label={<ProcessName owner={owner} process={processes.find((one) => one.owner === owner)} />}
          scale={scale}
          kind="process"
        >
          {leases
            .filter((lease) => lease.owner === owner)
            .map((lease) => (
              <LeaseMark key={`${lease.runId} ${lease.epoch}`} lease={lease} scale={scale} thread={thread} />
            ))}
        </Line>
      ))}
      {signals.toReversed().map((signal) => (
        <Line
          key={signal.id}
          scale={scale}
          kind={`signal is-${signal.state}${signal.id === selected ? ' is-selected' : ''}`}
          id={signal.id}
          label={
            <button
              type="button"
              className="quiet clip"
              aria-pressed={signal.id === selected}
              title={nameOf(signal)}
              onClick={() => setQuery({ signal: signal.id === selected ? undefined : signal.id })}
            >
              {nameOf(signal)}
            </button>
          }
        >
          <Lifeline signal={signal} scale={scale} end={end} />
        </Line>
      ))}
      {runs.toReversed().flatMap((run) =>
        run.decisions.map((decision) => (
          <Line
            key={`${run.runId} ${decision.toolCallId} ${decision.at}`}
            scale={scale}
            kind="decision"
            label={
              <span className="clip meta">
                {decision.toolName} {decision.kind === 'suspend' ? 'continued' : decision.approved ? 'approved' : 'declined'}
                {decision.by === undefined ? '' : ` by ${decision.by}`}
              </span>
            }
          >
            <Waiting from={askedAt(run, ms(decision.at))} to={ms(decision.at)} scale={scale} />
          </Line>
        )),
      )}
      <Legend />
    </div>
  )
}

interface Range {
  from: string | null
  to: string | null
}

function useScale({ signals, runs, leases, end, from, to }: Pick<PictureProps, 'signals' | 'runs' | 'leases' | 'end'> & Range): Scale {
  return useMemo(() => {
    const times = [
      ...signals.flatMap(({ acceptedAt, drainedAt, settledAt }) => [acceptedAt, drainedAt, settledAt].map(known)),
      ...leases.flatMap((lease) => [lease.from, lease.to, lease.until ?? lease.to]),
      ...leases.flatMap(({ steps }) => steps.flatMap(({ startedAt, finishedAt }) => [ms(startedAt), ms(finishedAt)])),
      ...runs.flatMap(({ decisions }) => decisions.map(({ at }) => ms(at))),
    ].filter((time) => time > 0)
    const first = from === null ? Math.min(...times) : Number(from)
    const last = to === null ? Math.max(end, ...times) : Number(to)
    return scaleOf(times, { from: first, to: Math.max(first + 1, last) })
  }, [signals, runs, leases, end, from, to])
}

function known(time: string | undefined): number {
  return time === undefined ? 0 : ms(time)
}

/** The last step before a decision asked for it. */
function askedAt({ steps, startedAt }: ThreadRun, decidedAt: number): number {
  return Math.max(ms(startedAt), ...steps.map(({ finishedAt }) => ms(finishedAt)).filter((time) => time <= decidedAt))
}

const percent = (share: number) => `${(share * 100).toFixed(3)}%`

interface LineProps {
  label: ReactNode
  scale: Scale
  kind: string
  id?: string
  children: ReactNode
}

function Line({ label, scale, kind, id, children }: LineProps) {
  return (
    <div className={`timeline-row ${kind}`} data-signal={id}>
      <div className="timeline-label">{label}</div>
      <svg className="timeline-line" height="26" width="100%" aria-hidden="true">
        <Gaps scale={scale} />
        {children}
      </svg>
    </div>
  )
}

function Gaps({ scale }: { scale: Scale }) {
  return scale.gaps.map((gap) => {
    const x = scale.x(gap.from)
    return <rect key={gap.from} className="gap" x={percent(x)} width={percent(scale.x(gap.to) - x)} y="0" height="26" />
  })
}

/** The length of a gap that is so near to the one before it has no room on a phone. */
const nearShare = 0.14

function Axis({ scale }: { scale: Scale }) {
  const ticks = [0, 0.2, 0.4, 0.6, 0.8]
    .map((x) => ({ x, time: scale.timeAt(x) }))
    .filter(({ time }) => !scale.gaps.some((gap) => time > gap.from && time < gap.to))
  const lengths = scale.gaps
    .map((gap) => ({ x: (scale.x(gap.from) + scale.x(gap.to)) / 2, text: spanOf(gap.to - gap.from) }))
    .map((length, index, all) => ({ ...length, isNear: index > 0 && length.x - (all[index - 1]?.x ?? 0) < nearShare }))
  return (
    <div className="timeline-row timeline-axis" aria-hidden="true">
      <div className="timeline-label meta">{spanOf(scale.to - scale.from)}</div>
      <svg className="timeline-line" height="26" width="100%">
        <Gaps scale={scale} />
        {ticks.map(({ x, time }) => (
          <text key={x} className={x === 0.2 || x === 0.6 ? 'between' : undefined} x={percent(x)} y="11">
            {clockOf(time)}
          </text>
        ))}
        {lengths.map(({ x, text, isNear }) => (
          <text key={x} className={isNear ? 'gap-length between' : 'gap-length'} x={percent(x)} y="23" textAnchor="middle">
            {text}
          </text>
        ))}
      </svg>
    </div>
  )
}

function ProcessName({ owner, process }: { owner: string; process: ServerProcess | undefined }) {
  return (
    <Link to={['processes']} className="clip" title={owner}>
      process <span className="mono">{process?.pid ?? shortId(owner)}</span>
      {process?.end === undefined ? '' : ` (${process.end})`}
    </Link>
  )
}

/** The run under one lease, with its steps. A lost lease goes on as a dashed line, until another process took the run over. */
function LeaseMark({ lease, scale, thread }: { lease: Lease; scale: Scale; thread: KnownThread }) {
  const { from, to, until, end, steps, runId, epoch } = lease
  const [start, stop] = [scale.x(from), scale.x(to)]
  const zoom = () => {
    const margin = Math.max(20, ((until ?? to) - from) * 0.05)
    setQuery({ from: String(Math.round(from - margin)), to: String(Math.round((until ?? to) + margin)) })
  }
  return (
    <g className={`lease is-${end}`} data-epoch={epoch}>
      <rect className="lease-bar" x={percent(start)} width={percent(Math.max(0, stop - start))} y="5" height="16" rx="3" onClick={zoom}>
        <title>{`Run ${runId}, epoch ${epoch}, ${spanOf(to - from)}, ${end}. Click to show this time alone.`}</title>
      </rect>
      {steps.map((step) => (
        <rect
          key={step.step}
          className="step-bar"
          x={percent(scale.x(ms(step.startedAt)))}
          width={percent(Math.max(0, scale.x(ms(step.finishedAt)) - scale.x(ms(step.startedAt))))}
          y="8"
          height="10"
          onClick={() => navigate(hrefOf(['threads', thread.threadId, 'runs', runId, 'steps', String(step.step)]))}
        >
          <title>{`Step ${step.step}: ${spanOf(ms(step.finishedAt) - ms(step.startedAt))}. Click for its prompt.`}</title>
        </rect>
      ))}
      {end === 'lost' && until !== undefined && (
        <>
          <line className="lost" x1={percent(stop)} x2={percent(scale.x(until))} y1="13" y2="13" />
          <Mark at={to} scale={scale} kind="lost" />
          <Mark at={until} scale={scale} kind="taken-over" />
        </>
      )}
    </g>
  )
}

/** accepted → taken → settled. */
function Lifeline({ signal, scale, end }: { signal: ListedSignal; scale: Scale; end: number }) {
  const { acceptedAt, drainedAt, settledAt, state } = signal
  const accepted = ms(acceptedAt)
  const taken = drainedAt === undefined ? undefined : ms(drainedAt)
  const settled = settledAt === undefined ? undefined : ms(settledAt)
  const waitedUntil = taken ?? settled ?? end
  return (
    <>
      <line className="waits" x1={percent(scale.x(accepted))} x2={percent(scale.x(waitedUntil))} y1="13" y2="13" />
      {taken !== undefined && (
        <line className="answering" x1={percent(scale.x(taken))} x2={percent(scale.x(settled ?? end))} y1="13" y2="13" />
      )}
      <Mark at={accepted} scale={scale} kind="accepted" />
      {taken !== undefined && <Mark at={taken} scale={scale} kind="drained" />}
      {settled !== undefined && <Mark at={settled} scale={scale} kind={state} />}
    </>
  )
}

function Waiting({ from, to, scale }: { from: number; to: number; scale: Scale }) {
  return (
    <>
      <line className="asks" x1={percent(scale.x(from))} x2={percent(scale.x(to))} y1="13" y2="13" />
      <Mark at={from} scale={scale} kind="asked" />
      <Mark at={to} scale={scale} kind="asked" />
    </>
  )
}

/** Marks differ in their shapes, not in color alone. */
const shapes: Readonly<Record<string, string>> = {
  accepted: 'M0 -4 A4 4 0 1 0 0.01 -4 Z',
  drained: 'M0 -6 L6 0 L0 6 L-6 0 Z',
  consumed: 'M-5 0 L-1 4 L6 -5',
  rejected: 'M-5 -5 L5 5 M5 -5 L-5 5',
  cancelled: 'M-5 0 A5 5 0 1 0 5 0 A5 5 0 1 0 -5 0 M-4 -4 L4 4',
  lost: 'M-5 -5 L5 5 M5 -5 L-5 5',
  'taken-over': 'M-4 -6 L4 0 L-4 6',
  asked: 'M0 -7 L0 7',
}

function Mark({ at, scale, kind }: { at: number; scale: Scale; kind: string }) {
  if (at < scale.from || at > scale.to) return null
  return (
    <svg x={percent(scale.x(at))} y="13" overflow="visible">
      <path className={`mark mark-${kind}`} d={shapes[kind] ?? shapes.accepted} data-at={at} />
    </svg>
  )
}

const legend: ReadonlyArray<readonly [string, string]> = [
  ['accepted', 'accepted'],
  ['drained', 'taken by a run'],
  ['consumed', 'answered'],
  ['cancelled', 'cancelled'],
  ['rejected', 'rejected, or a process was lost'],
  ['taken-over', 'taken over'],
  ['asked', 'asked and decided'],
]

function Legend() {
  return (
    <ul className="legend meta">
      {legend.map(([kind, text]) => (
        <li key={kind}>
          <svg width="18" height="16" viewBox="-9 -8 18 16" aria-hidden="true">
            <path className={`mark mark-${kind}`} d={shapes[kind]} />
          </svg>
          {text}
        </li>
      ))}
    </ul>
  )
}
