import { lazy, Suspense, type ReactNode } from 'react'
import { ThreadsView } from '../views/threads.tsx'
import { ThreadPage } from '../thread/thread-page.tsx'
import { Loading } from '../parts/states.tsx'
import { BrokenView } from './broken-view.tsx'
import { Link, usePlace } from './router.tsx'
import { SessionProvider } from './session.tsx'
import { Shell } from './shell.tsx'

const TimelinePage = lazy(() => import('../timeline/timeline-page.tsx').then((module) => ({ default: module.TimelinePage })))
const StepPage = lazy(() => import('../prompt/step-page.tsx').then((module) => ({ default: module.StepPage })))
const ProcessesView = lazy(() => import('../views/processes.tsx').then((module) => ({ default: module.ProcessesView })))
const SignalPage = lazy(() => import('../views/signal.tsx').then((module) => ({ default: module.SignalPage })))
const AgentPage = lazy(() => import('../views/agents.tsx').then((module) => ({ default: module.AgentPage })))
const AgentsView = lazy(() => import('../views/agents.tsx').then((module) => ({ default: module.AgentsView })))
const AttentionView = lazy(() => import('../views/attention.tsx').then((module) => ({ default: module.AttentionView })))
const InboxView = lazy(() => import('../views/inbox.tsx').then((module) => ({ default: module.InboxView })))
const SchedulesView = lazy(() => import('../views/schedules.tsx').then((module) => ({ default: module.SchedulesView })))
const WatchesView = lazy(() => import('../views/watches.tsx').then((module) => ({ default: module.WatchesView })))
const PromptBlocksView = lazy(() => import('../editor/prompt-blocks-page.tsx').then((module) => ({ default: module.PromptBlocksView })))
const PromptBlockPage = lazy(() => import('../editor/prompt-blocks-page.tsx').then((module) => ({ default: module.PromptBlockPage })))
const VersionsPage = lazy(() => import('../editor/versions-page.tsx').then((module) => ({ default: module.VersionsPage })))
const ScoresView = lazy(() => import('../views/scores.tsx').then((module) => ({ default: module.ScoresView })))
const WorkflowsView = lazy(() => import('../workflows/workflows-view.tsx').then((module) => ({ default: module.WorkflowsView })))
const WorkflowPage = lazy(() => import('../workflows/workflow-page.tsx').then((module) => ({ default: module.WorkflowPage })))
const RunPage = lazy(() => import('../workflows/run-page.tsx').then((module) => ({ default: module.RunPage })))

export function App() {
  return (
    <SessionProvider>
      <Shell>
        <Guarded />
      </Shell>
    </SessionProvider>
  )
}

function Guarded() {
  const { segments } = usePlace()
  return (
    <BrokenView place={segments.join('/')}>
      <Suspense fallback={<Loading />}>
        <View />
      </Suspense>
    </BrokenView>
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
      if (id === undefined) return <AgentsView />
      return below === 'versions' ? <VersionsPage key={id} agentId={id} /> : <AgentPage key={id} agentId={id} />
    case 'prompt-blocks':
      return id === undefined ? <PromptBlocksView /> : <PromptBlockPage key={id} id={id} />
    case 'workflows':
      if (id === undefined) return <WorkflowsView />
      if (below === 'runs' && belowId !== undefined) return <RunPage key={`${id} ${belowId}`} workflowId={id} runId={belowId} />
      return <WorkflowPage key={id} workflowId={id} />
    case 'scores':
      return <ScoresView />
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
