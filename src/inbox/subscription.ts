import { HeedError } from '../base/errors.ts'
import type { KeepAlive } from '../base/promises.ts'
import type { InboxChange, InboxChanges, NotificationStore } from '../store/contract/notifications.ts'

/** Whose inbox is watched: all of a resource, or one of its threads. */
export interface InboxSubscribeOptions {
  resourceId: string
  threadId?: string
  /** The cursor of the last change that was seen: what changed since follows. Without one, what changes from now on. */
  after?: string
}

/**
 * What changes in an inbox. Each change is a record as it is now: one that changed several times before it was read comes once. Nothing is
 * kept for a slow reader but its place, so that it costs nobody anything.
 */
export interface InboxSubscription {
  stream: AsyncIterable<InboxChange>
  /** Ends the stream. */
  unsubscribe(): void
}

const pageSize = 100

/** Who watches inboxes here. Their readers wait, and are rung when there may be something for them. */
export class InboxWatchers {
  readonly #byResource = new Map<string, Set<InboxReader>>()
  readonly #keepAlive: KeepAlive

  /** `keepAlive`: kept while anybody waits here. */
  constructor(keepAlive: KeepAlive) {
    this.#keepAlive = keepAlive
  }

  /** Stays open until it is closed by whoever reads it, or with all the others. */
  async open(store: NotificationStore, options: InboxSubscribeOptions): Promise<InboxSubscription> {
    const { resourceId, threadId } = options
    const scope = { resourceId, ...(threadId === undefined ? {} : { threadId }) }
    // Also tells of a cursor that is none.
    const page = await store.listChanges({ ...scope, limit: 1, ...(options.after === undefined ? {} : { after: options.after }) })
    const readers = new Set<InboxReader>()
    const after = options.after ?? page.cursor
    let ended = false
    return {
      stream: {
        [Symbol.asyncIterator]: () => {
          const reader: InboxReader = new InboxReader((cursor) => store.listChanges({ ...scope, after: cursor, limit: pageSize }), after, this.#keepAlive, () => {
            readers.delete(reader)
            this.#remove(resourceId, reader)
          })
          if (ended) reader.close()
          else {
            readers.add(reader)
            this.#add(resourceId, reader)
          }
          return reader
        },
      },
      unsubscribe() {
        ended = true
        for (const reader of readers) reader.close()
      },
    }
  }

  ring(resourceIds: readonly string[]): void {
    for (const resourceId of resourceIds) for (const reader of this.#byResource.get(resourceId) ?? []) reader.ring()
  }

  ringAll(): void {
    this.ring([...this.#byResource.keys()])
  }

  close(): void {
    for (const readers of this.#byResource.values()) for (const reader of readers) reader.close()
  }

  #add(resourceId: string, reader: InboxReader): void {
    const readers = this.#byResource.get(resourceId)
    if (readers) readers.add(reader)
    else this.#byResource.set(resourceId, new Set([reader]))
  }

  #remove(resourceId: string, reader: InboxReader): void {
    const readers = this.#byResource.get(resourceId)
    readers?.delete(reader)
    if (readers?.size === 0) this.#byResource.delete(resourceId)
  }
}

type Look = (cursor: string) => Promise<InboxChanges>

/** A place in the changes of an inbox. Holds a page of them at most. */
class InboxReader implements AsyncIterableIterator<InboxChange> {
  readonly #look: Look
  readonly #onClose: () => void
  readonly #keepAlive: KeepAlive
  #cursor: string
  #page: InboxChange[] = []
  #rung = false
  #waiting: (() => void) | undefined
  #closed = false
  /** One `next()` after the other. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(look: Look, cursor: string, keepAlive: KeepAlive, onClose: () => void) {
    this.#look = look
    this.#keepAlive = keepAlive
    this.#cursor = cursor
    this.#onClose = onClose
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<InboxChange, undefined>> {
    const result = this.#turn.then(() => this.#next())
    this.#turn = result.catch(() => {})
    return result
  }

  return(): Promise<IteratorResult<InboxChange, undefined>> {
    this.close()
    return Promise.resolve({ done: true, value: undefined })
  }

  ring(): void {
    this.#rung = true
    this.#waiting?.()
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#page = []
    this.#waiting?.()
    this.#onClose()
  }

  /** A reader that fails is over: whoever reads goes on from its last cursor with another. */
  async #lookOrClose(): Promise<InboxChanges> {
    try {
      return await this.#look(this.#cursor)
    } catch (error) {
      this.close()
      throw error
    }
  }

  async #next(): Promise<IteratorResult<InboxChange, undefined>> {
    while (!this.#closed) {
      const change = this.#page.shift()
      if (change) return { done: false, value: change }
      this.#rung = false
      const { changes, cursor, more } = await this.#lookOrClose()
      this.#cursor = cursor
      if (this.#closed) break
      this.#page = changes
      if (changes.length > 0) continue
      // A long way without anything of theirs: others go on meanwhile.
      if (more) await new Promise((resolve) => setImmediate(resolve))
      // What rang during the look may have come after it.
      else if (!this.#rung) await this.#wait()
    }
    return { done: true, value: undefined }
  }

  async #wait(): Promise<void> {
    this.#keepAlive.begin()
    await new Promise<void>((resolve) => (this.#waiting = resolve))
    this.#waiting = undefined
    this.#keepAlive.end()
  }
}

const known = ['resourceId', 'threadId', 'after']

export function checkSubscribe(options: InboxSubscribeOptions): void {
  if (typeof options !== 'object' || options === null) throw wrong('resourceId', 'is missing')
  for (const key of Object.keys(options)) if (!known.includes(key)) throw wrong(key, `is not known. Known: ${known.join(', ')}`)
  if (typeof options.resourceId !== 'string' || options.resourceId === '') throw wrong('resourceId', 'is missing or no text')
  for (const field of ['threadId', 'after'] as const) {
    if (options[field] !== undefined && (typeof options[field] !== 'string' || options[field] === '')) throw wrong(field, 'must be a text')
  }
}

function wrong(field: string, why: string): HeedError {
  return new HeedError('invalid_argument', `Invalid subscription to an inbox: ${field} ${why}.`, { details: { field } })
}

/** As many in one turn of the event loop; the sweep of the others finds the rest. */
const most = 1_000

/** Tells of inboxes that changed, once for all that change in one turn of the event loop. */
export class ChangeBell {
  readonly #tell: (resourceIds: string[]) => void
  readonly #changed = new Set<string>()
  #immediate: NodeJS.Immediate | undefined

  constructor(tell: (resourceIds: string[]) => void) {
    this.#tell = tell
  }

  ring(resourceIds: readonly string[]): void {
    for (const resourceId of resourceIds) if (this.#changed.size < most) this.#changed.add(resourceId)
    this.#immediate ??= setImmediate(() => {
      this.#immediate = undefined
      const changed = [...this.#changed]
      this.#changed.clear()
      this.#tell(changed)
    })
  }

  close(): void {
    if (this.#immediate) clearImmediate(this.#immediate)
    this.#immediate = undefined
  }
}
