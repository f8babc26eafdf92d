import { HeedError } from '../../base/errors.ts'
import type { Chunk } from '../../message/chunk.ts'
import type { Scope, ThreadRow } from '../../store/contract/threads.ts'
import { syncWithRunner } from '../cluster/sync.ts'
import { abortThread } from '../control/abort.ts'
import { endFormer } from '../runtime/ended-threads.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import type { LiveThread } from './live.ts'
import { echoedSignal, formatCursor, parseCursor } from './retained-chunks.ts'
import { snapshotReader, type SnapshotReader, type ThreadSnapshot } from './snapshot.ts'

export type { ThreadSnapshot } from './snapshot.ts'

/** The chunks of a thread, its active run, and a way to abort it. */
export interface AgentThreadSubscription {
  /** Chunks in their order. Ends with `unsubscribe()` and when its Heed is closed; until then a pending read keeps the process alive. */
  readonly stream: AsyncIterable<Chunk>
  /**
   * Where the subscription begins: a later subscription with it as `after` gets all chunks since. Undefined where it begins with a
   * requested snapshot.
   */
  readonly cursor: string | undefined
  activeRunId(): string | null
  /** Aborts the active run. False when there is none. */
  abort(options?: { clearPendingSignals?: boolean }): boolean
  /** Ends the subscription; the run continues. */
  unsubscribe(): void
}

interface ReaderStart {
  position: number
  snapshot?: ThreadSnapshot['reason']
}

/** One reader of a thread: a position in the live stream. A reader that falls behind starts over from a snapshot. */
export class ThreadReader implements AsyncIterator<Chunk> {
  readonly #live: LiveThread
  readonly #resourceId: string | undefined
  readonly #readSnapshot: SnapshotReader
  readonly #onClose: () => void
  #position: number
  #generation: number
  /** The first epoch of the thread that was read so far. */
  #life: number
  #snapshotDue: ThreadSnapshot['reason'] | undefined
  #starting: Promise<IteratorResult<Chunk>> | undefined
  /** The chunks of the snapshot's present step that were not read yet. */
  #replay: Chunk[] = []
  /** The signals of the snapshot: their echoes are omitted. */
  #snapshotSignals: ReadonlySet<string> | undefined
  /** Chunks beside the stream that were not read yet. */
  readonly #beside: Chunk[] = []
  #closed = false
  /** No snapshot or other check is due: the next chunk is a live one. */
  #readsLiveOnly = false

  constructor(
    live: LiveThread, start: ReaderStart & { generation: number; life: number; resourceId?: string }, readSnapshot: SnapshotReader,
    onClose: () => void,
  ) {
    this.#live = live
    this.#resourceId = start.resourceId
    this.#position = start.position
    this.#generation = start.generation
    this.#life = start.life
    this.#snapshotDue = start.snapshot
    this.#readSnapshot = readSnapshot
    this.#onClose = onClose
  }

  next(): Promise<IteratorResult<Chunk>> {
    // The frequent case: the next chunk is a live one and present.
    const ready = this.#readsLiveOnly ? this.#live.ready(this.#position, this.#generation) : undefined
    if (!ready) return this.#nextDue()
    this.#position++
    return ready.promise
  }

  /** The next chunk, after the checks and the snapshot that come before it. */
  #nextDue(): Promise<IteratorResult<Chunk>> {
    for (;;) {
      if (this.#closed) return Promise.resolve(finished)
      if (this.#live.belongsToOther(this.#resourceId)) return this.#rejectForeign()
      if (this.#starting) return this.#starting.then(() => this.next())
      const synced = this.#replay.shift()
      if (synced) return Promise.resolve({ done: false, value: synced })
      if (this.#generation !== this.#live.generation) this.#snapshotDue = this.#live.startOverReason
      else if (this.#position < this.#live.first) this.#snapshotDue ??= 'behind'
      if (this.#snapshotDue && !this.#live.closed) {
        this.#readsLiveOnly = false
        this.#starting = this.#startOver(this.#snapshotDue).finally(() => (this.#starting = undefined))
        return this.#starting
      }
      const beside = this.#beside.shift()
      if (beside) return Promise.resolve({ done: false, value: beside })
      const value = this.#live.at(this.#position)
      this.#readsLiveOnly = this.#snapshotSignals === undefined && this.#live.belongsTo(this.#resourceId)
      if (!value) return this.#live.closed ? this.return() : this.#live.next().then(this.#onNotify)
      this.#position++
      if (!this.#isInSnapshot(value)) return Promise.resolve({ done: false, value })
    }
  }

  /** Returns the chunk itself where possible: a promise for it would cost two more microtasks. */
  readonly #onNotify = (): IteratorResult<Chunk> | Promise<IteratorResult<Chunk>> => {
    const ready = this.#readsLiveOnly ? this.#live.ready(this.#position, this.#generation) : undefined
    if (!ready) return this.#nextDue()
    this.#position++
    return ready.result
  }

  /** Is read next, with or without a live chunk. The oldest ones are dropped where the reader falls behind. */
  interpose(chunk: Chunk): void {
    if (this.#beside.push(chunk) > besideLimit) this.#beside.shift()
    this.#readsLiveOnly = false
    this.#live.notify()
  }

  return(): Promise<IteratorResult<Chunk>> {
    this.close()
    // Wakes a read that is waiting, so that it ends.
    this.#live.notify()
    return Promise.resolve(finished)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#readsLiveOnly = false
    this.#replay = []
    this.#onClose()
  }

  async #startOver(reason: ThreadSnapshot['reason']): Promise<IteratorResult<Chunk>> {
    const read = await this.#readSnapshot(this.#live, reason, { seen: this.#position, life: this.#life }).catch((error: unknown) => {
      // The reader or its Heed was closed meanwhile: the stream ends without an error.
      if (!this.#closed && !this.#live.closed) throw error
      return undefined
    })
    if (!read) return this.return()
    const { snapshot, cursor, position, generation, step, life, signals } = read
    this.#generation = generation
    this.#life = life
    this.#snapshotDue = undefined
    this.#position = position
    this.#replay = step
    this.#snapshotSignals = signals
    if (this.#closed) return finished
    return { done: false, value: { type: 'data-thread-snapshot', runId: snapshot.runId ?? '', data: snapshot, cursor } }
  }

  #isInSnapshot(chunk: Chunk): boolean {
    const signal = this.#snapshotSignals && echoedSignal(chunk)
    return signal !== undefined && this.#snapshotSignals?.has(signal) === true
  }

  /** The thread did not exist when the subscription began, and another resource created it. */
  #rejectForeign(): Promise<IteratorResult<Chunk>> {
    this.close()
    return Promise.reject(
      new HeedError(
        'thread_forbidden',
        `Thread ${this.#live.threadId} belongs to another resource. Use a thread of this resource, or another id.`,
        {
          details: { threadId: this.#live.threadId },
        },
      ),
    )
  }
}

const finished: IteratorResult<Chunk> = { done: true, value: undefined }

/** How many chunks beside the stream a reader may have unread. */
const besideLimit = 1_000

/** Which thread is subscribed to, and from where. */
export interface SubscribeOptions {
  threadId: string
  resourceId?: string
  /** The cursor of the last chunk that was read: the chunks after it follow, or a snapshot where they are not retained. */
  after?: string
  /** Begin with a snapshot, then the live edge. With `after`, the chunks after it come instead, if they are retained. */
  snapshot?: boolean
  /** Also receive what happens to the watches of the thread, as `data-watch` chunks, which have no cursor and are not repeated. */
  watches?: boolean
}

/** Subscribes to a thread, which need not exist yet. Without `after`: the active run from its start, else the live edge. */
export async function subscribe(runtime: ThreadRuntime, options: SubscribeOptions): Promise<AgentThreadSubscription> {
  const { threadId, resourceId, after } = options
  if (typeof threadId !== 'string' || threadId === '')
    throw new HeedError('invalid_argument', 'subscribeToThread needs a threadId.', { details: { field: 'threadId' } })
  const scope: Scope = { threadId, ...(resourceId === undefined ? {} : { resourceId }) }
  await runtime.open()
  if (after !== undefined) parseCursor(after)
  const live = runtime.acquireLive(threadId)
  await runtime.peers.watch(live)
  try {
    const thread = await presentThread(runtime, scope, live)
    if (thread) live.resourceId = thread.resourceId
    const synced = thread ? await syncWithRunner(runtime, live, thread, after) : true
    const start: ReaderStart = synced
      ? readerStart(live, after, options.snapshot ?? false)
      : { position: live.end, snapshot: lostReason(live, after) }
    return subscription(runtime, scope, live, start, { cursor: after ?? startCursor(live, start), watches: options.watches === true })
  } catch (error) {
    runtime.peers.unwatch(threadId)
    runtime.releaseLive(threadId)
    throw error
  }
}

/**
 * The thread in the store. What this process has of an earlier one with its id is dropped: no message may have announced its end, and
 * a process that does not know it either may have answered.
 */
async function presentThread(runtime: ThreadRuntime, scope: Scope, live: LiveThread): Promise<ThreadRow | null> {
  for (;;) {
    const thread = await runtime.store.getThread(scope)
    const life = await runtime.store.lifeOf(scope.threadId)
    // It was replaced between the reads.
    if (thread && thread.epoch < life) continue
    endFormer(runtime, live, life)
    if (!thread) live.beginLife(life)
    return thread
  }
}

function readerStart(live: LiveThread, after: string | undefined, snapshot: boolean): ReaderStart {
  if (after !== undefined) {
    const position = live.after(after)
    return position === undefined ? { position: live.end, snapshot: lostReason(live, after) } : { position }
  }
  if (snapshot) return { position: live.end, snapshot: 'requested' }
  const position = live.runStart
  return position === undefined ? { position: live.end, snapshot: 'expired' } : { position }
}

/** Why a subscriber cannot continue from its cursor. */
function lostReason(live: LiveThread, after: string | undefined): 'expired' | 'replaced' {
  const epoch = after === undefined ? 0 : parseCursor(after).epoch
  return epoch > 0 && epoch < live.life ? 'replaced' : 'expired'
}

/** Where the start is not retained, a subscriber that returns with the cursor gets a snapshot. */
function startCursor(live: LiveThread, { position, snapshot }: ReaderStart): string | undefined {
  if (snapshot === 'requested') return undefined
  return snapshot ? formatCursor({ epoch: 0, index: 0 }) : live.cursorBefore(position)
}

function subscription(
  runtime: ThreadRuntime, scope: Scope, live: LiveThread, from: ReaderStart,
  { cursor, watches }: { cursor: string | undefined; watches: boolean },
): AgentThreadSubscription {
  const readers = new Set<ThreadReader>()
  // A reader that is made later begins with what was emitted since the subscription.
  const emitted: Chunk[] = []
  const stopListening = watches ? runtime.sideChunks.listen(scope.threadId, (chunk, resourceId) => {
    if (scope.resourceId !== undefined && scope.resourceId !== resourceId) return
    if (emitted.push(chunk) > besideLimit) emitted.shift()
    for (const reader of readers) reader.interpose(chunk)
  }) : undefined
  const { generation, life } = live
  const start = { ...from, generation, life, ...(scope.resourceId === undefined ? {} : { resourceId: scope.resourceId }) }
  let open = true
  return {
    stream: {
      [Symbol.asyncIterator]: () => {
        const reader: ThreadReader = new ThreadReader(live, start, snapshotReader(runtime, scope), () => readers.delete(reader))
        for (const chunk of emitted) reader.interpose(chunk)
        if (open) readers.add(reader)
        else reader.close()
        return reader
      },
    },
    cursor,
    activeRunId: () => (live.belongsToOther(scope.resourceId) ? null : (live.runId ?? null)),
    abort: ({ clearPendingSignals = false } = {}) => abortThread(runtime, scope, { clearPendingSignals }),
    unsubscribe() {
      if (!open) return
      open = false
      stopListening?.()
      for (const reader of readers) reader.close()
      live.notify()
      runtime.peers.unwatch(scope.threadId)
      runtime.releaseLive(scope.threadId)
    },
  }
}
