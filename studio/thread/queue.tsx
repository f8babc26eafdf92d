import { useState } from 'react'
import type { Thread } from 'heed/react'
import { useAction } from '../app/query.ts'
import { Failed } from '../parts/states.tsx'

type Queued = Thread['queued'][number]

/** The signals that wait: those that enter the active run at its next step, and those that each start a run of their own. */
export function Queue({ thread }: { thread: Thread }) {
  const entering = thread.queued.filter(({ kind }) => kind === 'enter')
  const turns = thread.queued.filter(({ kind }) => kind === 'turn')
  const reorder = useAction((ids: string[]) => thread.reorderQueued(ids))
  const move = (index: number, by: number) => {
    const ids = turns.map(({ id }) => id)
    const [moved] = ids.splice(index, 1)
    if (moved !== undefined) ids.splice(index + by, 0, moved)
    void reorder.run(ids)
  }
  if (thread.queued.length === 0)
    return <p className="meta">Nothing waits. “Queue” in the composer adds a message that starts a run of its own.</p>
  return (
    <>
      {entering.length > 0 && <h3>Next step</h3>}
      <ul className="queue">
        {entering.map((item) => (
          <QueueItem key={item.id} item={item} thread={thread} />
        ))}
      </ul>
      {turns.length > 0 && <h3>After this run</h3>}
      <ol className="queue">
        {turns.map((item, index) => (
          <QueueItem key={item.id} item={item} thread={thread}>
            <button type="button" className="quiet" disabled={index === 0} aria-label="Earlier" onClick={() => move(index, -1)}>
              ↑
            </button>
            <button type="button" className="quiet" disabled={index === turns.length - 1} aria-label="Later" onClick={() => move(index, 1)}>
              ↓
            </button>
          </QueueItem>
        ))}
      </ol>
      <Failed error={reorder.error} />
    </>
  )
}

function QueueItem({ item, thread, children }: { item: Queued; thread: Thread; children?: React.ReactNode }) {
  const [edited, setEdited] = useState<string>()
  const text = textOf(item)
  const cancel = useAction(() => thread.cancelQueued([item.id]))
  // A stored signal never changes: an edit cancels it, and sends the new text in its place.
  const save = useAction(async (next: string) => {
    await thread.cancelQueued([item.id])
    await (item.kind === 'turn' ? thread.queue(next) : thread.send(next))
    setEdited(undefined)
  })
  const steer = useAction(async () => {
    await thread.cancelQueued([item.id])
    await thread.send(text)
  })
  if (edited !== undefined) {
    return (
      <li>
        <textarea
          rows={2}
          value={edited}
          aria-label="Edit the queued message"
          autoFocus
          onChange={(event) => setEdited(event.target.value)}
        />
        <button type="button" className="primary" onClick={() => void save.run(edited)}>
          Save
        </button>
        <button type="button" className="quiet" onClick={() => setEdited(undefined)}>
          Keep as it was
        </button>
        <Failed error={save.error} />
      </li>
    )
  }
  const isMessage = item.signal?.type === 'user'
  return (
    <li>
      <span className="clip">{text}</span>
      {children}
      {isMessage && item.kind === 'turn' && (
        <button type="button" className="quiet" title="Enter the run at its next step instead" onClick={() => void steer.run()}>
          Send now
        </button>
      )}
      {isMessage && (
        <button type="button" className="quiet" onClick={() => setEdited(text)}>
          Edit
        </button>
      )}
      <button type="button" className="quiet" onClick={() => void cancel.run()}>
        Cancel
      </button>
      <Failed error={cancel.error ?? steer.error} />
    </li>
  )
}

function textOf({ signal }: Queued): string {
  if (!signal) return 'A call of generate() or stream()'
  const { contents } = signal
  return typeof contents === 'string' ? contents : contents.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join(' ')
}
