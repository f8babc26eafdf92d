import type { Run } from '../run/loop/run.ts'
import type { StepRecorder } from '../run/step/step-recorder.ts'
import { MessageList, type MessageSource } from '../message/list/list.ts'
import type { MessageRow } from '../message/row.ts'
import { stepsOf } from '../message/content.ts'
import { isResponse, PartOfRun } from './part-of-run.ts'

/** What hooks see of a whole run: history as memory, what this run said as response. */
export class RunMessages {
  #last: PartOfRun | undefined
  #list: MessageList | undefined

  /** All messages. */
  all(run: Run): PartOfRun {
    return (this.#last = new PartOfRun(run, run.rows, 'all', undefined, this.#listOf(run)))
  }

  /** What the run said, with a row that has no place in history yet. */
  said(run: Run, row: MessageRow | undefined): PartOfRun {
    const said = row ? [row] : []
    return (this.#last = new PartOfRun(run, said, 'said', said, this.#listOf(run, row)))
  }

  /**
   * The list that was looked at before: it grows with the run, and only when a hook changed it, it is made anew. Before the run has said anything
   * there need not be one; after that it costs less to have it grow.
   */
  #listOf(run: Run, row?: MessageRow): MessageList | undefined {
    if (this.#last?.looked) this.#list = this.#last.list
    if (!this.#list && run.step === 0) return undefined
    const rows = row ? [...run.rows, row] : run.rows
    const known = this.#list?.systemMessages().length === 0 ? this.#list.rows() : undefined
    if (!this.#list || !known || known.length > rows.length || !known.every((before, index) => before === rows[index])) {
      return (this.#list = MessageList.from(rows, (other) => (other === row ? 'response' : sourceOf(run, other)), { newId: run.newId, now: () => new Date(run.clock.now()) }))
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

/** What processors made of a step: its row, if it is still there. Brings the record of the step in line with it. */
export function revisedStep(row: MessageRow, list: MessageList, said: StepRecorder): MessageRow | undefined {
  if (list.rows('response').includes(row)) return row
  const message = list.get.response.db().findLast(({ id }) => id === row.messageId)
  const parts = message ? (stepsOf(message.content.parts).at(-1)?.parts ?? message.content.parts) : []
  said.revise(parts)
  return message && parts.length > 0 ? { ...row, content: { ...message.content, parts: [...said.parts] } } : undefined
}
