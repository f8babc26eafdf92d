import { lazy, Suspense, type ReactNode } from 'react'
import { AgentPage, AgentsView } from '../views/agents.tsx'
import { AttentionView } from '../views/attention.tsx'
import { InboxView } from '../views/inbox.tsx'
import { SchedulesView } from '../views/schedules.tsx'
import { ThreadsView } from '../views/threads.tsx'
import { WatchesView } from '../views/watches.tsx'
import { ThreadPage } from '../thread/thread-page.tsx'
import { Loading } from '../parts/states.tsx'
import { Link, usePlace } from './router.tsx'
import { SessionProvider } from './session.tsx'
import { Shell } from './shell.tsx'

const SignalPage = lazy(() => import('../views/signal.tsx').then((module) => ({ default: module.SignalPage })))

export function App() {
  return (
    <SessionProvider>
      <Shell>
        <Suspense fallback={<Loading />}>
          <View />
        </Suspense>
      </Shell>
    </SessionProvider>
  )
}

/** The view of the address. */
function View(): ReactNode {
  const { segments } = usePlace()
  const [view = 'threads', id, below, belowId] = segments
  switch (view) {
    case 'threads':
      if (id === undefined) return <ThreadsView />
      if (below === 'signals' && belowId !== undefined) return <SignalPage threadId={id} signalId={belowId} />
      return <ThreadPage key={id} threadId={id} />
    case 'attention':
      return <AttentionView />
    case 'inbox':
      return <InboxView />
    case 'agents':
      return id === undefined ? <AgentsView /> : <AgentPage key={id} agentId={id} />
    case 'schedules':
      return <SchedulesView />
    case 'watches':
      return <WatchesView watchId={id} />
    default:
      return (
        <div className="page">
          <h1>There is no such view</h1>
          <p>
            <Link to={['threads']}>Open the threads</Link>
          </p>
        </div>
      )
  }
}
