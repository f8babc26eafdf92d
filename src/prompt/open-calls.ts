import { hasOutcome } from '../message/content.ts'
import type { Message, MessageContent, MessagePart, ToolInvocation, ToolInvocationPart } from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'

/** The result that a model receives for a call without one. */
export const INTERRUPTED = 'interrupted: no result of this call was recorded. It may or may not have taken effect.'

/**
 * Rows in which each call is directly followed by its result, and each result directly preceded by its call: providers reject any other
 * prompt. A call without a result gets the result `INTERRUPTED`; a result that comes too late is left out. Calls of the last row stay
 * open: they may be running. Results of calls with one id of the provider are in the order of the calls: nothing else tells them apart.
 *
 * The output depends on the rows alone. An appended row doesn't change the rows before it, except that it closes their open calls.
 */
export function closeOpenCalls<Row extends MessageRow | Message>(rows: readonly Row[]): ReadonlyArray<Row | MessageRow> {
  const closed: Array<Row | MessageRow> = []
  let changed = false
  let caller: Row | undefined
  let open: OpenCalls
  const held: Held = new Map()

  for (const row of rows) {
    if (row.role === 'tool') {
      const matched = matchResults(row, open, held)
      if (matched !== row) changed = true
      if (matched) closed.push(matched)
      continue
    }
    if (caller && open && open.size > 0) {
      closed.push(interruption(caller, open, held))
      changed = true
      held.clear()
    }
    const calls = row.role === 'assistant' && row.content.parts.some(isOpen)
    const lastStepOpen = calls ? closeEarlierSteps(row) : row
    if (lastStepOpen !== row) changed = true
    closed.push(lastStepOpen)
    caller = row
    open = calls ? openCalls(lastStepOpen) : undefined
  }
  return changed ? closed : rows
}

function isOpen(part: MessagePart): part is ToolInvocationPart {
  return part.type === 'tool-invocation' && !part.providerExecuted && !hasOutcome(part.toolInvocation)
}

type Stored = MessageRow | Message
type OpenCalls = Map<string, ToolInvocationPart> | undefined
/** Results that wait for the result of an earlier call with the same id of the provider, by the ids of their calls, which stay open. */
type Held = Map<string, ToolInvocationPart>

function openCalls({ content }: Stored): OpenCalls {
  const open = content.parts.filter(isOpen)
  return open.length > 0 ? new Map(open.map(part => [part.toolInvocation.toolCallId, part])) : undefined
}

/**
 * Removes the row's results from the open calls. Returns the row without results that match no open call, each result with the provider's
 * id of its call: a client that executed the tool knows only ours.
 */
function matchResults<Row extends Stored>(row: Row, open: OpenCalls, held: Held): Row | undefined {
  let changed = false
  const parts = row.content.parts.flatMap(part => {
    if (part.type !== 'tool-invocation') return part
    const { toolCallId, providerCallId } = part.toolInvocation
    const call = hasOutcome(part.toolInvocation) ? open?.get(toolCallId)?.toolInvocation : undefined
    changed ||= call?.providerCallId !== providerCallId || !call
    if (!open || !call || held.has(toolCallId)) return []
    const own = call.providerCallId === undefined || call.providerCallId === providerCallId
      ? part
      : { ...part, toolInvocation: { ...part.toolInvocation, providerCallId: call.providerCallId } }
    if (followsOpenCall(open, call)) {
      changed = true
      held.set(toolCallId, own)
      return []
    }
    open.delete(toolCallId)
    if (held.size === 0) return own
    changed = true
    return [own, ...released(open, held)]
  })
  if (!changed) return row
  return parts.length > 0 ? { ...row, content: { ...row.content, parts } } : undefined
}

/** Whether an earlier call with the same id of the provider is open. Only such calls have an id of the provider beside their own. */
function followsOpenCall(open: ReadonlyMap<string, ToolInvocationPart>, { toolCallId, providerCallId }: ToolInvocation): boolean {
  if (providerCallId === undefined) return false
  for (const { toolInvocation: other } of open.values()) {
    if (other.toolCallId === toolCallId) return false
    if ((other.providerCallId ?? other.toolCallId) === providerCallId) return true
  }
  return false
}

/** Takes the held results that follow no open call any more, in the order of the calls. */
function released(open: Map<string, ToolInvocationPart>, held: Held): ToolInvocationPart[] {
  return [...open].flatMap(([toolCallId, { toolInvocation }]) => {
    const result = held.get(toolCallId)
    if (!result || followsOpenCall(open, toolInvocation)) return []
    held.delete(toolCallId)
    open.delete(toolCallId)
    return result
  })
}

interface Closed {
  calls: string
  row: MessageRow
}

// Cached by the calling row, so that `modelMessagesOf` converts an interruption once and not at every step.
const interruptions = new WeakMap<Stored, Closed>()

function interruption(caller: Stored, open: ReadonlyMap<string, ToolInvocationPart>, held: Held): MessageRow {
  const calls = [...open.keys(), ...held.keys()].join('\n')
  const known = interruptions.get(caller)
  if (known?.calls === calls) return known.row
  const { threadId, resourceId, createdAt } = caller
  // In a tool row, `providerMetadata` would be read as that of the result.
  const results = Array.from(open, ([toolCallId, { providerMetadata: _, ...part }]) => held.get(toolCallId) ?? interrupted(part))
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

/** A whole message may have open calls in several steps: those before the last step are closed in place. */
function closeEarlierSteps<Row extends Stored>(row: Row): Row {
  const { parts } = row.content
  const lastPart = parts.findLastIndex(part => part.type !== 'step-start')
  const last = parts.findLastIndex((part, index) => index < lastPart && part.type === 'step-start')
  if (!parts.some((part, index) => index < last && isOpen(part))) return row
  const closed = parts.map((part, index) => (index < last && isOpen(part) ? interrupted(part) : part))
  return { ...row, content: { ...row.content, parts: closed } }
}

function interrupted(part: ToolInvocationPart): ToolInvocationPart {
  const { toolCallId, providerCallId, toolName, args } = part.toolInvocation
  const given = providerCallId === undefined ? {} : { providerCallId }
  return { ...part, toolInvocation: { toolCallId, ...given, toolName, args, state: 'output-error', errorText: INTERRUPTED } }
}
