import { createElement as h, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { useThread } from 'heed/react'

const search = new URLSearchParams(location.search)

function Page() {
  const [text, setText] = useState('')
  const [baseUrl, setBaseUrl] = useState(search.get('server') ?? '')
  const thread = useThread({ threadId: search.get('thread') ?? '', resourceId: 'user-1', agent: 'guide', client: { baseUrl } })
  const line = (parts: ReadonlyArray<{ type: string; text?: string; state?: string }>) =>
    parts.filter(({ type }) => type !== 'step-start').map(({ type, text: words, state }) => (type === 'text' ? words : `[${type} ${state ?? ''}]`.replace(' ]', ']'))).join('|')
  return h('main', null,
    h('p', { id: 'status' }, thread.status),
    h('p', { id: 'connection' }, thread.connection),
    h('p', { id: 'inbox' }, thread.inbox ? `${thread.inbox.pending} pending, ${thread.inbox.unread} unread` : 'unknown'),
    h('p', { id: 'send-error' }, thread.sendError ?? ''),
    h('ol', { id: 'messages' }, thread.messages.map(({ id, role, parts, metadata }) => h('li', { key: id, className: metadata?.sendError === undefined ? 'sent' : 'unsent' }, `${role}: ${line(parts)}`))),
    h('ul', { id: 'queued' }, thread.queued.map(({ id, kind, signal }) => h('li', { key: id }, `${kind}: ${String(signal?.contents)}`))),
    thread.messages.filter(({ metadata }) => metadata?.sendError !== undefined).map(({ id }) => h('button', { key: id, className: 'retry', onClick: () => void thread.retry(id) }, 'Send again')),
    h('input', { id: 'text', value: text, onChange: (event: { target: { value: string } }) => setText(event.target.value) }),
    h('button', { id: 'send', onClick: () => void thread.send(text) }, 'Send'),
    h('button', { id: 'queue', onClick: () => void thread.queue(text) }, 'Queue'),
    h('button', { id: 'abort', onClick: () => void thread.abort() }, 'Abort'),
    h('button', { id: 'clear', onClick: () => void thread.abort({ clearPendingSignals: true }) }, 'Abort and clear'),
    h('button', { id: 'cancel', onClick: () => void thread.cancelQueued(thread.queued.map(({ id }) => id)) }, 'Cancel'),
    h('button', { id: 'if-idle', onClick: () => void thread.send(text, { ifActive: { behavior: 'discard' } }) }, 'Send if idle'),
    h('button', { id: 'older', disabled: !thread.hasOlder, onClick: () => void thread.loadOlder() }, 'Older'),
    h('button', { id: 'switch', onClick: () => setBaseUrl(search.get('other') ?? '') }, 'Switch'),
    thread.approvals.map(({ toolCallId, toolName }) => h('p', { key: toolCallId, className: 'approval' }, toolName,
      h('button', { className: 'approve', onClick: () => void thread.approve(toolCallId) }, 'Approve'),
      h('button', { className: 'decline', onClick: () => void thread.decline(toolCallId, 'no') }, 'Decline'))),
  )
}

createRoot(document.body.appendChild(document.createElement('div'))).render(h(Page))
