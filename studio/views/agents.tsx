import { useMemo } from 'react'
import type { AgentDetails, ToolDetails } from 'heed/client'
import { useQuery } from '../app/query.ts'
import { Link } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { Json } from '../parts/json.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import { Try } from '../thread/try.tsx'

export function AgentsView() {
  const { agents } = useSession()
  return (
    <div className="page">
      <header className="page-head">
        <h1>Agents</h1>
      </header>
      {agents.length === 0 && (
        <Empty title="This server has no agents.">
          <p>
            Add one:{' '}
            <code>
              new Heed({'{'} agents: {'{'} … {'}'} {'}'})
            </code>
            .
          </p>
        </Empty>
      )}
      <div className="cards">
        {agents.map((agent) => (
          <article key={agent.id} className="card">
            <header>
              <Link to={['agents', agent.id]}>
                <b>{agent.name}</b>
              </Link>{' '}
              <span className="meta mono">
                {agent.provider}
                {agent.provider === '' ? '' : '/'}
                {agent.modelId}
              </span>
            </header>
            {agent.description !== '' && <p>{agent.description}</p>}
            <p className="meta">{Object.keys(agent.tools).length === 0 ? 'no tools' : Object.keys(agent.tools).join(', ')}</p>
          </article>
        ))}
      </div>
    </div>
  )
}

/** One agent: what it is, and a thread to try it on. */
export function AgentPage({ agentId }: { agentId: string }) {
  const { agents } = useSession()
  const agent = agents.find(({ id }) => id === agentId)
  if (!agent)
    return (
      <Empty title="There is no such agent.">
        <p>
          <Link to={['agents']}>All agents</Link>
        </p>
      </Empty>
    )
  return (
    <div className="agent">
      <section className="agent-about" aria-label="Agent">
        <header className="page-head">
          <h1>{agent.name}</h1>
          <Link className="button" to={['agents', agent.id, 'versions']}>
            Versions
          </Link>
        </header>
        <p className="meta mono">
          {agent.id}
          {agent.modelId === '' ? '' : `, ${agent.provider}/${agent.modelId}`}
        </p>
        {agent.description !== '' && <p>{agent.description}</p>}
        <Instructions agent={agent} />
        <h2>Tools</h2>
        {Object.keys(agent.tools).length === 0 && <p className="meta">This agent has no tools.</p>}
        {Object.values(agent.tools).map((tool) => (
          <Tool key={tool.id} tool={tool} />
        ))}
      </section>
      <Try agent={agent} />
    </div>
  )
}

/** The instructions as the model gets them. The server shows them to operators only. */
function Instructions({ agent }: { agent: AgentDetails }) {
  const { client } = useSession()
  const { data, error, isLoading } = useQuery(`instructions ${agent.id}`, () => client.getAgent(agent.id).explainPrompt('(a message)'))
  const parts = data?.parts.filter(({ source }) => source === 'instructions') ?? []
  return (
    <>
      <h2>Instructions</h2>
      {isLoading && <Loading rows={2} />}
      <Failed error={error} />
      {parts.map((part, index) => (
        <pre key={index} className="json instructions" tabIndex={0}>
          {part.text ?? part.preview}
        </pre>
      ))}
      {data !== undefined && parts.length === 0 && <p className="meta">None.</p>}
      {data && <p className="meta">The prompt begins with about {data.tokens.toLocaleString()} tokens.</p>}
    </>
  )
}

function Tool({ tool }: { tool: ToolDetails }) {
  const schema = useMemo(() => (tool.inputSchema === undefined ? undefined : (JSON.parse(tool.inputSchema) as unknown)), [tool.inputSchema])
  return (
    <details className="card tool">
      <summary>
        <b className="tool-name">{tool.id}</b>
        {tool.requireApproval && <span className="chip is-asking">asks first</span>} <span className="meta">{tool.description}</span>
      </summary>
      {schema === undefined ? <p className="meta">No input schema.</p> : <Json value={schema} />}
    </details>
  )
}
