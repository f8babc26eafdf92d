import type { Run } from '../run/loop/run.ts'
import { processorMessages } from '../message/processor-view.ts'
import { MessageList, type MessageSource, type UnreadRows } from '../message/list/list.ts'
import type { Message } from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'
import { takeMessages } from './returned.ts'

/**
 * What hooks may change: input that enters, what was said since input last entered, what was said in this step, or all there is.
 */
export type PartKind = 'input' | 'segment' | 'said' | 'all'

const sources = { input: 'input', segment: 'response', said: 'response', all: 'all' } as const

const none: readonly MessageRow[] = []

/** Some rows of a run that hooks may change, and the list that they see them in. That is made when it is first looked at: few look. */
export class PartOfRun implements UnreadRows {
  declare readonly list: MessageList
  /** Whether somebody looked at the list, and may have changed it. */
  declare looked: boolean
  declare private readonly run: Run
  declare private readonly part: readonly MessageRow[]
  declare private readonly kind: PartKind
  /** Rows that the run doesn't have: input before those that it has, else after them. */
  declare private readonly more: readonly MessageRow[]
  declare private own: ReadonlySet<MessageRow> | undefined
  declare private made: readonly Message[] | undefined
  /** A copy of these, for hooks. */
  declare private given: Message[] | undefined

  /** `list`: the one that somebody has looked at before. */
  constructor(run: Run, part: readonly MessageRow[], kind: PartKind, more: readonly MessageRow[] = none, list?: MessageList) {
    this.run = run
    this.part = part
    this.kind = kind
    this.more = more
    this.looked = list !== undefined
    this.own = undefined
    this.made = undefined
    this.given = undefined
    this.list = list ?? MessageList.of(this)
  }

  read(): readonly MessageRow[] {
    this.looked = true
    const { rows } = this.run
    if (this.more.length === 0) return rows
    return this.kind === 'input' ? [...this.more, ...rows] : [...rows, ...this.more]
  }

  sourceOf(row: MessageRow): MessageSource {
    this.own ??= new Set(this.part)
    if (this.kind !== 'all' && this.own.has(row)) return sources[this.kind]
    return this.kind !== 'segment' && isResponse(this.run, row) ? 'response' : 'memory'
  }

  newId(): string {
    return this.run.newId()
  }

  now(): Date {
    return new Date(this.run.clock.now())
  }

  /** One after the other is given the same array until somebody changes it: whoever comes after that gets one as it was. */
  get messages(): Message[] {
    if (this.looked) return this.list.get[sources[this.kind]].db()
    this.made ??= processorMessages(this.part)
    if (!this.given || !areSame(this.given, this.made)) this.given = [...this.made]
    return this.given
  }

  /** What a hook returned in place of the messages that it was given. */
  take(given: Message[], returned: unknown): void {
    takeMessages(this.list, given, returned, sources[this.kind])
  }

  /** Rows that history has gained. */
  add(rows: readonly MessageRow[]): void {
    this.made = undefined
    if (this.looked) for (const row of rows) this.list.add(row, 'memory')
  }

  get rows(): readonly MessageRow[] {
    return this.looked ? this.listed : this.part
  }

  /** The rows that they are now; nothing when they are what they were. */
  get changed(): MessageRow[] | undefined {
    if (!this.looked) return undefined
    const rows = this.listed
    return areSame(rows, this.part) ? undefined : rows
  }

  private get listed(): MessageRow[] {
    const source = sources[this.kind]
    return this.list.rows(source === 'all' ? undefined : source)
  }
}

export function isResponse(run: Run, { runId, role }: MessageRow): boolean {
  return runId === run.id && role !== 'user' && role !== 'signal'
}

function areSame<T>(a: readonly T[], b: readonly T[]): boolean {
  if (a.length !== b.length) return false
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false
  return true
}
