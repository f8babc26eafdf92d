import type { Run } from '../run/run.ts'
import type { StepRecorder } from '../run/step-recorder.ts'
import { joinRows } from '../message/join.ts'
import { MessageList } from '../message/list.ts'
import type { Message } from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'
import { stepsOf } from '../message/step.ts'

/** The list a hook sees: history as memory, what this run said as response, and the rows of `input` as input. */
export function messagesOf(run: Run, input: readonly MessageRow[] = [], rows: Iterable<MessageRow> = run.rows): MessageList {
  const source = (row: MessageRow) => (input.includes(row) ? 'input' : isResponse(run, row) ? 'response' : 'memory')
  return MessageList.from(rows, source, { newId: run.newId, now: () => new Date(run.clock.now()) })
}

/** What enters, and the list that a hook sees it in. That is made when it is first looked at: few look. */
export class EnteringMessages {
  readonly list: MessageList
  readonly #input: readonly MessageRow[]
  #messages: readonly Message[] | undefined
  #looked = false

  constructor(run: Run, input: readonly MessageRow[]) {
    this.#input = input
    const look = () => {
      this.#looked = true
      return run.rows[Symbol.iterator]()
    }
    this.list = messagesOf(run, input, { [Symbol.iterator]: look })
  }

  /** A copy: hooks may do with it what they like. */
  get messages(): Message[] {
    if (this.#looked) return this.list.get.input.db()
    this.#messages ??= joinRows(this.#input)
    return [...this.#messages]
  }

  /** The rows that they are now; nothing when they are what they were. */
  get changed(): MessageRow[] | undefined {
    if (!this.#looked) return undefined
    const rows = this.list.rows('input')
    return sameRows(rows, this.#input) ? undefined : rows
  }
}

function isResponse(run: Run, { runId, role }: MessageRow): boolean {
  return runId === run.id && role !== 'user' && role !== 'signal'
}

/** The list of one run. It grows with the run; only when a hook changed it, it is made anew. */
export class RunMessages {
  #list: MessageList | undefined

  /** With a row, if one is given, that has no place in history yet. */
  of(run: Run, row?: MessageRow): MessageList {
    const rows = row ? [...run.rows, row] : run.rows
    const known = this.#list?.systemMessages().length === 0 ? this.#list.rows() : undefined
    if (!this.#list || !known || known.length > rows.length || !known.every((before, index) => before === rows[index])) {
      return (this.#list = row ? messagesOf(run).add(row, 'response') : messagesOf(run))
    }
    for (let index = known.length; index < rows.length; index++) {
      const added = rows[index] as MessageRow
      this.#list.add(added, added === row || isResponse(run, added) ? 'response' : 'memory')
    }
    return this.#list
  }
}

export function sameRows(a: readonly MessageRow[], b: readonly MessageRow[]): boolean {
  return a.length === b.length && a.every((row, index) => row === b[index])
}

/**
 * What processors made of a step: its row, if it is still there, and messages that they added. Steps before it are stored and stay as
 * they are. Brings the record of the step in line with its row.
 */
export function revisedStep(run: Run, row: MessageRow, list: MessageList, said: StepRecorder): { row: MessageRow | undefined; added: MessageRow[] } {
  const response = list.rows('response')
  const others = response.filter(({ messageId }) => messageId !== row.messageId)
  const known = new Set(others.length === 0 ? [] : run.rows.map(({ messageId }) => messageId))
  const added = others.filter(({ messageId }) => !known.has(messageId)).map((fresh) => ({ ...fresh, ...ownerOf(row) }))
  if (response.includes(row)) return { row, added }
  const message = list.get.response.db().findLast(({ id }) => id === row.messageId)
  const parts = message ? (stepsOf(message.content.parts).at(-1)?.parts ?? message.content.parts) : []
  said.revise(parts)
  return { row: message && parts.length > 0 ? { ...row, content: { ...message.content, parts: [...said.parts] } } : undefined, added }
}

function ownerOf({ threadId, resourceId, runId, step }: MessageRow): Partial<MessageRow> {
  return { runId, step, ...(threadId === undefined ? {} : { threadId }), ...(resourceId === undefined ? {} : { resourceId }) }
}
