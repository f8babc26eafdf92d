import { useState, type FormEvent } from 'react'
import { useThread } from 'heed/react'

/** One thread: what was said, calls that wait for a decision, the queue, and a field to write. */
export function Chat() {
  const thread = useThread({ agent: 'guide', threadId: 'first', resourceId: 'user-7', client: { baseUrl: '' } })
  const [text, setText] = useState('')
  const isRunning = thread.status === 'running'

  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    if (text.trim() === '') return
    // While the agent works, the message enters its run at the next step.
    void thread.send(text)
    setText('')
  }

  return (
    <main>
      <h1>Guide</h1>
      <ol aria-live="polite">
        {thread.messages.map((message) => (
          <li key={message.id} className={message.role}>
            {message.parts.map((part, index) => (part.type === 'text' ? <p key={index}>{part.text}</p> : null))}
          </li>
        ))}
      </ol>
      {thread.approvals.map(({ toolCallId, approvalId = toolCallId, toolName, args }) => (
        <section key={approvalId}>
          <p>Run {toolName} with {JSON.stringify(args)}?</p>
          <button onClick={() => void thread.approve(approvalId)}>Approve</button>
          <button onClick={() => void thread.decline(approvalId, 'Not now.')}>Decline</button>
        </section>
      ))}
      {thread.queued.map(({ id }) => <p key={id} className="meta">A message waits for its turn.</p>)}
      {thread.error && <p role="alert">{thread.error.message}</p>}
      {thread.connection === 'lost' && <p role="status">The connection is lost. It is made again.</p>}
      <form onSubmit={submit}>
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} placeholder="How is the weather in Bern?" />
        <button type="submit">{isRunning ? 'Steer' : 'Send'}</button>
        {isRunning && <button type="button" onClick={() => void thread.abort()}>Stop</button>}
      </form>
    </main>
  )
}
