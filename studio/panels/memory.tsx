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

/** Searches the messages of the resource as recall does, with the score of each. */
export function RecallPanel({ scope, agentId }: PanelProps) {
  const { client } = useSession()
  const { resourceId } = scope
  const memory = client.getAgent(agentId).memory(resourceId === undefined ? {} : { resourceId })
  const [text, setText] = useState('')
  const [asked, setAsked] = useState<string | null>(null)
  const found = useQuery(asked === null ? null : `recall ${agentId} ${resourceId ?? ''} ${asked}`, () =>
    memory.search({ searchQuery: asked ?? '', limit: 20 }),
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
            {hit.reasons && <Why reasons={hit.reasons} />}
          </li>
        ))}
      </ul>
    </>
  )
}

type Reasons = NonNullable<FoundMessage['reasons']>

/** What each reason of a score says about a message, those that count most first. */
const meanings: ReadonlyArray<readonly [keyof Reasons, string]> = [
  ['time', 'It is from the time that the question names'],
  ['words', 'It has words of the question'],
  ['wordsOfPair', 'It has them together with the message before it'],
  ['meaning', 'It is near in meaning'],
  ['meaningOfPair', 'It is near in meaning together with the message before it'],
  ['thread', 'The messages around it fit'],
  ['wordsOfThread', 'The messages around it have words of the question'],
  ['previous', 'The message before it fits'],
  ['next', 'The message after it fits'],
  ['length', 'It says much'],
  ['question', 'It asks, or answers nothing: this counts against it'],
]

/** Why a message was found: each reason beside how much it applies, where 1 is the best of all messages. */
function Why({ reasons }: { reasons: Reasons }) {
  const applying = meanings.filter(([name]) => reasons[name] >= 0.005)
  return (
    <details className="why">
      <summary>Why: {applying.slice(0, 2).map(([, meaning]) => meaning).join('. ') || 'Its place in the thread'}.</summary>
      <dl>
        {applying.map(([name, meaning]) => (
          <div key={name}>
            <dt>{meaning}</dt>
            <dd>
              <meter min={0} max={1} value={reasons[name]} aria-label={meaning} /> {reasons[name].toFixed(2)}
            </dd>
          </div>
        ))}
      </dl>
    </details>
  )
}
