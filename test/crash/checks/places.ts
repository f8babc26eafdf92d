import type { SeenChunk } from '../journal.ts'
import { groupBy, notes, type Evidence } from './evidence.ts'

/** Something that a watcher noted, in the order of its log: its lives are one, since it comes back with the cursor of the last chunk that it saw. */
type Logged = ReturnType<typeof notes<'seen' | 'watching'>>[number]
export type Seen = Extract<Logged, { note: 'seen' }>
export type Said = ReturnType<typeof notes<'said'>>[number]

interface Place {
  epoch: number
  index: number
}

/** The published chunks of each thread, by all processes that ran it, in the order of their places. */
export function saidOn(evidence: Pick<Evidence, 'journals'>): Map<string, Said[]> {
  const threads = groupBy(notes(evidence, 'said'), ({ thread }) => thread)
  for (const said of threads.values()) said.sort((a, b) => compare(a.cursor, b.cursor))
  return threads
}

/** The log of each watcher. */
export function logs(evidence: Pick<Evidence, 'journals'>): Map<string, Logged[]> {
  return groupBy(notes(evidence, 'seen', 'watching'), ({ watcher }) => watcher)
}

/** The chunks after one place and before another; without the second, all that came after the first. */
export function between(said: readonly Said[], after: string, before?: string): Said[] {
  let low = 0
  let high = said.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (compare(said[middle]?.cursor ?? '', after) <= 0) low = middle + 1
    else high = middle
  }
  let end = low
  while (end < said.length && (before === undefined || compare(said[end]?.cursor ?? '', before) < 0)) end++
  return said.slice(low, end)
}

export function isSnapshot({ type }: SeenChunk): boolean {
  return type === 'data-thread-snapshot'
}

/** The signals that a snapshot has: their echo is no news to a watcher that received it. */
export function knownFrom({ messages = [] }: SeenChunk): Set<string> {
  return new Set(messages.flatMap(({ id, role }) => (role === 'signal' ? [id] : [])))
}

export function compare(a: string, b: string): number {
  const [one, other] = [placeOf(a), placeOf(b)]
  return one.epoch - other.epoch || one.index - other.index
}

function placeOf(cursor: string): Place {
  const [epoch = 0, index = 0] = cursor.split('.').map(Number)
  return { epoch, index }
}
