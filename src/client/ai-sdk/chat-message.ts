import type { JSONValue } from '../../base/json.ts'
import type { UIMessage } from '../../message/ui/ui-message.ts'
import type { SignalContents } from '../../signals/signal.ts'
import { isCall } from '../view/parts.ts'
import type { ThreadView } from '../view/thread-view.ts'
import type { WaitingForData } from './data-types.ts'
import { question, type UIChunk } from './ui-chunks.ts'

/** A message as `useChat` passes it on. */
export interface ChatMessage {
  id: string
  role: 'system' | 'user' | 'assistant'
  parts: ReadonlyArray<{ type: string }>
}

/** What parts may have, of whichever version they are. */
interface AnyPart {
  type: string
  id?: unknown
  text?: unknown
  url?: unknown
  mediaType?: unknown
  filename?: unknown
  toolCallId?: unknown
  state?: unknown
  input?: unknown
  output?: unknown
  approval?: { approved?: unknown; reason?: unknown }
  data?: unknown
}

export function contentsOf({ parts }: ChatMessage): SignalContents {
  const contents = parts.flatMap((part: AnyPart): Exclude<SignalContents, string> => {
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
  return parts.flatMap(({ toolCallId, state, output, approval: { approved, reason } = {} }: AnyPart) => {
    if (typeof toolCallId !== 'string') return []
    if (state === 'approval-responded') return [{ toolCallId, approval: { approved: approved === true, ...(typeof reason === 'string' ? { reason } : {}) }, resumeData: null }]
    const waits = state === 'output-available' && approvals.some((call) => call.kind === 'suspend' && call.toolCallId === toolCallId)
    return waits ? [{ toolCallId, resumeData: (output ?? null) as JSONValue }] : []
  })
}

/** The calls that the page answered, with nothing of what came of it: each as it was called. */
export function answeredIn(message: ChatMessage): ReadonlyMap<string, UICall> {
  const asked = questionsIn(message)
  return new Map(message.parts.flatMap(({ type, toolCallId, state, input }: AnyPart): Array<[string, UICall]> => {
    if (typeof toolCallId !== 'string' || (state !== 'approval-responded' && !(state === 'output-available' && asked.has(toolCallId)))) return []
    return [[toolCallId, { type: 'tool-input-available', toolCallId, toolName: type.slice('tool-'.length), input }]]
  }))
}

type UICall = Extract<UIChunk, { type: 'tool-input-available' }>

/** Calls of tools that wait for data, as far as the message knows. */
export function questionsIn({ parts }: ChatMessage): ReadonlySet<unknown> {
  return new Set(parts.flatMap(({ type, id, data }: AnyPart) => (type === 'data-suspended' && (data as WaitingForData | undefined)?.isOver !== true ? [id] : [])))
}

/**
 * For `sendAutomaticallyWhen` of `useChat`: true when the page has an answer to every call that waits, with `addToolApprovalResponse` and
 * `addToolOutput`. The run goes on when all are answered.
 */
export function answersWhatWaits({ messages }: { messages: readonly ChatMessage[] }): boolean {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return false
  const calls: readonly AnyPart[] = last.parts.filter((part) => 'toolCallId' in part)
  const asked = questionsIn(last)
  const questions = calls.filter(({ toolCallId }) => asked.has(toolCallId))
  const isGiven = ({ state }: AnyPart) => state === 'output-available'
  if (calls.some(({ state }) => state === 'approval-requested') || !questions.every(isGiven)) return false
  return questions.length > 0 || calls.some(({ state }) => state === 'approval-responded')
}
