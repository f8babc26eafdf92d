import { isObject } from '../../base/json.ts'
import { hasOutcome } from '../content.ts'
import type { Attachment, MessageContent, MessagePart, ToolInvocationPart } from '../message.ts'
import { readPart, unknownType } from './part.ts'
import type { Raw } from './raw.ts'
import { firstString, providerMetadataOf } from './raw.ts'

/** Called for each part that can't be read, with the reason. The result replaces the part. */
export type OnUnreadable = (part: unknown, index: number, reason: string) => MessagePart[]

/** Keeps parts of unknown types, which a later version may read, and drops malformed ones, which would break a prompt. */
export const keepUnknown: OnUnreadable = (part, _, reason) => {
  return isObject(part) && reason === unknownType(part.type) ? [part as unknown as MessagePart] : []
}

export function readParts(parts: readonly unknown[], onUnreadable: OnUnreadable): MessagePart[] {
  return parts.flatMap((part, index) => {
    const read = readPart(part)
    return typeof read === 'string' ? onUnreadable(part, index, read) : read
  })
}

/**
 * Content in the current format, with what earlier formats stored beside the parts: plain text, calls, reasoning. For content without
 * parts, these become the parts, in the order in which a model generates them.
 */
export function readContent(raw: Raw, onUnreadable: OnUnreadable): MessageContent {
  const parts = Array.isArray(raw.parts) ? readParts(raw.parts, onUnreadable) : []
  const calls = Array.isArray(raw.toolInvocations) ? olderCalls(raw.toolInvocations, onUnreadable) : []
  const attachments = Array.isArray(raw.experimental_attachments) ? raw.experimental_attachments.filter(isAttachment) : []
  const text = firstString(raw.content)
  return {
    format: 2,
    parts: parts.length > 0 ? withCalls(parts, calls) : [...olderReasoning(raw), ...inSteps(calls, text)],
    ...(text !== undefined && parts.length > 0 && { content: text }),
    ...(attachments.length > 0 && { experimental_attachments: attachments }),
    ...(isObject(raw.metadata) && { metadata: raw.metadata }),
    ...providerMetadataOf(raw),
  }
}

function olderCalls(invocations: readonly unknown[], onUnreadable: OnUnreadable): Array<ToolInvocationPart & { step: number }> {
  return invocations.flatMap(toolInvocation => {
    const [part] = readParts([{ type: 'tool-invocation', toolInvocation }], onUnreadable)
    const step = isObject(toolInvocation) && typeof toolInvocation.step === 'number' ? toolInvocation.step : 0
    return part?.type === 'tool-invocation' ? [{ ...part, step }] : []
  })
}

/** Adds the calls that the parts lack, and the outcomes that the calls among the parts lack. */
function withCalls(parts: MessagePart[], calls: ReadonlyArray<ToolInvocationPart & { step: number }>): MessagePart[] {
  if (calls.length === 0) return parts
  const missing = new Map(calls.map(({ step: _, ...call }) => [call.toolInvocation.toolCallId, call]))
  const filled = parts.map(part => {
    if (part.type !== 'tool-invocation') return part
    const { toolCallId } = part.toolInvocation
    const call = missing.get(toolCallId)
    missing.delete(toolCallId)
    const isFinished = call && hasOutcome(call.toolInvocation) && !hasOutcome(part.toolInvocation)
    return isFinished ? { ...part, toolInvocation: { ...part.toolInvocation, ...call.toolInvocation } } : part
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
  return isObject(attachment) && typeof attachment.url === 'string'
}

/** True for content that is entirely in the current format. */
export function isCurrent(content: Raw): content is Raw & MessageContent {
  const { format, parts, toolInvocations, reasoning } = content
  if (format !== 2 || toolInvocations !== undefined || reasoning !== undefined) return false
  return Array.isArray(parts) && parts.every(isCurrentPart)
}

function isCurrentPart(part: unknown): part is MessagePart {
  if (!isObject(part)) return false
  switch (part.type) {
    case 'text':
      return typeof part.text === 'string'
    case 'reasoning':
      return typeof part.reasoning === 'string' && part.details === undefined
    case 'file':
      return typeof part.data === 'string' && typeof part.mimeType === 'string'
    case 'tool-invocation': {
      const call = part.toolInvocation
      return isObject(call) && call.isError === undefined && currentStates.includes(call.state)
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
