import type { WorkflowDetails } from 'heed/client'
import { useQuery } from '../app/query.ts'
import { Link } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'

/** The workflows of the server. */
export function WorkflowsView() {
  const { client } = useSession()
  const { data, error, isLoading, reload } = useQuery('workflows', () => client.listWorkflows())
  const workflows = Object.values(data ?? {})
  return (
    <div className="page">
      <header className="page-head">
        <h1>Workflows</h1>
      </header>
      <Failed error={error} onRetry={reload} />
      {isLoading && <Loading />}
      {data !== undefined && workflows.length === 0 && (
        <Empty title="This server has no workflows.">
          <p>
            Add one:{' '}
            <code>
              new Heed({'{'} agents, workflows: {'{'} … {'}'} {'}'})
            </code>
            .
          </p>
        </Empty>
      )}
      <div className="cards">
        {workflows.map((workflow) => (
          <article key={workflow.id} className="card">
            <header>
              <Link to={['workflows', workflow.id]}>
                <b>{workflow.id}</b>
              </Link>
            </header>
            {workflow.description !== undefined && <p>{workflow.description}</p>}
            <Steps steps={workflow.stepGraph} />
          </article>
        ))}
      </div>
    </div>
  )
}

type Described = WorkflowDetails['stepGraph'][number]

/** The steps in their order; those that belong to one of them within it. */
export function Steps({ steps }: { steps: readonly Described[] }) {
  return (
    <ol className="graph">
      {steps.map((step, index) => (
        <li key={index}>
          {step.type !== 'step' && <span className="meta">{step.type} </span>}
          <span className="mono">{step.id}</span>
          {step.steps !== undefined && step.type !== 'step' && <Steps steps={step.steps} />}
        </li>
      ))}
    </ol>
  )
}
