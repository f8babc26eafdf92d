import { useRef, useState, type FormEvent, type KeyboardEvent } from 'react'
import { useShortcut } from '../app/keys.tsx'
import { hrefOf, Link, navigate, setQuery, usePlace } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { Time } from '../app/time.tsx'
import { Empty, Failed, Loading, Status } from '../parts/states.tsx'
import { useThreads, type ThreadItem } from './thread-list.ts'

const statuses = ['running', 'suspended', 'idle', 'parked'] as const
const perPage = 200

/** All threads with their live status. */
export function ThreadsView() {
  const { query } = usePlace()
  const text = query.get('q') ?? ''
  const status = query.get('status') ?? ''
  const page = Number(query.get('page') ?? '0')
  const { data, error, isLoading, reload } = useThreads({ perPage, page })
  const search = useRef<HTMLInputElement>(null)
  useShortcut('/', 'Search', 'Threads', () => search.current?.focus())
  const threads = (data?.threads ?? []).filter(
    (thread) => matches(thread, text.toLowerCase()) && (status === '' || thread.status === status),
  )
  return (
    <div className="page">
      <header className="page-head">
        <h1>Threads</h1>
        <NewThread />
      </header>
      <div className="filters" role="search">
        <input
          ref={search}
          type="search"
          placeholder="Search title, id or resource"
          aria-label="Search threads"
          value={text}
          onChange={(event) => setQuery({ q: event.target.value, page: undefined })}
        />
        <select aria-label="Status" value={status} onChange={(event) => setQuery({ status: event.target.value })}>
          <option value="">any status</option>
          {statuses.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </div>
      <Failed error={error} onRetry={reload} />
      {isLoading ? (
        <Loading rows={8} />
      ) : threads.length === 0 ? (
        (data?.threads.length ?? 0) === 0 && page === 0 ? (
          <NoThreads />
        ) : (
          <NoMatch text={text} status={status} />
        )
      ) : (
        <ThreadTable threads={threads} />
      )}
      {(page > 0 || data?.hasMore) && (
        <nav className="pages" aria-label="Pages">
          <button type="button" disabled={page === 0} onClick={() => setQuery({ page: page > 1 ? String(page - 1) : undefined })}>
            Newer
          </button>
          <button type="button" disabled={!data?.hasMore} onClick={() => setQuery({ page: String(page + 1) })}>
            Older
          </button>
        </nav>
      )}
    </div>
  )
}

function matches({ id, title, resourceId }: ThreadItem, text: string): boolean {
  return text === '' || [id, title, resourceId].some((field) => field.toLowerCase().includes(text))
}

function ThreadTable({ threads }: { threads: readonly ThreadItem[] }) {
  const body = useRef<HTMLTableSectionElement>(null)
  const move = (event: KeyboardEvent, by: number) => {
    const links = [...(body.current?.querySelectorAll('a') ?? [])]
    const at = links.indexOf(document.activeElement as HTMLAnchorElement)
    links[Math.min(links.length - 1, Math.max(0, at + by))]?.focus()
    event.preventDefault()
  }
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'j' || event.key === 'ArrowDown') move(event, 1)
    if (event.key === 'k' || event.key === 'ArrowUp') move(event, -1)
  }
  useShortcut('j', 'Next row', 'Threads', () => body.current?.querySelector('a')?.focus())
  return (
    <table className="list">
      <thead>
        <tr>
          <th scope="col">Thread</th>
          <th scope="col">Status</th>
          <th scope="col">Resource</th>
          <th scope="col">Changed</th>
        </tr>
      </thead>
      <tbody ref={body} onKeyDown={onKey}>
        {threads.map((thread) => (
          <tr key={thread.id}>
            <td>
              <Link to={['threads', thread.id]} className="row-link">
                {thread.title || thread.id}
              </Link>
              {thread.title && <span className="meta mono"> {thread.id}</span>}
            </td>
            <td>
              <Status status={thread.status} />
            </td>
            <td className="mono">{thread.resourceId}</td>
            <td className="meta">
              <Time at={thread.updatedAt} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function NoThreads() {
  const { agents } = useSession()
  return (
    <Empty title="No threads yet.">
      <p>A thread begins with its first message. Open one above, or send a message from a shell:</p>
      <pre className="command">heed send my-thread &quot;Hello&quot; --agent {agents[0]?.id ?? 'my-agent'}</pre>
    </Empty>
  )
}

function NoMatch({ text, status }: { text: string; status: string }) {
  return (
    <Empty title={`No thread matches ${[text && `“${text}”`, status && `status ${status}`].filter(Boolean).join(' and ')}.`}>
      <button type="button" onClick={() => setQuery({ q: undefined, status: undefined, page: undefined })}>
        Clear filters
      </button>
    </Empty>
  )
}

function NewThread() {
  const { agents } = useSession()
  const [id, setId] = useState('')
  const [agent, setAgent] = useState('')
  const [resource, setResource] = useState('studio')
  const field = useRef<HTMLInputElement>(null)
  const details = useRef<HTMLDetailsElement>(null)
  useShortcut('n', 'New thread', 'Threads', () => {
    if (details.current) details.current.open = true
    field.current?.focus()
  })
  const open = (event: FormEvent) => {
    event.preventDefault()
    const threadId = id.trim() === '' ? `thread-${Date.now().toString(36)}` : id.trim()
    navigate(hrefOf(['threads', threadId], { agent: agent || agents[0]?.id, resource: resource.trim() }))
  }
  return (
    <details ref={details} className="menu">
      <summary className="button primary">New thread</summary>
      <form className="card menu-card" onSubmit={open}>
        <label>
          Id
          <input ref={field} value={id} placeholder="made for you" onChange={(event) => setId(event.target.value)} />
        </label>
        <label>
          Agent
          <select value={agent || agents[0]?.id} onChange={(event) => setAgent(event.target.value)}>
            {agents.map((one) => (
              <option key={one.id} value={one.id}>
                {one.name}
              </option>
            ))}
          </select>
        </label>
        <label>
          Resource
          <input value={resource} onChange={(event) => setResource(event.target.value)} />
        </label>
        <button type="submit" className="primary">
          Open
        </button>
      </form>
    </details>
  )
}
