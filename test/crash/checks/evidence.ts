import type { Effect } from '../effects.ts'
import type { Journal, Noted } from '../journal.ts'
import type { Ledger } from '../ledger.ts'

/** All that is known of a round: what each process noted, what its tools did, and what the store holds at the end. */
export interface Evidence {
  journals: Journal[]
  effects: Effect[]
  ledger: Ledger
}

export interface Violation {
  /** Which promise of PROTOCOL.md, or of the harness. */
  promise: string
  what: string
}

export type Check = (evidence: Evidence) => Violation[]

type NoteOf<Kind extends Noted['note']> = Extract<Noted, { note: Kind }>

/** All notes of some kinds, in the order of the journals, each with where it was noted. */
export function notes<Kind extends Noted['note']>({ journals }: Pick<Evidence, 'journals'>, ...kinds: readonly Kind[]): Array<NoteOf<Kind> & { by: string }> {
  const all: Array<NoteOf<Kind> & { by: string }> = []
  for (const { slot, life, notes } of journals) {
    for (const note of notes) if ((kinds as readonly string[]).includes(note.note)) all.push({ ...(note as NoteOf<Kind>), by: `${slot}.${life}` })
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
