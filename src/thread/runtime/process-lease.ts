import { hostname } from 'node:os'
import { sleep, type Timer } from '../../base/clock.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import { packageVersion } from '../../base/package-version.ts'
import type { Fence, ProcessInfo } from '../../store/contract/threads.ts'
import type { ThreadRuntime } from './runtime.ts'
import type { LaterClaims } from './sweeper.ts'

/** Failures that do not end by themselves: the operator has to repair the database or its disk. */
const permanent: ReadonlySet<string> = new Set(['store_gone', 'store_corrupt', 'store_readonly', 'store_newer'])

/** For how long a write is repeated that the store refuses for lack of space, and the longest pause between two attempts. */
const fullMs = 30_000
const longestPauseMs = 1_000

/** For how many heartbeats a store counts as not yet proved after it worked again, and the longest wait after failures that return. */
const provedBeats = 3
const longestWait = 128

/** How many chunks a host holds back while the store does not confirm its lease. */
export const maxHeldBack = 8_192

/** Repeats a write while the store has no space for it. Nothing of it is stored then, so the model need not be called again. */
export async function whileFull<T>({ clock }: ThreadRuntime, write: () => Promise<T>): Promise<T> {
  const since = clock.now()
  for (let pause = 100; ; pause = Math.min(longestPauseMs, pause * 2)) {
    try {
      return await write()
    } catch (error) {
      if (!isHeedError(error) || error.code !== 'store_full' || clock.now() - since > fullMs) throw error
    }
    await sleep(clock, pause)
  }
}

/**
 * The heartbeat of this process: one row of the store that covers the leases of all its threads. It also records whether the store can be
 * used: after a permanent failure no send is stored and no run begins until a heartbeat and a flush succeed.
 */
export class ProcessLease {
  /** Names this process on the bus. */
  readonly member: string
  #owner: string
  readonly #runtime: ThreadRuntime
  readonly #ms: number
  #info: ProcessInfo | undefined
  #timer: Timer | undefined
  /** Until this time no other process claims a thread of this one. */
  #until = -Infinity
  #lapses = 0
  #beating: Promise<void> | undefined
  #failure: HeedError | undefined
  /** How many heartbeats must succeed before the failure counts as over: more each time that it returns at once. */
  #wait = 1
  #waited = 0
  /** The code of the last failure, until the store has worked for `provedBeats` heartbeats. */
  #unproved: { code: string; beats: number } | undefined

  constructor(runtime: ThreadRuntime, ms: number) {
    this.#runtime = runtime
    this.#ms = ms
    this.member = runtime.newId()
    this.#owner = this.member
  }

  /** Names this process in leases: the name on the bus, and behind `~` how often the database went back since the start. */
  get owner(): string {
    return this.#owner
  }

  /** Whether the database went back while this process ran. */
  get hasBegunAnew(): boolean {
    return this.#owner !== this.member
  }

  /** The database went back: from here on leases name this process by another name. Returns the former one. */
  beginAnew(): string {
    const former = this.#owner
    const [, times = 0] = former.split('~')
    this.#owner = `${this.member}~${Number(times) + 1}`
    return former
  }

  /** Whether other processes may have claimed threads of this one, since it was paused or could not write its heartbeat. */
  get expired(): boolean {
    const left = this.#until - this.#runtime.clock.now()
    // A lease that expires too far ahead was written before the clock was set back: other processes count it as expired.
    return left < 0 || left > 2 * this.#ms
  }

  /** How often a heartbeat came after the one before it had expired. */
  get lapses(): number {
    return this.#lapses
  }

  /** The time of the store, in which leases are stored. Other times of this process need not agree with it. */
  get storeTime(): number {
    const { clock, store } = this.#runtime
    const time: unknown = store.now?.()
    // A wrapper may make all methods of a store asynchronous.
    return typeof time === 'number' ? time : clock.now()
  }

  /** The permanent failure of the store, until it works again. */
  get failure(): HeedError | undefined {
    return this.#failure
  }

  /** Writes a heartbeat and sets the timer of the next one. Calls share one that is under way. A failed one is repeated at the next. */
  beat(): Promise<void> {
    this.#beating ??= this.#beat().finally(() => (this.#beating = undefined))
    return this.#beating
  }

  /** Resolves when the lease is valid and the hosts know which threads this process still has. */
  async renew(): Promise<void> {
    const underWay = this.#beating
    await (underWay ?? this.beat())
    // A heartbeat that began before the process was paused has expired with it: that is no failure of the store.
    if (underWay && this.expired) await this.beat()
    if (this.expired) throw new HeedError('store_failed', 'The lease of this process could not be renewed.', { retryable: true })
  }

  /** The process has another name in leases: its first heartbeat under this name. One under the former name counts no more. */
  async restart(): Promise<void> {
    this.#until = -Infinity
    await this.#beating
    await this.renew()
  }

  stop(): void {
    this.#timer?.cancel()
  }

  async #beat(): Promise<void> {
    const { clock, logger, owner, store } = this.#runtime
    const until = clock.now() + this.#ms
    this.#info ??= { pid: process.pid, host: hostname(), version: packageVersion(), startedAt: this.storeTime }
    try {
      await store.heartbeat(owner, this.storeTime + this.#ms, this.#info)
      if (this.#failure) await store.flush()
      if (owner === this.#runtime.owner) {
        if (this.expired) await this.#verify(until)
        this.#until = until
        this.#recover()
      }
    } catch (error) {
      if (!this.#runtime.isClosedBy(error)) {
        this.fail(error)
        if (!this.#failure) logger.error('the heartbeat failed; another process may take over', { error: String(error) })
      }
    }
    this.stop()
    if (!this.#runtime.closing) this.#timer = clock.after(this.#ms / 3, () => void this.beat(), { background: true })
  }

  /**
   * The heartbeat had expired: the store says which threads were claimed meanwhile. From the new heartbeat on no other process claims one,
   * so what is still this process's stays so.
   */
  async #verify(until: number): Promise<void> {
    this.#lapses++
    const hosts = this.#runtime.hosts().filter(({ started }) => started)
    const held = await Promise.all(hosts.map(({ fence }) => this.#holds(fence)))
    this.#until = until
    for (const [index, host] of hosts.entries()) if (held[index]) host.confirmLease()
      else host.loseLease()
  }

  async #holds({ threadId, owner, epoch }: Fence): Promise<boolean> {
    const thread = await this.#runtime.store.getThread({ threadId })
    return thread?.owner === owner && thread.epoch === epoch
  }

  /**
   * Records a failed call of the store. A permanent failure is logged once and stops all runs. One that returns as soon as the store is
   * used again, as with a damaged page that no heartbeat reads, is the same failure. `flush`: the whole database could not be made durable,
   * whatever the code.
   */
  fail(error: unknown, flush = false): void {
    if (this.#failure || this.#runtime.closing || !isHeedError(error) || error.retryable) return
    if (!permanent.has(error.code) && !(flush && error.code === 'store_failed')) return
    this.#failure = error
    this.#waited = 0
    const returned = this.#unproved?.code === error.code
    this.#unproved = undefined
    this.#wait = returned ? Math.min(longestWait, this.#wait * 2) : 1
    for (const host of this.#runtime.hosts()) host.loseLease(error)
    if (returned) return
    this.#runtime.logger.error('the storage failed: sends are rejected and no run begins until it works again', {
      code: error.code, error: error.message,
    })
  }

  /** A heartbeat succeeded, and after a failure a flush. */
  #recover(): void {
    if (this.#failure) {
      if (++this.#waited < this.#wait) return
      this.#unproved = { code: this.#failure.code, beats: 0 }
      this.#failure = undefined
    } else if (this.#unproved && ++this.#unproved.beats === provedBeats) {
      this.#unproved = undefined
      this.#runtime.logger.warn('the storage works again: sends are accepted and runs continue')
    }
  }
}

/**
 * Calls of the store that may give this process the lease of a thread. Where the answer of one is lost, the lease may be this process's
 * although no host here knows: the last call on the thread looks.
 */
export class LostAnswers {
  readonly #runtime: ThreadRuntime
  readonly #laterClaims: LaterClaims
  readonly #adopt: (threadId: string) => Promise<void>
  /** Calls under way; `lost`: an answer to one of them was lost. */
  readonly #asks = new Map<string, { count: number; lost: boolean }>()

  /** `adopt` runs the thread if its lease names this process. */
  constructor(runtime: ThreadRuntime, laterClaims: LaterClaims, adopt: (threadId: string) => Promise<void>) {
    this.#runtime = runtime
    this.#laterClaims = laterClaims
    this.#adopt = adopt
  }

  /** Repeats the call once, which is safe since all ids are stable. */
  async retryOnce<T>(threadId: string, ask: () => Promise<T>): Promise<T> {
    const asks = this.#asks.get(threadId) ?? { count: 0, lost: false }
    this.#asks.set(threadId, asks)
    asks.count++
    try {
      return await ask().catch((error: unknown) => {
        this.#runtime.lease.fail(error)
        if (isHeedError(error) && !error.retryable) throw error
        asks.lost = true
        return ask().catch((second: unknown) => {
          // What the first call did is still not known.
          throw isHeedError(error) && error.code === 'store_unknown' ? error : second
        })
      })
    } finally {
      // The last call looks after the thread: an answer that is still under way may bring the lease.
      if (--asks.count === 0) {
        this.#asks.delete(threadId)
        if (asks.lost) await this.#adopt(threadId).catch((error: unknown) => this.#laterClaims.add(threadId, error))
      }
    }
  }

  /** Leaves the thread to a call that is under way, if there is one. */
  leaveToCall(threadId: string): boolean {
    const asks = this.#asks.get(threadId)
    if (asks) asks.lost = true
    return asks !== undefined
  }
}
