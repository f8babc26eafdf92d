import { HeedError, describe } from '../../base/errors.ts'
import { untilAborted } from '../../base/promises.ts'
import { Slots, type Release } from '../../base/slots.ts'
import { activeCall } from '../../run/tools/active-call.ts'
import { threadsAbove } from '../../store/contract/thread-row.ts'
import type { Send } from '../../store/contract/threads.ts'
import { callerQuota } from '../../store/contract/usage.ts'
import { unlessAborted } from '../send/turns.ts'
import type { ThreadRuntime } from './runtime.ts'

/** How many runs a process has at most. */
export interface RunLimits {
  /**
   * The runs that are active at the same time. Further threads wait in the storage, where another process may run them; those of different
   * resources take turns. Runs for which another run waits, such as those of called agents, are not counted. Defaults to 2,000.
   */
  runs?: number
  /** The threads that wait for a run, beyond which the server answers with 429. Defaults to 10,000. */
  waitingRuns?: number
}

const defaultLimits = { runs: 2_000, waitingRuns: 10_000 } as const

/** The slots of all runs of a process, whichever storage their threads are in. */
export class RunSlotPool {
  readonly slots: Slots
  readonly waitingRuns: number

  constructor({ runs = defaultLimits.runs, waitingRuns = defaultLimits.waitingRuns }: RunLimits = {}) {
    this.slots = new Slots(runs)
    this.waitingRuns = waitingRuns
  }
}

/** Whether a send may claim its thread, and the slot that was taken for that. */
export interface SendClaim {
  mayClaim: boolean
  slot?: Release
}

/** How long a caller that is refused should wait. */
const retryAfterMs = 5_000

/**
 * Gives the runs of a runtime their slots. A thread that gets none is not claimed: its signals stay in the store, and it is claimed when a
 * slot is free, here or in another process.
 */
export class RunSlots {
  readonly #runtime: ThreadRuntime
  readonly #pool: RunSlotPool
  /** The waits of this runtime, by thread. */
  readonly #waiting = new Map<string, { stop(): void }>()

  constructor(runtime: ThreadRuntime, pool: RunSlotPool) {
    this.#runtime = runtime
    this.#pool = pool
  }

  /** For a send to a thread that has no run here. */
  forSend({ threadId, boundTo }: Send): SendClaim {
    if (this.#runtime.draining) return { mayClaim: false }
    const slot = this.take(threadId, boundTo !== undefined && activeCall() !== undefined)
    return slot ? { mayClaim: true, slot } : { mayClaim: false }
  }

  /** A slot for a run of this thread, if one is free. A run for which another run waits needs none: that one would wait for ever. */
  take(threadId: string, isAwaitedByRun = false): Release | undefined {
    if (isAwaitedByRun || threadsAbove(threadId).length > 0) return noSlot
    return this.#pool.slots.take('')
  }

  /**
   * Claims a thread with a slot for its run: the one that is `given`, or a free one. Without a free slot the thread is claimed later. A
   * thread that this process had before, or has a host of, waits for its slot when it is claimed. Returns whether it was claimed.
   */
  async claiming(
    threadId: string, given: Release | undefined, isOurs: boolean, claim: (slot: Release | undefined) => Promise<boolean>,
  ): Promise<boolean> {
    const mayWait = isOurs || this.#runtime.hostOf(threadId) !== undefined
    const slot = given ?? (mayWait ? undefined : this.take(threadId))
    if (!slot && !mayWait) {
      await this.#claimUnknownLater(threadId)
      return false
    }
    let isRunning = false
    try {
      return (isRunning = await claim(slot))
    } finally {
      if (!isRunning) slot?.()
    }
  }

  async #claimUnknownLater(threadId: string): Promise<void> {
    if (this.#runtime.draining || this.#waiting.has(threadId)) return
    const thread = await this.#runtime.store.getThread({ threadId })
    if (thread) this.claimLater(threadId, thread.resourceId)
  }

  /** Claims the thread as soon as a slot is free. */
  claimLater(threadId: string, resourceId: string): void {
    if (this.#runtime.draining || this.#waiting.has(threadId)) return
    // Beyond the limit the sweep finds it.
    if (this.#pool.slots.waiting >= this.#pool.waitingRuns) return
    this.#wait(threadId, resourceId, (slot) => {
      this.#runtime.wake(threadId, undefined, slot).catch((error: unknown) => {
        if (!this.#runtime.isClosedBy(error))
          this.#runtime.logger.error('a thread that waited for a slot could not be claimed', { threadId, error: describe(error) })
      })
    }, () => {})
  }

  /** Resolves with a slot when it is the turn of the thread; at once with none where the runtime stops. */
  enter(threadId: string, resourceId: string): Promise<Release> {
    if (this.#runtime.draining) return Promise.resolve(noSlot)
    return new Promise((resolve) => this.#wait(threadId, resourceId, resolve, () => resolve(noSlot)))
  }

  #wait(threadId: string, resourceId: string, start: (slot: Release) => void, stopped: () => void): void {
    const { slots } = this.#pool
    const id = `${this.#runtime.lease.member} ${threadId}`
    this.#waiting.get(threadId)?.stop()
    const entry = {
      stop: () => {
        this.#waiting.delete(threadId)
        slots.cancel(id)
        stopped()
      },
    }
    this.#waiting.set(threadId, entry)
    slots.wait(resourceId, id, (slot) => {
      if (this.#waiting.get(threadId) === entry) this.#waiting.delete(threadId)
      start(slot)
    })
  }

  /** A run of this process waits for one of the thread: it begins without a slot. */
  letThrough(threadId: string): void {
    this.#pool.slots.letThrough(`${this.#runtime.lease.member} ${threadId}`)
  }

  /** Whether other work waits for a slot. */
  get isContended(): boolean {
    return this.#pool.slots.waiting > 0
  }

  /**
   * Refuses a request that would start a run while too many wait. Nothing of it is stored. For a send to a thread that has no run here. A
   * promise only where too many wait.
   */
  checkOverload({ threadId, ifIdle }: Send): Promise<void> | undefined {
    if (!this.#isOverloaded || ifIdle.behavior !== 'wake') return undefined
    return this.#runtime.store.getThread({ threadId }).then((thread) => {
      if (!thread || thread.status === 'idle') throw overloaded()
    })
  }

  /** A slot for a run without a thread, which no other process can run. Rejects when the call is aborted, or its process closes. */
  async enterEphemeral(closing: AbortSignal, abortSignal: AbortSignal | undefined): Promise<Release> {
    if (activeCall()) return noSlot
    const slot = this.#pool.slots.take('')
    if (slot) return slot
    if (this.#isOverloaded) throw overloaded()
    const { slots } = this.#pool
    // Not the id of the run: a caller may give several runs without a thread the same.
    const id = this.#runtime.newId()
    const turn = new Promise<Release>((resolve) => slots.wait('', id, resolve))
    const giveBack = (release: Release) => release()
    try {
      return await unlessAborted(untilAborted(turn, closing, giveBack), abortSignal, giveBack)
    } catch (error) {
      slots.cancel(id)
      throw error
    }
  }

  /** The caller is a request to the server, and as much waits as may. */
  get #isOverloaded(): boolean {
    return this.#pool.slots.waiting >= this.#pool.waitingRuns && callerQuota().quota !== undefined
  }

  /** Nothing waits any more. */
  stop(): void {
    for (const { stop } of this.#waiting.values()) stop()
  }
}

/** The slot of one host, which other threads get in turn between two runs. */
export class RunTurn {
  readonly #slots: RunSlots
  readonly #threadId: string
  readonly #resourceId: () => string
  #slot: Release | undefined

  constructor(slots: RunSlots, threadId: string, resourceId: () => string, slot: Release | undefined) {
    this.#slots = slots
    this.#threadId = threadId
    this.#resourceId = resourceId
    this.#slot = slot ?? slots.take(threadId)
  }

  /** A promise where a slot has to be waited for. */
  begin(): Promise<void> | undefined {
    return this.#slot ? undefined : this.#enter()
  }

  /** Between two runs: lets other threads go first that have waited longer. */
  pass(): Promise<void> | undefined {
    if (!this.#slots.isContended || this.#slot === noSlot) return undefined
    this.end()
    return this.#enter()
  }

  async #enter(): Promise<void> {
    this.#slot = await this.#slots.enter(this.#threadId, this.#resourceId())
  }

  end(): void {
    this.#slot?.()
    this.#slot = undefined
  }
}

const noSlot: Release = () => {}

function overloaded(): HeedError {
  return new HeedError('overloaded', 'Too many threads wait for a run. Nothing was stored. Wait, and try again.', {
    retryable: true, details: { retryAfterMs },
  })
}
