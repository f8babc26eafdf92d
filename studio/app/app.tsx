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

const TimelinePage = lazy(() => import('../timeline/timeline-page.tsx').then((module) => ({ default: module.TimelinePage })))
const StepPage = lazy(() => import('../prompt/step-page.tsx').then((module) => ({ default: module.StepPage })))
const ProcessesView = lazy(() => import('../views/processes.tsx').then((module) => ({ default: module.ProcessesView })))
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
  const [view = 'threads', id, below, belowId, , step = ''] = segments
  switch (view) {
    case 'threads':
      if (id === undefined) return <ThreadsView />
      if (below === 'signals' && belowId !== undefined) return <SignalPage threadId={id} signalId={belowId} />
      if (below === 'timeline') return <TimelinePage key={id} threadId={id} />
      if (below === 'runs' && belowId !== undefined && /^\d+$/.test(step)) {
        return <StepPage key={id} threadId={id} runId={belowId} step={Number(step)} />
      }
      return <ThreadPage key={id} threadId={id} />
    case 'attention':
      return <AttentionView />
    case 'inbox':
      return <InboxView />
    case 'agents':
      return id === undefined ? <AgentsView /> : <AgentPage key={id} agentId={id} />
    case 'schedules':
      return <SchedulesView />
    case 'processes':
      return <ProcessesView />
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
