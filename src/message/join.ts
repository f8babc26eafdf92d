import { hasOutcome, partsOf, stepsOf } from './content.ts'
import type { Message, MessageContent, MessagePart, StepStartPart, ToolInvocation, ToolInvocationPart } from './message.ts'
import type { MessageRow, RowRole } from './row.ts'

/**
 * Rows as readers of the thread see them. Consecutive assistant and tool rows with one `messageId` become one message: a `step-start`
 * precedes the parts of each step, and the part of a call holds its result. A message that was saved whole begins as it was saved. Context
 * rows are skipped. Every other row is a message.
 */
export function joinRows(rows: readonly MessageRow[]): Message[] {
  return joinRowsWith(rows, storedMessage)
}

/** `joinRows` with `messageFrom` for the rows that are whole messages. */
export function joinRowsWith(rows: readonly MessageRow[], messageFrom: (row: MessageRow) => Message): Message[] {
  const messages: Message[] = []
  const calls = new CallIndex()
  let open: Message | undefined

  for (let index = 0; index < rows.length; index++) {
    const row = rows[index] as MessageRow
    if (row.role === 'context') continue
    if (row.role !== 'assistant' && row.role !== 'tool') {
      open = undefined
      messages.push(messageFrom(row))
      continue
    }
    const message = addRow(open, row, calls)
    if (message !== open && message) messages.push(message)
    open = message
  }
  return messages
}

/** The message of a single row; undefined for a context row. */
export function joinRow(row: MessageRow): Message | undefined {
  if (row.role === 'context') return undefined
  if (row.role === 'assistant' || row.role === 'tool') return addRow(undefined, row, new CallIndex())
  return storedMessage(row)
}

/** An assistant's message that grows row by row. Adding a row costs the same, however many rows precede it. */
export class GrowingMessage {
  readonly #calls = new CallIndex()
  #open: Message | undefined
  /** The number of rows added. */
  count = 0

  add(rows: readonly MessageRow[]): void {
    for (const row of rows) this.#open = addRow(this.#open, row, this.#calls)
    this.count += rows.length
  }

  /** The message so far, as a copy that later rows don't change. */
  get message(): Message | undefined {
    if (!this.#open) return undefined
    const { content } = this.#open
    const { experimental_attachments: files } = content
    return { ...this.#open, content: { ...content, parts: [...content.parts], ...(files && { experimental_attachments: [...files] }) } }
  }
}

/** Adds an assistant or tool row to the open message, or begins another. */
function addRow(open: Message | undefined, row: MessageRow, calls: CallIndex): Message | undefined {
  const results = row.role === 'tool' ? joinResults(row, calls) : undefined
  if (results?.length === 0) return open
  const message: Message = open?.id === row.messageId ? open : messageOf(row, 'assistant', { format: 2, parts: noParts })
  const added = results ?? openStep(row, message)
  const { length: before } = message.content.parts
  // Most messages are one row.
  if (before === 0) message.content.parts = added
  else for (const part of added) message.content.parts.push(part)
  const { parts } = message.content
  for (let index = before; index < parts.length; index++) {
    const part = parts[index] as MessagePart
    if (part.type === 'tool-invocation') calls.set(callKey(row, part), { parts, index })
  }
  return message
}

/** Shared by new messages: `addRow` replaces it with the parts of the first row. */
const noParts: MessagePart[] = []

interface CallPosition {
  parts: MessagePart[]
  index: number
}

/** The position of each call. The map is created with the first one: most messages have no calls. */
class CallIndex {
  #positions: Map<string, CallPosition> | undefined

  get(key: string): CallPosition | undefined {
    return this.#positions?.get(key)
  }

  set(key: string, position: CallPosition): void {
    this.#positions ??= new Map()
    this.#positions.set(key, position)
  }
}

// Some providers number the calls of each message from one, so a call id is unique only within its message.
function callKey({ messageId }: MessageRow, { toolInvocation }: ToolInvocationPart): string {
  return `${messageId}\n${toolInvocation.toolCallId}`
}

/** Writes each result into the part of its call, and returns the results without a call. */
function joinResults(row: MessageRow, calls: CallIndex): ToolInvocationPart[] {
  const withoutCall: ToolInvocationPart[] = []
  for (const part of row.content.parts) {
    if (part.type !== 'tool-invocation' || !hasOutcome(part.toolInvocation)) continue
    const position = calls.get(callKey(row, part))
    const call = position?.parts[position.index]
    if (position && call?.type === 'tool-invocation') position.parts[position.index] = withResult(call, part)
    else withoutCall.push(resultPart(part))
  }
  return withoutCall
}

function withResult(call: ToolInvocationPart, { toolInvocation: result, ...part }: ToolInvocationPart): ToolInvocationPart {
  const { toolInvocation: invocation } = call
  const transcript = invocation.transcript || result.transcript ? { ...invocation.transcript, ...result.transcript } : undefined
  const metadata = part.resultProviderMetadata ?? part.providerMetadata
  const joined: ToolInvocation = { ...invocation, ...result, args: invocation.args, ...(transcript && { transcript }) }
  return { ...call, toolInvocation: joined, ...(metadata && { resultProviderMetadata: metadata }) }
}

// In a tool row, the provider's metadata belongs to the result.
function resultPart({ providerMetadata, ...part }: ToolInvocationPart): ToolInvocationPart {
  const metadata = part.resultProviderMetadata ?? providerMetadata
  return { ...part, ...(metadata && { resultProviderMetadata: metadata }) }
}

/** The parts that an assistant row adds to its message. Merges the row's metadata, attachments and options into the message. */
function openStep({ id, messageId, content }: MessageRow, { content: message }: Message): MessagePart[] {
  if (content.metadata) message.metadata = { ...message.metadata, ...content.metadata }
  if (content.experimental_attachments) (message.experimental_attachments ??= []).push(...content.experimental_attachments)
  const parts = partsOf(content)
  const [first] = parts
  const begins = first?.type === 'step-start'
  if (parts.length === (begins ? 1 : 0)) return []

  const options = content.providerMetadata
  // The options of the first step are those of the message; a later step keeps its own.
  const isLater = message.parts.length > 0
  // The rows of a run have ids of their own; the first row of a message that was saved has the message's.
  if (!begins && !isLater && id === messageId) {
    if (options) message.providerMetadata = options
    return parts.slice()
  }
  const start: StepStartPart = begins ? first : { type: 'step-start' }
  if (options && !start.providerMetadata && !isLater) message.providerMetadata = options
  const opened = options && !start.providerMetadata && isLater ? { ...start, providerMetadata: options } : start
  if (opened === first) return parts.slice()
  const rest = begins ? parts.slice(1) : parts
  // Most steps have one part: an array literal of two takes an eighth of the memory of an array that grows.
  return rest.length === 1 ? [opened, rest[0] as MessagePart] : [opened, ...rest]
}

function storedMessage(row: MessageRow): Message {
  return messageOf(row, row.role as Message['role'], row.content)
}

/** A message with the ids, the time and the type of a row. */
export function messageOf(row: MessageRow, role: Message['role'], content: MessageContent): Message {
  const { messageId, createdAt, threadId, resourceId, type } = row
  // A window has many messages with both ids: as one literal, each keeps the shape that it is created with.
  if (threadId !== undefined && resourceId !== undefined) {
    return type === undefined
      ? { id: messageId, role, createdAt, content, threadId, resourceId }
      : { id: messageId, role, createdAt, content, threadId, resourceId, type }
  }
  const message: Message = { id: messageId, role, createdAt, content }
  if (threadId !== undefined) message.threadId = threadId
  if (resourceId !== undefined) message.resourceId = resourceId
  if (type !== undefined) message.type = type
  return message
}

/**
 * The rows that a run would have appended for a whole message. Their prompt has the same bytes as that of the message, and `joinRows`
 * restores the message. Row ids derive from the id of the message.
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
    const calls = parts.map(asCall)
    append('assistant', { parts: start && index === 0 ? [start, ...calls] : calls, ...(options && { providerMetadata: options }) })
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
  const { toolCallId, providerCallId, toolName, args, transcript } = toolInvocation
  const call: ToolInvocation = { toolCallId, toolName, args, state: 'call' }
  if (providerCallId !== undefined) call.providerCallId = providerCallId
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
