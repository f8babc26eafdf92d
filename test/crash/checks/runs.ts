import { groupBy, notes, type Check, type Violation } from './evidence.ts'

/** Nothing was written with an epoch after a newer one was there. */
export const oneWriter: Check = (evidence) => [...groupBy(notes(evidence, 'written'), ({ thread }) => thread)].flatMap(([thread, writes]) => {
  const newest = takenAt(writes)
  return writes.flatMap((write): Violation[] => {
    const later = newest.find(({ epoch, at }) => epoch > write.epoch && at < write.began)
    return later ? [{ promise: 'R1.1', what: `${thread}: process ${write.by} wrote (${write.what}) with epoch ${write.epoch} after ${later.by} had epoch ${later.epoch}` }] : []
  })
})

/** One epoch has one holder. */
export const oneHolder: Check = (evidence) => [...groupBy(notes(evidence, 'written'), ({ thread, epoch }) => `${thread} ${epoch}`)].flatMap(([key, writes]): Violation[] => {
  const holders = new Set(writes.map(({ by }) => by))
  return holders.size === 1 ? [] : [{ promise: 'R1.2', what: `epoch ${key} was held by ${[...holders].join(' and ')}` }]
})

/** No chunk of a process that had lost the thread reached a watcher. */
export const noLateWords: Check = (evidence) => {
  const taken = new Map([...groupBy(notes(evidence, 'written'), ({ thread }) => thread)].map(([thread, writes]) => [thread, takenAt(writes)]))
  return notes(evidence, 'seen').flatMap(({ thread, cursor, words, watcher, by }): Violation[] => {
    const epoch = Number(cursor.split('.')[0])
    const made = Math.max(0, ...(words ?? []))
    const later = taken.get(thread)?.find((write) => write.epoch > epoch && write.at < made)
    return later ? [{ promise: 'R1.5', what: `${watcher} in ${by} saw ${cursor}, made ${made - later.at} µs after ${later.by} had epoch ${later.epoch}` }] : []
  })
}

/** For each epoch the first moment at which it was certainly there. */
function takenAt<Write extends { epoch: number; at: number }>(writes: readonly Write[]): Write[] {
  const first = new Map<number, Write>()
  for (const write of writes) {
    const known = first.get(write.epoch)
    if (!known || write.at < known.at) first.set(write.epoch, write)
  }
  return [...first.values()]
}

/** Every prompt of a thread begins with the one before it, in all processes: sorted by length, each is the beginning of the next. */
export const samePrompts: Check = (evidence) => [...groupBy(notes(evidence, 'asked'), ({ thread }) => thread)].flatMap(([thread, calls]) => {
  const sorted = calls.toSorted((a, b) => a.prompt.length - b.prompt.length)
  return sorted.slice(1).flatMap((call, index): Violation[] => {
    const before = sorted[index]
    const differs = before?.prompt.findIndex((digest, at) => call.prompt[at] !== digest) ?? -1
    if (differs === -1) return []
    return [{ promise: 'R5.2', what: `${thread}: the prompts of ${before?.by} (${before?.prompt.length} messages, at ${before?.at}) and ${call.by} (${call.prompt.length}, at ${call.at}) differ in message ${differs}` }]
  })
})
