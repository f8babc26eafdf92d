import { useState, type FormEvent } from 'react'
import type { WorkflowClient, WorkflowDetails } from 'heed/client'
import { useLive } from '../app/live.tsx'
import { useAction, useQuery } from '../app/query.ts'
import { hrefOf, Link, navigate, setQuery, usePlace } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { Time } from '../app/time.tsx'
import { Json } from '../parts/json.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import { listMs } from '../views/thread-list.ts'
import { jsonOf } from './json-field.ts'
import { RunStatus } from './run-status.tsx'
import { Steps } from './workflows-view.tsx'

type Status = NonNullable<Exclude<Parameters<WorkflowClient['runs']>[0], undefined>['status']>

const statuses = ['running', 'waiting', 'suspended', 'success', 'failed', 'tripwire', 'canceled', 'parked', 'pending'] as const
const perPage = 50

/** A workflow: its steps, its runs, and a form that starts one. */
export function WorkflowPage({ workflowId }: { workflowId: string }) {
  const { client } = useSession()
  const { query } = usePlace()
  const status = query.get('status') ?? ''
  const page = Number(query.get('page') ?? '0')
  const workflow = client.getWorkflow(workflowId)
  const about = useQuery(`workflow ${workflowId}`, () => workflow.details())
  const { data, error, isLoading, reload } = useQuery(
    `workflow runs ${workflowId} ${status} ${page}`,
    () => workflow.runs({ perPage, page, ...(status === '' ? {} : { status: status as Status }) }),
    // The list of threads has no runs of workflows in it.
    useLive(undefined, listMs),
  )
  return (
    <div className="page">
      <header className="page-head">
        <h1>
          <Link to={['workflows']}>Workflows</Link> › {workflowId}
        </h1>
      </header>
      <Failed error={about.error} onRetry={about.reload} />
      {about.data && (
        <section className="card">
          {about.data.description !== undefined && <p>{about.data.description}</p>}
          <Steps steps={about.data.stepGraph} />
        </section>
      )}
      {about.data && <StartForm workflow={about.data} client={workflow} />}
      <h2>Runs</h2>
      <div className="filters">
        <select aria-label="Status" value={status} onChange={(event) => setQuery({ status: event.target.value, page: undefined })}>
          <option value="">any status</option>
          {statuses.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
        {data && <span className="meta">{data.total} runs</span>}
      </div>
      <Failed error={error} onRetry={reload} />
      {isLoading && <Loading />}
      {data?.runs.length === 0 && <Empty title={status === '' ? 'No run was started yet.' : `No run is ${status}.`} />}
      {data !== undefined && data.runs.length > 0 && (
        <table className="list">
          <thead>
            <tr>
              {['Run', 'Status', 'Resource', 'Started', 'Changed'].map((title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {data.runs.map((run) => (
              <tr key={`${run.resourceId} ${run.runId}`}>
                <td>
                  <Link className="row-link mono" to={['workflows', workflowId, 'runs', run.runId]} query={{ resource: run.resourceId }}>
                    {run.runId}
                  </Link>
                </td>
                <td>
                  <RunStatus status={run.status} />
                </td>
                <td className="mono">{run.resourceId}</td>
                <td className="meta" data-label="started">
                  <Time at={run.createdAt} />
                </td>
                <td className="meta" data-label="changed">
                  <Time at={run.updatedAt} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {(page > 0 || (data?.total ?? 0) > (page + 1) * perPage) && (
        <nav className="pages" aria-label="Pages">
          <button type="button" disabled={page === 0} onClick={() => setQuery({ page: page > 1 ? String(page - 1) : undefined })}>
            Newer
          </button>
          <button type="button" disabled={(data?.total ?? 0) <= (page + 1) * perPage} onClick={() => setQuery({ page: String(page + 1) })}>
            Older
          </button>
        </nav>
      )}
    </div>
  )
}

function StartForm({ workflow, client }: { workflow: WorkflowDetails; client: WorkflowClient }) {
  const [input, setInput] = useState('')
  const [resource, setResource] = useState('studio')
  const start = useAction(async () => {
    const inputData = jsonOf('input', input)
    const resourceId = resource.trim()
    const run = client.createRun(resourceId === '' ? {} : { resourceId })
    await run.startAsync(inputData === undefined ? {} : { inputData })
    navigate(hrefOf(['workflows', workflow.id, 'runs', run.runId], { resource: resourceId }))
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void start.run()
  }
  return (
    <details className="menu-less">
      <summary className="button primary">Start a run</summary>
      <form className="card draft-form" onSubmit={submit}>
        <label>
          <span>Input, as JSON</span>
          <textarea rows={4} className="mono" value={input} onChange={(event) => setInput(event.target.value)} />
        </label>
        {workflow.inputSchema !== undefined && (
          <details>
            <summary className="meta">Its schema</summary>
            <Json value={JSON.parse(workflow.inputSchema) as unknown} />
          </details>
        )}
        <label>
          <span>Resource</span>
          <input value={resource} onChange={(event) => setResource(event.target.value)} />
        </label>
        <Failed error={start.error} />
        <div className="actions">
          <button type="submit" className="primary" disabled={start.isBusy}>
            Start
          </button>
        </div>
      </form>
    </details>
  )
}
