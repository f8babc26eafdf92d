import type { Journal, Noted } from '../journal.ts'
import type { Ledger } from '../ledger.ts'

/** All that is known of a round: what each process noted, and what the store holds at the end. */
export interface Evidence {
  journals: Journal[]
  ledger: Ledger
  /** `own`: a watcher sees what runs in its process. `all`: also what runs elsewhere. */
  watching: 'own' | 'all'
}

export interface Violation {
  /** Which promise of PROTOCOL.md, or of the harness. */
  promise: string
  what: string
}

export type Check = (evidence: Evidence) => Violation[]

type NoteOf<Kind extends Noted['note']> = Extract<Noted, { note: Kind }>

/** All notes of a kind, in the order of the journals, each with where it was noted. */
export function notes<Kind extends Noted['note']>({ journals }: Pick<Evidence, 'journals'>, kind: Kind): Array<NoteOf<Kind> & { by: string }> {
  const all: Array<NoteOf<Kind> & { by: string }> = []
  for (const { slot, life, notes } of journals) {
    for (const note of notes) if (note.note === kind) all.push({ ...(note as NoteOf<Kind>), by: `${slot}.${life}` })
  }
  return all
}

export function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group) group.push(item)
    else groups.set(keyOf(item), [item])
  }
  return groups
}
