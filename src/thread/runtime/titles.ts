import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import { textOf } from '../../message/content.ts'
import { isUserAuthored } from '../../signals/conversions.ts'
import type { ThreadStore, WantedTitle } from '../../store/contract/threads.ts'
import type { Titler } from './runnable.ts'
import type { ThreadRuntime } from './runtime.ts'

/** For how long a mark is one process's, and how long a model may take: less, so that two never make the same title. */
const markMs = 60_000
const modelMs = 45_000
/** Titles that are made at once. The others wait in the store. */
const atOnce = 8
const maxAttempts = 3
const retryMs = 30_000
/** Among so many first rows, somebody has said something, or the title waits for the next run. */
const firstRows = 50

/** Until when the mark is this process's, and what to call when it is stored, or isn't. */
export interface TitlePlace {
  until: number
  release(): void
}

/** Makes titles for threads whose run is over. Nobody waits for them; what is not done here is done by whoever sweeps next. */
export class Titling {
  readonly #runtime: ThreadRuntime
  readonly #working = new Set<{ stop: AbortController; done: Promise<void> }>()
  #reserved = 0
  /** More may be due than were taken. */
  #more = false

  constructor(runtime: ThreadRuntime) {
    this.#runtime = runtime
  }

  /** Room for the title of a thread that is about to be marked. Without room, whoever has some takes the mark from the store. */
  reserve(): TitlePlace {
    const now = this.#runtime.clock.now()
    if (this.#room === 0) return { until: now, release: () => this.#next() }
    this.#reserved++
    return { until: now + markMs, release: () => void this.#reserved-- }
  }

  get #room(): number {
    return Math.max(0, atOnce - this.#working.size - this.#reserved)
  }

  /** Makes a title for a thread whose mark this process has. */
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

  /** Takes marks that are due, as many as there is room for. Answers how many. */
  async sweep(): Promise<number> {
    const { closing, clock, owner, store } = this.#runtime
    const limit = this.#room
    this.#more = limit === 0
    if (closing || limit === 0) return 0
    const now = clock.now()
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

  /** Something is due, or may be. */
  #next(): void {
    this.sweep().catch((error: unknown) => this.#failed('looking for titles failed', error))
  }

  /** Resolves when those that are being made now are done. */
  async settled(): Promise<void> {
    while (this.#working.size > 0) await Promise.all([...this.#working].map(({ done }) => done))
  }

  /** Stops; the marks go to the next process as this one resigns. */
  async close(): Promise<void> {
    for (const { stop } of this.#working) stop.abort(new HeedError('closed', 'This Heed was closed.'))
    await this.settled()
  }

  async #make({ threadId, agentId, attempts }: WantedTitle, given: Titler | undefined, stop: AbortController): Promise<void> {
    const { clock, store } = this.#runtime
    const late = clock.after(modelMs, () => stop.abort(new HeedError('aborted', `The model took more than ${modelMs / 1000} s.`)), { background: true })
    try {
      const words = await firstWords(store, threadId)
      const titler = given ?? (await this.#runtime.agent(agentId).titler?.())
      if (words === undefined || !titler) return await store.returnTitle(threadId, null)
      await store.patchThread({ threadId }, { title: await titler(words, stop.signal, threadId), onlyIfUntitled: true })
    } catch (error) {
      await this.#later({ threadId, agentId, attempts }, error)
    } finally {
      late.cancel()
    }
  }

  async #later({ threadId, attempts }: WantedTitle, error: unknown): Promise<void> {
    const { clock, closing, logger, store } = this.#runtime
    if (closing || (isHeedError(error) && error.code === 'thread_not_found')) return
    const last = attempts >= maxAttempts
    logger.warn(last ? 'a thread stays without a title' : 'a title failed and is tried again', { threadId, attempts, error: describe(error) })
    await store.returnTitle(threadId, last ? null : clock.now() + retryMs * attempts).catch((lost: unknown) => this.#failed('a title could not be given back', lost))
  }

  #failed(message: string, error: unknown): void {
    if (!this.#runtime.endedBy(error)) this.#runtime.logger.error(message, { error: describe(error) })
  }
}

/** What a user said first. */
async function firstWords(store: ThreadStore, threadId: string): Promise<string | undefined> {
  const { rows } = await store.listRows({ threadId }, { after: -1, limit: firstRows })
  return rows.filter((row) => isUserAuthored(row)).map(textOf).find((text) => text.trim() !== '')
}
