import { isSamePlain } from '../../base/json.ts'
import { applyAttachmentChanges, copyMessage, isSameMessage, withoutPartAttachments } from '../attachments.ts'
import { GrowingMessage, splitMessage } from '../join.ts'
import type { Message, MessageContent } from '../message.ts'
import { toProcessorMessage, isUserSignal, processorMessage, processorMessages, withSignalRecord } from '../processor-view.ts'
import type { MessageRow } from '../row.ts'

/** Consecutive rows of one source: rows of one message, or a context row. */
interface Segment<Source> {
  messageId: string | undefined
  source: Source
  /** A message that was added whole, until its rows are needed. */
  whole: Message | undefined
  rows: MessageRow[]
  /** In the first segment of a message: the message, cached. */
  view: Message | undefined
  /** In the first segment of a message, where readers get copies: the copy of `view` that they got. */
  shown: Message | undefined
  /** In the first segment of a message: its builder, as long as rows are only appended to it. */
  growing: GrowingMessage | undefined
}

// A row is searched for linearly within its segment.
const maxSegmentRows = 32

/**
 * Rows in the order in which they were added, and their messages. Rows of other messages may stand between those of one message: a
 * prompt keeps the order of the rows, a reader sees the message at its first row. Rows and messages are found by id; nothing is sorted.
 */
export class OrderedRows<Source extends string> {
  readonly #weakest: Source
  readonly #copies: boolean
  readonly #order = new Set<Segment<Source>>()
  readonly #messages = new Map<string, Array<Segment<Source>>>()
  readonly #segmentOfRow = new Map<string, Segment<Source>>()
  readonly #views = new Map<Source | undefined, Message[]>()
  /** The copies of context rows that readers got, by the id of the row. */
  #context: Map<string, Message> | undefined
  #tail: Segment<Source> | undefined

  /**
   * `weakest` is the source that any other source of the same message overrides. `copies`: readers get copies of the messages, and
   * `takeEdits` applies what they changed in them.
   */
  constructor(weakest: Source, copies = false) {
    this.#weakest = weakest
    this.#copies = copies
  }

  /** Adds a row to its message, or replaces the row with its id in place. */
  addRow(row: MessageRow, source: Source): void {
    this.#clearViews()
    const messageId = row.role === 'context' ? undefined : row.messageId
    const segments = messageId === undefined ? undefined : this.#messages.get(messageId)
    if (segments?.[0]) this.#split(segments[0])
    const known = this.#segmentOfRow.get(row.id)
    if (known && known.messageId === messageId) {
      known.rows[known.rows.findIndex(({ id }) => id === row.id)] = row
      known.source = this.#stronger(known.source, source)
      if (segments?.[0]) segments[0].growing = undefined
    } else {
      if (known) this.#removeRow(known, row.id)
      this.#appendRow(row, this.#segmentFor(messageId, source))
    }
    if (segments?.[0]) segments[0].view = segments[0].shown = undefined
  }

  /**
   * Replaces the message with the same id in place, or adds the message at the end. Its rows keep their ids, and rows of other messages
   * between them keep their positions.
   */
  setMessage(given: Message, source: Source): void {
    const message = this.#copies ? copyMessage(given) : given
    this.#clearViews()
    const segments = this.#messages.get(message.id)
    const first = segments?.[0] ?? this.#append(message.id, source)
    first.source = this.#stronger(first.source, source)
    const known = segments && first.rows.length > 0 ? rowsOf(segments) : undefined
    if (known) this.#replaceRows(segments ?? [], revisedRows(known, splitMessage(message)), source)
    else first.whole = { ...message, content: withoutPartAttachments(message.content) }
    // A message with attachments is viewed anew: its files may be both parts and attachments.
    const isPlain = message.content.experimental_attachments === undefined
    if (!known) first.view = isPlain ? (first.whole = message) : toProcessorMessage(first.whole ?? message)
    else first.view = isPlain ? message : undefined
    first.shown = this.#copies && isPlain ? given : undefined
  }

  /** Applies what readers changed in the copies that they got. `checkEdit` throws for a message that can't be stored. */
  takeEdits(reader: { checkEdit?(message: Message, before: Message): void }): void {
    for (const [id, segments] of this.#messages) {
      const { shown } = segments[0] ?? {}
      const view = shown && viewOf(segments)
      if (!shown || !view || isSameMessage(shown, view)) continue
      reader.checkEdit?.(shown, view)
      const source = this.#strongest(segments) ?? this.#weakest
      if (shown.id !== id) this.remove(id)
      this.setMessage(shown, source)
    }
    if (this.#context) for (const [id, shown] of this.#context) this.#takeContextEdit(id, shown, reader)
  }

  #takeContextEdit(id: string, shown: Message, reader: { checkEdit?(message: Message, before: Message): void }): void {
    const rows = this.#segmentOfRow.get(id)?.rows ?? []
    const index = rows.findIndex((row) => row.id === id)
    const row = rows[index]
    const before = row && contextMessage(row)
    if (!before || isSameMessage(shown, before)) return
    reader.checkEdit?.(shown, before)
    this.#clearViews()
    rows[index] = { ...row, content: copyMessage(shown).content }
  }

  #shownContext(row: MessageRow): Message {
    this.#context ??= new Map()
    let shown = this.#context.get(row.id)
    if (!shown) this.#context.set(row.id, shown = copyMessage(contextMessage(row)))
    return shown
  }

  /** Removes a message, or the context row with this id. */
  remove(messageId: string): Message | undefined {
    const segments = this.#messages.get(messageId)
    if (!segments) return this.#removeContext(messageId)
    this.#clearViews()
    const message = this.#shownOf(segments)
    for (const segment of segments) this.#removeSegment(segment)
    this.#messages.delete(messageId)
    return message
  }

  #removeContext(rowId: string): Message | undefined {
    const segment = this.#segmentOfRow.get(rowId)
    const row = segment?.messageId === undefined ? segment?.rows.find(({ id }) => id === rowId) : undefined
    if (!segment || !row) return undefined
    this.#clearViews()
    this.#removeRow(segment, rowId)
    return contextMessage(row)
  }

  /** The context rows, as messages of the role `system`. */
  contextMessages(): Message[] {
    return this.contextRows().map((row) => (this.#copies ? this.#shownContext(row) : contextMessage(row)))
  }

  contextRows(): MessageRow[] {
    const rows: MessageRow[] = []
    for (const { messageId, rows: own } of this.#order) if (messageId === undefined) rows.push(...own)
    return rows
  }

  message(messageId: string): Message | undefined {
    const segments = this.#messages.get(messageId)
    return segments && this.#shownOf(segments)
  }

  /** True for a message that is stored as a signal: processors may see another role. */
  isSignal(messageId: string): boolean {
    return this.#messages.get(messageId)?.[0]?.rows[0]?.role === 'signal'
  }

  sourceOf(messageId: string): Source | undefined {
    const segments = this.#messages.get(messageId)
    return segments && this.#strongest(segments)
  }

  ids(source: Source | undefined): string[] {
    const ids: string[] = []
    for (const [id, segments] of this.#messages) if (source === undefined || this.#strongest(segments) === source) ids.push(id)
    return ids
  }

  /** Cached until the next change. */
  messages(source: Source | undefined): readonly Message[] {
    let messages = this.#views.get(source)
    if (!messages) {
      messages = []
      for (const segments of this.#messages.values()) {
        if (source !== undefined && this.#strongest(segments) !== source) continue
        const message = this.#shownOf(segments)
        if (message) messages.push(message)
      }
      this.#views.set(source, messages)
    }
    return messages
  }

  /** The rows of a source. */
  rows(source: Source | undefined): MessageRow[] {
    const rows: MessageRow[] = []
    for (const segment of this.#order) {
      if (source !== undefined && segment.source !== source) continue
      this.#split(segment)
      for (const row of segment.rows) rows.push(row)
    }
    return rows
  }

  /** The input of a prompt: all rows of the messages of a source, and its whole messages. */
  promptRows(source: Source | undefined): Array<MessageRow | Message> {
    const rows: Array<MessageRow | Message> = []
    const ids = source === undefined ? undefined : new Set(this.ids(source))
    for (const segment of this.#order) {
      const { messageId } = segment
      if (ids && (messageId === undefined || !ids.has(messageId))) continue
      if (segment.whole) rows.push(segment.whole)
      else for (const row of segment.rows) rows.push(row)
    }
    return rows
  }

  #shownOf(segments: ReadonlyArray<Segment<Source>>): Message | undefined {
    const view = viewOf(segments)
    const [first] = segments
    if (!this.#copies || !view || !first) return view
    return (first.shown ??= copyMessage(view))
  }

  #clearViews(): void {
    // Clearing an empty map is not free.
    if (this.#views.size > 0) this.#views.clear()
  }

  #segmentFor(messageId: string | undefined, source: Source): Segment<Source> {
    const tail = this.#tail
    if (messageId === undefined || tail?.messageId !== messageId) return this.#append(messageId, source)
    return tail.source === source && tail.rows.length < maxSegmentRows ? tail : this.#append(messageId, source)
  }

  #append(messageId: string | undefined, source: Source): Segment<Source> {
    const segment: Segment<Source> = {
      messageId, source, whole: undefined, rows: [], view: undefined, shown: undefined, growing: undefined,
    }
    this.#order.add(segment)
    this.#tail = segment
    if (messageId === undefined) return segment
    const segments = this.#messages.get(messageId)
    if (segments) segments.push(segment)
    else this.#messages.set(messageId, [segment])
    return segment
  }

  #appendRow(row: MessageRow, segment: Segment<Source>): void {
    segment.rows.push(row)
    this.#segmentOfRow.set(row.id, segment)
  }

  /** Creates the rows of a message that was added whole. Only the sole segment of a message is whole. */
  #split(segment: Segment<Source>): void {
    if (!segment.whole) return
    for (const row of splitMessage(segment.whole)) this.#appendRow(row, segment)
    segment.whole = undefined
  }

  #replaceRows(segments: Array<Segment<Source>>, rows: readonly MessageRow[], source: Source): void {
    let next = 0
    for (const [index, segment] of segments.entries()) {
      const end = index === segments.length - 1 ? rows.length : Math.min(rows.length, next + segment.rows.length)
      this.#clear(segment)
      segment.source = this.#stronger(segment.source, source)
      for (const row of rows.slice(next, end)) this.#appendRow(row, segment)
      next = end
    }
    this.#dropEmpty(segments)
  }

  #removeRow(segment: Segment<Source>, rowId: string): void {
    segment.rows = segment.rows.filter(({ id }) => id !== rowId)
    this.#segmentOfRow.delete(rowId)
    const segments = segment.messageId === undefined ? [segment] : (this.#messages.get(segment.messageId) ?? [])
    this.#dropEmpty(segments)
    if (segments[0]) segments[0].view = segments[0].shown = segments[0].growing = undefined
    else if (segment.messageId !== undefined) this.#messages.delete(segment.messageId)
  }

  #dropEmpty(segments: Array<Segment<Source>>): void {
    const kept = segments.filter(({ rows }) => rows.length > 0)
    for (const segment of segments) if (segment.rows.length === 0) this.#removeSegment(segment)
    segments.splice(0, segments.length, ...kept)
  }

  #removeSegment(segment: Segment<Source>): void {
    this.#clear(segment)
    this.#order.delete(segment)
    if (this.#tail === segment) this.#tail = undefined
  }

  #clear(segment: Segment<Source>): void {
    for (const { id } of segment.rows) this.#segmentOfRow.delete(id)
    segment.rows = []
    segment.whole = undefined
    segment.view = undefined
    segment.shown = undefined
    segment.growing = undefined
  }

  #strongest(segments: ReadonlyArray<Segment<Source>>): Source | undefined {
    const strong = segments.length === 1 ? segments[0] : segments.findLast(({ source }) => source !== this.#weakest)
    return (strong ?? segments[0])?.source
  }

  #stronger(known: Source, added: Source): Source {
    return added === this.#weakest ? known : added
  }
}

function viewOf<Source>(segments: ReadonlyArray<Segment<Source>>): Message | undefined {
  const [first] = segments
  if (!first) return undefined
  if (first.view) return first.view
  const [only] = first.rows
  // Most messages have one row, and no other is appended.
  if (only && segments.length === 1 && first.rows.length === 1 && !first.growing) return (first.view = processorMessage(only))
  return (first.view = joinedMessage(first, rowsOf(segments)))
}

/** The message of a run is read after every step: only the rows of that step are joined. */
function joinedMessage<Source>(first: Segment<Source>, rows: readonly MessageRow[]): Message | undefined {
  if (!rows.every(isOutput)) return processorMessages(rows)[0]
  first.growing ??= new GrowingMessage()
  first.growing.add(rows.slice(first.growing.count))
  return first.growing.message
}

function contextMessage({ id, createdAt, content, threadId, resourceId }: MessageRow): Message {
  return {
    id, role: 'system', createdAt, content,
    ...(threadId !== undefined && { threadId }),
    ...(resourceId !== undefined && { resourceId }),
  }
}

function isOutput({ role }: MessageRow): boolean {
  return role === 'assistant' || role === 'tool'
}

function rowsOf<Source>(segments: ReadonlyArray<Segment<Source>>): MessageRow[] {
  return segments.flatMap(({ rows }) => rows)
}

/** The rows of a changed message. Where the steps match, a row keeps its id and run; an unchanged row stays the same object. */
function revisedRows(known: readonly MessageRow[], rows: readonly MessageRow[]): MessageRow[] {
  return rows.map((row, index) => {
    const before = known[index]
    const isSignal = before !== undefined && row.role === 'user' && isUserSignal(before)
    if (!before || (before.role !== row.role && !isSignal)) return { ...row, content: withoutPartAttachments(row.content) }
    const taken = row.role === 'user' ? applyAttachmentChanges(before.content, row.content) : stepContent(before, row.content)
    const content = withoutStaleText(before.content, isSignal ? withSignalRecord(before, taken) : taken)
    return JSON.stringify(before.content) === JSON.stringify(content) ? before : { ...before, content }
  })
}

/** Without the plain text beside parts that have changed: it may say what a processor has removed from them. */
function withoutStaleText({ content: before, parts }: MessageContent, after: MessageContent): MessageContent {
  if (before === undefined || after.content !== before || after.parts.length === 0 || isSamePlain(parts, after.parts)) return after
  const { content: _stale, ...content } = after
  return content
}

/** The content of a changed step. The row of a run does not store the `step-start` that readers see. */
function stepContent(before: MessageRow, content: MessageContent): MessageContent {
  const [first, ...parts] = content.parts
  return first?.type === 'step-start' && before.content.parts[0]?.type !== 'step-start' ? { ...content, parts } : content
}
