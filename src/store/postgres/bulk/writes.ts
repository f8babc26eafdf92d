import type { SqlValue } from '../../sql/statements.ts'
import type { StatementTypes } from '../wire/batch.ts'
import { listsOf, ofRows, rowsGiven } from './arrays.ts'
import type { PlacedStatement } from './statements.ts'

/** A write; `asserted`: the transaction fails unless it changes one row. */
export interface Write extends PlacedStatement {
  asserted: boolean
}

/** Statements of parts that do not depend on each other, in the order of each part: the same statements of several parts are neighbors. */
export function sideBySide(parts: ReadonlyArray<readonly Write[]>): Write[] {
  const [only] = parts
  if (only && parts.length === 1) return [...only]
  const all: Write[] = []
  const left = parts.map((part) => ({ part, at: 0 })).filter(({ part }) => part.length > 0)
  for (let open = left; open.length > 0; open = open.filter(({ part, at }) => at < part.length)) {
    const text = open[0]?.part[open[0].at]?.text
    for (const one of open) {
      for (let next = one.part[one.at]; next?.text === text && next; next = one.part[++one.at]) all.push(next)
    }
  }
  return all
}

/** Inserts of plain values, into tables whose rows may be inserted in any order before other statements. */
const plainInsert = /^\s*INSERT INTO \S+\.heed_(?:mailbox|messages) \([^()]+\)\s+VALUES \([$\d, ]+\)\s*$/

interface Group {
  text: string
  asserted: boolean
  rows: Array<readonly SqlValue[]>
}

/**
 * The same writes in fewer statements: neighbors with the same text are one statement that takes lists, where that has the same effect.
 * Many signals for one thread, and writes of many threads, then cost the server a part of what they would one by one.
 */
export function gathered(writes: readonly Write[], types: StatementTypes): PlacedStatement[] {
  const groups: Group[] = []
  const open = new Map<string, Group>()
  for (const { text, asserted, values } of writes) {
    const last = groups.at(-1)
    const same = open.get(text) ?? (last?.text === text ? last : undefined)
    if (same && same.asserted === asserted) {
      same.rows.push(values)
      continue
    }
    const group: Group = { text, asserted, rows: [values] }
    groups.push(group)
    if (!asserted && plainInsert.test(text)) open.set(text, group)
    // Other statements may read what was inserted, or be needed by what follows.
    else open.clear()
  }
  return groups.flatMap((group) => statementsOf(group, types))
}

function statementsOf({ text, asserted, rows }: Group, types: StatementTypes): PlacedStatement[] {
  const ofValues = rows.length > 1 ? (types.get(asserted ? assertedOne(text) : text) ?? types.get(text)) : undefined
  const several = ofValues && severalOf(text, ofValues)
  if (several && areApart(several, rows)) return [{ text: asserted ? several.asserted : several.text, values: listsOf(rows) }]
  // A statement of several rows is made of the types that a single one has told.
  return rows.map((values) => ({ text: asserted ? assertedOne(text) : text, values }))
}

/** A statement that takes lists. */
interface Several {
  text: string
  asserted: string
  /** The values that tell apart what the statements change, by their places. Empty: they change nothing that was there. */
  keys: readonly number[]
}

const known = new Map<string, Several | undefined>()

function severalOf(text: string, types: readonly number[]): Several | undefined {
  if (!known.has(text)) {
    const rows = rowsGiven(types)
    known.set(text, rows === undefined ? undefined : (insertOfSeveral(text, rows) ?? updateOfSeveral(text, rows)))
  }
  return known.get(text)
}

/** No two of the statements change the same row, so that none has to see what another one changed. */
function areApart({ keys }: Several, rows: ReadonlyArray<readonly SqlValue[]>): boolean {
  if (keys.length === 0) return true
  return new Set(rows.map((values) => JSON.stringify(keys.map((at) => String(values[at]))))).size === rows.length
}

/** An insert of one row: its columns, its values, and what becomes of a conflict. */
const plainValues = /^(\s*INSERT INTO [^\s(]+(?: AS \w+)? \([^()]*\))\s*VALUES \(((?:(?!ON CONFLICT)[\s\S])*)\)(\s*ON CONFLICT[\s\S]*)?\s*$/

function insertOfSeveral(text: string, rows: string): Several | undefined {
  const [, into, values, conflict = ''] = plainValues.exec(text) ?? []
  if (into === undefined || values === undefined || /\bSELECT\b/.test(text) || conflict.includes('$')) return undefined
  const keys = conflictKeys(into, values, conflict)
  if (!keys) return undefined
  const { before, inserted } = counted(ofRows(values))
  const insert = `${before}${into} SELECT ${inserted} FROM ${rows}`
  // Without the exception for what is there already, such a row fails with 23505.
  const isExact = conflict === '' || /DO NOTHING\s*$/.test(conflict)
  const exact = isExact ? insert : assertedOf(`${insert}${conflict} RETURNING 1`, 'count(*)')
  return { text: insert + conflict, asserted: exact, keys }
}

/**
 * Records of one transaction may have the same change number. So the counter of each inbox is raised once for all rows of a statement, in
 * the order in which all transactions lock counters.
 */
function counted(values: string): { before: string; inserted: string } {
  const [call, schema = '', resource = ''] = /((?:"[^"]+"|\w+)\.)heed_change\((given\.p\d+)\)/.exec(values) ?? []
  if (call === undefined) return { before: '', inserted: values }
  const lists = `unnest($${resource.slice('given.p'.length)}::text[])`
  const before = `
    WITH changed AS (
      INSERT INTO ${schema}heed_notification_changes AS c (resource_id, last)
      SELECT DISTINCT resource COLLATE "C", 1 FROM ${lists} AS inbox (resource) ORDER BY 1
      ON CONFLICT (resource_id) DO UPDATE SET last = c.last + 1 RETURNING c.resource_id, c.last)`
  return { before, inserted: values.replace(call, `(SELECT changed.last FROM changed WHERE changed.resource_id = ${resource})`) }
}

/** The values of the columns in which rows may conflict, if a conflict changes the row that is there; undefined where they are unknown. */
function conflictKeys(into: string, values: string, conflict: string): number[] | undefined {
  if (conflict === '' || /DO NOTHING\s*$/.test(conflict)) return []
  const columns = /\(([^()]*)\)/.exec(into)?.[1]?.split(',').map((column) => column.trim()) ?? []
  const given = values.split(',').map((value) => /^\s*\$(\d+)\s*$/.exec(value)?.[1])
  const names = /ON CONFLICT \(([\w, ]+)\) DO UPDATE/.exec(conflict)?.[1]?.split(',').map((column) => column.trim()) ?? []
  const keys = names.map((name) => Number(given.length === columns.length ? given[columns.indexOf(name)] : undefined) - 1)
  return keys.length > 0 && keys.every((at) => at >= 0) ? keys : undefined
}

function updateOfSeveral(text: string, rows: string): Several | undefined {
  const [, head, set, where] = /^(\s*UPDATE [^\s(]+) SET ([\s\S]+?)\s+WHERE ([\s\S]+)$/.exec(text) ?? []
  if (head === undefined || set === undefined || where === undefined) return undefined
  if (/\b(?:SELECT|(?<!DISTINCT )FROM|RETURNING)\b/.test(`${set} ${where}`) || /\(|\bOR\b/.test(where)) return undefined
  const keys = where.split(/\s+AND\s+/).flatMap((part) => {
    const [, column = '', number = ''] = /^(\w+) = \$(\d+)$/.exec(part.trim()) ?? []
    return column === '' || new RegExp(`\\b${column} =`).test(set) ? [] : Number(number) - 1
  })
  if (keys.length === 0) return undefined
  const update = `${head} SET ${ofRows(set)} FROM ${rows} WHERE ${ofRows(where)}`
  return { text: update, asserted: assertedOf(`${update} RETURNING given.nth`, 'count(DISTINCT nth)'), keys }
}

/** Fails unless as many rows were changed as there are given rows, each of them for another one: `counted`. */
function assertedOf(changing: string, counted: string): string {
  const count = `(SELECT cardinality($1))`
  const all = counted === 'count(*)' ? `count(*) = ${count}` : `count(*) = ${count} AND ${counted} = ${count}`
  return `WITH changed AS (${changing}) SELECT 1 / CASE WHEN ${all} THEN 1 ELSE 0 END AS one FROM changed`
}

const assertedTexts = new Map<string, string>()

/** Fails unless the statement changes one row: with `22012`, or with `23505` where it inserts a row that is there already. */
export function assertedOne(text: string): string {
  let asserted = assertedTexts.get(text)
  if (asserted === undefined) assertedTexts.set(text, (asserted = assertedText(text)))
  return asserted
}

function assertedText(text: string): string {
  const [, inserts] = /^(\s*INSERT INTO [^;]+ VALUES \([^;]+\))\s+ON CONFLICT \([\w, ]+\) DO NOTHING\s*$/.exec(text) ?? []
  if (inserts !== undefined) return inserts
  return `WITH changed AS (${text} RETURNING 1) SELECT 1 / CASE WHEN count(*) = 1 THEN 1 ELSE 0 END AS one FROM changed`
}
