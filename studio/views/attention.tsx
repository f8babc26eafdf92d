import { useState } from 'react'
import type { ParkedRun } from 'heed/client'
import { useAction } from '../app/query.ts'
import { Link } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { Time } from '../app/time.tsx'
import { Fields } from '../parts/json.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import { useAttention, type SuspendedRun } from './attention-list.ts'

/** What a person has to decide, of all threads. It survives restarts, since it is read from the store. */
export function AttentionView() {
  const { suspended, parked, error, isLoading, reload } = useAttention()
  return (
    <div className="page">
      <header className="page-head">
        <h1>Attention</h1>
      </header>
      <Failed error={error} onRetry={reload} />
      {isLoading && <Loading />}
      {!isLoading && suspended.length + parked.length === 0 && (
        <Empty title="Nothing waits for a decision.">
          <p>
            A tool with <code>requireApproval</code> asks here before it runs. Runs that failed ten times are here too.
          </p>
        </Empty>
      )}
      <ul className="cards">
        {suspended.flatMap((run) =>
          run.toolCalls.map((call) => (
            <li key={`${run.runId} ${call.toolCallId}`}>
              <SuspendedCall run={run} call={call} onDecided={reload} />
            </li>
          )),
        )}
        {parked.map((run) => (
          <li key={run.runId}>
            <Parked run={run} onRetried={reload} />
          </li>
        ))}
      </ul>
    </div>
  )
}

function SuspendedCall({ run, call, onDecided }: { run: SuspendedRun; call: SuspendedRun['toolCalls'][number]; onDecided: () => void }) {
  const { client } = useSession()
  const [reason, setReason] = useState('')
  const { request } = call
  const decide = useAction(async (approved: boolean) => {
    const { threadId, resourceId } = run
    const named = request ? { approvalId: request.id, digest: request.digest } : { toolCallId: call.toolCallId }
    const given = approved || reason === '' ? {} : { declineContext: { reason } }
    await client.getAgent(run.agentId).sendToolApproval({ threadId, resourceId, approved, ...named, ...given })
    onDecided()
  })
  return (
    <article className="card approval">
      <header>
        <b className="tool-name">{request?.toolName ?? call.toolName}</b> asks on <Link to={['threads', run.threadId]}>{run.threadId}</Link>
        {request?.path !== undefined && request.path.length > 2 && (
          <span className="meta">{request.path.slice(0, -1).join(' → ')}</span>
        )}
        <span className="meta">
          <Time at={run.suspendedAt} />
        </span>
      </header>
      <Fields value={request?.args ?? call.args} />
      {call.requiresApproval ? (
        <div className="approval-actions">
          <button type="button" className="approve" disabled={decide.isBusy} onClick={() => void decide.run(true)}>
            Approve
          </button>
          <input
            value={reason}
            placeholder="Reason to decline"
            aria-label="Reason to decline"
            onChange={(event) => setReason(event.target.value)}
          />
          <button type="button" className="decline" disabled={decide.isBusy} onClick={() => void decide.run(false)}>
            Decline
          </button>
        </div>
      ) : (
        <p className="meta">
          This tool waits for data. <Link to={['threads', run.threadId]}>Open the thread</Link> to give it.
        </p>
      )}
      <Failed error={decide.error} />
    </article>
  )
}

function Parked({ run, onRetried }: { run: ParkedRun; onRetried: () => void }) {
  const { client } = useSession()
  const { threadId, resourceId, runId, agentId } = run
  const retry = useAction(async () => {
    await client.getAgent(agentId).retryParked({ threadId, resourceId, runId })
    onRetried()
  })
  return (
    <article className="card parked">
      <header>
        <b className="problem">Parked</b> on <Link to={['threads', threadId]}>{threadId}</Link>
        <span className="meta">
          {run.attempts} attempts, step {run.step}
        </span>
      </header>
      {run.error && <Fields value={run.error} />}
      <button type="button" disabled={retry.isBusy} onClick={() => void retry.run()}>
        Retry from step {run.step}
      </button>
      <Failed error={retry.error} />
    </article>
  )
}
