import { HeedError } from '../../base/errors.ts'
import type { Chunk } from '../../message/chunk.ts'
import type { LiveThread } from './live.ts'
import type { SnapshotReader, ThreadSnapshot } from './snapshot.ts'

export type { ThreadSnapshot } from './snapshot.ts'

export interface AgentThreadSubscription {
  /** Chunks in the order in which they happen. Ends with `unsubscribe()`, and when its Heed is closed; until then the process stays while it is read. */
  readonly stream: AsyncIterable<Chunk>
  /** The place where it begins: who comes back with it as `after` gets all that was said since. None where it begins with a snapshot that was asked for. */
  readonly cursor: string | undefined
  activeRunId(): string | null
  /** Aborts the active run. False when there is none. */
  abort(options?: { clearPendingSignals?: boolean }): boolean
  /** Stops watching; the run goes on. */
  unsubscribe(): void
}

export interface ReaderStart {
  position: number
  snapshot?: ThreadSnapshot['reason']
}

/** One reader of a thread: an index into what is live, and a way to start over when it falls behind. */
export class ThreadReader implements AsyncIterator<Chunk> {
  readonly #live: LiveThread
  readonly #resourceId: string | undefined
  readonly #readSnapshot: SnapshotReader
  readonly #onClose: () => void
  #position: number
  #generation: number
  #due: ThreadSnapshot['reason'] | undefined
  #starting: Promise<IteratorResult<Chunk>> | undefined
  /** The rest of a snapshot that is being told. */
  #told: Chunk[] = []
  /** Signals that the snapshot had: their echo is no news. */
  #known: ReadonlySet<string> | undefined
  #closed = false
  /** Nothing is due but the chunks themselves. */
  #calm = false

  constructor(live: LiveThread, start: ReaderStart & { generation: number; resourceId?: string }, readSnapshot: SnapshotReader, onClose: () => void) {
    this.#live = live
    this.#resourceId = start.resourceId
    this.#position = start.position
    this.#generation = start.generation
    this.#due = start.snapshot
    this.#readSnapshot = readSnapshot
    this.#onClose = onClose
  }

  next(): Promise<IteratorResult<Chunk>> {
    // By far the most calls find nothing in the way and a chunk that is there.
    const ready = this.#calm ? this.#live.ready(this.#position, this.#generation) : undefined
    if (!ready) return this.#look()
    this.#position++
    return ready.promise
  }

  /** The next chunk, after everything that may come before it. */
  #look(): Promise<IteratorResult<Chunk>> {
    for (;;) {
      if (this.#closed) return Promise.resolve(finished)
      if (this.#live.foreignTo(this.#resourceId)) return this.#refuse()
      if (this.#starting) return this.#starting.then(() => this.next())
      const told = this.#told.shift()
      if (told) return Promise.resolve({ done: false, value: told })
      if (this.#generation !== this.#live.generation) this.#due = 'resumed'
      else if (this.#position < this.#live.first) this.#due ??= 'behind'
      if (this.#due && !this.#live.closed) {
        this.#calm = false
        this.#starting = this.#startOver(this.#due).finally(() => (this.#starting = undefined))
        return this.#starting
      }
      const value = this.#live.at(this.#position)
      this.#calm = this.#known === undefined && this.#live.isOf(this.#resourceId)
      if (!value) return this.#live.closed ? this.return() : this.#live.next().then(this.#woken)
      this.#position++
      if (!this.#isKnown(value)) return Promise.resolve({ done: false, value })
    }
  }

  /** After the news: the chunk itself where nothing is in the way, because a promise for it would take two more turns. */
  readonly #woken = (): IteratorResult<Chunk> | Promise<IteratorResult<Chunk>> => {
    const ready = this.#calm ? this.#live.ready(this.#position, this.#generation) : undefined
    if (!ready) return this.#look()
    this.#position++
    return ready.result
  }

  return(): Promise<IteratorResult<Chunk>> {
    this.close()
    // A reader that still waits for the next chunk hears that it is over.
    this.#live.notify()
    return Promise.resolve(finished)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#calm = false
    this.#told = []
    this.#onClose()
  }

  async #startOver(reason: ThreadSnapshot['reason']): Promise<IteratorResult<Chunk>> {
    const generation = this.#live.generation
    const read = await this.#readSnapshot(this.#live, reason, this.#position).catch((error: unknown) => {
      // Nobody reads any more, or its Heed was closed meanwhile: that is an end, and no failure.
      if (!this.#closed && !this.#live.closed) throw error
      return undefined
    })
    if (!read) return this.return()
    const { snapshot, cursor, position, step } = read
    this.#generation = generation
    this.#due = undefined
    this.#position = position
    this.#told = step
    this.#known = new Set(snapshot.messages.flatMap(({ id, role }) => (role === 'signal' ? [id] : [])))
    if (this.#closed) return finished
    return { done: false, value: { type: 'data-thread-snapshot', runId: snapshot.runId ?? '', data: snapshot, cursor } }
  }

  #isKnown(chunk: Chunk): boolean {
    if (!this.#known || (chunk.type !== 'data-user-message' && chunk.type !== 'data-signal') || !('data' in chunk)) return false
    return this.#known.has((chunk.data as { id: string }).id)
  }

  /** The thread did not exist when this began, and came to belong to somebody else. */
  #refuse(): Promise<IteratorResult<Chunk>> {
    this.close()
    return Promise.reject(new HeedError('thread_forbidden', `Thread ${this.#live.threadId} belongs to another resource. Use a thread of this resource, or another id.`, {
      details: { threadId: this.#live.threadId },
    }))
  }
}

const finished: IteratorResult<Chunk> = { done: true, value: undefined }
