import { notes, type Violation } from '../checks/evidence.ts'
import { isSnapshot, logs } from '../checks/places.ts'
import { slack, type Lived, type LivesCheck } from './evidence.ts'
import type { Life } from './lives.ts'

/** Where in the lives of a thread a cursor is: in one of them, or between two, where the thread does not exist. */
interface Place {
  index: number
  life: Life | undefined
}

function placesOf({ lives }: Lived): (thread: string, cursor: string) => Place {
  const edges = new Map<string, Array<{ from: number; life: Life | undefined }>>()
  for (const life of lives) {
    const list = edges.get(life.thread) ?? []
    edges.set(life.thread, list)
    list.push({ from: life.first, life }, ...(life.floor === Infinity ? [] : [{ from: life.floor, life: undefined }]))
  }
  return (thread, cursor) => {
    const epoch = Number(cursor.split('.')[0])
    const list = edges.get(thread) ?? []
    const index = list.findLastIndex(({ from }) => from <= epoch)
    return { index, life: list[index]?.life }
  }
}

/** Who goes from one life to another begins with a snapshot that says so, also who returns with a cursor of the earlier one. */
export const lifeBegins: LivesCheck = (evidence) => {
  const placeOf = placesOf(evidence)
  return [...logs(evidence)].flatMap(([watcher, log]) => {
    let last: string | undefined
    return log.flatMap((one): Violation[] => {
      if (one.note === 'watching') {
        last = one.after
        return []
      }
      const before = last
      last = one.cursor
      if (before === undefined) return []
      const [from, to] = [placeOf(one.thread, before), placeOf(one.thread, one.cursor)]
      if (isSnapshot(one)) {
        // The cursor 0.0 is also that of a subscription whose start is not retained: it names no life.
        if (from.index === to.index || !from.life || before === '0.0' || one.reason === 'replaced') return []
        return [{ promise: 'W1.3', what: `${watcher} in ${one.by} went from ${before} to ${one.cursor} of a later life with a snapshot whose reason is ${one.reason}` }]
      }
      // Where the thread did not exist, there was nothing to start over from.
      if (from.index === to.index || (!from.life && from.index + 1 === to.index)) return []
      return [{ promise: 'W1.3', what: `${watcher} in ${one.by} went from ${before} to ${one.cursor} (${one.type}) of a later life without a snapshot` }]
    })
  })
}

/** Who subscribes after a thread was deleted or replaced reads no chunk of it. */
export const noFormerWords: LivesCheck = (evidence) => {
  const placeOf = placesOf(evidence)
  const ends = notes(evidence, 'ended')
  return [...logs(evidence)].flatMap(([watcher, log]) => {
    let since = 0
    return log.flatMap((one): Violation[] => {
      if (one.note === 'watching') {
        since = one.since ?? one.at
        return []
      }
      const { life } = placeOf(one.thread, one.cursor)
      if (!life || isSnapshot(one) || life.died === Infinity) return []
      const ended = ends.find(({ at, thread }) => (thread === undefined || thread === one.thread) && at < since && at > life.died - slack)
      return ended ? [{ promise: 'W1.3', what: `${watcher} in ${one.by} subscribed after a life of ${one.thread} had ended, and saw ${one.cursor} (${one.type}) of it` }] : []
    })
  })
}

/** A snapshot has messages of the life that it is of, and no other. Their words may have been removed after it was read. */
export const snapshotsOfLife: LivesCheck = (evidence) => {
  const placeOf = placesOf(evidence)
  return notes(evidence, 'seen').flatMap((seen): Violation[] => {
    if (!isSnapshot(seen)) return []
    const { life } = placeOf(seen.thread, seen.cursor)
    const say = (what: string): Violation[] => [{ promise: 'W1.3', what: `${seen.watcher} in ${seen.by} got a snapshot at ${seen.cursor} (${seen.reason}) ${what}` }]
    const rows = [...(life?.rows.values() ?? [])]
    const ids = new Set(rows.flatMap(({ id, messageId }) => [id, messageId]))
    for (const { id, text } of seen.messages ?? []) {
      if (!ids.has(id)) return say(`with ${id}, which that life never had`)
      const strange = text.split(' ').find((word) => word !== '' && !life?.words.has(word))
      if (strange !== undefined) return say(`with a word (${strange}) that that life never had`)
    }
    return []
  })
}
