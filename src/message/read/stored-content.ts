import type { Attachment, MessageContent, MessagePart, ToolInvocationPart } from '../message.ts'
import { hasOutcome } from '../content.ts'
import { readPart, unknownType } from './part.ts'
import type { Raw } from './raw.ts'
import { firstText, isRaw, optionsOf } from './raw.ts'

/** Told of each part that can't be read, and why. What it gives stands in its place. */
export type OnUnreadable = (part: unknown, index: number, why: string) => MessagePart[]

/** Keeps parts of types that a later reader may know. What is merely malformed would harm a prompt, and goes. */
export const keepUnknown: OnUnreadable = (part, _, why) => {
  return isRaw(part) && why === unknownType(part.type) ? [part as unknown as MessagePart] : []
}

export function readParts(parts: readonly unknown[], onUnreadable: OnUnreadable): MessagePart[] {
  return parts.flatMap((part, index) => {
    const read = readPart(part)
    return typeof read === 'string' ? onUnreadable(part, index, read) : read
  })
}

/**
 * Content with everything that stood beside its parts in earlier formats: plain text, calls, reasoning. Without parts, they are
 * put in the order in which a model says them.
 */
export function readContent(raw: Raw, onUnreadable: OnUnreadable): MessageContent {
  const parts = Array.isArray(raw.parts) ? readParts(raw.parts, onUnreadable) : []
  const calls = Array.isArray(raw.toolInvocations) ? olderCalls(raw.toolInvocations, onUnreadable) : []
  const attachments = Array.isArray(raw.experimental_attachments) ? raw.experimental_attachments.filter(isAttachment) : []
  const text = firstText(raw.content)
  return {
    format: 2,
    parts: parts.length > 0 ? withCalls(parts, calls) : [...olderReasoning(raw), ...inSteps(calls, text)],
    ...(text !== undefined && parts.length > 0 && { content: text }),
    ...(attachments.length > 0 && { experimental_attachments: attachments }),
    ...(isRaw(raw.metadata) && { metadata: raw.metadata }),
    ...optionsOf(raw),
  }
}

function olderCalls(invocations: readonly unknown[], onUnreadable: OnUnreadable): Array<ToolInvocationPart & { step: number }> {
  return invocations.flatMap(toolInvocation => {
    const [part] = readParts([{ type: 'tool-invocation', toolInvocation }], onUnreadable)
    const step = isRaw(toolInvocation) && typeof toolInvocation.step === 'number' ? toolInvocation.step : 0
    return part?.type === 'tool-invocation' ? [{ ...part, step }] : []
  })
}

/** Calls that the parts don't have are added; outcomes that the parts don't have are filled in. */
function withCalls(parts: MessagePart[], calls: ReadonlyArray<ToolInvocationPart & { step: number }>): MessagePart[] {
  if (calls.length === 0) return parts
  const missing = new Map(calls.map(({ step: _, ...call }) => [call.toolInvocation.toolCallId, call]))
  const filled = parts.map(part => {
    if (part.type !== 'tool-invocation') return part
    const { toolCallId } = part.toolInvocation
    const call = missing.get(toolCallId)
    missing.delete(toolCallId)
    const over = call && hasOutcome(call.toolInvocation) && !hasOutcome(part.toolInvocation)
    return over ? { ...part, toolInvocation: { ...part.toolInvocation, ...call.toolInvocation } } : part
  })
  return [...filled, ...missing.values()]
}

function inSteps(calls: ReadonlyArray<ToolInvocationPart & { step: number }>, text: string | undefined): MessagePart[] {
  const parts: MessagePart[] = []
  let current: number | undefined
  for (const { step, ...call } of calls) {
    if (step !== current && parts.length > 0) parts.push({ type: 'step-start' })
    current = step
    parts.push(call)
  }
  if (!text) return parts
  return parts.length > 0 ? [...parts, { type: 'step-start' }, { type: 'text', text }] : [{ type: 'text', text }]
}

function olderReasoning({ reasoning }: Raw): MessagePart[] {
  return typeof reasoning === 'string' && reasoning !== '' ? [{ type: 'reasoning', reasoning }] : []
}

function isAttachment(attachment: unknown): attachment is Attachment {
  return isRaw(attachment) && typeof attachment.url === 'string'
}

/** True for content in today's format, all of it. */
export function isCurrent(content: Raw): content is Raw & MessageContent {
  const { format, parts, toolInvocations, reasoning } = content
  if (format !== 2 || toolInvocations !== undefined || reasoning !== undefined) return false
  return Array.isArray(parts) && parts.every(isCurrentPart)
}

function isCurrentPart(part: unknown): part is MessagePart {
  if (!isRaw(part)) return false
  switch (part.type) {
    case 'text':
      return typeof part.text === 'string'
    case 'reasoning':
      return typeof part.reasoning === 'string' && part.details === undefined
    case 'file':
      return typeof part.data === 'string' && typeof part.mimeType === 'string'
    case 'tool-invocation': {
      const call = part.toolInvocation
      return isRaw(call) && call.isError === undefined && currentStates.includes(call.state)
    }
    case 'step-start':
    case 'source':
    case 'error':
    case 'custom':
      return true
    default:
      return typeof part.type === 'string' && part.type.startsWith('data-')
  }
}

const currentStates: readonly unknown[] = ['call', 'approval-requested', 'result', 'output-error', 'output-denied']
