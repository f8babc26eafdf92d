import { hasOutcome } from '../message/content.ts'
import type { Message, MessageContent, MessagePart, ToolInvocationPart } from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'

/** What a model is told of a call that was left without a result. */
export const INTERRUPTED = 'interrupted: no result of this call was recorded. It may or may not have taken effect.'

/**
 * Rows in which every call that something follows has a result right after it, and every result has its call right before it.
 * Providers refuse a prompt for which that isn't true. A call without a result gets one that says it was interrupted; a result
 * that comes too late is left out. Calls of the last row stay open: they may be running.
 *
 * The answer depends on the rows alone, and what precedes an appended row isn't changed by it, except that open calls are closed.
 */
export function closeOpenCalls<Row extends MessageRow | Message>(rows: readonly Row[]): ReadonlyArray<Row | MessageRow> {
  const closed: Array<Row | MessageRow> = []
  let changed = false
  let caller: Row | undefined
  let open: OpenCalls

  for (const row of rows) {
    if (row.role === 'tool') {
      const answered = answering(row, open)
      if (answered !== row) changed = true
      if (answered) closed.push(answered)
      continue
    }
    if (caller && open && open.size > 0) {
      closed.push(interruption(caller, open))
      changed = true
    }
    const calls = row.role === 'assistant' && row.content.parts.some(isOpen)
    const shown = calls ? withinClosed(row) : row
    if (shown !== row) changed = true
    closed.push(shown)
    caller = row
    open = calls ? openCalls(shown) : undefined
  }
  return changed ? closed : rows
}

function isOpen(part: MessagePart): part is ToolInvocationPart {
  return part.type === 'tool-invocation' && !part.providerExecuted && !hasOutcome(part.toolInvocation)
}

type Stored = MessageRow | Message
type OpenCalls = Map<string, ToolInvocationPart> | undefined

function openCalls({ content }: Stored): OpenCalls {
  const open = content.parts.filter(isOpen)
  return open.length > 0 ? new Map(open.map(part => [part.toolInvocation.toolCallId, part])) : undefined
}

/** The row without the results that nothing asked for, and the calls without those that it answers. */
function answering<Row extends Stored>(row: Row, open: OpenCalls): Row | undefined {
  const parts = row.content.parts.filter(part => {
    if (part.type !== 'tool-invocation') return true
    return hasOutcome(part.toolInvocation) && open?.delete(part.toolInvocation.toolCallId)
  })
  if (parts.length === row.content.parts.length) return row
  return parts.length > 0 ? { ...row, content: { ...row.content, parts } } : undefined
}

interface Closed {
  calls: string
  row: MessageRow
}

// By the row they belong to, so that the prompt of an old interruption isn't made anew at every step.
const interruptions = new WeakMap<Stored, Closed>()

function interruption(caller: Stored, open: ReadonlyMap<string, ToolInvocationPart>): MessageRow {
  const calls = [...open.keys()].join('\n')
  const known = interruptions.get(caller)
  if (known?.calls === calls) return known.row
  const { threadId, resourceId, createdAt } = caller
  // In a tool row, what the provider said would be taken for what it said of the result.
  const results = Array.from(open.values(), ({ providerMetadata: _, ...part }) => interrupted(part))
  const content: MessageContent = { format: 2, parts: results }
  const row: MessageRow = {
    id: `${caller.id}:interrupted`,
    messageId: 'messageId' in caller ? caller.messageId : caller.id,
    role: 'tool',
    createdAt,
    ...(threadId !== undefined && { threadId }),
    ...(resourceId !== undefined && { resourceId }),
    content,
  }
  interruptions.set(caller, { calls, row })
  return row
}

/** A row of several steps may have an open call in any of them; those before the last step are closed where they stand. */
function withinClosed<Row extends Stored>(row: Row): Row {
  const { parts } = row.content
  const lastPart = parts.findLastIndex(part => part.type !== 'step-start')
  const last = parts.findLastIndex((part, index) => index < lastPart && part.type === 'step-start')
  if (!parts.some((part, index) => index < last && isOpen(part))) return row
  const closed = parts.map((part, index) => (index < last && isOpen(part) ? interrupted(part) : part))
  return { ...row, content: { ...row.content, parts: closed } }
}

function interrupted(part: ToolInvocationPart): ToolInvocationPart {
  const { toolCallId, toolName, args } = part.toolInvocation
  return { ...part, toolInvocation: { toolCallId, toolName, args, state: 'output-error', errorText: INTERRUPTED } }
}
