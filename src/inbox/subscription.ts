import { HeedError } from '../base/errors.ts'
import type { KeepAlive } from '../base/promises.ts'
import type { InboxChange, InboxChanges, NotificationStore } from '../store/contract/notifications.ts'

/** The inbox of a resource, or of one of its threads. */
export interface InboxSubscribeOptions {
  resourceId: string
  threadId?: string
  /** The cursor of the last change that was read: later changes follow. By default, changes from now on. */
  after?: string
}

/**
 * The changes of an inbox. Each is a record in its present state: a record that changed several times before it was read comes once. Only a
 * cursor is kept for a reader, so that a slow one costs nothing.
 */
export interface InboxSubscription {
  stream: AsyncIterable<InboxChange>
  /** Ends the stream. */
  unsubscribe(): void
}

const pageSize = 100

/** The readers of inboxes in this process. They wait, and are notified of possible changes. */
export class InboxWatchers {
  readonly #byResource = new Map<string, Set<InboxReader>>()
  readonly #keepAlive: KeepAlive

  /** `keepAlive` is held while a reader waits. */
  constructor(keepAlive: KeepAlive) {
    this.#keepAlive = keepAlive
  }

  /** Stays open until its reader or this object closes it. */
  async open(store: NotificationStore, options: InboxSubscribeOptions): Promise<InboxSubscription> {
    const { resourceId, threadId } = options
    const scope = { resourceId, ...(threadId === undefined ? {} : { threadId }) }
    // Rejects an invalid cursor.
    const page = await store.listChanges({ ...scope, limit: 1, ...(options.after === undefined ? {} : { after: options.after }) })
    const readers = new Set<InboxReader>()
    const after = options.after ?? page.cursor
    let ended = false
    return {
      stream: {
        [Symbol.asyncIterator]: () => {
          const reader: InboxReader = new InboxReader(
            (cursor) => store.listChanges({ ...scope, after: cursor, limit: pageSize }),
            after,
            this.#keepAlive,
            () => {
              readers.delete(reader)
              this.#remove(resourceId, reader)
            },
          )
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

  notify(resourceIds: readonly string[]): void {
    for (const resourceId of resourceIds) for (const reader of this.#byResource.get(resourceId) ?? []) reader.notify()
  }

  notifyAll(): void {
    this.notify([...this.#byResource.keys()])
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

type ReadChanges = (cursor: string) => Promise<InboxChanges>

/** A position in the changes of an inbox. Holds one page of them at most. */
class InboxReader implements AsyncIterableIterator<InboxChange> {
  readonly #read: ReadChanges
  readonly #onClose: () => void
  readonly #keepAlive: KeepAlive
  #cursor: string
  #page: InboxChange[] = []
  #notified = false
  #waiting: (() => void) | undefined
  #closed = false
  /** Calls of `next()` run one after the other. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(read: ReadChanges, cursor: string, keepAlive: KeepAlive, onClose: () => void) {
    this.#read = read
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

  notify(): void {
    this.#notified = true
    this.#waiting?.()
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#page = []
    this.#waiting?.()
    this.#onClose()
  }

  /** A reader that fails is closed; its caller continues from the last cursor with another. */
  async #readOrClose(): Promise<InboxChanges> {
    try {
      return await this.#read(this.#cursor)
    } catch (error) {
      this.close()
      throw error
    }
  }

  async #next(): Promise<IteratorResult<InboxChange, undefined>> {
    while (!this.#closed) {
      const change = this.#page.shift()
      if (change) return { done: false, value: change }
      this.#notified = false
      const { changes, cursor, more } = await this.#readOrClose()
      this.#cursor = cursor
      if (this.#closed) break
      this.#page = changes
      if (changes.length > 0) continue
      // A long range without changes of this inbox: yield to other work.
      if (more) await new Promise((resolve) => setImmediate(resolve))
      // A notification during the read may concern a change after it.
      else if (!this.#notified) await this.#wait()
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
  if (typeof options !== 'object' || options === null) throw invalidSubscription('resourceId', 'is missing')
  for (const key of Object.keys(options))
    if (!known.includes(key)) throw invalidSubscription(key, `is not known. Known: ${known.join(', ')}`)
  if (typeof options.resourceId !== 'string' || options.resourceId === '')
    throw invalidSubscription('resourceId', 'is missing or not a string')
  for (const field of ['threadId', 'after'] as const) {
    if (options[field] !== undefined && (typeof options[field] !== 'string' || options[field] === ''))
      throw invalidSubscription(field, 'must be a non-empty string')
  }
}

function invalidSubscription(field: string, why: string): HeedError {
  return new HeedError('invalid_argument', `Invalid subscription to an inbox: ${field} ${why}.`, { details: { field } })
}

/** How many resources are announced per turn of the event loop; the sweeps of peers find the others. */
const maxResources = 1_000

/** Announces changed inboxes to peers, once per turn of the event loop. */
export class ChangeAnnouncer {
  readonly #send: (resourceIds: string[]) => void
  readonly #changed = new Set<string>()
  #immediate: NodeJS.Immediate | undefined

  constructor(send: (resourceIds: string[]) => void) {
    this.#send = send
  }

  announce(resourceIds: readonly string[]): void {
    for (const resourceId of resourceIds) if (this.#changed.size < maxResources) this.#changed.add(resourceId)
    this.#immediate ??= setImmediate(() => {
      this.#immediate = undefined
      const changed = [...this.#changed]
      this.#changed.clear()
      this.#send(changed)
    })
  }

  close(): void {
    if (this.#immediate) clearImmediate(this.#immediate)
    this.#immediate = undefined
  }
}
