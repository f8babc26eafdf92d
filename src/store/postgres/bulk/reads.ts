import type { StatementTypes, WireAnswer } from '../wire/batch.ts'
import { listsOf, ofRows, rowsGiven } from './arrays.ts'
import type { PlacedStatement } from './statements.ts'

/** Reads that have an effect, and those that end with a place in their result. */
const alone = /\bnextval\(|\bFOR (?:NO KEY )?UPDATE\b|\bOFFSET\b[^()]*$/
/** Of fewer, each is a statement of its own. */
const fewest = 2

interface Sent extends PlacedStatement {
  /** Its rows have the numbers of the reads that they answer. */
  numbered: boolean
}

/** Reads that see the same database, and what is sent for them. */
export interface GatheredReads {
  statements: Sent[]
  /** The answers to the reads, of the answers to what was sent. */
  answers(sent: readonly WireAnswer[]): WireAnswer[]
}

const texts = new Map<string, string | undefined>()

/**
 * One statement for all reads with the same text: each of them costs the server, the driver and the network as much as the rows of many.
 * OFFSET keeps the planner from joining: each read is executed as it is by itself.
 */
function textFor(text: string, types: readonly number[]): string | undefined {
  if (texts.has(text)) return texts.get(text)
  const rows = /^\s*SELECT\b/.test(text) && !alone.test(text) ? rowsGiven(types) : undefined
  const several = rows && `SELECT given.nth, found.* FROM ${rows} CROSS JOIN LATERAL (${ofRows(text)} OFFSET 0) AS found`
  texts.set(text, several)
  return several
}

export function gatheredReads(reads: readonly PlacedStatement[], types: StatementTypes): GatheredReads {
  const places = new Map<string, number[]>()
  for (const [at, { text }] of reads.entries()) {
    const same = places.get(text)
    if (same) same.push(at)
    else places.set(text, [at])
  }
  const statements: Sent[] = []
  /** Of each statement, the reads that it answers. */
  const answered: number[][] = []
  for (const [text, all] of places) {
    const several = textOfSeveral(text, all.length, types)
    if (several === undefined) {
      for (const at of all) {
        statements.push({ text, values: reads[at]?.values ?? [], numbered: false })
        answered.push([at])
      }
      continue
    }
    const isSame = several === text
    const values = isSame ? [] : listsOf(all.map((at) => reads[at]?.values ?? []))
    statements.push({ text: several, values, numbered: !isSame })
    answered.push(all)
  }
  return { statements, answers: (sent) => spread(reads.length, statements, answered, sent) }
}

/** One that has no values has the same answer for all. */
function textOfSeveral(text: string, count: number, types: StatementTypes): string | undefined {
  if (count < fewest) return undefined
  const ofValues = types.get(text)
  if (!ofValues) return undefined
  return ofValues.length === 0 && /^\s*SELECT\b/.test(text) && !alone.test(text) ? text : textFor(text, ofValues)
}

function spread(count: number, statements: readonly Sent[], answered: readonly number[][], sent: readonly WireAnswer[]): WireAnswer[] {
  const all = Array<WireAnswer>(count)
  for (const [nth, reads] of answered.entries()) {
    const answer = sent[nth]
    if (!answer) continue
    if (!statements[nth]?.numbered) {
      for (const at of reads) all[at] = answer
      continue
    }
    for (const at of reads) all[at] = { rows: [], changes: 0, tag: answer.tag, numbers: [] }
    for (const [at, row] of answer.rows.entries()) all[reads[(answer.numbers[at] ?? 0) - 1] ?? -1]?.rows.push(row)
  }
  return all
}
