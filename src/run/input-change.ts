import type { MessageRow } from '../message/row.ts'
import type { InputChange } from './run-host.ts'

/** What became of the input: rows by their id, since history knows them by it. */
export function inputChange(before: readonly MessageRow[], after: readonly MessageRow[]): InputChange & { rows: MessageRow[] } {
  const left = new Map(after.map((row) => [row.id, row]))
  const known = new Set(before.map((row) => row.id))
  const kept = before.flatMap((row) => left.get(row.id) ?? [])
  const added = after.filter((row) => !known.has(row.id))
  return {
    rows: [...kept, ...added],
    revised: kept.filter((row) => !before.includes(row)),
    removed: before.filter((row) => !left.has(row.id)).map((row) => row.messageId),
    added,
  }
}
