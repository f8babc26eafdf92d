import type { MessageRow } from '../../message/row.ts'
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

/** The rows of a run with its input as it was left. What was added stands where history has it: at the end. */
export function withInput(all: readonly MessageRow[], input: readonly MessageRow[], { rows, added }: InputChange & { rows: MessageRow[] }): MessageRow[] {
  const kept = new Map(rows.map((row) => [row.id, row]))
  const seen = new Set(input)
  return [...all.flatMap((row) => (seen.has(row) ? (kept.get(row.id) ?? []) : row)), ...added]
}
