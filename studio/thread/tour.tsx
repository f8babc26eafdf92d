import { useState } from 'react'
import type { AgentDetails } from 'heed/client'
import type { Thread } from 'heed/react'
import { useAction } from '../app/query.ts'
import { setQuery } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { Failed } from '../parts/states.tsx'

type Deed =
  | { send: string }
  | { queue: string }
  | { approve: true }
  | { open: string }
  | { notify: { source: string; kind: string; priority: 'low' | 'medium' | 'high' | 'urgent'; summary: string } }

interface TourStep {
  title: string
  text: string
  button: string
  does: readonly Deed[]
}

interface Tour {
  threadId: string
  resourceId: string
  steps: readonly TourStep[]
}

/** The tour of an agent, if its code has one in its metadata. Threads can't bring one: their metadata is not the operator's. */
export function tourOf({ metadata }: Pick<AgentDetails, 'metadata'>): Tour | undefined {
  const { tour } = metadata ?? {}
  const { threadId, steps } = Object(tour) as Partial<Tour>
  return typeof threadId === 'string' && Array.isArray(steps) ? (tour as Tour) : undefined
}

/** A card that leads through the thread, click by click. Everything can be done by hand instead. */
export function TourCard({ tour, agentId, thread }: { tour: Tour; agentId: string; thread: Thread }) {
  const { client } = useSession()
  const [at, setAt] = useState(() => Number(sessionStorage.getItem(`tour ${tour.threadId}`) ?? '0'))
  const [isHidden, setHidden] = useState(false)
  const step = tour.steps[at]
  const move = (next: number) => {
    sessionStorage.setItem(`tour ${tour.threadId}`, String(next))
    setAt(next)
  }
  const go = useAction(async (deeds: readonly Deed[]) => {
    const scope = { threadId: tour.threadId, resourceId: tour.resourceId }
    for (const deed of deeds) {
      if ('send' in deed) await thread.send(deed.send)
      else if ('queue' in deed) await thread.queue(deed.queue)
      else if ('notify' in deed) await client.getAgent(agentId).notifications.send({ notification: deed.notify, ...scope })
      else if ('approve' in deed) for (const call of thread.approvals) await thread.approve(call.approvalId ?? call.toolCallId)
      else if (window.matchMedia('(min-width: 1101px)').matches) setQuery({ panel: deed.open })
    }
    move(at + 1)
  })
  if (isHidden) return null
  if (!step) {
    return (
      <aside className="tour" aria-label="Tour">
        <p>
          <b>That was the tour.</b> Now yours: <code>npm create heed</code>, then <code>npx heed dev</code>.
        </p>
        <div className="actions">
          <button type="button" onClick={() => move(0)}>
            Again
          </button>
          <button type="button" className="quiet" onClick={() => setHidden(true)}>
            Close
          </button>
        </div>
      </aside>
    )
  }
  const needsApproval = step.does.some((deed) => 'approve' in deed)
  const isEarly = needsApproval && thread.approvals.length === 0
  return (
    <aside className="tour" aria-label="Tour">
      <p>
        <b>
          {at + 1} of {tour.steps.length}: {step.title}.
        </b>{' '}
        {step.text}
      </p>
      <div className="actions">
        <button type="button" className="primary" disabled={go.isBusy || isEarly} onClick={() => void go.run(step.does)}>
          {step.button}
        </button>
        {isEarly && <span className="meta">The run has to ask first.</span>}
        <button type="button" className="quiet" onClick={() => move(at + 1)}>
          Skip
        </button>
        <button type="button" className="quiet" onClick={() => setHidden(true)}>
          Hide the tour
        </button>
      </div>
      <Failed error={go.error} />
    </aside>
  )
}
