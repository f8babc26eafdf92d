import { HeedError, isHeedError } from '../../base/errors.ts'
import type { Chunk } from '../../message/chunk.ts'
import type { Scope } from '../../store/contract/threads.ts'
import { syncWithRunner } from '../cluster/sync.ts'
import { abortRun, type AbortOptions } from '../control/abort.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import type { LiveThread } from './live.ts'
import { formatCursor, parseCursor } from './retained-chunks.ts'
import { snapshotReader, type SnapshotReader, type ThreadSnapshot } from './snapshot.ts'

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

export interface SubscribeOptions {
  threadId: string
  resourceId?: string
  /** The cursor of the last chunk that was seen: exactly what came after it follows, or a snapshot that says so. */
  after?: string
  /** Begin with a snapshot, then the live edge. */
  snapshot?: boolean
}

/** Watches a thread, one that doesn't exist yet included. Without `after`: the active run from its start, else the live edge. */
export async function subscribe(runtime: ThreadRuntime, options: SubscribeOptions): Promise<AgentThreadSubscription> {
  const { threadId, resourceId, after } = options
  if (typeof threadId !== 'string' || threadId === '') throw new HeedError('invalid_argument', 'subscribeToThread needs a threadId.', { details: { field: 'threadId' } })
  const scope: Scope = { threadId, ...(resourceId === undefined ? {} : { resourceId }) }
  await runtime.open()
  if (after !== undefined) parseCursor(after)
  const live = runtime.hold(threadId)
  await runtime.peers.watch(live)
  try {
    const thread = await runtime.store.getThread(scope)
    if (thread) live.resourceId = thread.resourceId
    const told = thread ? await syncWithRunner(runtime, live, thread, after) : true
    const start: ReaderStart = told ? startOf(live, after, options.snapshot ?? false) : { position: live.end, snapshot: 'expired' }
    return subscription(runtime, scope, live, start, after ?? cursorOf(live, start))
  } catch (error) {
    runtime.peers.unwatch(threadId)
    runtime.letGo(threadId)
    throw error
  }
}

function startOf(live: LiveThread, after: string | undefined, snapshot: boolean): ReaderStart {
  if (after !== undefined) {
    const position = live.after(after)
    return position === undefined ? { position: live.end, snapshot: 'expired' } : { position }
  }
  if (snapshot) return { position: live.end, snapshot: 'requested' }
  const position = live.runStart
  return position === undefined ? { position: live.end, snapshot: 'expired' } : { position }
}

/** Where nothing is kept of the beginning, whoever comes back is told by a snapshot. */
function cursorOf(live: LiveThread, { position, snapshot }: ReaderStart): string | undefined {
  if (snapshot === 'requested') return undefined
  return snapshot ? formatCursor({ epoch: 0, index: 0 }) : live.cursorBefore(position)
}

function subscription(runtime: ThreadRuntime, scope: Scope, live: LiveThread, from: ReaderStart, cursor: string | undefined): AgentThreadSubscription {
  const readers = new Set<ThreadReader>()
  const start = { ...from, generation: live.generation, ...(scope.resourceId === undefined ? {} : { resourceId: scope.resourceId }) }
  let open = true
  return {
    stream: {
      [Symbol.asyncIterator]: () => {
        const reader: ThreadReader = new ThreadReader(live, start, snapshotReader(runtime, scope), () => readers.delete(reader))
        if (open) readers.add(reader)
        else reader.close()
        return reader
      },
    },
    cursor,
    activeRunId: () => (live.foreignTo(scope.resourceId) ? null : (live.runId ?? null)),
    abort: ({ clearPendingSignals = false } = {}) => abortThread(runtime, scope, { clearPendingSignals }),
    unsubscribe() {
      if (!open) return
      open = false
      for (const reader of readers) reader.close()
      live.notify()
      runtime.peers.unwatch(scope.threadId)
      runtime.letGo(scope.threadId)
    },
  }
}

/**
 * Aborts what is active on a thread. True when that is known here; otherwise it is looked for, and aborted all the same where it is found.
 * What begins later is left alone.
 * `abortRun` says what came of it.
 */
export function abortThread(runtime: ThreadRuntime, scope: Scope, options: AbortOptions): boolean {
  const { clearPendingSignals = false, expectedRunId } = options
  const live = runtime.liveOf(scope.threadId)
  if (live?.foreignTo(scope.resourceId)) throw forbidden(scope.threadId)
  const host = runtime.hostOf(scope.threadId)
  if (host?.expecting) {
    if (expectedRunId !== undefined && host.runId !== expectedRunId) return false
    return host.abort({ reason: new HeedError('aborted', 'The run was aborted.'), clearPending: clearPendingSignals, resourceId: scope.resourceId, runId: expectedRunId })
  }
  const known = live?.runId
  if (known !== undefined && expectedRunId !== undefined && expectedRunId !== known) return false
  const expected = expectedRunId ?? known
  abortRun(runtime, scope, { clearPendingSignals, ...(expected === undefined ? {} : { expectedRunId: expected }) }).catch((error: unknown) => {
    if (isHeedError(error) && (error.code === 'thread_forbidden' || error.code === 'closed')) return
    if (!runtime.closing) runtime.logger.error('a run could not be aborted', { threadId: scope.threadId, error: String(error) })
  })
  return known !== undefined
}

function forbidden(threadId: string): HeedError {
  return new HeedError('thread_forbidden', `Thread ${threadId} belongs to another resource. Use a thread of this resource, or another id.`, { details: { threadId } })
}
