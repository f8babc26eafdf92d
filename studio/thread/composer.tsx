import { useRef, useState, type KeyboardEvent } from 'react'
import type { Thread } from 'heed/react'
import { shown, useShortcut } from '../app/keys.tsx'
import { useAction } from '../app/query.ts'
import { Failed } from '../parts/states.tsx'

/** Drafts outlive a change of the view. */
const drafts = new Map<string, string>()

const placeholders = {
  idle: 'Message',
  running: 'The agent works. Write to steer it.',
  suspended: 'The agent waits for a decision.',
}

/** Writes to the thread: now, after the active run, or by cutting into it. */
export function Composer({ thread, threadId, onSignal }: { thread: Thread; threadId: string; onSignal: () => void }) {
  const [text, setDraft] = useState(drafts.get(threadId) ?? '')
  const field = useRef<HTMLTextAreaElement>(null)
  const isActive = thread.status !== 'idle'
  const setText = (next: string) => {
    drafts.set(threadId, next)
    setDraft(next)
  }
  const send = (how: 'now' | 'queue' | 'interrupt') => {
    const message = text.trim()
    if (message === '') return
    setText('')
    if (how === 'queue') void thread.queue(message)
    else void thread.send(message, how === 'interrupt' ? { ifActive: { behavior: 'interrupt' } } : {})
    field.current?.focus()
  }
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.nativeEvent.isComposing) return
    const mod = event.metaKey || event.ctrlKey
    if (!mod && event.shiftKey) return
    event.preventDefault()
    send(mod ? (event.shiftKey ? 'interrupt' : 'queue') : 'now')
  }
  useShortcut('c', 'Write a message', 'Thread', () => field.current?.focus())
  const stop = useAction(() => thread.abort())
  useShortcut('mod+.', 'Stop the run', 'Thread', () => void stop.run())
  const isEmpty = text.trim() === ''
  return (
    <form className="composer" onSubmit={(event) => event.preventDefault()}>
      {thread.connection === 'lost' && <Disconnected error={thread.connectionError} />}
      {thread.sendError !== null && (
        <p className="problem" role="alert">
          {thread.sendError}
        </p>
      )}
      <Failed error={stop.error} />
      <textarea
        ref={field}
        rows={Math.min(8, Math.max(2, text.split('\n').length))}
        value={text}
        aria-label="Message"
        placeholder={placeholders[thread.status]}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKey}
      />
      <div className="composer-actions">
        <button
          type="button"
          className="primary"
          disabled={isEmpty}
          onClick={() => send('now')}
          title={isActive ? 'Enters the run at the next step' : 'Starts a run'}
        >
          {isActive ? 'Send now' : 'Send'} <kbd>↵</kbd>
        </button>
        <button type="button" disabled={isEmpty} onClick={() => send('queue')} title="Starts a run of its own, after this one">
          Queue <kbd>{shown('mod+')}↵</kbd>
        </button>
        <button
          type="button"
          disabled={isEmpty || !isActive}
          onClick={() => send('interrupt')}
          title="Cuts the answer that is being written"
        >
          Interrupt <kbd>{shown('mod+shift+')}↵</kbd>
        </button>
        <button type="button" className="quiet" onClick={onSignal}>
          Signal…
        </button>
        <span className="spring" />
        {isActive && (
          <button type="button" className="stop" disabled={stop.isBusy} onClick={() => void stop.run()}>
            Stop <kbd>{shown('mod+')}.</kbd>
          </button>
        )}
      </div>
    </form>
  )
}

function Disconnected({ error }: { error: string | null }) {
  return (
    <p className="disconnected" role="alert">
      Not connected. The page tries again by itself; what you write stays here.{error === null ? '' : ` ${error}`}
    </p>
  )
}
