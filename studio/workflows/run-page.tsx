import { useEffect, useMemo, useState, type FormEvent } from 'react'
import type { WorkflowRunClient } from 'heed/client'
import { useAwake } from '../app/awake.ts'
import { useAction, useQuery } from '../app/query.ts'
import { hrefOf, Link, navigate, usePlace } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { spanOf, Time, useNow } from '../app/time.tsx'
import { inline, Json } from '../parts/json.tsx'
import { Failed, Loading } from '../parts/states.tsx'
import { jsonOf } from './json-field.ts'
import { RunStatus } from './run-status.tsx'

type Result = Awaited<ReturnType<WorkflowRunClient['status']>>
type Step = Result['path'][number]

const ended: ReadonlySet<string> = new Set(['success', 'failed', 'tripwire', 'canceled'])

/** Changes whenever the stream of the run says that something happened, and when a lost stream is open again. */
function useRunVersion(run: WorkflowRunClient, isClosed: boolean): { version: number; isLost: boolean } {
  const [state, setState] = useState({ version: 0, isLost: false })
  useEffect(() => {
    if (isClosed) return
    let isOld = false
    const tell = () => !isOld && setState(({ version }) => ({ version: version + 1, isLost: false }))
    const onLost = () => !isOld && setState((before) => ({ ...before, isLost: true }))
    const chunks = run.observe({ reconnect: { onOpen: tell, onLost } })
    const follow = async () => {
      for await (const { type } of chunks) {
        if (isOld) return
        if (type !== 'workflow-step-output') tell()
      }
    }
    follow().catch(onLost)
    return () => {
      isOld = true
      void chunks.return()
    }
  }, [run, isClosed])
  return state
}

/** One run of a workflow, live: its steps with what each got and gave, and what a caller can do about it. */
export function RunPage({ workflowId, runId }: { workflowId: string; runId: string }) {
  const { client } = useSession()
  const { query } = usePlace()
  const resourceId = query.get('resource') ?? undefined
  const run = useMemo(
    () => client.getWorkflow(workflowId).createRun({ runId, ...(resourceId === undefined ? {} : { resourceId }) }),
    [client, workflowId, runId, resourceId],
  )
  const [isOver, setOver] = useState(false)
  const isAwake = useAwake()
  const { version, isLost } = useRunVersion(run, isOver || !isAwake)
  const { data, error, isLoading, reload } = useQuery(`workflow run ${workflowId} ${runId} ${resourceId}`, () => run.status(), { version })
  const hasEnded = data !== undefined && ended.has(data.status)
  useEffect(() => setOver(hasEnded), [hasEnded])
  return (
    <div className="page">
      <header className="page-head">
        <h1>
          <Link to={['workflows', workflowId]}>{workflowId}</Link> › <span className="mono">{runId}</span>
        </h1>
        {data && <RunStatus status={data.status} />}
      </header>
      {isLost && (
        <p className="disconnected" role="alert">
          Not connected. The page tries again by itself.
        </p>
      )}
      <Failed error={error} onRetry={reload} />
      {isLoading && <Loading />}
      {data && <OpenRun workflowId={workflowId} run={run} result={data} reload={reload} />}
    </div>
  )
}

function OpenRun({ workflowId, run, result, reload }: { workflowId: string; run: WorkflowRunClient; result: Result; reload: () => void }) {
  const act = useAction(async (work: () => Promise<unknown>) => {
    await work()
    reload()
  })
  const travel = useAction(async (step: string) => {
    const { runId, resourceId } = await run.timeTravel({ step })
    navigate(hrefOf(['workflows', workflowId, 'runs', runId], { resource: resourceId }))
  })
  return (
    <>
      {result.status === 'suspended' &&
        result.suspended.map((path) => (
          <Resume key={path} path={path} step={result.path.find((step) => step.path === path)} run={run} onDone={reload} />
        ))}
      <div className="actions">
        {!ended.has(result.status) && (
          <button type="button" className="stop" disabled={act.isBusy} onClick={() => void act.run(() => run.cancel())}>
            Cancel the run
          </button>
        )}
        {result.status === 'parked' && (
          <button type="button" disabled={act.isBusy} onClick={() => void act.run(() => run.restart())}>
            Try again
          </button>
        )}
      </div>
      {!ended.has(result.status) && <EventForm run={run} onDone={reload} />}
      <Failed error={act.error ?? travel.error} />
      {'error' in result && (
        <p className="row-error">
          <b>{result.error.message}</b>
        </p>
      )}
      {result.status === 'tripwire' && (
        <p className="row-error">
          <b>{result.tripwire.reason}</b>
        </p>
      )}
      <h2>Steps</h2>
      {result.path.length === 0 && <p className="meta">No step has begun yet.</p>}
      <ol className="run-steps">
        {result.path.map((step) => (
          <li key={step.path}>
            <StepItem step={step} onAgain={() => void travel.run(step.stepId)} />
          </li>
        ))}
      </ol>
      <h2>Input</h2>
      <Json value={result.input} />
      {result.status === 'success' && (
        <>
          <h2>Result</h2>
          <Json value={result.result} />
        </>
      )}
      {Object.keys(Object(result.state) as object).length > 0 && (
        <>
          <h2>State</h2>
          <Json value={result.state} />
        </>
      )}
    </>
  )
}

function StepItem({ step, onAgain }: { step: Step; onAgain: () => void }) {
  const present = useNow()
  const { path, stepId, status, payload, output, error, attempts, startedAt, endedAt, dueAt, suspendPayload, resumePayload } = step
  return (
    <details className={`card run-step step-${status}`}>
      <summary>
        <span className="meta mono">{path}</span> <b className="mono">{stepId}</b> <RunStatus status={status} />{' '}
        <span className="meta">
          {spanOf((endedAt ?? present) - startedAt)}
          {attempts > 1 ? `, attempt ${attempts}` : ''}
          {dueAt === undefined || endedAt !== undefined ? '' : ', due '}
          {endedAt === undefined && <Time at={dueAt} />}
        </span>{' '}
        <span className="meta">{error === undefined ? inline(output) : String(error.message ?? error.code ?? '')}</span>
      </summary>
      <div className="tool-body">
        {Object.entries({ input: payload, output, error, asks: suspendPayload, answer: resumePayload }).map(
          ([name, value]) =>
            value !== undefined && (
              <div key={name}>
                <h3>{name}</h3>
                <Json value={value} />
              </div>
            ),
        )}
        <p className="meta">
          Started <Time at={startedAt} />
        </p>
        {!path.includes('/') && (
          <p>
            <button type="button" className="quiet" onClick={onAgain}>
              Begin another run from {stepId}
            </button>
          </p>
        )}
      </div>
    </details>
  )
}

/** What a suspended step asks, and a field for the answer. */
function Resume({ path, step, run, onDone }: { path: string; step: Step | undefined; run: WorkflowRunClient; onDone: () => void }) {
  const [text, setText] = useState('')
  const resume = useAction(async () => {
    const resumeData = jsonOf('answer', text)
    await run.resumeAsync({ step: path, ...(resumeData === undefined ? {} : { resumeData }) })
    onDone()
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void resume.run()
  }
  return (
    <form className="card approval draft-form" onSubmit={submit} aria-label={`Answer ${step?.stepId ?? path}`}>
      <p>
        <b className="mono">{step?.stepId ?? path}</b> waits for an answer.
      </p>
      {step?.suspendPayload !== undefined && <Json value={step.suspendPayload} />}
      <label>
        <span>Answer, as JSON</span>
        <textarea rows={2} className="mono" value={text} onChange={(event) => setText(event.target.value)} />
      </label>
      <Failed error={resume.error} />
      <div className="actions">
        <button type="submit" className="approve" disabled={resume.isBusy}>
          Continue the run
        </button>
      </div>
    </form>
  )
}

function EventForm({ run, onDone }: { run: WorkflowRunClient; onDone: () => void }) {
  const [name, setName] = useState('')
  const [text, setText] = useState('')
  const send = useAction(async () => {
    await run.sendEvent(name.trim(), jsonOf('data', text))
    setText('')
    onDone()
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void send.run()
  }
  return (
    <details>
      <summary className="meta">Send an event to this run</summary>
      <form className="card draft-form" onSubmit={submit} aria-label="Event">
        <label>
          <span>Name</span>
          <input value={name} onChange={(event) => setName(event.target.value)} />
        </label>
        <label>
          <span>Data, as JSON</span>
          <textarea rows={2} className="mono" value={text} onChange={(event) => setText(event.target.value)} />
        </label>
        <Failed error={send.error} />
        <div className="actions">
          <button type="submit" disabled={send.isBusy || name.trim() === ''}>
            Send
          </button>
        </div>
      </form>
    </details>
  )
}
