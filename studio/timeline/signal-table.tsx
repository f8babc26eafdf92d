import type { ThreadRun } from 'heed/client'
import { Link } from '../app/router.tsx'
import { clockOf, exactOf, spanOf } from '../app/time.tsx'
import type { KnownThread } from '../thread/known-thread.tsx'
import { ms, type ListedSignal } from './leases.ts'

interface SignalProps {
  signal: ListedSignal
  runs: readonly ThreadRun[]
  thread: KnownThread
}

/** What a signal is, in few words. */
export function nameOf({ signal, kind }: ListedSignal): string {
  if (!signal) return kind === 'turn' ? 'a call of generate() or stream()' : 'a deleted signal'
  const { contents, type, tagName } = signal
  const text = typeof contents === 'string' ? contents : JSON.stringify(contents)
  return `${type === 'user' ? '' : `${tagName ?? type}: `}${text.length > 80 ? `${text.slice(0, 80)}…` : text}`
}

/** The end of an id: enough to tell the processes or the runs of one thread apart. */
export function shortId(id: string): string {
  return id.length <= 8 ? id : id.slice(-6)
}

/** A time as it was stored, to the millisecond. */
export function Moment({ at }: { at: string | undefined }) {
  if (at === undefined) return <span className="meta">–</span>
  return (
    <time dateTime={at} title={exactOf(at)}>
      {clockOf(at)}.{at.slice(20, 23)}
    </time>
  )
}

interface SignalTableProps {
  signals: readonly ListedSignal[]
  runs: readonly ThreadRun[]
  thread: KnownThread
}

/** The signals in the order of their acceptance, with what `explain()` says about each. */
export function SignalTable({ signals, runs, thread }: SignalTableProps) {
  return (
    <table className="list moments">
      <caption className="visually-hidden">The signals of this thread, and what became of each</caption>
      <thead>
        <tr>
          {['Signal', 'State', 'Route', 'Accepted', 'Taken', 'By', 'Run and step', 'Settled', 'Reason'].map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {signals.toReversed().map((signal) => (
          <tr key={signal.id} data-signal={signal.id}>
            <td>
              <Link to={['threads', thread.threadId, 'signals', signal.id]} className="row-link clip">
                {nameOf(signal)}
              </Link>
            </td>
            <td data-of="state">{signal.state}</td>
            <td data-of="route">{signal.route}</td>
            <td data-of="acceptedAt" data-label="accepted">
              <Moment at={signal.acceptedAt} />
            </td>
            <td data-of="drainedAt" data-label="taken">
              <Moment at={signal.drainedAt} />
            </td>
            <td data-of="owner" data-label="by" data-value={signal.owner} className="mono" title={signal.owner}>
              {signal.owner === undefined ? '–' : `${shortId(signal.owner)}, epoch ${signal.epoch}`}
            </td>
            <td data-of="runId" data-label="run" data-value={signal.runId}>
              <RunAndStep {...{ signal, runs, thread }} />
            </td>
            <td data-of="settledAt" data-label="settled">
              <Moment at={signal.settledAt} />
            </td>
            <td data-of="reason" data-label="reason">{signal.reason ?? ''}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function RunAndStep({ signal: { runId, step }, runs, thread }: SignalProps) {
  if (runId === undefined) return <span className="meta">–</span>
  const run = runs.find((one) => one.runId === runId)
  const hasStep = step !== undefined && run?.steps.some((one) => one.step === step)
  return (
    <>
      <span className="mono" title={runId}>
        {shortId(runId)}
      </span>
      {step !== undefined && ' '}
      {step !== undefined &&
        (hasStep ? (
          <Link to={['threads', thread.threadId, 'runs', runId, 'steps', String(step)]}>step {step}</Link>
        ) : (
          <span>step {step}</span>
        ))}
    </>
  )
}

/** A sentence about the selected signal. */
export function SignalFacts({ signal, runs, thread }: SignalProps) {
  const { acceptedAt, drainedAt, settledAt, owner, epoch, state, reason } = signal
  const waited = ms(drainedAt ?? settledAt ?? acceptedAt) - ms(acceptedAt)
  return (
    <section className="card signal-facts" aria-label="The selected signal" data-signal={signal.id}>
      <header>
        <b>{nameOf(signal)}</b>
        <Link to={['threads', thread.threadId, 'signals', signal.id]}>Explain</Link>
        <Link to={['threads', thread.threadId]} query={{ at: signal.id }}>
          Open in the thread
        </Link>
      </header>
      <p>
        Accepted <Moment at={acceptedAt} /> ({signal.route})
        {drainedAt !== undefined && (
          <>
            , waited {spanOf(waited)}, taken <Moment at={drainedAt} /> by process <span className="mono">{shortId(owner ?? '')}</span> under
            epoch {epoch}, for run <RunAndStep {...{ signal, runs, thread }} />
          </>
        )}
        {settledAt !== undefined && (
          <>
            , {endings[state] ?? state} <Moment at={settledAt} />
          </>
        )}
        {reason === undefined ? '.' : `: ${reason}.`}
        {settledAt === undefined && ` It is ${state}.`}
      </p>
    </section>
  )
}

const endings: Readonly<Record<string, string>> = { consumed: 'answered', rejected: 'rejected', cancelled: 'cancelled' }
