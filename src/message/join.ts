import { hasOutcome, partsOf } from './content.ts'
import type { Message, MessageContent, MessagePart, StepStartPart, ToolInvocation, ToolInvocationPart } from './message.ts'
import type { MessageRow } from './row.ts'

/**
 * Rows as their readers see them. Assistant and tool rows that follow each other with one `messageId` become one message: a
 * `step-start` opens what each assistant row says, and each result stands in the part of its call. Context rows are hidden and
 * separate nothing. Every other row is a message.
 */
export function joinRows(rows: readonly MessageRow[]): Message[] {
  return joinRowsWith(rows, messageAsStored)
}

/** The same, with `messageFrom` for the rows that are messages of their own. */
export function joinRowsWith(rows: readonly MessageRow[], messageFrom: (row: MessageRow) => Message): Message[] {
  const messages: Message[] = []
  const calls = new CallPlaces()
  let open: Message | undefined

  for (let index = 0; index < rows.length; index++) {
    const row = rows[index] as MessageRow
    if (row.role === 'context') continue
    if (row.role !== 'assistant' && row.role !== 'tool') {
      open = undefined
      messages.push(messageFrom(row))
      continue
    }
    const turn = joined(open, row, calls)
    if (turn !== open && turn) messages.push(turn)
    open = turn
  }
  return messages
}

/** The message of a row that is all there is of it. Nothing for one that only a model sees. */
export function joinRow(row: MessageRow): Message | undefined {
  if (row.role === 'context') return undefined
  if (row.role === 'assistant' || row.role === 'tool') return joined(undefined, row, new CallPlaces())
  return messageAsStored(row)
}

/** One message of an assistant while its rows come. Each costs what it adds, however many there were before. */
export class GrowingMessage {
  readonly #calls = new CallPlaces()
  #open: Message | undefined
  /** How many rows it has. */
  count = 0

  add(rows: readonly MessageRow[]): void {
    for (const row of rows) this.#open = joined(this.#open, row, this.#calls)
    this.count += rows.length
  }

  /** The message so far: rows that are added later leave this one as it is. */
  get message(): Message | undefined {
    if (!this.#open) return undefined
    const { content } = this.#open
    const { experimental_attachments: files } = content
    return { ...this.#open, content: { ...content, parts: [...content.parts], ...(files && { experimental_attachments: [...files] }) } }
  }
}

/** Adds an assistant's or a tool's row to the message that is open, or begins another. */
function joined(open: Message | undefined, row: MessageRow, calls: CallPlaces): Message | undefined {
  const results = row.role === 'tool' ? unplacedResults(row, calls) : undefined
  if (results?.length === 0) return open
  const turn: Message = open?.id === row.messageId ? open : messageOf(row, 'assistant', { format: 2, parts: nothing })
  const added = results ?? openStep(row, turn)
  const { length: before } = turn.content.parts
  // Most messages are one row.
  if (before === 0) turn.content.parts = added
  else for (const part of added) turn.content.parts.push(part)
  const { parts } = turn.content
  for (let index = before; index < parts.length; index++) {
    const part = parts[index] as MessagePart
    if (part.type === 'tool-invocation') calls.set(callKey(row, part), { parts, index })
  }
  return turn
}

/** What a message has before the parts of its first row become its own. */
const nothing: MessagePart[] = []

interface CallPlace {
  parts: MessagePart[]
  index: number
}

/** Where calls stand. Most messages call nothing. */
class CallPlaces {
  #places: Map<string, CallPlace> | undefined

  get(key: string): CallPlace | undefined {
    return this.#places?.get(key)
  }

  set(key: string, place: CallPlace): void {
    this.#places ??= new Map()
    this.#places.set(key, place)
  }
}

// Some providers number their calls anew in every turn, so a call is only known together with its message.
function callKey({ messageId }: MessageRow, { toolInvocation }: ToolInvocationPart): string {
  return `${messageId}\n${toolInvocation.toolCallId}`
}

/** Writes each result into its call, and gives those whose call isn't there. */
function unplacedResults(row: MessageRow, calls: CallPlaces): ToolInvocationPart[] {
  const unplaced: ToolInvocationPart[] = []
  for (const part of row.content.parts) {
    if (part.type !== 'tool-invocation' || !hasOutcome(part.toolInvocation)) continue
    const place = calls.get(callKey(row, part))
    const call = place?.parts[place.index]
    if (place && call?.type === 'tool-invocation') place.parts[place.index] = withResult(call, part)
    else unplaced.push(resultPart(part))
  }
  return unplaced
}

function withResult(call: ToolInvocationPart, { toolInvocation: result, ...part }: ToolInvocationPart): ToolInvocationPart {
  const { toolInvocation: invocation } = call
  const transcript = invocation.transcript || result.transcript ? { ...invocation.transcript, ...result.transcript } : undefined
  const metadata = part.resultProviderMetadata ?? part.providerMetadata
  const joined: ToolInvocation = { ...invocation, ...result, args: invocation.args, ...(transcript && { transcript }) }
  return { ...call, toolInvocation: joined, ...(metadata && { resultProviderMetadata: metadata }) }
}

// In a tool row, what the provider said belongs to the result.
function resultPart({ providerMetadata, ...part }: ToolInvocationPart): ToolInvocationPart {
  const metadata = part.resultProviderMetadata ?? providerMetadata
  return { ...part, ...(metadata && { resultProviderMetadata: metadata }) }
}

/** The parts that an assistant row adds to its message. What stands beside them in the row goes to the message. */
function openStep({ content }: MessageRow, { content: turn }: Message): MessagePart[] {
  if (content.metadata) turn.metadata = { ...turn.metadata, ...content.metadata }
  if (content.experimental_attachments) (turn.experimental_attachments ??= []).push(...content.experimental_attachments)
  const parts = partsOf(content)
  const [first] = parts
  const begins = first?.type === 'step-start'
  if (parts.length === (begins ? 1 : 0)) return []

  const options = content.providerMetadata
  const start: StepStartPart = begins ? first : { type: 'step-start' }
  // A turn's first step has the options of the message; a later one keeps its own.
  const isLater = turn.parts.length > 0
  if (options && !start.providerMetadata && !isLater) turn.providerMetadata = options
  const opened = options && !start.providerMetadata && isLater ? { ...start, providerMetadata: options } : start
  if (opened === first) return parts.slice()
  const said = begins ? parts.slice(1) : parts
  // Most say one thing: a list that is made in one piece is an eighth of one that grows.
  return said.length === 1 ? [opened, said[0] as MessagePart] : [opened, ...said]
}

function messageAsStored(row: MessageRow): Message {
  return messageOf(row, row.role as Message['role'], row.content)
}

/** The message that a row begins. */
export function messageOf({ messageId, createdAt, threadId, resourceId, type }: MessageRow, role: Message['role'], content: MessageContent): Message {
  // Most are a thread's, and a window is full of them: each is one object, made in one piece.
  if (threadId !== undefined && resourceId !== undefined) {
    return type === undefined ? { id: messageId, role, createdAt, content, threadId, resourceId } : { id: messageId, role, createdAt, content, threadId, resourceId, type }
  }
  const message: Message = { id: messageId, role, createdAt, content }
  if (threadId !== undefined) message.threadId = threadId
  if (resourceId !== undefined) message.resourceId = resourceId
  if (type !== undefined) message.type = type
  return message
}
