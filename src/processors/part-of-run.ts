import type { Run } from '../run/run.ts'
import { asSeen } from '../message/as-seen.ts'
import { joinRows } from '../message/join.ts'
import { MessageList } from '../message/list.ts'
import type { Message } from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'
import { isResponse, sameRows } from './run-messages.ts'

/** Some rows of a run that hooks may change, and the list that they see them in. That is made when it is first looked at: few look. */
export class PartOfRun {
  readonly list: MessageList
  readonly #part: readonly MessageRow[]
  readonly #source: 'input' | 'response'
  #messages: readonly Message[] | undefined
  #looked = false

  /** `coming`: rows that have no place in history yet. */
  constructor(run: Run, part: readonly MessageRow[], source: 'input' | 'response', coming: readonly MessageRow[] = []) {
    this.#part = part
    this.#source = source
    const look = () => {
      this.#looked = true
      return [...run.rows, ...coming][Symbol.iterator]()
    }
    const own = new Set(part)
    const others = (row: MessageRow) => (source === 'input' && isResponse(run, row) ? 'response' : 'memory')
    this.list = MessageList.from({ [Symbol.iterator]: look }, (row) => (own.has(row) ? source : others(row)), {
      newId: run.newId,
      now: () => new Date(run.clock.now()),
    })
  }

  /** A copy: hooks may do with it what they like. */
  get messages(): Message[] {
    if (this.#looked) return this.list.get[this.#source].db()
    this.#messages ??= joinRows(this.#part).map(asSeen)
    return [...this.#messages]
  }

  /** The rows that they are now; nothing when they are what they were. */
  get changed(): MessageRow[] | undefined {
    if (!this.#looked) return undefined
    const rows = this.list.rows(this.#source)
    return sameRows(rows, this.#part) ? undefined : rows
  }
}
