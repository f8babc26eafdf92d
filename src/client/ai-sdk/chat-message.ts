import type { JSONValue } from '../../json.ts'
import type { UIMessage } from '../../message/ui-message.ts'
import type { SignalContents } from '../../signals/signal.ts'
import { isCall } from '../view/parts.ts'
import type { ThreadView } from '../view/thread-view.ts'
import { question } from './ui-chunks.ts'

/** A message as `useChat` passes it on. */
export interface ChatMessage {
  id: string
  role: 'system' | 'user' | 'assistant'
  parts: ReadonlyArray<{ type: string; [field: string]: unknown }>
}

export function contentsOf({ parts }: ChatMessage): SignalContents {
  const contents = parts.flatMap((part): Exclude<SignalContents, string> => {
    if (part.type === 'text') return [{ type: 'text', text: String(part.text) }]
    if (part.type === 'file') return [{ type: 'file', data: String(part.url), mediaType: String(part.mediaType), ...(typeof part.filename === 'string' ? { filename: part.filename } : {}) }]
    return []
  })
  const [only] = contents
  return contents.length === 1 && only?.type === 'text' ? only.text : contents
}

/** The messages of a view as a chat shows them: what a tool waits for is beside its call. */
export function chatMessages({ messages, approvals }: ThreadView): readonly UIMessage[] {
  const waiting = approvals.filter(({ kind }) => kind === 'suspend')
  if (waiting.length === 0) return messages
  return messages.map((message) => {
    const asked = waiting.filter(({ toolCallId }) => message.parts.some((part) => isCall(part, toolCallId)))
    const parts = asked.map(({ toolCallId, toolName, args, payload = null }) => question({ toolCallId, toolName, args: args as JSONValue, payload: payload as JSONValue }))
    return parts.length === 0 ? message : { ...message, parts: [...message.parts, ...parts] }
  })
}

/** What the page says to a call that waits: yes or no, or the data that a tool waits for. */
export interface GivenAnswer {
  toolCallId: string
  approval?: { approved: boolean; reason?: string }
  resumeData: JSONValue
}

/** What a message has as answers to what waits. */
export function givenIn({ parts }: ChatMessage, { approvals }: ThreadView): GivenAnswer[] {
  return parts.flatMap(({ toolCallId, state, output, approval }) => {
    if (typeof toolCallId !== 'string') return []
    const { approved, reason } = (approval ?? {}) as { approved?: unknown; reason?: unknown }
    if (state === 'approval-responded') return [{ toolCallId, approval: { approved: approved === true, ...(typeof reason === 'string' ? { reason } : {}) }, resumeData: null }]
    const waits = state === 'output-available' && approvals.some((call) => call.kind === 'suspend' && call.toolCallId === toolCallId)
    return waits ? [{ toolCallId, resumeData: (output ?? null) as JSONValue }] : []
  })
}

/** The message as it was before the page answered: what was given for a tool that waits for data is not its output. */
export function undecided(message: ChatMessage): ChatMessage {
  const asked = new Set(message.parts.flatMap(({ type, id }) => (type === 'data-suspended' ? [id] : [])))
  return { ...message, parts: message.parts.map((part) => (asked.has(part.toolCallId) && part.state === 'output-available' ? { ...part, state: 'input-available' } : part)) }
}
