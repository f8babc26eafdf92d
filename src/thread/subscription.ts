import type { Message } from '../message/message.ts'
import type { Chunk } from '../run/chunk.ts'
import type { SuspendedCall } from '../store/contract.ts'
import type { ThreadStatus } from './machine.ts'
import type { LiveThread } from './live.ts'

/** What is needed to go on from here without what came before. In the stream as a `data-thread-snapshot` chunk. */
export interface ThreadSnapshot {
  threadId: string
  status: ThreadStatus
  runId: string | null
  /** The newest messages, oldest first. What the present step said so far follows as chunks. */
  messages: Message[]
  /** Calls that wait for a decision. */
  suspended: SuspendedCall[]
  /** `requested`: asked for. `behind`: the watcher was too slow. `expired`: the cursor is older than what is kept. */
  reason: 'requested' | 'behind' | 'expired'
}

export interface AgentThreadSubscription {
  /** Chunks in the order in which they happen. Ends with `unsubscribe()`. */
  readonly stream: AsyncIterable<Chunk>
  activeRunId(): string | null
  /** Aborts the active run. False when there is none. */
  abort(options?: { clearPendingSignals?: boolean }): boolean
  /** Stops watching; the run goes on. */
  unsubscribe(): void
}

export type SnapshotReader = (live: LiveThread, reason: ThreadSnapshot['reason']) => Promise<{ snapshot: ThreadSnapshot; cursor: string; position: number; step: Chunk[] }>

/** One reader of a thread: an index into what is live, and a way to start over when it falls behind. */
export class ThreadReader implements AsyncIterator<Chunk> {
  readonly #live: LiveThread
  readonly #readSnapshot: SnapshotReader
  #position: number
  #due: ThreadSnapshot['reason'] | undefined
  /** A snapshot that was read and is being told. */
  #told: Chunk[] = []
  #closed = false
  readonly #onClose: () => void

  constructor(live: LiveThread, start: { position: number; snapshot?: ThreadSnapshot['reason'] }, readSnapshot: SnapshotReader, onClose: () => void) {
    this.#live = live
    this.#position = start.position
    this.#due = start.snapshot
    this.#readSnapshot = readSnapshot
    this.#onClose = onClose
  }

  next(): Promise<IteratorResult<Chunk>> {
    if (this.#closed) return Promise.resolve(finished)
    const told = this.#told.shift()
    if (told) return Promise.resolve({ done: false, value: told })
    if (this.#position < this.#live.first) this.#due ??= 'behind'
    if (this.#due) return this.#startOver(this.#due)
    const value = this.#live.at(this.#position)
    if (value) {
      this.#position++
      return Promise.resolve({ done: false, value })
    }
    return this.#live.news().then(() => this.next())
  }

  return(): Promise<IteratorResult<Chunk>> {
    this.close()
    return Promise.resolve(finished)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#told = []
    this.#onClose()
  }

  async #startOver(reason: ThreadSnapshot['reason']): Promise<IteratorResult<Chunk>> {
    const { snapshot, cursor, position, step } = await this.#readSnapshot(this.#live, reason)
    this.#due = undefined
    this.#position = position
    this.#told = step
    if (this.#closed) return finished
    return { done: false, value: { type: 'data-thread-snapshot', runId: snapshot.runId ?? '', data: snapshot, cursor } }
  }
}

const finished: IteratorResult<Chunk> = { done: true, value: undefined }
