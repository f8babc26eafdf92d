import type { Bus, BusListener, Seat } from '../../bus/contract.ts'
import type { BusMessage } from '../../bus/message.ts'
import { HeedError } from '../../base/errors.ts'
import { AbandonedRuns } from '../runtime/abandoned-runs.ts'
import type { ThreadHost } from '../runtime/host.ts'
import type { LiveThread } from '../watch/live.ts'
import { RemoteWatching } from './remote-watching.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { settleElsewhere } from '../send/outcomes.ts'

export interface AbortAnswer {
  aborted: boolean
  runId?: string
}

/**
 * The other processes on the store: what is said to them, and what is done when they say something. All of it only makes things
 * happen sooner: the store is asked before anything counts, and the sweep finds what was never heard.
 */
export class Neighbours implements BusListener {
  readonly #runtime: ThreadRuntime
  readonly #abandoned: AbandonedRuns
  #seat: Seat | undefined
  #remote: RemoteWatching | undefined
  #joining: Promise<void> | undefined
  /** Until it is known here what others watch: a run that ended before that would be told to nobody. Undefined from then on. */
  meeting: Promise<void> | undefined
  /** Questions to other processes that are open, by their id. */
  readonly #asked = new Map<string, (answer: AbortAnswer) => void>()
  /** Who ran a thread here when that was last looked at. */
  #atWork = new WeakSet<ThreadHost>()

  constructor(runtime: ThreadRuntime) {
    this.#runtime = runtime
    this.#abandoned = new AbandonedRuns(runtime)
  }

  /** Takes a seat on the bus. What fails is said once; everything is then found by the sweep. */
  join(bus: Bus | undefined): Promise<void> {
    if (bus && !this.#joining) {
      const joining = this.#join(bus)
      this.#joining = joining
      this.meeting = joining.then(() => (this.#seat?.company ? this.#seat.met?.() : undefined)).finally(() => (this.meeting = undefined))
    }
    return this.#joining ?? Promise.resolve()
  }

  async #join(bus: Bus): Promise<void> {
    try {
      const seat = await bus.join(this.#runtime.owner, this)
      this.#seat = seat
      this.#remote = new RemoteWatching(this.#runtime, seat)
      seat.say({ kind: 'hello' })
    } catch (error) {
      this.#runtime.logger.warn('other processes can not be heard; what they do is found later', { error: String(error) })
    }
  }

  /** The last that others hear: threads that ran here need another runner. */
  async leave(): Promise<void> {
    await this.#joining
    for (const answer of this.#asked.values()) answer({ aborted: false })
    this.#remote?.close()
    this.#seat?.say({ kind: 'goodbye' })
    await this.#seat?.leave()
    this.#seat = undefined
    this.#remote = undefined
  }

  // Saying

  /** Something waits on a thread that nobody runs, and this process can't. */
  mail(threadId: string): void {
    this.#seat?.say({ kind: 'mail', threadId })
  }

  /** What others sent to the thread came to something. */
  settled(threadId: string, read = false): void {
    this.#seat?.say({ kind: 'settled', threadId, ...(read && { read }) })
  }

  /** The thread is another's now: whoever watches it for its old resource is refused from here on, in every process. */
  transferred(threadId: string, resourceId: string): void {
    this.#own(threadId, resourceId)
    this.#seat?.say({ kind: 'transferred', threadId, resourceId })
  }

  /** The inboxes of these resources changed. */
  inbox(resourceIds: string[]): void {
    if (this.#seat?.company) this.#seat.say({ kind: 'inbox', resourceIds })
  }

  interrupt(owner: string, threadId: string, signalId: string): void {
    this.#seat?.say({ kind: 'interrupt', threadId, signalId }, owner)
  }

  /** Asks the runner to abort. Undefined when it doesn't answer within `ms`. */
  async abort(owner: string, question: { threadId: string; runId?: string; clearPending: boolean }, ms: number): Promise<AbortAnswer | undefined> {
    const ask = this.#runtime.newId()
    const { promise, resolve } = Promise.withResolvers<AbortAnswer | undefined>()
    this.#asked.set(ask, resolve)
    const timer = this.#runtime.clock.after(ms, () => resolve(undefined))
    this.#seat?.say({ kind: 'abort', ask, ...question }, owner)
    try {
      return await promise
    } finally {
      timer.cancel()
      this.#asked.delete(ask)
    }
  }

  // Watching

  async watch(live: LiveThread): Promise<void> {
    await this.#joining
    await this.#remote?.watch(live)
  }

  unwatch(threadId: string): void {
    this.#remote?.unwatch(threadId)
  }

  /** Follows what another process says on a thread; `undefined` asks all of them. False when nobody answers. */
  async follow(threadId: string, owner: string | undefined, after: string | undefined): Promise<boolean> {
    return (await this.#remote?.follow(threadId, owner, after)) ?? false
  }

  /** Its runner was asked in vain. */
  tear(threadId: string): void {
    this.#remote?.tear(threadId)
  }

  attach(live: LiveThread): void {
    this.#remote?.attach(live)
  }

  release(threadId: string): void {
    this.#remote?.release(threadId)
  }

  isWatched(threadId: string): boolean {
    return this.#remote?.isWatched(threadId) ?? false
  }

  // Hearing

  hear(message: BusMessage, from: string): void {
    if (this.#runtime.closing) return
    switch (message.kind) {
      case 'hello':
        // Two may come in the same moment.
        return this.#do(Promise.resolve(this.#joining).then(() => this.#remote?.announce(from)))
      case 'goodbye':
        this.#remote?.unwatchedBy(from)
        return this.#do(this.#runtime.sweep())
      case 'mail':
        return this.#do(this.#runtime.wake(message.threadId))
      case 'settled':
        return this.#do(settleElsewhere(this.#runtime, message.threadId, message.read))
      case 'transferred':
        return this.#own(message.threadId, message.resourceId)
      case 'inbox':
        return this.#runtime.inboxChanged(message.resourceIds)
      case 'interrupt':
        return this.#do(this.#interrupt(message.threadId, message.signalId))
      case 'abort':
        return this.#abort(message, from)
      case 'aborted':
        return this.#asked.get(message.ask)?.({ aborted: message.aborted, ...(message.runId === undefined ? {} : { runId: message.runId }) })
      case 'watch':
        return this.#remote?.watchedBy(from, message.threadIds)
      case 'unwatch':
        return this.#remote?.unwatchedBy(from, message.threadIds)
      case 'catch-up':
        return this.#remote?.catchUp(message, from)
      case 'state':
        return this.#remote?.state(message, from)
      case 'events':
        return this.#remote?.events(message, from)
    }
  }

  lost(): void {
    if (this.#runtime.closing) return
    // They may not know of this process either.
    this.#seat?.say({ kind: 'hello' })
    this.#do(this.#runtime.sweep())
    this.#do(this.tick())
  }

  unreachable(error: unknown): void {
    if (this.#runtime.closing) return
    this.#runtime.logger.warn('other processes on this store can not be reached: aborts in them are refused, and what they do is seen late', { code: 'bus_failed', error: String(error) })
  }

  reached(): void {
    if (!this.#runtime.closing) this.#runtime.logger.warn('other processes on this store can be reached again')
  }

  /** True while nothing can be said to the others, although they may be there. */
  get mute(): boolean {
    return this.#seat?.mute ?? false
  }

  attentive(): boolean {
    return this.#remote?.watching === true || this.#runtime.hosts().length > 0 || this.#runtime.expectations.threadsElsewhere().length > 0
  }

  /** What no bell told: comes with every sweep. */
  async tick(): Promise<void> {
    for (const threadId of this.#runtime.expectations.threadsElsewhere()) await settleElsewhere(this.#runtime, threadId)
    await this.#abandoned.look()
    await this.#obeyWaiting()
    if (!this.#remote) return
    this.#remote.expire()
    this.#remote.announce()
    await this.#remote.verify()
  }

  /** Interrupts of others that no bell told of, on threads that were at work here at the last look as well. */
  async #obeyWaiting(): Promise<void> {
    const hosts = this.#runtime.hosts()
    for (const host of hosts) if (this.#atWork.has(host) && host.expecting && !this.#runtime.closing) await host.obeyWaiting()
    this.#atWork = new WeakSet(hosts)
  }

  #own(threadId: string, resourceId: string): void {
    const live = this.#runtime.liveOf(threadId)
    if (live?.resourceId !== undefined) live.resourceId = resourceId
  }

  /** It may have entered before this was heard; then there is nothing to cut. */
  async #interrupt(threadId: string, signalId: string): Promise<void> {
    const mail = await this.#runtime.store.getSignal({ threadId }, signalId)
    if (mail?.state === 'pending') this.#runtime.hostOf(threadId)?.interrupt(signalId)
  }

  #abort({ threadId, ask, runId, clearPending }: Extract<BusMessage, { kind: 'abort' }>, from: string): void {
    const host = this.#runtime.hostOf(threadId)
    const meant = host && (runId === undefined || host.runId === undefined || host.runId === runId)
    const aborted = meant ? host.abort({ reason: new HeedError('aborted', 'The run was aborted.'), clearPending, runId }) : false
    const active = host?.runId
    this.#seat?.say({ kind: 'aborted', ask, aborted, ...(active === undefined ? {} : { runId: active }) }, from)
  }

  #do(work: Promise<unknown>): void {
    work.catch((error: unknown) => {
      if (!this.#runtime.closing) this.#runtime.logger.error('what another process asked for failed', { error: String(error) })
    })
  }
}
