import type { LanguageModelV4Message } from '@ai-sdk/provider'
import { copyMessages } from '../../prompt/copy.ts'
import { promptOf } from '../../prompt/from-rows.ts'
import { closeOpenCalls } from '../../prompt/open-calls.ts'
import type { SystemMessageInput, SystemModelMessage } from '../../prompt/system.ts'
import { systemMessages } from '../../prompt/system.ts'
import { withoutPartAttachments } from '../attachments.ts'
import type { Message } from '../message.ts'
import type { AgentInput, InputContext } from '../read/input.ts'
import { readInput } from '../read/input.ts'
import type { MessageRow } from '../row.ts'
import { toUIMessage } from '../ui/to-ui.ts'
import type { UIMessage } from '../ui/ui-message.ts'
import { OrderedRows } from './ordered-rows.ts'

/** The origin of a message: the store, the caller, the model, or context that one model call receives. */
export type MessageSource = 'memory' | 'input' | 'response' | 'context'

/** Rows that a list reads when it is first used. */
export interface UnreadRows extends Pick<InputContext, 'newId' | 'now'> {
  read(): Iterable<MessageRow>
  sourceOf(row: MessageRow): MessageSource
  /** Called when the list has the rows. */
  filled?(): void
  /**
   * Where it is defined, readers may change the messages in place: they get copies, and the list takes what they changed, after this
   * function has checked it.
   */
  checkEdit?(message: Message, before: Message): void
}

/** The messages of one source, in each form. */
export interface MessageView {
  /** As processors see them: as stored, except that a user's signals have the role `user`. */
  db(): Message[]
  /** For user interfaces. */
  ui(): UIMessage[]
  /** For a model. They are copies: changing them changes no prompt. */
  prompt(): LanguageModelV4Message[]
}

export interface MessageViews extends Readonly<Record<'all' | 'remembered' | 'input' | 'response', MessageView>> {
  /**
   * Working memory, recalled messages and repeated states, as messages of the role `system`. The prompt of `all` has them at their
   * positions; the other views don't include them.
   */
  readonly context: MessageView
}

/**
 * The messages of a run, in the order in which they were added: never by time. Adding a message with a known id replaces it in place.
 * The cost of an operation depends on what it adds or returns, not on the length of the list.
 *
 * A list keeps the rows that it was made from, so that the prompt of an unchanged message keeps its bytes, and a changed message keeps
 * the ids of its rows. The messages of the list that a processor receives may be changed in place; to another list, add a changed copy.
 */
export class MessageList {
  /** Created on first use, as are the views. */
  #ordered: OrderedRows<MessageSource> | undefined
  #views: MessageViews | undefined
  /** The rows of the list, until its first use. */
  #unread: Pick<UnreadRows, 'read' | 'sourceOf' | 'filled'> | undefined
  /** Set where readers may change the messages in place. */
  #editable: UnreadRows | undefined
  #system: Array<{ tag: string | undefined; message: SystemModelMessage }> | undefined
  readonly #context: Partial<Pick<InputContext, 'newId' | 'now'>>

  constructor(context: Partial<Pick<InputContext, 'newId' | 'now'>> = {}) {
    this.#context = context
  }

  get get(): MessageViews {
    const rows = (edited: boolean) => (edited ? this.#editedRows : this.#rows)
    return (this.#views ??= {
      all: new RowsView(rows, undefined, this),
      remembered: new RowsView(rows, 'memory', this),
      input: new RowsView(rows, 'input', this),
      response: new RowsView(rows, 'response', this),
      context: new ContextView(rows),
    })
  }

  /** A list of stored rows. They are read on first use of the list, with `rows()` where it is a function. */
  static from(
    rows: Iterable<MessageRow> | (() => Iterable<MessageRow>),
    source: MessageSource | ((row: MessageRow) => MessageSource) = 'memory',
    context: Partial<Pick<InputContext, 'newId' | 'now'>> = {},
  ): MessageList {
    const list = new MessageList(context)
    list.#unread = { read: typeof rows === 'function' ? rows : () => rows, sourceOf: typeof source === 'string' ? () => source : source }
    return list
  }

  /** `from` for an object that is itself the reader: creates no functions before first use. */
  static of(unread: UnreadRows): MessageList {
    const list = new MessageList(unread)
    list.#unread = unread
    if (unread.checkEdit) list.#editable = unread
    return list
  }

  get #rows(): OrderedRows<MessageSource> {
    const ordered = (this.#ordered ??= new OrderedRows<MessageSource>('memory', this.#editable !== undefined))
    const unread = this.#unread
    this.#unread = undefined
    if (!unread) return ordered
    for (const row of unread.read()) ordered.addRow(row, unread.sourceOf(row))
    unread.filled?.()
    return ordered
  }

  /** The rows with what readers changed in their copies of the messages. */
  get #editedRows(): OrderedRows<MessageSource> {
    const rows = this.#rows
    if (this.#editable) rows.takeEdits(this.#editable)
    return rows
  }

  /** Adds messages in any form. Rows are added to their message; any other form replaces the message with its id. */
  add(input: AgentInput, source: MessageSource): this {
    if (Array.isArray(input) && input.length === 0) return this
    const newId = () => this.#context.newId?.() ?? crypto.randomUUID()
    const now = () => this.#context.now?.() ?? new Date()
    const rows = this.#editedRows
    for (const item of readInput(input, { newId, now, lenient: true })) {
      if ('messageId' in item) rows.addRow(item, source)
      else rows.setMessage(item, source)
    }
    return this
  }

  /**
   * Applies the messages that a processor returned: removes the missing ones, replaces those with a known id in place, and adds new ones
   * at the end. `source` is the source of the messages that the processor received. New messages get this source; with `all`, `input`.
   */
  replace(messages: readonly Message[], source: MessageSource | 'all'): this {
    const kept = new Set(messages.map(({ id }) => id))
    const before = this.#editedRows.ids(source === 'all' ? undefined : source)
    this.removeByIds(before.filter(id => !kept.has(id)))
    for (const message of messages) {
      if (this.#rows.message(message.id) === message) continue
      this.add(message, this.#rows.sourceOf(message.id) ?? (source === 'all' ? 'input' : source))
    }
    return this
  }

  /** Removes messages, or parts of the context, and returns the removed ones. */
  removeByIds(ids: Iterable<string>): Message[] {
    return Array.from(ids, id => this.#rows.remove(id)).filter(message => message !== undefined)
  }

  /** Adds instructions for this run, before all messages. The same text with the same tag is added once. */
  addSystem(instructions: SystemMessageInput, tag?: string): this {
    const added = (this.#system ??= [])
    for (const message of systemMessages(instructions)) {
      if (!added.some((known) => known.tag === tag && known.message.content === message.content)) added.push({ tag, message })
    }
    return this
  }

  get hasSystem(): boolean {
    return this.#system !== undefined && this.#system.length > 0
  }

  /** The instructions with a tag; all of them without one. */
  systemMessages(tag?: string): SystemModelMessage[] {
    if (!this.#system) return []
    return this.#system.filter(known => tag === undefined || known.tag === tag).map(({ message }) => message)
  }

  /** The rows of the messages, context rows included. */
  rows(source?: MessageSource): MessageRow[] {
    return this.#editedRows.rows(source)
  }
}

class RowsView implements MessageView {
  /** `edited`: with what readers changed in place. */
  readonly #rows: (edited: boolean) => OrderedRows<MessageSource>
  readonly #source: MessageSource | undefined
  readonly #list: Pick<MessageList, 'systemMessages'>

  constructor(
    rows: (edited: boolean) => OrderedRows<MessageSource>, source: MessageSource | undefined, list: Pick<MessageList, 'systemMessages'>,
  ) {
    this.#rows = rows
    this.#source = source
    this.#list = list
  }

  db(): Message[] {
    return [...this.#rows(false).messages(this.#source)]
  }

  ui(): UIMessage[] {
    const rows = this.#rows(true)
    return rows.messages(this.#source).map((message) => {
      const role = rows.isSignal(message.id) ? 'signal' : message.role
      return toUIMessage({ ...message, role, content: withoutPartAttachments(message.content) })
    })
  }

  prompt(): LanguageModelV4Message[] {
    const prompt = promptOf(closeOpenCalls(this.#rows(true).promptRows(this.#source)))
    return copyMessages(this.#source === undefined ? [...this.#list.systemMessages(), ...prompt] : prompt)
  }
}

class ContextView implements MessageView {
  readonly #rows: (edited: boolean) => OrderedRows<MessageSource>

  constructor(rows: (edited: boolean) => OrderedRows<MessageSource>) {
    this.#rows = rows
  }

  db(): Message[] {
    return this.#rows(false).contextMessages()
  }

  ui(): UIMessage[] {
    return this.db().map((message) => toUIMessage(message))
  }

  prompt(): LanguageModelV4Message[] {
    return copyMessages(promptOf(this.#rows(true).contextRows()))
  }
}
