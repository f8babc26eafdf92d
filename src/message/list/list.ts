import type { LanguageModelV4Message } from '@ai-sdk/provider'
import { promptOf } from '../../prompt/from-rows.ts'
import { closeOpenCalls } from '../../prompt/open-calls.ts'
import type { SystemMessageInput, SystemModelMessage } from '../../prompt/system.ts'
import { systemMessages } from '../../prompt/system.ts'
import type { AgentInput, InputContext } from '../read/input.ts'
import { readInput } from '../read/input.ts'
import type { Message } from '../message.ts'
import { withoutShown } from '../attachments.ts'
import { OrderedRows } from './ordered-rows.ts'
import type { MessageRow } from '../row.ts'
import { toUIMessage } from '../ui/ui.ts'
import type { UIMessage } from '../ui/ui-message.ts'

/** Where a message came from: the store, the caller, the model, or what was shown to the model for this call only. */
export type MessageSource = 'memory' | 'input' | 'response' | 'context'

/** Rows that become a list when somebody looks at it. */
export interface UnreadRows extends Pick<InputContext, 'newId' | 'now'> {
  read(): Iterable<MessageRow>
  sourceOf(row: MessageRow): MessageSource
}

/** The messages of one kind, in each of the forms that they are needed in. */
export interface MessageView {
  /** As processors see them: as they are stored, but for what users sent as signals, which has the role `user` like all that they say. */
  db(): Message[]
  /** For user interfaces. */
  ui(): UIMessage[]
  /** For a model. Not to be changed: its messages are shared with other prompts. */
  prompt(): LanguageModelV4Message[]
}

export type MessageViews = Readonly<Record<'all' | 'remembered' | 'input' | 'response', MessageView>>

/**
 * The messages of a run, in the order in which they were added: never by time. Adding a message whose id is there replaces it
 * where it stands. Each operation costs what it adds or gives, not what the list holds.
 *
 * A list keeps the rows that it was made from, so that the prompt of an untouched message has the bytes it always had, and a
 * changed one keeps the ids of its rows. Messages are not to be changed in place: add or return a changed copy.
 */
export class MessageList {
  /** Made when it is first looked at, as are its views. */
  #held: OrderedRows<MessageSource> | undefined
  #views: MessageViews | undefined
  /** What it was made of, until somebody looks. */
  #unread: Pick<UnreadRows, 'read' | 'sourceOf'> | undefined
  #system: Array<{ tag: string | undefined; message: SystemModelMessage }> | undefined
  readonly #given: Partial<Pick<InputContext, 'newId' | 'now'>>

  constructor(context: Partial<Pick<InputContext, 'newId' | 'now'>> = {}) {
    this.#given = context
  }

  get get(): MessageViews {
    const rows = () => this.#rows
    return (this.#views ??= {
      all: new RowsView(rows, undefined, this),
      remembered: new RowsView(rows, 'memory', this),
      input: new RowsView(rows, 'input', this),
      response: new RowsView(rows, 'response', this),
    })
  }

  /** A list of rows as a store has them. They are read, and found where a function finds them, when the list is first looked at. */
  static from(
    rows: Iterable<MessageRow> | (() => Iterable<MessageRow>),
    source: MessageSource | ((row: MessageRow) => MessageSource) = 'memory',
    context: Partial<Pick<InputContext, 'newId' | 'now'>> = {},
  ): MessageList {
    const list = new MessageList(context)
    list.#unread = { read: typeof rows === 'function' ? rows : () => rows, sourceOf: typeof source === 'string' ? () => source : source }
    return list
  }

  /** The same of one who has all that is needed for it, with nothing made before somebody looks. */
  static of(unread: UnreadRows): MessageList {
    const list = new MessageList(unread)
    list.#unread = unread
    return list
  }

  get #rows(): OrderedRows<MessageSource> {
    const held = (this.#held ??= new OrderedRows<MessageSource>('memory'))
    const unread = this.#unread
    this.#unread = undefined
    if (unread) for (const row of unread.read()) held.addRow(row, unread.sourceOf(row))
    return held
  }

  /** Takes messages in any form. Rows are added to their message; everything else replaces the message of its id. */
  add(input: AgentInput, source: MessageSource): this {
    if (Array.isArray(input) && input.length === 0) return this
    const newId = () => this.#given.newId?.() ?? crypto.randomUUID()
    const now = () => this.#given.now?.() ?? new Date()
    for (const item of readInput(input, { newId, now, lenient: true })) {
      if ('messageId' in item) this.#rows.addRow(item, source)
      else this.#rows.setMessage(item, source)
    }
    return this
  }

  /**
   * Takes what a processor made of the messages it was given: those that are missing are removed, those with a known id replaced
   * where they stand, new ones added at the end. `source` names what it was given, and new ones count as that; with `all`, as
   * input.
   */
  replace(messages: readonly Message[], source: MessageSource | 'all'): this {
    const kept = new Set(messages.map(({ id }) => id))
    const given = this.#rows.ids(source === 'all' ? undefined : source)
    this.removeByIds(given.filter(id => !kept.has(id)))
    for (const message of messages) {
      if (this.#rows.message(message.id) === message) continue
      this.add(message, this.#rows.sourceOf(message.id) ?? (source === 'all' ? 'input' : source))
    }
    return this
  }

  /** Removes messages, and gives those that were there. */
  removeByIds(ids: Iterable<string>): Message[] {
    return Array.from(ids, id => this.#rows.remove(id)).filter(message => message !== undefined)
  }

  /** Instructions for this run, before all messages. The same text under the same tag is added once. */
  addSystem(instructions: SystemMessageInput, tag?: string): this {
    const added = (this.#system ??= [])
    for (const message of systemMessages(instructions)) {
      if (!added.some((known) => known.tag === tag && known.message.content === message.content)) added.push({ tag, message })
    }
    return this
  }

  /** Whether anybody added instructions. */
  get hasSystem(): boolean {
    return this.#system !== undefined && this.#system.length > 0
  }

  /** Without a tag, all of them. */
  systemMessages(tag?: string): SystemModelMessage[] {
    if (!this.#system) return []
    return this.#system.filter(known => tag === undefined || known.tag === tag).map(({ message }) => message)
  }

  /** The rows behind the messages, with those that only a model sees. */
  rows(source?: MessageSource): MessageRow[] {
    return this.#rows.rows(source)
  }
}

class RowsView implements MessageView {
  readonly #rows: () => OrderedRows<MessageSource>
  readonly #source: MessageSource | undefined
  readonly #list: Pick<MessageList, 'systemMessages'>

  constructor(rows: () => OrderedRows<MessageSource>, source: MessageSource | undefined, list: Pick<MessageList, 'systemMessages'>) {
    this.#rows = rows
    this.#source = source
    this.#list = list
  }

  db(): Message[] {
    return [...this.#rows().messages(this.#source)]
  }

  ui(): UIMessage[] {
    const rows = this.#rows()
    return rows.messages(this.#source).map((message) => toUIMessage({ ...message, content: withoutShown(message.content), ...(rows.isSignal(message.id) ? { role: 'signal' as const } : {}) }))
  }

  prompt(): LanguageModelV4Message[] {
    const prompt = promptOf(closeOpenCalls(this.#rows().promptRows(this.#source)))
    return this.#source === undefined ? [...this.#list.systemMessages(), ...prompt] : prompt
  }
}
