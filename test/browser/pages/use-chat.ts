import { createElement as h, useEffect, useMemo, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { useChat, type UIMessage as Message } from '@ai-sdk/react'
import { answersWhatWaits, HeedChatTransport, type HeedDataTypes } from 'heed/ai-sdk'
import { HeedClient } from 'heed/client'

type UIMessage = Message<unknown, HeedDataTypes>

const search = new URLSearchParams(location.search)
const id = search.get('thread') ?? ''
const client = new HeedClient({ baseUrl: search.get('server') ?? '' })

function Page({ before }: { before: UIMessage[] }) {
  const [text, setText] = useState('')
  const transport = useMemo(() => new HeedChatTransport({ agent: client.getAgent('guide'), resourceId: 'user-1' }), [])
  const chat = useChat<UIMessage>({ id, messages: before, resume: true, transport, sendAutomaticallyWhen: answersWhatWaits })
  useEffect(() => (search.has('alone') ? undefined : transport.follow(id, chat.setMessages)), [])
  const waiting = chat.messages.flatMap(({ parts }) => parts).filter((part) => (part as { state?: string }).state === 'approval-requested') as Array<{ toolCallId: string; approval: { id: string } }>
  const questions = chat.messages.flatMap(({ parts }) => parts).flatMap((part) => (part.type === 'data-suspended' && !part.data.isOver ? [part.data] : []))
  const line = (parts: UIMessage['parts']) =>
    parts.filter(({ type }) => type !== 'step-start').map((part) => (part.type === 'text' ? part.text : `[${part.type} ${(part as { state?: string }).state ?? ''}]`.replace(' ]', ']'))).join('|')
  return h('main', null,
    h('p', { id: 'status' }, chat.status),
    h('p', { id: 'error' }, chat.error?.message ?? ''),
    h('ol', { id: 'messages' }, chat.messages.map(({ id: key, role, parts, metadata }) => h('li', { key, className: (metadata as { sendError?: string } | undefined)?.sendError === undefined ? 'sent' : 'unsent' }, `${role}: ${line(parts)}`))),
    h('button', { className: 'retry', onClick: () => void chat.regenerate() }, 'Send again'),
    h('input', { id: 'text', value: text, onChange: (event: { target: { value: string } }) => setText(event.target.value) }),
    h('button', { id: 'send', onClick: () => void chat.sendMessage({ text }) }, 'Send'),
    h('button', { id: 'queue', onClick: () => void chat.sendMessage({ text }, { body: { queue: true } }) }, 'Queue'),
    h('button', { id: 'abort', onClick: () => void chat.stop() }, 'Stop'),
    waiting.map(({ toolCallId, approval }) => h('p', { key: toolCallId, className: 'approval' },
      h('button', { className: 'approve', onClick: () => void chat.addToolApprovalResponse({ id: approval.id, approved: true }) }, 'Approve'),
      h('button', { className: 'decline', onClick: () => void chat.addToolApprovalResponse({ id: approval.id, approved: false, reason: 'no' }) }, 'Decline'))),
    questions.map(({ toolCallId, toolName, payload }) => h('p', { key: toolCallId, className: 'question' }, JSON.stringify(payload),
      h('button', { className: 'give', onClick: () => void chat.addToolOutput({ tool: toolName as never, toolCallId, output: { color: text } as never }) }, 'Give'))),
  )
}

// What the thread says already; the active run is resumed by the hook.
const known = await client.memory({ resourceId: 'user-1' }).listMessages({ threadId: id, ...(search.has('load') ? { perPage: Number(search.get('load')) } : {}) }).then(({ uiMessages }) => uiMessages as UIMessage[], () => [])
createRoot(document.body.appendChild(document.createElement('div'))).render(h(Page, { before: known }))
