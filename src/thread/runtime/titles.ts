import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import { RecentMap } from '../../base/recent-map.ts'
import { textOf } from '../../message/content.ts'
import { isUserAuthored } from '../../signals/conversions.ts'
import type { ThreadStore, WantedTitle } from '../../store/contract/threads.ts'
import type { Titler } from './runnable.ts'
import type { ThreadRuntime } from './runtime.ts'

/**
 * How long the mark of a thread belongs to one process, and how long a model may take. The second is less, so that two processes never
 * write the same title.
 */
const markMs = 60_000
const modelMs = 45_000
/** The number of concurrent titles. Further marks stay in the store. */
const maxConcurrent = 8
const maxAttempts = 3
const retryMs = 30_000
/** The number of threads that wait for a title, whose run's own titler is kept. */
const maxKept = 1_000
/** The title is made of the first text of a user among so many rows; without one, it is due after the next run. */
const firstRows = 50

/** Until when the mark belongs to this process, and what to call when the commit that stores the mark has ended. */
interface TitleSlot {
  until: number
  release(): void
}

/** Writes titles of threads whose run has ended. No caller waits for them; marks that this process leaves are claimed by the next sweep. */
export class Titles {
  readonly #runtime: ThreadRuntime
  readonly #working = new Set<{ stop: AbortController; done: Promise<void> }>()
  /** The titlers of runs whose title waits or is tried again, by thread: a call's own options of titles hold then too. */
  readonly #kept = new RecentMap<Titler>(maxKept)
  #reserved = 0
  /** There may be more marks than were claimed. */
  #more = false

  constructor(runtime: ThreadRuntime) {
    this.#runtime = runtime
  }

  /** Reserves capacity for a thread that is about to be marked. Without capacity, the mark is stored as due for any process. */
  reserve(threadId: string, titler: Titler): TitleSlot {
    const now = this.#runtime.lease.storeTime
    if (this.#room === 0) {
      this.#kept.set(threadId, titler)
      return { until: now, release: () => this.#next() }
    }
    this.#reserved++
    return { until: now + markMs, release: () => void this.#reserved-- }
  }

  get #room(): number {
    return Math.max(0, maxConcurrent - this.#working.size - this.#reserved)
  }

  /** Writes the title of a thread whose mark this process has. */
  start(wanted: WantedTitle, titler?: Titler): void {
    if (this.#runtime.closing) return
    const stop = new AbortController()
    const work = { stop, done: Promise.resolve() }
    work.done = this.#make(wanted, titler, stop).finally(() => {
      this.#working.delete(work)
      if (this.#more) this.#next()
    })
    this.#working.add(work)
  }

  /** Claims marks that are due, as many as there is capacity for. Returns how many. */
  async sweep(): Promise<number> {
    const { closing, lease, owner, store } = this.#runtime
    const limit = this.#room
    this.#more = limit === 0
    if (closing || limit === 0) return 0
    const now = lease.storeTime
    this.#reserved += limit
    try {
      const taken = await store.claimTitles({ owner, now, until: now + markMs, limit, agentIds: this.#runtime.agentIds() })
      if (taken.length === limit) this.#more = true
      for (const wanted of taken) this.start(wanted)
      return taken.length
    } finally {
      this.#reserved -= limit
    }
  }

  #next(): void {
    this.sweep().catch((error: unknown) => this.#failed('the sweep for titles failed', error))
  }

  /** Resolves when the titles in progress are written. */
  async whenIdle(): Promise<void> {
    while (this.#working.size > 0) await Promise.all([...this.#working].map(({ done }) => done))
  }

  /** Stops. The marks go to the next process when this one resigns. */
  async close(): Promise<void> {
    for (const { stop } of this.#working) stop.abort(new HeedError('closed', 'This Heed was closed.'))
    await this.whenIdle()
  }

  async #make({ threadId, agentId, attempts }: WantedTitle, given: Titler | undefined, stop: AbortController): Promise<void> {
    const { clock, store } = this.#runtime
    const late = clock.after(modelMs, () => stop.abort(new HeedError('aborted', `The model took more than ${modelMs / 1000} s.`)), {
      background: true,
    })
    try {
      const text = await firstUserText(store, threadId)
      const titler = given ?? this.#kept.get(threadId) ?? (await this.#runtime.agent(agentId).titler?.())
      if (text === undefined || !titler) return await store.returnTitle(threadId, null)
      await store.patchThread({ threadId }, { title: await titler(text, stop.signal, threadId), onlyIfUntitled: true })
      this.#kept.delete(threadId)
    } catch (error) {
      if (given) this.#kept.set(threadId, given)
      await this.#retryLater({ threadId, agentId, attempts }, error)
    } finally {
      late.cancel()
    }
  }

  async #retryLater({ threadId, attempts }: WantedTitle, error: unknown): Promise<void> {
    const { closing, lease, logger, store } = this.#runtime
    if (closing || (isHeedError(error) && error.code === 'thread_not_found')) return
    const last = attempts >= maxAttempts
    logger.warn(last ? 'the title of a thread failed; it stays without one' : 'the title of a thread failed and is retried', {
      threadId, attempts, error: describe(error),
    })
    await store
      .returnTitle(threadId, last ? null : lease.storeTime + retryMs * attempts)
      .catch((lost: unknown) => this.#failed('the mark for a title could not be returned', lost))
  }

  #failed(message: string, error: unknown): void {
    if (!this.#runtime.isClosedBy(error)) this.#runtime.logger.error(message, { error: describe(error) })
  }
}

/** The first text of a user. */
async function firstUserText(store: ThreadStore, threadId: string): Promise<string | undefined> {
  const { rows } = await store.listRows({ threadId }, { after: -1, limit: firstRows })
  return rows.filter((row) => isUserAuthored(row)).map(textOf).find((text) => text.trim() !== '')
}
