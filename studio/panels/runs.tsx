import type { ThreadRun } from 'heed/client'
import { useLive } from '../app/live.tsx'
import { useQuery } from '../app/query.ts'
import { Link } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { spanOf, Time } from '../app/time.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import type { PanelProps } from '../thread/panel.tsx'
import { ms } from '../timeline/leases.ts'
import { ScoreValue, type Score } from '../views/score.tsx'
import { listMs } from '../views/thread-list.ts'
import { shortId } from '../timeline/signal-table.tsx'

/** The runs of the thread, newest first: their steps with their prompts, decisions and takeovers. */
export function RunsPanel({ thread, scope, agentId }: PanelProps) {
  const { client } = useSession()
  const live = useLive(scope.threadId, listMs)
  const version = `${thread.status} ${thread.messages.length}`
  const { data, error, isLoading, reload } = useQuery(
    `runs ${agentId} ${scope.threadId}`,
    () => client.getAgent(agentId).listRuns({ ...scope, perPage: 20 }),
    { version },
  )
  const { data: scored } = useQuery(`scores of ${scope.threadId}`, () => client.listScores({ ...scope, limit: 100 }), {
    ...live,
    version: `${live.version} ${version}`,
  })
  if (isLoading) return <Loading />
  return (
    <>
      <Failed error={error} onRetry={reload} />
      {data?.runs.length === 0 && <Empty title="No run of this thread has begun yet." />}
      {data !== undefined && data.runs.length > 0 && (
        <p className="meta">
          {data.total} runs. <Link to={['threads', scope.threadId, 'timeline']}>Timeline</Link>
        </p>
      )}
      {data?.runs.map((run) => (
        <Run key={run.runId} run={run} scores={scored?.scores.filter(({ runId }) => runId === run.runId) ?? []} />
      ))}
    </>
  )
}

function Run({ run, scores }: { run: ThreadRun; scores: readonly Score[] }) {
  const { threadId, runId, status, startedAt, endedAt, steps, decisions, takeovers, error, edit } = run
  return (
    <section className="card run">
      <header>
        <b className="mono" title={runId}>
          {shortId(runId)}
        </b>
        <span className={`chip ${status === 'finished' ? 'is-open' : ''}`}>{status}</span>
        <span className="meta">
          <Time at={startedAt} />
          {endedAt === undefined ? '' : `, ${spanOf(ms(endedAt) - ms(startedAt))}`}
        </span>
      </header>
      {error !== undefined && <p className="problem">{String(error.message ?? error.code ?? 'failed')}</p>}
      <ol className="steps">
        {steps.map((step) => (
          <li key={step.step}>
            <Link to={['threads', threadId, 'runs', runId, 'steps', String(step.step)]}>step {step.step}</Link>{' '}
            <span className="meta">
              {step.modelId}, {tokensOf(step.usage)}
              {step.finishReason === undefined ? '' : `, ${step.finishReason}`}, {spanOf(ms(step.finishedAt) - ms(step.startedAt))}
            </span>
          </li>
        ))}
      </ol>
      {edit !== undefined && (
        <p className="meta">
          <Link to={['agents', run.agentId, 'versions']} query={{ show: 'compare', from: '0', to: String(edit.version) }}>
            {edit.version === 0 ? 'What code says' : `Version ${edit.version}`}
          </Link>
          {edit.release === undefined ? ', tried' : ` of release ${edit.release}`}
        </p>
      )}
      {scores.map((score) => (
        <p key={score.key} className="meta">
          {score.scorerId}: <ScoreValue score={score} /> {score.reason}
        </p>
      ))}
      {decisions.map((decision) => (
        <p key={`${decision.toolCallId} ${decision.at}`} className="meta">
          {decision.toolName} {decision.kind === 'suspend' ? 'continued' : decision.approved ? 'approved' : 'declined'}
          {decision.by === undefined ? '' : ` by ${decision.by}`} <Time at={decision.at} />
          {decision.reason === undefined ? '' : `: ${decision.reason}`}
        </p>
      ))}
      {takeovers.map((takeover) => (
        <p key={takeover.epoch} className="meta">
          {takeover.from === undefined ? 'Continued' : `Process ${shortId(takeover.from)} was lost. Continued`} by{' '}
          {shortId(takeover.to)} from step {takeover.step}, epoch {takeover.epoch}, <Time at={takeover.at} />
        </p>
      ))}
    </section>
  )
}

function tokensOf(usage: unknown): string {
  const { inputTokens, outputTokens } = Object(usage) as { inputTokens?: number; outputTokens?: number }
  if (inputTokens === undefined) return 'tokens not counted'
  return `${inputTokens.toLocaleString()} in, ${(outputTokens ?? 0).toLocaleString()} out`
}
