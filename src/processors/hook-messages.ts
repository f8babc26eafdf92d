import { copyContent, copyMessage, isSameMessage } from '../message/attachments.ts'
import { stepsOf } from '../message/content.ts'
import { MessageList, type MessageSource, type UnreadRows } from '../message/list/list.ts'
import type { Message } from '../message/message.ts'
import { processorMessages } from '../message/processor-view.ts'
import type { MessageRow } from '../message/row.ts'
import type { Run } from '../run/loop/run.ts'
import type { StepRecorder } from '../run/step/step-recorder.ts'
import { isUserAuthored } from '../signals/conversions.ts'
import { applyMessages, checkMessage } from './hook-results.ts'

/**
 * The rows that hooks may change: the input that enters, the output of the segment, the output of the step, or all rows.
 */
type RowsKind = 'input' | 'segment' | 'step' | 'all'

const sources = { input: 'input', segment: 'response', step: 'response', all: 'all' } as const
const owned = { input: 'the input', segment: 'the output of this segment', step: 'the output of this step' } as const

const noRows: readonly MessageRow[] = []
const noMessages: readonly Message[] = []

interface HookMessagesOptions {
  uncommitted?: readonly MessageRow[]
  next?: readonly MessageRow[]
  list?: MessageList | undefined
}

/**
 * Rows of a run as messages that hooks may change, also in place: what a hook has left of them counts, whatever it returned. The list is
 * filled on first use: few hooks read it.
 */
export class HookMessages implements UnreadRows {
  declare readonly list: MessageList
  /** A hook has read the list and may have changed it. */
  declare isRead: boolean
  declare private readonly run: Run
  declare private readonly initial: readonly MessageRow[]
  declare private readonly kind: RowsKind
  /** Rows that the run doesn't have yet: input precedes the run's rows, output follows them. */
  declare private readonly uncommitted: readonly MessageRow[]
  /** Rows that the next call of the hook is about: a change of them in this call is made again there. */
  declare private readonly next: readonly MessageRow[]
  declare private initialSet: ReadonlySet<MessageRow> | undefined
  /** The array that hooks receive, and what it held when a hook received it. */
  declare private given: Message[] | undefined
  declare private handed: readonly Message[]
  /** What the messages of `handed` were, where they are not those of the list. */
  declare private originals: Array<Pick<Message, 'id' | 'role' | 'content'>> | undefined

  /** `list`: the list of an earlier call, already read. */
  constructor(
    run: Run, initial: readonly MessageRow[], kind: RowsKind,
    { uncommitted = noRows, next = noRows, list }: HookMessagesOptions = {},
  ) {
    this.run = run
    this.initial = initial
    this.kind = kind
    this.uncommitted = uncommitted
    this.next = next
    this.isRead = list !== undefined
    this.initialSet = undefined
    this.given = undefined
    this.handed = noMessages
    this.originals = undefined
    this.list = list ?? MessageList.of(this)
  }

  read(): readonly MessageRow[] {
    this.isRead = true
    const { rows } = this.run
    if (this.uncommitted.length === 0) return rows
    return this.kind === 'input' ? [...this.uncommitted, ...rows] : [...rows, ...this.uncommitted]
  }

  sourceOf(row: MessageRow): MessageSource {
    this.initialSet ??= new Set(this.initial)
    if (this.kind !== 'all' && this.initialSet.has(row)) return sources[this.kind]
    return this.kind !== 'segment' && isResponse(this.run, row) ? 'response' : 'memory'
  }

  newId(): string {
    return this.run.newId()
  }

  now(): Date {
    return new Date(this.run.clock.now())
  }

  /**
   * The messages for the next hook, which may change them: they are copies of what the run has. Hooks share the copies, so that each
   * receives what those before it changed in place. The array counts as returned where the hook changed it and returned no other messages.
   */
  get messages(): Message[] {
    if (this.isRead) {
      this.settle()
      this.originals = undefined
      this.handed = this.list.get[sources[this.kind]].db()
      return (this.given = this.handed.slice())
    }
    if (!this.given) {
      this.handed = processorMessages(this.initial)
      this.originals = this.handed.map(handOut)
    }
    // Each hook has an array of its own: what one does with it after it returned is no change of the next.
    return (this.given = this.handed.slice())
  }

  /** The ids of the messages that the last hook received. */
  get ids(): string[] {
    return this.handed.map(({ id }) => id)
  }

  /**
   * Applies the messages that a hook returned, or the array that it received where it changed that and returned no other messages: true
   * then. `settle` applies what it changed in the messages themselves.
   */
  apply(returned: unknown): boolean {
    const { given, handed, list } = this
    const isEdited = this.isArrayEdited
    if (returned === list && isEdited) {
      throw new Error('it changed the array of messages and returned the list. Change one of them, or return the array.')
    }
    if (returned === list || ((returned === undefined || returned === given) && !isEdited)) return false
    const left = returned === undefined ? given : returned
    if (this.isRead) this.settle()
    if (Array.isArray(left)) this.checkReturned(left)
    applyMessages(list, handed, left, sources[this.kind])
    return true
  }

  /** The last hook added, removed, replaced or moved messages in the array that it received. */
  get isArrayEdited(): boolean {
    return this.given !== undefined && !areSame(this.given, this.handed)
  }

  /** Messages that a hook only reads stay, whatever it returns: one that returns some of them and not others is refused. */
  private checkReturned(returned: readonly unknown[]): void {
    const source = sources[this.kind]
    if (source === 'all') return
    const ids = new Set(returned.map((message) => (message as Partial<Message> | null)?.id))
    const given = new Set<string | undefined>(this.ids)
    if ([...ids].every((id) => given.has(id))) return
    const own = new Set(this.list.get[source].db().map(({ id }) => id))
    const others = this.list.get.all.db().filter(({ id }) => !own.has(id))
    const left = others.find(({ id }) => !ids.has(id))
    if (left && others.some(({ id }) => ids.has(id))) throw this.readOnly('left out', left.id)
  }

  /** Throws where hooks changed messages of the list that they only read: the change would have no effect. */
  checkOthers(): void {
    const { kind, initial, list } = this
    if (kind === 'all' || !this.isRead) return
    const own = new Set([...initial, ...this.next])
    const next = new Set(this.next.map(({ id }) => id))
    const known = this.read().filter((row) => !own.has(row))
    const rows = list.rows()
    const left = new Set(rows)
    const before = new Set(known)
    const changeable = new Set(list.rows(sources[kind]))
    const ofStep = kind === 'step' ? initial[0]?.messageId : undefined
    for (const row of rows) {
      if (before.has(row) || next.has(row.id) || ofStep === row.messageId || (kind !== 'step' && changeable.has(row))) continue
      throw this.readOnly(known.some(({ id }) => id === row.id) ? 'changed' : 'added', row.messageId)
    }
    for (const row of known) {
      // A hook may replace the message of its step by one without the earlier steps, which are stored.
      const isReplaced = row.messageId === ofStep && countOf(rows, ofStep) !== countOf(known, ofStep) + 1
      if (!left.has(row) && !isReplaced) throw this.readOnly('changed or removed', row.messageId)
    }
  }

  private readOnly(what: string, id: string): Error {
    const own = this.kind === 'all' ? '' : owned[this.kind]
    return new Error(`it ${what} message '${id}', but it may change ${own} alone. Return changes of history, working memory and recalled `
      + 'messages from processInputStep, for each prompt.')
  }

  /** Applies what hooks changed in place in messages that are not the list's: once for all hooks, since most change nothing. */
  settle(): void {
    const { handed, originals } = this
    if (!originals) return
    for (let index = 0; index < originals.length; index++) {
      const message = handed[index] as Message
      const original = originals[index] as Pick<Message, 'id' | 'role' | 'content'>
      if (isSameMessage(message, original)) continue
      checkMessage(message, original.content)
      // Before the list is read, which calls `filled`.
      originals[index] = copyMessage(message)
      this.replace(original.id, message)
    }
  }

  /** A message that a hook removed from the list stays removed. */
  private replace(id: string, message: Message): void {
    const source = sources[this.kind]
    if (!this.list.get[source].db().some((known) => known.id === id)) return
    if (message.id !== id) this.list.removeByIds([id])
    this.list.add(copyMessage(message), source === 'all' ? 'memory' : source)
  }

  filled(): void {
    this.settle()
  }

  checkEdit(message: Message, before: Message): void {
    checkMessage(message, before.content)
  }

  /** Adds rows that the run has appended to history. */
  add(rows: readonly MessageRow[]): void {
    this.settle()
    this.given = undefined
    if (this.isRead) for (const row of rows) this.list.add(row, 'memory')
  }

  get rows(): readonly MessageRow[] {
    this.settle()
    return this.isRead ? this.listRows : this.initial
  }

  /** The rows after the hooks; undefined when no hook changed them. */
  get changed(): MessageRow[] | undefined {
    this.settle()
    if (!this.isRead) return undefined
    this.checkOthers()
    const rows = this.listRows
    if (areSame(rows, this.initial)) return undefined
    if (sources[this.kind] !== 'response' && this.list.rows().every(({ role }) => role === 'context')) {
      throw new Error('it removed every message: a prompt needs one. Reject the input with abort().')
    }
    return rows
  }

  private get listRows(): MessageRow[] {
    const source = sources[this.kind]
    return this.list.rows(source === 'all' ? undefined : source)
  }
}

/** Gives a message that was made for hooks a content of its own, and returns what it was. */
function handOut(message: Message): Pick<Message, 'id' | 'role' | 'content'> {
  const { id, role, content } = message
  message.content = copyContent(content)
  return { id, role, content }
}

function isResponse(run: Run, { runId, role }: MessageRow): boolean {
  return runId === run.id && role !== 'user' && role !== 'signal'
}

function countOf(rows: readonly MessageRow[], messageId: string): number {
  return rows.filter((row) => row.messageId === messageId).length
}

function areSame<T>(a: readonly T[], b: readonly T[]): boolean {
  if (a.length !== b.length) return false
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false
  return true
}

/** All messages of a run, as hooks see them: history as `memory`, the output of this run as `response`. */
export class RunMessages {
  #last: HookMessages | undefined
  #list: MessageList | undefined

  all(run: Run): HookMessages {
    return (this.#last = new HookMessages(run, run.rows, 'all', { list: this.#listOf(run) }))
  }

  /** The output of a step, whose row is not in history yet. */
  ofStep(run: Run, row: MessageRow | undefined): HookMessages {
    const output = row ? [row] : []
    return (this.#last = new HookMessages(run, output, 'step', { uncommitted: output, list: this.#listOf(run, row) }))
  }

  /**
   * The list of the last call, with the rows since added. After a change of a hook it is built anew. In the first step a list is only
   * built when a hook reads it; from then on, adding to it costs less than building it.
   */
  #listOf(run: Run, row?: MessageRow): MessageList | undefined {
    if (this.#last?.isRead) this.#list = this.#last.list
    if (!this.#list && run.step === 0) return undefined
    const rows = row ? [...run.rows, row] : run.rows
    const known = this.#list?.systemMessages().length === 0 ? this.#list.rows() : undefined
    if (!this.#list || !known || known.length > rows.length || !known.every((before, index) => before === rows[index])) {
      return (this.#list = MessageList.of({
        read: () => rows,
        sourceOf: (other) => (other === row ? 'response' : sourceOf(run, other)),
        newId: run.newId,
        now: () => new Date(run.clock.now()),
        checkEdit: (message, before) => checkMessage(message, before.content),
      }))
    }
    for (let index = known.length; index < rows.length; index++) {
      const added = rows[index] as MessageRow
      this.#list.add(added, added === row ? 'response' : sourceOf(run, added))
    }
    return this.#list
  }
}

function sourceOf(run: Run, row: MessageRow): MessageSource {
  return isResponse(run, row) ? 'response' : 'memory'
}

/** The row of a step after the hooks; undefined when they removed it. Updates the recorder of the step. */
export function revisedStep(row: MessageRow, list: MessageList, output: StepRecorder): MessageRow | undefined {
  if (list.rows('response').includes(row)) return row
  const found = list.get.response.db().findLast(({ id }) => id === row.messageId)
  // A hook may have kept the message.
  const message = found && copyMessage(found)
  const parts = message ? (stepsOf(message.content.parts).at(-1)?.parts ?? message.content.parts) : []
  output.revise(parts)
  return message && parts.length > 0 ? { ...row, content: { ...message.content, parts: [...output.parts] } } : undefined
}

/**
 * The ids of the messages of a prompt that are history: neither input nor output of the run. Where the list doesn't know the input, it is
 * the last message of a user and everything after it.
 */
export function historyIds(messages: readonly Message[], list: MessageList, runId: string): Set<string> {
  const current = new Set([...list.get.input.db(), ...list.get.response.db()].map(({ id }) => id))
  for (const row of list.rows()) if (row.runId === runId) current.add(row.messageId)
  const knowsInput = messages.some((message) => message.role !== 'assistant' && current.has(message.id))
  const inputStart = knowsInput ? messages.length : messages.findLastIndex(isUserAuthored)
  const history = messages.filter(({ id }, index) => !current.has(id) && (inputStart < 0 || index < inputStart))
  return new Set(history.map(({ id }) => id))
}
