import type { JSONValue } from '../../base/json.ts'
import type { UIMessage } from '../../message/ui/ui-message.ts'
import type { SignalContents } from '../../signals/signal.ts'
import { hasCall, type ThreadView } from '../view/thread-view.ts'
import { question, type UIChunk, type WaitingForData } from './ui-chunks.ts'

/** A message of `useChat`. */
export interface ChatMessage {
  id: string
  role: 'system' | 'user' | 'assistant'
  parts: ReadonlyArray<{ type: string }>
}

/** The fields that parts of any version of the AI SDK may have. */
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
    if (part.type === 'file') {
      const filename = typeof part.filename === 'string' ? { filename: part.filename } : {}
      return [{ type: 'file', data: String(part.url), mediaType: String(part.mediaType), ...filename }]
    }
    return []
  })
  const [only] = contents
  return contents.length === 1 && only?.type === 'text' ? only.text : contents
}

/** The messages of a view for a chat: the data that a tool waits for is a part of the message with its call. */
export function chatMessages({ messages, approvals }: ThreadView): readonly UIMessage[] {
  const waiting = approvals.filter(({ kind }) => kind === 'suspend')
  if (waiting.length === 0) return messages
  return messages.map((message) => {
    const calls = waiting.filter(({ toolCallId }) => hasCall(message, toolCallId))
    const parts = calls.map(({ toolCallId, toolName, args, payload = null }) => {
      return question({ toolCallId, toolName, args: args as JSONValue, payload: payload as JSONValue })
    })
    return parts.length === 0 ? message : { ...message, parts: [...message.parts, ...parts] }
  })
}

/** The decision of a page about a call: an approval, or the data that the tool waits for. */
export interface PageDecision {
  toolCallId: string
  approval?: { approved: boolean; reason?: string }
  resumeData: JSONValue
}

/** The decisions in a message about the calls of a suspended run. */
export function decisionsIn({ parts }: ChatMessage, { approvals }: ThreadView): PageDecision[] {
  return parts.flatMap(({ toolCallId, state, output, approval: { approved, reason } = {} }: AnyPart) => {
    if (typeof toolCallId !== 'string') return []
    if (state === 'approval-responded') {
      const approval = { approved: approved === true, ...(typeof reason === 'string' ? { reason } : {}) }
      return [{ toolCallId, approval, resumeData: null }]
    }
    const waits = state === 'output-available' && approvals.some((call) => call.kind === 'suspend' && call.toolCallId === toolCallId)
    return waits ? [{ toolCallId, resumeData: (output ?? null) as JSONValue }] : []
  })
}

/** The calls that the page answered and that have no result yet, each as the chunk of the call. */
export function answeredCalls(message: ChatMessage): ReadonlyMap<string, UICall> {
  const questions = openQuestions(message)
  return new Map(message.parts.flatMap(({ type, toolCallId, state, input }: AnyPart): Array<[string, UICall]> => {
    if (typeof toolCallId !== 'string') return []
    const isAnswered = state === 'approval-responded' || (state === 'output-available' && questions.has(toolCallId))
    if (!isAnswered) return []
    return [[toolCallId, { type: 'tool-input-available', toolCallId, toolName: type.slice('tool-'.length), input }]]
  }))
}

type UICall = Extract<UIChunk, { type: 'tool-input-available' }>

/** The ids of the calls in a message whose tools wait for data. */
export function openQuestions({ parts }: ChatMessage): ReadonlySet<unknown> {
  const open = parts.filter(({ type, data }: AnyPart) => type === 'data-suspended' && (data as WaitingForData | undefined)?.isOver !== true)
  return new Set(open.map(({ id }: AnyPart) => id))
}

/**
 * For `sendAutomaticallyWhen` of `useChat`: true if the page has answered every call of a suspended run, with `addToolApprovalResponse`
 * and `addToolOutput`. The run continues when all are answered.
 */
export function answersWhatWaits({ messages }: { messages: readonly ChatMessage[] }): boolean {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return false
  const calls: readonly AnyPart[] = last.parts.filter((part) => 'toolCallId' in part)
  const waiting = openQuestions(last)
  const questions = calls.filter(({ toolCallId }) => waiting.has(toolCallId))
  const isAnswered = ({ state }: AnyPart) => state === 'output-available'
  if (calls.some(({ state }) => state === 'approval-requested') || !questions.every(isAnswered)) return false
  return questions.length > 0 || calls.some(({ state }) => state === 'approval-responded')
}
