import type { SeenChunk } from '../journal.ts'
import { groupBy, notes, type Check, type Evidence, type Violation } from './evidence.ts'

type Seen = SeenChunk & { thread: string; watcher: string; by: string }

interface Place {
  epoch: number
  index: number
}

/** One place in a stream is one chunk, whoever saw it. */
export const sameForAll: Check = (evidence) => {
  const plain = notes(evidence, 'seen').filter((seen) => !isSnapshot(seen) && !isJoined(seen))
  return [...groupBy(plain, ({ thread, cursor }) => `${thread} ${cursor}`)].flatMap(([key, seen]): Violation[] => {
    const versions = new Set(seen.map(({ type, words, id }) => JSON.stringify([type, words, id])))
    return versions.size === 1 ? [] : [{ promise: 'W2', what: `${key} is ${[...versions].join(' and ')}` }]
  })
}

/**
 * A watcher sees every chunk once and in order; where it doesn't, a snapshot says so. Its lives are one log: it comes back with the
 * cursor of the last chunk that it saw.
 */
export const noGap: Check = (evidence) => {
  const everything = placesSeen(evidence)
  return [...groupBy(notes(evidence, 'seen'), ({ watcher }) => watcher)].flatMap(([watcher, log]) => {
    const violations: Violation[] = []
    const say = (promise: string, what: string) => violations.push({ promise, what: `${watcher} ${what}` })
    let last: Seen | undefined
    let known = new Set<string>()
    for (const seen of log) {
      if (isSnapshot(seen)) {
        known = new Set(seen.ids)
        last = seen
        continue
      }
      if (last) {
        const [from, to] = [placeOf(last), placeOf(seen)]
        if (compare(from, to) >= 0) say('W1', `saw ${seen.cursor} (${seen.type}) after ${last.cursor} (${last.type})`)
        else if (from.epoch === to.epoch) {
          const missing = to.index - from.index - 1
          const excused = (seen.words?.length ?? 1) - 1 + knownBetween(everything, seen.thread, from, to, known)
          // What follows a snapshot may begin anywhere after it.
          if (missing > excused && !isSnapshot(last)) say('W1', `saw nothing between ${last.cursor} (${last.type}) and ${seen.cursor} (${seen.type})`)
        } else {
          const missed = everything.get(seen.thread)?.find((other) => inReach(evidence, seen, other) && compare(from, placeOf(other)) < 0 && compare(placeOf(other), to) < 0 && !known.has(other.id ?? ''))
          if (missed && !isSnapshot(last)) say('W1', `went from ${last.cursor} to ${seen.cursor} without ${missed.cursor} (${missed.type}), which ${missed.watcher} in ${missed.by} saw`)
        }
      }
      last = seen
    }
    return violations
  })
}

/** Echoes of signals that the watcher's snapshot had: they are no news to it. */
function knownBetween(everything: Map<string, Seen[]>, thread: string, from: Place, to: Place, known: ReadonlySet<string>): number {
  if (known.size === 0) return 0
  const places = new Set<string>()
  for (const other of everything.get(thread) ?? []) {
    const place = placeOf(other)
    if (compare(from, place) < 0 && compare(place, to) < 0 && other.id !== undefined && known.has(other.id)) places.add(other.cursor)
  }
  // What only this watcher could have seen is in nobody's log.
  return Math.max(places.size, to.index - from.index - 1 <= known.size ? to.index - from.index - 1 : 0)
}

function placesSeen(evidence: Evidence): Map<string, Seen[]> {
  return groupBy(notes(evidence, 'seen').filter((seen) => !isSnapshot(seen)), ({ thread }) => thread)
}

function inReach({ watching }: Evidence, seen: Seen, other: Seen): boolean {
  return watching === 'all' || other.by === seen.by
}

function isSnapshot({ type }: SeenChunk): boolean {
  return type === 'data-thread-snapshot'
}

/** Several deltas that a snapshot told as one. */
function isJoined({ words }: SeenChunk): boolean {
  return (words?.length ?? 0) > 1
}

function placeOf({ cursor }: SeenChunk): Place {
  const [epoch = 0, index = 0] = cursor.split('.').map(Number)
  return { epoch, index }
}

function compare(a: Place, b: Place): number {
  return a.epoch - b.epoch || a.index - b.index
}
