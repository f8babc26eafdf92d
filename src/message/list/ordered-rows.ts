import { asSeen, isUserSignal, seenMessage, seenMessages, signalContent } from '../as-seen.ts'
import { takenBack, withoutShown } from '../attachments.ts'
import { GrowingMessage } from '../join.ts'
import type { Message } from '../message.ts'
import type { MessageRow } from '../row.ts'
import { splitMessage } from '../split.ts'

/** Rows of one source that stand together: some of one message, all of it, or one that only a model sees. */
interface Segment<Source> {
  messageId: string | undefined
  source: Source
  /** A message that was added whole and whose rows nobody has asked for yet. */
  whole: Message | undefined
  rows: MessageRow[]
  /** In a message's first segment: the message, once it was asked for. */
  view: Message | undefined
  /** In a message's first segment: what it was made of, as long as rows are only added to it. */
  growing: GrowingMessage | undefined
}

// A row is looked for within its segment.
const maxSegment = 32

/**
 * Rows in the order in which they came, and the messages that they are. A message may be interrupted by rows of others: in a
 * prompt each row keeps its place, to a reader the message stands where it began. Everything is found by id; nothing is sorted.
 */
export class OrderedRows<Source extends string> {
  readonly #weakest: Source
  readonly #order = new Set<Segment<Source>>()
  readonly #messages = new Map<string, Array<Segment<Source>>>()
  readonly #places = new Map<string, Segment<Source>>()
  readonly #views = new Map<Source | undefined, Message[]>()
  #tail: Segment<Source> | undefined

  /** The source that `weakest` names gives way to any other that brings the same message. */
  constructor(weakest: Source) {
    this.#weakest = weakest
  }

  /** Adds a row to its message, or replaces the row of its id where it stands. */
  addRow(row: MessageRow, source: Source): void {
    this.#forgetViews()
    const messageId = row.role === 'context' ? undefined : row.messageId
    const segments = messageId === undefined ? undefined : this.#messages.get(messageId)
    if (segments?.[0]) this.#divide(segments[0])
    const place = this.#places.get(row.id)
    if (place && place.messageId === messageId) {
      place.rows[place.rows.findIndex(({ id }) => id === row.id)] = row
      place.source = this.#stronger(place.source, source)
      if (segments?.[0]) segments[0].growing = undefined
    } else {
      if (place) this.#removeRow(place, row.id)
      this.#hold(row, this.#segmentFor(messageId, source))
    }
    if (segments?.[0]) segments[0].view = undefined
  }

  /**
   * Puts a whole message in the place of the one with its id, or at the end. Rows that it had keep their ids, and rows of others
   * that interrupt it stay where they are.
   */
  setMessage(message: Message, source: Source): void {
    this.#forgetViews()
    const segments = this.#messages.get(message.id)
    const first = segments?.[0] ?? this.#append(message.id, source)
    first.source = this.#stronger(first.source, source)
    const known = segments && first.rows.length > 0 ? rowsOf(segments) : undefined
    if (known) this.#replaceRows(segments ?? [], revisedRows(known, splitMessage(message)), source)
    else first.whole = { ...message, content: withoutShown(message.content) }
    // Where files may be shown in two places, it is shown anew.
    const isPlain = message.content.experimental_attachments === undefined
    if (!known) first.view = isPlain ? (first.whole = message) : asSeen(first.whole ?? message)
    else first.view = isPlain ? message : undefined
  }

  remove(messageId: string): Message | undefined {
    const segments = this.#messages.get(messageId)
    if (!segments) return undefined
    this.#forgetViews()
    const message = viewOf(segments)
    for (const segment of segments) this.#discard(segment)
    this.#messages.delete(messageId)
    return message
  }

  message(messageId: string): Message | undefined {
    const segments = this.#messages.get(messageId)
    return segments && viewOf(segments)
  }

  /** True for what is stored as a signal, whatever processors see it as. */
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

  /** Kept until something changes. */
  messages(source: Source | undefined): readonly Message[] {
    let messages = this.#views.get(source)
    if (!messages) {
      messages = []
      for (const segments of this.#messages.values()) {
        if (source !== undefined && this.#strongest(segments) !== source) continue
        const message = viewOf(segments)
        if (message) messages.push(message)
      }
      this.#views.set(source, messages)
    }
    return messages
  }

  /** The rows that came from a source. */
  rows(source: Source | undefined): MessageRow[] {
    const rows: MessageRow[] = []
    for (const segment of this.#order) {
      if (source !== undefined && segment.source !== source) continue
      this.#divide(segment)
      for (const row of segment.rows) rows.push(row)
    }
    return rows
  }

  /** What a prompt is made of: the rows of a source's messages, those of their earlier parts too, and messages that are whole. */
  promptRows(source: Source | undefined): Array<MessageRow | Message> {
    const rows: Array<MessageRow | Message> = []
    const ids = source === undefined ? undefined : new Set(this.ids(source))
    for (const segment of this.#order) {
      const { messageId } = segment
      if (ids && !(messageId === undefined ? segment.source === source : ids.has(messageId))) continue
      if (segment.whole) rows.push(segment.whole)
      else for (const row of segment.rows) rows.push(row)
    }
    return rows
  }

  /** Clearing an empty map is not free. */
  #forgetViews(): void {
    if (this.#views.size > 0) this.#views.clear()
  }

  #segmentFor(messageId: string | undefined, source: Source): Segment<Source> {
    const tail = this.#tail
    if (messageId === undefined || tail?.messageId !== messageId) return this.#append(messageId, source)
    return tail.source === source && tail.rows.length < maxSegment ? tail : this.#append(messageId, source)
  }

  #append(messageId: string | undefined, source: Source): Segment<Source> {
    const segment: Segment<Source> = { messageId, source, whole: undefined, rows: [], view: undefined, growing: undefined }
    this.#order.add(segment)
    this.#tail = segment
    if (messageId === undefined) return segment
    const segments = this.#messages.get(messageId)
    if (segments) segments.push(segment)
    else this.#messages.set(messageId, [segment])
    return segment
  }

  #hold(row: MessageRow, segment: Segment<Source>): void {
    segment.rows.push(row)
    this.#places.set(row.id, segment)
  }

  /** Makes the rows of what was added whole: they are about to be seen or changed. Only a message's sole segment is whole. */
  #divide(segment: Segment<Source>): void {
    if (!segment.whole) return
    for (const row of splitMessage(segment.whole)) this.#hold(row, segment)
    segment.whole = undefined
  }

  #replaceRows(segments: Array<Segment<Source>>, rows: readonly MessageRow[], source: Source): void {
    let next = 0
    for (const [index, segment] of segments.entries()) {
      const end = index === segments.length - 1 ? rows.length : Math.min(rows.length, next + segment.rows.length)
      this.#clear(segment)
      segment.source = this.#stronger(segment.source, source)
      for (const row of rows.slice(next, end)) this.#hold(row, segment)
      next = end
    }
    this.#dropEmpty(segments)
  }

  #removeRow(segment: Segment<Source>, rowId: string): void {
    segment.rows = segment.rows.filter(({ id }) => id !== rowId)
    this.#places.delete(rowId)
    const segments = segment.messageId === undefined ? [segment] : (this.#messages.get(segment.messageId) ?? [])
    this.#dropEmpty(segments)
    if (segments[0]) segments[0].view = segments[0].growing = undefined
    else if (segment.messageId !== undefined) this.#messages.delete(segment.messageId)
  }

  #dropEmpty(segments: Array<Segment<Source>>): void {
    const kept = segments.filter(({ rows }) => rows.length > 0)
    for (const segment of segments) if (segment.rows.length === 0) this.#discard(segment)
    segments.splice(0, segments.length, ...kept)
  }

  #discard(segment: Segment<Source>): void {
    this.#clear(segment)
    this.#order.delete(segment)
    if (this.#tail === segment) this.#tail = undefined
  }

  #clear(segment: Segment<Source>): void {
    for (const { id } of segment.rows) this.#places.delete(id)
    segment.rows = []
    segment.whole = undefined
    segment.view = undefined
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
  // Most messages are one row, and stay so.
  if (only && segments.length === 1 && first.rows.length === 1 && !first.growing) return (first.view = seenMessage(only))
  return (first.view = joined(first, rowsOf(segments)))
}

/** A run says one message, and is asked for it after every step: that must not cost all of it each time. */
function joined<Source>(first: Segment<Source>, rows: readonly MessageRow[]): Message | undefined {
  if (!rows.every(isSaid)) return seenMessages(rows)[0]
  first.growing ??= new GrowingMessage()
  first.growing.add(rows.slice(first.growing.count))
  return first.growing.message
}

function isSaid({ role }: MessageRow): boolean {
  return role === 'assistant' || role === 'tool'
}

function rowsOf<Source>(segments: ReadonlyArray<Segment<Source>>): MessageRow[] {
  return segments.flatMap(({ rows }) => rows)
}

/** A store knows rows by their ids and runs. Where the steps are still the same, so are those; an equal row is the same object. */
function revisedRows(known: readonly MessageRow[], rows: readonly MessageRow[]): MessageRow[] {
  return rows.map((row, index) => {
    const before = known[index]
    const isSignal = before !== undefined && row.role === 'user' && isUserSignal(before)
    if (!before || (before.role !== row.role && !isSignal)) return { ...row, content: withoutShown(row.content) }
    const taken = row.role === 'user' ? takenBack(before.content, row.content) : row.content
    const content = isSignal ? signalContent(before, taken) : taken
    return JSON.stringify(before.content) === JSON.stringify(content) ? before : { ...before, content }
  })
}
