import type { Run } from '../run/run.ts'
import type { StepRecorder } from '../run/step-recorder.ts'
import { MessageList } from '../message/list.ts'
import type { MessageRow } from '../message/row.ts'
import { stepsOf } from '../message/step.ts'

/** The list a hook sees: history as memory, what this run said as response. */
function messagesOf(run: Run): MessageList {
  return MessageList.from(run.rows, (row) => (isResponse(run, row) ? 'response' : 'memory'), { newId: run.newId, now: () => new Date(run.clock.now()) })
}

export function isResponse(run: Run, { runId, role }: MessageRow): boolean {
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

/** What processors made of a step: its row, if it is still there. Brings the record of the step in line with it. */
export function revisedStep(row: MessageRow, list: MessageList, said: StepRecorder): MessageRow | undefined {
  if (list.rows('response').includes(row)) return row
  const message = list.get.response.db().findLast(({ id }) => id === row.messageId)
  const parts = message ? (stepsOf(message.content.parts).at(-1)?.parts ?? message.content.parts) : []
  said.revise(parts)
  return message && parts.length > 0 ? { ...row, content: { ...message.content, parts: [...said.parts] } } : undefined
}
