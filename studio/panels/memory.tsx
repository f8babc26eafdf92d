import { useState, type FormEvent } from 'react'
import { isHeedError, type FoundMessage } from 'heed/client'
import { useAction, useQuery } from '../app/query.ts'
import { Link } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { Time } from '../app/time.tsx'
import { Json } from '../parts/json.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import type { PanelProps } from '../thread/panel.tsx'

/** Working memory: what the agent keeps between runs. An edit is refused where another one came first. */
export function MemoryPanel({ thread, scope, agentId }: PanelProps) {
  const { client } = useSession()
  const { threadId, resourceId } = scope
  const memory = client.getAgent(agentId).memory(resourceId === undefined ? {} : { resourceId })
  const versions = useQuery(
    `memory ${agentId} ${threadId}`,
    () => memory.listWorkingMemoryVersions({ threadId, limit: 20 }),
    // Runs write it: what is typed stays while one begins or ends.
    { version: thread.status },
  )
  const [draft, setDraft] = useState<{ text: string; version: number }>()
  const [current] = versions.data ?? []
  const save = useAction(async () => {
    if (!draft) return
    const contents = contentsOf(draft.text, current?.workingMemory)
    // Of two edits at once the second is refused, and then shown what the first stored.
    await memory.updateWorkingMemory({ threadId, expectedVersion: draft.version, ...contents }).finally(versions.reload)
    setDraft(undefined)
  })
  const undo = useAction(async (version: number) => {
    await memory.undoWorkingMemory({ threadId, version, expectedVersion: current?.version ?? 0 })
    versions.reload()
  })
  if (versions.isLoading) return <Loading />
  if (isHeedError(versions.error) && versions.error.code === 'thread_not_found') {
    return <Empty title="The thread begins with its first message, and its working memory with it." />
  }
  if (versions.error !== undefined) {
    return (
      <Empty title="This agent keeps no working memory.">
        <p>
          Turn it on with{' '}
          <code>
            memory: new Memory({'{'} options: {'{'} workingMemory: … {'}'} {'}'})
          </code>
          .
        </p>
        <Failed error={versions.error} />
      </Empty>
    )
  }
  return (
    <>
      {draft ? (
        <form
          className="card"
          onSubmit={(event) => {
            event.preventDefault()
            void save.run()
          }}
        >
          <textarea
            rows={12}
            className="mono"
            value={draft.text}
            aria-label="Working memory"
            onChange={(event) => setDraft({ ...draft, text: event.target.value })}
          />
          <div className="actions">
            <button type="submit" className="primary" disabled={save.isBusy}>
              Save
            </button>
            <button type="button" onClick={() => setDraft(undefined)}>
              Discard
            </button>
          </div>
          <Failed error={save.error} />
          {current !== undefined && current.version !== draft.version && (
            <div role="status">
              <p>Version {current.version} was stored while you wrote. Nothing of yours is stored.</p>
              <Json value={current.workingMemory} />
              <button type="button" onClick={() => setDraft({ ...draft, version: current.version })}>
                Replace version {current.version} with mine when I save
              </button>
            </div>
          )}
        </form>
      ) : (
        <section className="card">
          <header>
            <b>Working memory</b> <span className="meta">{current ? `version ${current.version}` : 'empty'}</span>
          </header>
          {current && <Json value={current.workingMemory} />}
          <button type="button" onClick={() => setDraft({ text: asText(current?.workingMemory), version: current?.version ?? 0 })}>
            Edit
          </button>
        </section>
      )}
      {versions.data && versions.data.length > 1 && <h3>Versions</h3>}
      <ul className="history">
        {versions.data?.slice(1).map((version) => (
          <li key={version.version}>
            <span className="versions">v{version.version}</span> <Time at={version.updatedAt} />
            <button type="button" className="quiet" disabled={undo.isBusy} onClick={() => void undo.run(version.version)}>
              Restore
            </button>
            <details>
              <summary className="meta">Show</summary>
              <Json value={version.workingMemory} />
            </details>
          </li>
        ))}
      </ul>
      <Failed error={undo.error} />
    </>
  )
}

function asText(value: unknown): string {
  return value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value, null, 2)
}

type Update = { workingMemory: string | Record<string, never>; replace?: boolean }

/** Working memory with a schema is an object, and is replaced as a whole. */
function contentsOf(text: string, before: unknown): Update {
  if (typeof before !== 'object') return { workingMemory: text }
  return { workingMemory: JSON.parse(text) as Record<string, never>, replace: true }
}

/** The messages that a search shows. */
const shown = 20

/** Searches the messages of the resource as recall does, with the score of each. */
export function RecallPanel({ scope, agentId }: PanelProps) {
  const { client } = useSession()
  const { resourceId } = scope
  const memory = client.getAgent(agentId).memory(resourceId === undefined ? {} : { resourceId })
  const [text, setText] = useState('')
  const [asked, setAsked] = useState<string | null>(null)
  const found = useQuery(asked === null ? null : `recall ${agentId} ${resourceId ?? ''} ${asked}`, () =>
    memory.search({ searchQuery: asked ?? '', limit: shown }),
  )
  const search = (event: FormEvent) => {
    event.preventDefault()
    setAsked(text.trim() === '' ? null : text.trim())
  }
  return (
    <>
      <form className="filters" role="search" onSubmit={search}>
        <input
          type="search"
          value={text}
          placeholder="What to recall"
          aria-label="What to recall"
          onChange={(event) => setText(event.target.value)}
        />
        <button type="submit">Search</button>
      </form>
      {asked === null && (
        <Empty title="Search the messages of this resource.">
          <p>The result is what recall would find for an agent, best first.</p>
        </Empty>
      )}
      {found.isLoading && <Loading />}
      <Failed error={found.error} />
      {found.data?.incomplete && <p className="meta">Not complete yet: {found.data.incompleteReason ?? 'the index is being written'}.</p>}
      {found.data?.results.length === 0 && <Empty title={`Nothing fits “${asked}”.`} />}
      <ul className="history">
        {found.data?.results.map((hit) => (
          <li key={hit.id}>
            <meter min={0} max={1} value={hit.score} aria-label="Score">
              {hit.score}
            </meter>{' '}
            <b>{hit.score.toFixed(2)}</b> <span className="meta">{hit.role}</span> <Time at={hit.createdAt} />
            <p className="plain folded">{hit.content}</p>
            <Link to={['threads', hit.threadId]} query={{ at: hit.id }} className="mono">
              {hit.threadId}
            </Link>
            <Why {...{ hit, scope, agentId }} question={asked ?? ''} />
          </li>
        ))}
      </ul>
    </>
  )
}

interface WhyProps extends Pick<PanelProps, 'scope' | 'agentId'> {
  hit: FoundMessage
  question: string
}

/** Why a message was found: what makes up its score, the largest effect first. Read when it is opened. */
function Why({ hit, question, scope: { resourceId }, agentId }: WhyProps) {
  const { client } = useSession()
  const [isOpen, setOpen] = useState(false)
  const message = { id: hit.id, threadId: hit.threadId }
  const explained = useQuery(isOpen ? `why ${agentId} ${resourceId ?? ''} ${hit.threadId} ${hit.id} ${question}` : null, () =>
    client
      .getAgent(agentId)
      .memory(resourceId === undefined ? {} : { resourceId })
      .explainRecall({ searchQuery: question, limit: shown, message }),
  )
  const [why] = explained.data?.messages ?? []
  return (
    <details className="why" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Why it was found</summary>
      {explained.isLoading && <Loading />}
      <Failed error={explained.error} />
      {why && <p className="meta">{why.summary} These points make up its score:</p>}
      <dl>
        {why?.reasons.map(({ reason, points, text }) => (
          <div key={reason}>
            <dt>{text}</dt>
            <dd>
              {points < 0 ? '−' : '+'}
              {Math.abs(points).toFixed(2)}
            </dd>
          </div>
        ))}
      </dl>
    </details>
  )
}
