import { createContext, useContext, useMemo, useState, type ReactNode } from 'react'
import { HeedClient, isHeedError, type AgentDetails } from 'heed/client'
import { LiveProvider } from './live.tsx'
import { useQuery, type Query } from './query.ts'
import { SignIn } from './sign-in.tsx'

/** The path below which the routes of the server are. */
const apiPrefix = document.documentElement.dataset.api ?? '/api'

interface Session {
  client: HeedClient
  agents: readonly AgentDetails[]
  /** Forgets the key of this page. Undefined where none was needed. */
  signOut?: () => void
}

const SessionContext = createContext<Session | null>(null)

export function useSession(): Session {
  const session = useContext(SessionContext)
  if (!session) throw new Error('There is no session.')
  return session
}

/** Connects to the server that the page came from, with the key of the user where the server needs one. The key stays in memory. */
export function SessionProvider({ children }: { children: ReactNode }) {
  const [key, setKey] = useState<string>()
  const client = useMemo(
    () =>
      new HeedClient({
        baseUrl: window.location.origin,
        apiPrefix,
        retries: 1,
        ...(key === undefined ? {} : { headers: { authorization: `Bearer ${key}` } }),
      }),
    [key],
  )
  const agents: Query<Record<string, AgentDetails>> = useQuery(`agents ${key ?? ''}`, () => client.listAgents(), { everyMs: 15_000 })
  const session = useMemo<Session | null>(
    () =>
      agents.data === undefined
        ? null
        : {
            client,
            agents: Object.values(agents.data),
            ...(key === undefined ? {} : { signOut: () => setKey(undefined) }),
          },
    [client, agents.data, key],
  )

  const identity = useMemo(() => (key === undefined ? '' : `${Date.now()} ${Math.random()}`), [key])

  if (isUnauthorized(agents.error)) return <SignIn wasRejected={key !== undefined} onKey={setKey} />
  if (!session) return <Starting error={agents.error} onRetry={agents.reload} />
  return (
    <SessionContext value={session}>
      <LiveProvider client={client} identity={identity}>
        {children}
      </LiveProvider>
    </SessionContext>
  )
}

function isUnauthorized(error: unknown): boolean {
  return isHeedError(error) && error.code === 'unauthorized'
}

function Starting({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  if (error === undefined)
    return (
      <main className="centered" aria-busy="true">
        <p className="meta">Connecting to the server</p>
      </main>
    )
  return (
    <main className="centered">
      <h1>The server does not answer</h1>
      <p>{isHeedError(error) ? error.message : String(error)}</p>
      <button type="button" className="primary" onClick={onRetry}>
        Try again
      </button>
    </main>
  )
}
