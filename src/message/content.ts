import { isObject } from '../base/json.ts'
import type { Message, MessageContent, MessagePart, StepStartPart, ToolInvocation } from './message.ts'
import { firstString } from './read/raw.ts'

/** The parts of a message; a single text part for one that only has a plain text. */
export function partsOf(content: MessageContent): MessagePart[] {
  if (content.parts.length > 0) return content.parts
  return content.content ? [{ type: 'text', text: content.content }] : []
}

/** The text parts of a message, joined with line breaks. */
export function textOf({ content }: { content: MessageContent }): string {
  return partsOf(content).flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')
}

/** True for a finished call: it returned, failed or was denied. */
export function hasOutcome({ state }: ToolInvocation): boolean {
  return state === 'result' || state === 'output-error' || state === 'output-denied'
}

/** The parts of one model call. */
interface Step {
  /** Absent before the first `step-start`. */
  start?: StepStartPart
  parts: MessagePart[]
}

/** The steps of an assistant's message, without empty ones. */
export function stepsOf(parts: readonly MessagePart[]): Step[] {
  const steps: Step[] = []
  let step: Step = { parts: [] }
  for (const part of parts) {
    if (part.type !== 'step-start') {
      if (step.parts.push(part) === 1) steps.push(step)
    } else {
      step = { start: part, parts: [] }
    }
  }
  return steps
}

/** The fields of a signal that its message stores beside the parts, for readers of messages. */
export interface SignalView {
  type: string
  tagName: string
  attributes?: Record<string, unknown>
  metadata?: Record<string, unknown>
}

const olderTypes: Readonly<Record<string, string>> = { 'user-message': 'user', 'system-reminder': 'reactive' }

/** The record at `content.metadata.signal`. Messages of older writers have the type only beside the content. */
export function signalOf({ type, content }: { type?: string; content: MessageContent }): SignalView {
  const record = isObject(content.metadata?.signal) ? content.metadata.signal : {}
  const storedType = firstString(record.type, type) ?? 'user'
  return {
    type: currentType(storedType),
    tagName: firstString(record.tagName, type) ?? storedType,
    ...(isObject(record.attributes) && { attributes: record.attributes }),
    ...(isObject(record.metadata) && { metadata: record.metadata }),
  }
}

/** True for a signal that is hidden from readers and from recall. */
export function isTransient({ metadata }: Pick<MessageContent, 'metadata'>): boolean {
  const record = metadata?.signal
  return isObject(record) && record.transient === true
}

/** The type of `signalOf`, without building the rest. */
export function signalType({ type, content }: { type?: string; content: MessageContent }): string {
  const record = content.metadata?.signal
  return currentType(firstString(isObject(record) ? record.type : undefined, type) ?? 'user')
}

function currentType(type: string): string {
  return olderTypes[type] ?? type
}

/** The replacement of a payload that a transcript must not show. */
export const withheldPayload = '[withheld]'

/** Messages as a transcript shows them: a payload with a `transform` is replaced by the transformed one. */
export function transcriptOf(messages: readonly Message[]): Message[] {
  return messages.map((message) => {
    if (!message.content.parts.some(isTransformed)) return message
    return { ...message, content: { ...message.content, parts: message.content.parts.map(transcriptPart) } }
  })
}

function isTransformed(part: MessagePart): boolean {
  return part.type === 'tool-invocation' && part.toolInvocation.transcript !== undefined
}

function transcriptPart(part: MessagePart): MessagePart {
  if (part.type !== 'tool-invocation' || !part.toolInvocation.transcript) return part
  // The model's output may quote the hidden payload.
  const { transcript, modelOutput: _, ...invocation } = part.toolInvocation
  return { ...part, toolInvocation: { ...invocation, ...transcript } }
}
