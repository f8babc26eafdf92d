import { hasOutcome, partsOf, stepsOf } from './content.ts'
import type { Message, MessageContent, MessagePart, ToolInvocation, ToolInvocationPart } from './message.ts'
import type { MessageRow, RowRole } from './row.ts'

/**
 * The rows that a run would have appended for a whole message. Their prompt has the same bytes as that of the message, and `joinRows`
 * restores the message, with a `step-start` before its first step. Row ids derive from the id of the message.
 */
export function splitMessage(message: Message): MessageRow[] {
  if (message.role !== 'assistant') return [rowOf(message, 0, message.role, message.content)]

  const { parts: _, content: text, providerMetadata, ...beside } = message.content
  const rows: MessageRow[] = []
  const append = (role: RowRole, content: Omit<MessageContent, 'format'>) => {
    rows.push(rowOf(message, rows.length, role, rows.length === 0 ? { ...beside, ...content } : { format: 2, ...content }))
  }
  for (const [index, { start, parts }] of stepsOf(partsOf(message.content)).entries()) {
    const options = start?.providerMetadata ?? (index === 0 ? providerMetadata : undefined)
    append('assistant', { parts: parts.map(asCall), ...(options && { providerMetadata: options }) })
    const results = parts.flatMap(asResult)
    if (results.length > 0) append('tool', { parts: results })
  }
  if (rows.length === 0) append('assistant', { parts: [], ...(text !== undefined && { content: text }) })
  return rows
}

function rowOf(message: Message, index: number, role: RowRole, content: MessageContent): MessageRow {
  const { id, createdAt, threadId, resourceId, type } = message
  const row: MessageRow = { id: index === 0 ? id : `${id}:${index}`, messageId: id, role, createdAt, content }
  if (threadId !== undefined) row.threadId = threadId
  if (resourceId !== undefined) row.resourceId = resourceId
  if (type !== undefined) row.type = type
  return row
}

// A call that the provider executed stays one part with its result.
function hasToolResult(part: MessagePart): part is ToolInvocationPart {
  return part.type === 'tool-invocation' && !part.providerExecuted && hasOutcome(part.toolInvocation)
}

function asCall(part: MessagePart): MessagePart {
  if (!hasToolResult(part)) return part
  const { toolInvocation, providerMetadata } = part
  const { toolCallId, toolName, args, transcript } = toolInvocation
  const call: ToolInvocation = { toolCallId, toolName, args, state: 'call' }
  if (transcript && 'args' in transcript) call.transcript = { args: transcript.args }
  return { type: 'tool-invocation', toolInvocation: call, ...(providerMetadata && { providerMetadata }) }
}

function asResult(part: MessagePart): ToolInvocationPart[] {
  if (!hasToolResult(part)) return []
  const { transcript, ...result } = part.toolInvocation
  const metadata = part.resultProviderMetadata && { providerMetadata: part.resultProviderMetadata }
  if (transcript) {
    const { args: _, ...ofResult } = transcript
    if (Object.keys(ofResult).length > 0) Object.assign(result, { transcript: ofResult })
  }
  return [{ type: 'tool-invocation', toolInvocation: result, ...metadata }]
}
