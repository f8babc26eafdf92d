import { useRef, useState, type KeyboardEvent } from 'react'
import type { Thread, WaitingApproval } from 'heed/react'
import { shown } from '../app/keys.tsx'
import { useAction } from '../app/query.ts'
import { Fields, Json } from '../parts/json.tsx'
import { Failed } from '../parts/states.tsx'

/** The calls of this thread that need a decision. */
export function Approvals({ thread }: { thread: Thread }) {
  if (thread.approvals.length === 0) return null
  return (
    <section className="approvals" aria-label="Decisions">
      {thread.approvals.map((call) =>
        call.kind === 'approval' ? (
          <ApprovalCard key={call.approvalId ?? call.toolCallId} call={call} thread={thread} />
        ) : (
          <ResumeCard key={call.approvalId ?? call.toolCallId} call={call} thread={thread} />
        ),
      )}
    </section>
  )
}

interface CardProps {
  call: WaitingApproval
  thread: Thread
}

/** The exact call that runs once it is approved. A failed decision leaves the card as it is, with the reason. */
function ApprovalCard({ call, thread }: CardProps) {
  const [reason, setReason] = useState('')
  const field = useRef<HTMLInputElement>(null)
  const id = call.approvalId ?? call.toolCallId
  const approve = useAction(() => thread.approve(id))
  const decline = useAction(() => thread.decline(id, reason.trim() === '' ? undefined : reason.trim()))
  const isBusy = approve.isBusy || decline.isBusy
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) {
      event.preventDefault()
      void approve.run()
    } else if (event.key === 'x' && event.target === event.currentTarget) {
      event.preventDefault()
      field.current?.focus()
    }
  }
  return (
    <article className="card approval" tabIndex={0} onKeyDown={onKey} aria-label={`${call.toolName} asks for approval`}>
      <header>
        <b className="tool-name">{call.toolName}</b> asks for approval
        {call.path !== undefined && call.path.length > 2 && <span className="meta">{call.path.slice(0, -1).join(' → ')}</span>}
      </header>
      <Fields value={call.args} />
      <div className="approval-actions">
        <button type="button" className="approve" disabled={isBusy} onClick={() => void approve.run()}>
          Approve <kbd>{shown('mod+')}↵</kbd>
        </button>
        <input
          ref={field}
          value={reason}
          placeholder="Reason to decline"
          aria-label="Reason to decline"
          onChange={(event) => setReason(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && !event.metaKey && !event.ctrlKey) void decline.run()
          }}
        />
        <button type="button" className="decline" disabled={isBusy} onClick={() => void decline.run()}>
          Decline
        </button>
      </div>
      <details>
        <summary className="meta">The call as JSON. A decision can't be undone.</summary>
        <Json value={call} />
      </details>
      <Failed error={approve.error ?? decline.error} />
    </article>
  )
}

/** A tool that waits for data. */
function ResumeCard({ call, thread }: CardProps) {
  const [text, setText] = useState('')
  const resume = useAction(() => thread.resume(call.approvalId ?? call.toolCallId, parsed(text)))
  return (
    <article className="card approval" aria-label={`${call.toolName} waits for data`}>
      <header>
        <b className="tool-name">{call.toolName}</b> waits for data
      </header>
      <Fields value={call.args} />
      {call.payload !== undefined && (
        <>
          <h3>It asks</h3>
          <Json value={call.payload} />
        </>
      )}
      <div className="approval-actions">
        <textarea
          rows={2}
          value={text}
          aria-label="Data: JSON, or a text"
          placeholder="JSON, or a text"
          onChange={(event) => setText(event.target.value)}
        />
        <button type="button" className="approve" disabled={resume.isBusy} onClick={() => void resume.run()}>
          Continue
        </button>
      </div>
      <Failed error={resume.error} />
    </article>
  )
}

type ResumeData = Parameters<Thread['resume']>[1]

function parsed(text: string): ResumeData {
  try {
    return JSON.parse(text) as ResumeData
  } catch {
    return text
  }
}
