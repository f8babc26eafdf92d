import type { Clock, Timer } from '../../base/clock.ts'
import { describe } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { ThreadRow, ThreadStore } from '../../store/contract/threads.ts'

/** A thread whose row changed, as it is now; or one that was deleted. */
export type ThreadChange =
  | (Pick<ThreadRow, 'id' | 'resourceId' | 'title' | 'parentId' | 'updatedAt' | 'status' | 'epoch' | 'owner' | 'runId' | 'agentId'> & {
    deleted?: undefined
  })
  | { id: string; resourceId: string; deleted: true }
  /** More threads changed than are reported one by one: read the list again. */
  | { more: true }

/** How often the store is read while someone listens. Threads of other processes change without a message to this one. */
const sweepMs = 1_000
/** How many of the threads that changed last are compared. More changes between two reads are reported as `more`. */
const page = 100
/** How many changes are kept for a reader that is behind, at most one of each thread. */
const maxKept = 1_000

interface Source {
  store: ThreadStore
  clock: Clock
  logger: Logger
}

/**
 * What changes in the lists of threads of one store, of all processes. All readers of a resource share one query a second, whose cost does
 * not grow with the number of threads; without readers, nothing is read.
 */
export class ThreadChanges {
  readonly #source: () => Promise<Source>
  /** By resource; `''` is all of them. */
  readonly #watches = new Map<string, ListWatch>()
  #closed = false

  constructor(source: () => Promise<Source>) {
    this.#source = source
  }

  /** The changes from now on. Ends with `return()`, or when this object is closed. */
  async open(resourceId?: string): Promise<AsyncIterableIterator<ThreadChange>> {
    const key = resourceId ?? ''
    const source = await this.#source()
    const watch = this.#watches.get(key) ?? new ListWatch(source, resourceId)
    this.#watches.set(key, watch)
    const reader = new ChangeReader(() => {
      if (watch.remove(reader)) this.#watches.delete(key)
    })
    watch.add(reader)
    try {
      await watch.begun
    } catch (error) {
      reader.close()
      throw error
    }
    if (this.#closed) reader.close()
    return reader
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const watch of this.#watches.values()) watch.close()
  }
}

/** The threads of a resource that changed last, and those who listen to them. */
class ListWatch {
  readonly #source: Source
  readonly #resourceId: string | undefined
  readonly #readers = new Set<ChangeReader>()
  /** The rows of the last read, newest first. */
  #known: readonly ThreadRow[] = []
  #timer: Timer | undefined
  /** Resolves when the first rows were read: later changes are reported. */
  readonly begun: Promise<void>

  constructor(source: Source, resourceId: string | undefined) {
    this.#source = source
    this.#resourceId = resourceId
    this.begun = this.#read().then((rows) => {
      this.#known = rows
      this.#schedule()
    })
    // Each reader that opens gets the failure.
    this.begun.catch(() => {})
  }

  add(reader: ChangeReader): void {
    this.#readers.add(reader)
  }

  /** Returns whether it was the last one. */
  remove(reader: ChangeReader): boolean {
    this.#readers.delete(reader)
    if (this.#readers.size > 0) return false
    this.#timer?.cancel()
    return true
  }

  close(): void {
    for (const reader of this.#readers) reader.close()
  }

  async #read(): Promise<readonly ThreadRow[]> {
    const scope = this.#resourceId === undefined ? {} : { resourceId: this.#resourceId }
    const orderBy = { field: 'updatedAt', direction: 'DESC' } as const
    return (await this.#source.store.listThreads({ ...scope, orderBy, limit: page })).threads
  }

  #schedule(): void {
    if (this.#readers.size > 0) this.#timer = this.#source.clock.after(sweepMs, () => void this.#sweep(), { background: true })
  }

  async #sweep(): Promise<void> {
    try {
      const rows = await this.#read()
      for (const change of changesBetween(this.#known, rows)) for (const reader of this.#readers) reader.push(change)
      this.#known = rows
    } catch (error) {
      this.#source.logger.warn('the threads that changed could not be read', { error: describe(error) })
    }
    this.#schedule()
  }
}

/** What changed between two reads of the threads that changed last. */
export function changesBetween(before: readonly ThreadRow[], after: readonly ThreadRow[]): ThreadChange[] {
  const stamps = new Map(before.map((row) => [row.id, stampOf(row)]))
  const changed = after.filter((row) => stamps.get(row.id) !== stampOf(row))
  if (changed.length === page) return [{ more: true }]
  const present = new Set(after.map(({ id }) => id))
  const last = after.length < page ? -Infinity : (after.at(-1)?.updatedAt.getTime() ?? -Infinity)
  // A row that is older than those of a full page may be below it.
  const deleted = before.filter(({ id, updatedAt }) => !present.has(id) && updatedAt.getTime() > last)
  return [...deleted.map(({ id, resourceId }) => ({ id, resourceId, deleted: true as const })), ...changed.toReversed().map(changeOf)]
}

function stampOf({ resourceId, title, updatedAt, status, epoch, runId, owner }: ThreadRow): string {
  return JSON.stringify([resourceId, title, updatedAt.getTime(), status, epoch, runId, owner])
}

function changeOf({ id, resourceId, title, parentId, updatedAt, status, epoch, owner, runId, agentId }: ThreadRow): ThreadChange {
  return {
    id, resourceId, title, updatedAt, status, epoch,
    ...(parentId === undefined ? {} : { parentId }),
    ...(owner === undefined ? {} : { owner }),
    ...(runId === undefined ? {} : { runId }),
    ...(agentId === undefined ? {} : { agentId }),
  }
}

/** The changes for one reader: of a thread that changed several times before it was read, the last one. */
class ChangeReader implements AsyncIterableIterator<ThreadChange> {
  readonly #onClose: () => void
  readonly #kept = new Map<string, ThreadChange>()
  #waiting: ((result: IteratorResult<ThreadChange>) => void) | undefined
  #closed = false

  constructor(onClose: () => void) {
    this.#onClose = onClose
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  push(change: ThreadChange): void {
    if (this.#waiting) return this.#resolve({ done: false, value: change })
    const key = 'more' in change ? '' : change.id
    this.#kept.delete(key)
    // A reader that is far behind reads the list again.
    if (this.#kept.size >= maxKept) this.#kept.clear()
    else if (!('more' in change)) return void this.#kept.set(key, change)
    this.#kept.set('', { more: true })
  }

  next(): Promise<IteratorResult<ThreadChange>> {
    const [first] = this.#kept
    if (first) {
      this.#kept.delete(first[0])
      return Promise.resolve({ done: false, value: first[1] })
    }
    if (this.#closed) return Promise.resolve({ done: true, value: undefined })
    return new Promise((resolve) => (this.#waiting = resolve))
  }

  async return(): Promise<IteratorResult<ThreadChange>> {
    this.close()
    return { done: true, value: undefined }
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#onClose()
    this.#resolve({ done: true, value: undefined })
  }

  #resolve(result: IteratorResult<ThreadChange>): void {
    this.#waiting?.(result)
    this.#waiting = undefined
  }
}
