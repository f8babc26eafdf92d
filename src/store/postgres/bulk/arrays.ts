import type { SqlValue } from '../../sql/statements.ts'
import { encode } from '../wire/batch.ts'

const special = /["\\]/g

/** A list as the text of a PostgreSQL array. */
export function arrayOf(values: ReadonlyArray<SqlValue>): string {
  let text = '{'
  for (let at = 0; at < values.length; at += 1) {
    if (at > 0) text += ','
    const value = values[at] ?? null
    if (value === null) text += 'NULL'
    else if (typeof value === 'number') text += value
    else text += `"${(encode(value) ?? '').replaceAll(special, '\\$&')}"`
  }
  return `${text}}`
}

/** The types of values of which a statement may take a list, as the server numbers and names them. */
const listed: ReadonlyMap<number, string> = new Map([
  [16, 'boolean'], [17, 'bytea'], [20, 'bigint'], [23, 'integer'], [25, 'text'], [701, 'double precision'],
])

/** The name of the rows that a statement for several is given. */
export const given = 'given'

/** The rows of a statement that takes a list for each value of another one, with their numbers from 1 on; undefined where it can't. */
export function rowsGiven(types: readonly number[]): string | undefined {
  if (types.length === 0) return undefined
  const lists: string[] = []
  for (const [at, type] of types.entries()) {
    const name = listed.get(type)
    if (name === undefined) return undefined
    lists.push(`$${at + 1}::${name}[]`)
  }
  return `unnest(${lists.join(', ')}) WITH ORDINALITY AS ${given} (${types.map((_, at) => `p${at + 1}, `).join('')}nth)`
}

/** The text with the columns of the given rows in the place of its values. */
export function ofRows(text: string): string {
  return text.replaceAll(/\$(\d+)/g, `${given}.p$1`)
}

/** The lists of the values of several statements with the same text. */
export function listsOf(rows: ReadonlyArray<readonly SqlValue[]>): string[] {
  return (rows[0] ?? []).map((_, at) => arrayOf(rows.map((values) => values[at] ?? null)))
}
