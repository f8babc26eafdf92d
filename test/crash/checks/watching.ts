import type { Journal } from '../journal.ts'
import { groupBy, notes, type Check, type Evidence, type Violation } from './evidence.ts'
import { between, compare, isSnapshot, knownFrom, logs, saidOn, type Said, type Seen } from './places.ts'

/** Microseconds after which every watcher that lives has received a published chunk: several sweeps, and time for a busy machine. */
const hearingTime = 3_000_000

/** One place in a stream is one chunk, the same for every watcher. */
export const sameForAll: Check = (evidence) => {
  // Several deltas that a snapshot told as one have the place of the last.
  const plain = notes(evidence, 'seen', 'said').filter((seen) => !isSnapshot(seen) && (seen.words?.length ?? 0) <= 1)
  return [...groupBy(plain, ({ thread, cursor }) => `${thread} ${cursor}`)].flatMap(([key, seen]): Violation[] => {
    const versions = new Set(seen.map(({ type, words, id }) => JSON.stringify([type, words, id])))
    return versions.size === 1 ? [] : [{ promise: 'W2.2', what: `${key} is ${[...versions].join(' and ')}` }]
  })
}

/** A watcher sees every published chunk, once and in order; where it doesn't, a snapshot has what is missing, up to its place. */
export const noGap: Check = (evidence) => {
  const everything = saidOn(evidence)
  return [...logs(evidence)].flatMap(([watcher, log]) => {
    const violations: Violation[] = []
    const say = (what: string) => violations.push({ promise: 'W1.2', what: `${watcher} ${what}` })
    const said = everything.get(log[0]?.thread ?? '') ?? []
    let last: Seen | undefined
    let known: ReadonlySet<string> = new Set()
    for (const seen of log) {
      if (seen.note === 'watching') {
        // It begins anew, having seen nothing, or nothing that it could come back with.
        if (seen.after === undefined) [last, known] = [undefined, new Set()]
        continue
      }
      // A watcher that received it continues from there, wherever it was.
      if (isSnapshot(seen)) known = knownFrom(seen)
      else if (last) {
        if (compare(last.cursor, seen.cursor) >= 0) say(`saw ${seen.cursor} (${seen.type}) after ${last.cursor} (${last.type})`)
        const missed = between(said, last.cursor, seen.cursor).find((other) => !known.has(other.id ?? '') && !isJoinedIn(other, seen))
        if (missed) say(`in ${seen.by} went from ${last.cursor} (${last.type}) to ${seen.cursor} (${seen.type}) without ${missed.cursor} (${missed.type}), said by ${missed.by}`)
      }
      last = seen
    }
    return violations
  })
}

/** No watcher misses what is published: a chunk that was published long enough before the end of a process, its watchers have seen. */
export const nobodyDeaf: Check = (evidence) => {
  const ends = new Map(evidence.journals.map((journal) => [nameOf(journal), endOf(journal)]))
  return unheard(evidence, (by, at) => at + hearingTime < (ends.get(by) ?? 0)).map(({ watcher, by, chunk, last }) => ({
    promise: 'W1.2', what: `${watcher} in ${by} saw nothing after ${last}: ${chunk.cursor} (${chunk.type}) was said by ${chunk.by}`,
  }))
}

/** Microseconds in which the last words of one process may still be on their way when another goes on with the thread. */
const onTheWay = 1_000_000

/** While no process dies or sleeps no snapshot is needed, unless a thread changes its owner before the last chunks arrived. */
export const noSnapshotInCalm: Check = (evidence) => {
  const calm = notes(evidence, 'calm')
  if (calm.length === 0) return []
  const from = Math.max(...calm.map(({ at }) => at))
  const until = Math.min(...notes(evidence, 'stopping').filter(({ at }) => at > from).map(({ at }) => at))
  const rushes = rushedHandOvers(evidence)
  // A machine that had no moment for a process for longer than its lease: that is a failure.
  if (notes(evidence, 'trouble', 'stalled').some(({ at }) => at > from && at < until)) return []
  return notes(evidence, 'seen').flatMap((seen): Violation[] => {
    if (!isSnapshot(seen) || seen.at < from || seen.at > until) return []
    const handed = seen.reason === 'behind' && rushes.get(seen.thread)?.some((at) => at < seen.at && seen.at - at < 2 * onTheWay)
    return handed ? [] : [{ promise: 'W1.2', what: `${seen.watcher} was told by a snapshot (${seen.reason}, ${seen.cursor}) although nothing had failed` }]
  })
}

/** While no process dies or sleeps, most chunks of one process reach the others as they are published. */
export const heardLive: Check = (evidence) => {
  const calm = notes(evidence, 'calm')
  const from = Math.max(...calm.map(({ at }) => at))
  const until = Math.min(...notes(evidence, 'stopping').filter(({ at }) => at > from).map(({ at }) => at))
  const said = notes(evidence, 'said').filter(({ at }) => at > from && at < until)
  const seen = new Set(notes(evidence, 'seen').flatMap(({ by, thread, cursor, type }) => (type === 'data-thread-snapshot' ? [] : [`${by} ${thread} ${cursor}`])))
  const wanted = said.flatMap(({ by, thread, cursor }) => calm.filter((watcher) => watcher.by !== by).map((watcher) => `${watcher.by} ${thread} ${cursor}`))
  const heard = wanted.filter((key) => seen.has(key)).length
  return wanted.length < 50 || heard > wanted.length / 2 ? [] : [{ promise: 'W1.2', what: `of ${wanted.length} chunks that others said while nothing failed ${heard} were seen` }]
}

/** When threads went from one process to another before the last chunks of the first can have arrived everywhere. */
function rushedHandOvers(evidence: Evidence): Map<string, number[]> {
  const active = groupBy(notes(evidence, 'written', 'said'), ({ thread }) => thread)
  return new Map([...active].map(([thread, all]) => {
    const inOrder = all.toSorted((a, b) => a.at - b.at)
    return [thread, inOrder.flatMap(({ at, by }, index) => (inOrder.slice(Math.max(0, index - 20), index).some((other) => other.by !== by && at - other.at < onTheWay) ? [at] : []))]
  }))
}

/** Watchers that have not seen all published chunks; `counts` decides in which process that matters, and from when on they could arrive there. */
export function unheard(evidence: Pick<Evidence, 'journals'>, counts: (by: string, at: number) => boolean): Array<{ watcher: string; by: string; last: string; chunk: Said }> {
  const everything = saidOn(evidence)
  return [...logs(evidence)].flatMap(([watcher, log]) => {
    // Of each life the place that it came to, which is where the next one begins.
    const lives = new Map<string, { from: number; last: string | undefined; known: ReadonlySet<string> }>()
    let known: ReadonlySet<string> = new Set()
    for (const one of log) {
      const life = lives.get(one.by)
      if (one.note === 'watching') {
        if (!life) lives.set(one.by, { from: one.at, last: one.after, known })
      } else if (life) {
        if (isSnapshot(one)) known = life.known = knownFrom(one)
        life.last = one.cursor
      }
    }
    return [...lives].flatMap(([by, { from, last, known: ids }]) => {
      const said = everything.get(log[0]?.thread ?? '') ?? []
      const later = last === undefined ? said.filter(({ at }) => at > from) : between(said, last)
      const chunk = later.find((other) => !ids.has(other.id ?? '') && counts(by, Math.max(from, other.at)))
      return chunk ? [{ watcher, by, last: last ?? 'its start', chunk }] : []
    })
  })
}

/** Up to when a process listened, as far as its notes tell. */
function endOf({ notes: [...all] }: Journal): number {
  return (all.find(({ note }) => note === 'stopping') ?? all.at(-1))?.at ?? 0
}

function nameOf({ slot, life }: Journal): string {
  return `${slot}.${life}`
}

/** Whether a delta is one of those that were joined. */
function isJoinedIn({ words }: Said, seen: Seen): boolean {
  return words !== undefined && seen.words !== undefined && words.every((word) => seen.words?.includes(word))
}
