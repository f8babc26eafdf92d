import type { SqlValue } from './statements.ts'

type Make = (row: readonly SqlValue[]) => Record<string, SqlValue | undefined>

/**
 * The records that every turn reads, as object literals. V8 gives a record that is built field by field another hidden class than the
 * literals in `store/core` have, and code that meets both classes is slower. The order of the fields is that of the columns and of the
 * literals.
 */
const made: readonly Make[] = [
  // ThreadRecord
  (r) => ({
    key: r[0], id: r[1], resourceId: r[2], title: r[3], metadata: r[4], parentId: r[5], createdAt: r[6], updatedAt: r[7], status: r[8], epoch: r[9],
    owner: r[10], runId: r[11], agentId: r[12], begun: r[13], nextSeq: r[14], nextOrd: r[15], ordinal: r[16], turn: r[17], tail: r[18],
    tailOrdinal: r[19], tailTurn: r[20], dueAt: r[21], laned: r[22],
  }),
  // RowRecord
  (r) => ({
    seq: r[0], id: r[1], messageId: r[2], role: r[3], type: r[4], runId: r[5], step: r[6], content: r[7], createdAt: r[8], ordinal: r[9], turn: r[10],
    counted: r[11],
  }),
  // MailRecord
  (r) => ({
    ord: r[0], id: r[1], agentId: r[2], route: r[3], kind: r[4], state: r[5], runId: r[6], startRunId: r[7], step: r[8], rows: r[9], options: r[10],
    boundTo: r[11], reason: r[12], acceptedAt: r[13],
  }),
  // RunRecord
  (r) => ({
    runId: r[0], agentId: r[1], status: r[2], epoch: r[3], step: r[4], attempts: r[5], options: r[6], started: r[7], suspended: r[8], startedAt: r[9],
    endedAt: r[10], suspendedAt: r[11], error: r[12], usage: r[13], firstSeq: r[14], sealSeq: r[15], staged: r[16], lost: r[17], ordinal: r[18],
    taken: r[19],
  }),
]

const byNames = new Map(made.map((make) => [Object.keys(make([])).join(), make]))

/** A function that makes records of rows with these columns: always the same one for the records above. */
export function shapeOf(names: readonly string[]): Make {
  return byNames.get(names.join()) ?? ((row) => {
    const fields: Record<string, SqlValue> = {}
    for (let index = 0; index < names.length; index += 1) fields[names[index] as string] = row[index] as SqlValue
    return fields
  })
}
