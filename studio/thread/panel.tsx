import { lazy, Suspense, type ComponentType } from 'react'
import type { Thread } from 'heed/react'
import { useShortcut } from '../app/keys.tsx'
import { hrefOf, navigate, setQuery, usePlace } from '../app/router.tsx'
import { Loading } from '../parts/states.tsx'
import { Queue } from './queue.tsx'

export interface PanelProps {
  thread: Thread
  scope: { threadId: string; resourceId?: string }
  agentId: string
}

const lazily = (load: () => Promise<Record<string, ComponentType<PanelProps>>>, name: string) =>
  lazy(async () => ({ default: (await load())[name] as ComponentType<PanelProps> }))

const state = () => import('../panels/state.tsx')
const memory = () => import('../panels/memory.tsx')
const inbox = () => import('../panels/inbox.tsx')
const prompt = () => import('../panels/prompt.tsx')
const runs = () => import('../panels/runs.tsx')

const panels: ReadonlyArray<{ id: string; label: string; key: string; Panel: ComponentType<PanelProps> }> = [
  { id: 'queue', label: 'Queue', key: 'q', Panel: Queue },
  { id: 'inbox', label: 'Inbox', key: 'i', Panel: lazily(inbox, 'InboxPanel') },
  { id: 'lanes', label: 'Lanes', key: 'l', Panel: lazily(state, 'LanesPanel') },
  { id: 'watches', label: 'Watches', key: 'w', Panel: lazily(state, 'WatchesPanel') },
  { id: 'memory', label: 'Memory', key: 'm', Panel: lazily(memory, 'MemoryPanel') },
  { id: 'recall', label: 'Recall', key: 'r', Panel: lazily(memory, 'RecallPanel') },
  { id: 'prompt', label: 'Prompt', key: 'p', Panel: lazily(prompt, 'PromptPanel') },
  { id: 'runs', label: 'Runs', key: 'u', Panel: lazily(runs, 'RunsPanel') },
]

/** The panels beside the transcript. The open one is in the address. */
export function ThreadPanel(props: PanelProps) {
  const { query } = usePlace()
  const open = panels.find(({ id }) => id === query.get('panel')) ?? panels[0]
  for (const { id, label, key } of panels) useShortcut(key, `${label} panel`, 'Thread', () => setQuery({ panel: id }))
  useShortcut('t', 'Timeline', 'Thread', () => navigate(hrefOf(['threads', props.scope.threadId, 'timeline'])))
  useShortcut('Escape', 'Back to the transcript', 'Thread', () => setQuery({ panel: undefined }))
  if (!open) return null
  const counts: Record<string, number> = { queue: props.thread.queued.length, inbox: props.thread.inbox?.pending ?? 0 }
  return (
    <aside className="panel" aria-label={`${open.label} panel`}>
      <header className="panel-head">
        <button type="button" className="quiet" onClick={() => setQuery({ panel: undefined })}>
          ‹ Thread
        </button>
        <h1>{open.label}</h1>
      </header>
      <div className="tabs" role="tablist" aria-label="Panels">
        {panels.map(({ id, label }) => (
          <button
            key={id}
            id={`tab-${id}`}
            type="button"
            role="tab"
            aria-selected={id === open.id}
            aria-controls="panel-body"
            onClick={() => setQuery({ panel: id })}
          >
            {label}
            {(counts[id] ?? 0) > 0 && <b className="count">{counts[id]}</b>}
          </button>
        ))}
      </div>
      <div id="panel-body" className="panel-body" role="tabpanel" aria-labelledby={`tab-${open.id}`} tabIndex={0}>
        <Suspense fallback={<Loading />}>
          <open.Panel {...props} />
        </Suspense>
      </div>
    </aside>
  )
}
