import type { Run } from '../run/run.ts'
import { seenMessages } from '../message/as-seen.ts'
import { MessageList, type MessageSource } from '../message/list.ts'
import type { Message } from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'
import { takeMessages } from './returned.ts'

export interface PartView {
  /** What hooks may change: this part, whose rows have this source, or all there is. */
  source: 'input' | 'response' | 'all'
  sourceOf(row: MessageRow): MessageSource
  /** Rows that have no place in history yet. */
  coming?: readonly MessageRow[]
  /** Rows that are in history before those that the run has. */
  earlier?: readonly MessageRow[]
  /** The list, where somebody has looked at it before. */
  list?: MessageList | undefined
}

/** Some rows of a run that hooks may change, and the list that they see them in. That is made when it is first looked at: few look. */
export class PartOfRun {
  readonly list: MessageList
  /** Whether somebody looked at the list, and may have changed it. */
  looked: boolean
  readonly #part: readonly MessageRow[]
  readonly #source: PartView['source']
  #messages: readonly Message[] | undefined

  constructor(run: Run, part: readonly MessageRow[], { source, sourceOf, coming = [], earlier = [], list }: PartView) {
    this.#part = part
    this.#source = source
    this.looked = list !== undefined
    const look = () => {
      this.looked = true
      return coming.length + earlier.length > 0 ? [...earlier, ...run.rows, ...coming] : run.rows
    }
    this.list = list ?? MessageList.from(look, sourceOf, { newId: run.newId, now: () => new Date(run.clock.now()) })
  }

  /** A copy: hooks may do with it what they like. */
  get messages(): Message[] {
    if (this.looked) return this.list.get[this.#source].db()
    this.#messages ??= seenMessages(this.#part)
    return [...this.#messages]
  }

  /** What a hook returned in place of the messages that it was given. */
  take(given: Message[], returned: unknown): void {
    takeMessages(this.list, given, returned, this.#source)
  }

  /** Rows that history has gained. */
  add(rows: readonly MessageRow[]): void {
    this.#messages = undefined
    if (this.looked) for (const row of rows) this.list.add(row, 'memory')
  }

  get rows(): readonly MessageRow[] {
    return this.looked ? this.list.rows(this.#source === 'all' ? undefined : this.#source) : this.#part
  }

  /** The rows that they are now; nothing when they are what they were. */
  get changed(): MessageRow[] | undefined {
    if (!this.looked) return undefined
    const rows = this.list.rows(this.#source === 'all' ? undefined : this.#source)
    return sameRows(rows, this.#part) ? undefined : rows
  }
}

function sameRows(a: readonly MessageRow[], b: readonly MessageRow[]): boolean {
  return a.length === b.length && a.every((row, index) => row === b[index])
}
