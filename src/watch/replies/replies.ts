import { isHeedError } from '../../base/errors.ts'
import { isName } from '../../base/json.ts'
import { untilAborted } from '../../base/promises.ts'
import type { ClaimedReply, ReplyError, ReplyQuery, ReplyRecord, ReplyScope, ReplyStep } from '../../store/contract/replies.ts'
import type { InboundRecord, WatchStore } from '../../store/contract/watches.ts'
import { storedAnswer } from '../../thread/cluster/run-follower.ts'
import type { ThreadRuntime } from '../../thread/runtime/runtime.ts'
import { unlessMissing } from '../../thread/send/queue.ts'
import { Slots } from '../../base/slots.ts'
import { replyWait, type NoReply } from './machine.ts'
import { messageSignal, replyText } from './message-signal.ts'

/** What leaves through a channel. */
interface OutgoingReply {
  to: string
  conversation?: string
  text: string
  idempotencyKey: string
  abortSignal: AbortSignal
}

/** A channel in mode `message`. */
export interface AnsweringChannel {
  readonly maxReplyLength?: number | undefined
  send(reply: OutgoingReply): Promise<{ providerId?: string }>
}

interface RepliesOptions {
  store(): Promise<WatchStore>
  /** The policies that forbid the agent to receive the message; none where it may. `awaitsCategories`: they may allow it later. */
  ask(agentId: string, inbound: InboundRecord): Promise<{ deniedBy?: string; awaitsCategories?: true }>
  /** Starts work that only a close waits for, and calls for the next dispatch when it is over. */
  start(work: () => Promise<void>): void
  /** A reply is due. */
  wake(): void
  closing: AbortSignal
}

/** Replies that this process works on at the same time: a provider that does not answer delays no watch. */
const maxInFlight = 16
/** Shorter than a claim. */
const sendMs = 30_000
/** How long a close waits for a reply that is being sent. What is cut may be sent twice. */
const closeMs = 5_000
const firstWaitMs = 5_000
const longestWaitMs = 300_000
/** How often a run that this process does not follow is looked up at least. */
const longestCheckMs = 60_000
const maxAwaited = 10_000

/** Settles the claimed reply. False where another claim has it. */
type Settle = (step: ReplyStep) => Promise<boolean>

/**
 * The replies of channels in mode `message`: gives each message to the thread of its agent, waits for the run, and sends the text of the
 * run; also that of the runs which watches start on these threads. Every step is stored before the next one begins, so that another
 * process continues after a crash.
 */
export class Replies {
  readonly #runtime: ThreadRuntime
  readonly #options: RepliesOptions
  readonly #channels = new Map<string, AnsweringChannel>()
  /** The threads with a host here whose runs are followed. */
  readonly #followed = new Map<string, Promise<void>>()
  /** Threads with an unfinished run and without a host here. This process may take them over. */
  readonly #awaited = new Set<string>()
  /** By thread, the last of its replies whose run is being looked up. */
  readonly #checks = new Map<string, Promise<void>>()
  readonly #slots = new Slots(maxInFlight)

  constructor(runtime: ThreadRuntime, options: RepliesOptions) {
    this.#runtime = runtime
    this.#options = options
  }

  addChannel(id: string, channel: AnsweringChannel): void {
    this.#channels.set(id, channel)
  }

  /** The channels whose replies this process can work on now. */
  get dueChannels(): string[] {
    return this.#slots.open([...this.#channels.keys()])
  }

  /** Claims due replies and begins to work on them. Returns how many. */
  async dispatch(store: WatchStore, { now, until, limit }: { now: number; until: number; limit: number }): Promise<number> {
    const channelIds = this.dueChannels
    if (channelIds.length === 0 || this.#isClosing) return 0
    const most = this.#slots.most([...this.#channels.keys()])
    const claimed = await store.claimReplies({ channelIds, now, until, limit: Math.min(limit, this.#slots.free), most })
    const inOrder = claimed.toSorted((a, b) => a.reply.seq - b.reply.seq)
    for (const one of inOrder) this.#options.start(() => this.#slots.run(one.reply.channelId, () => this.#work(store, one, until)))
    return claimed.length
  }

  async get(scope: ReplyScope): Promise<ReplyRecord | null> {
    return (await this.#options.store()).getReply(scope)
  }

  async list(query: Partial<ReplyQuery>): Promise<{ replies: ReplyRecord[]; more: boolean }> {
    return (await this.#options.store()).listReplies({ limit: 100, ...query })
  }

  /** Sends a dead reply again, with the same text and id. Others are returned as they are. */
  async retry(scope: ReplyScope): Promise<ReplyRecord | null> {
    const reply = await (await this.#options.store()).retryReply(scope, { now: this.#runtime.clock.now() })
    this.#options.wake()
    return reply
  }

  /** The last run of a thread ended here. */
  onThreadIdle(threadId: string): void {
    if (this.#awaited.delete(threadId)) this.#track(threadId, this.#options.store().then((store) => this.#wakeReplies(store, threadId)))
  }

  get isUsed(): boolean {
    return this.#channels.size > 0
  }

  /** Resolves when the replies of threads whose runs have ended here are due. */
  async whenFollowed(): Promise<void> {
    const ended = [...this.#followed].filter(([threadId]) => !this.#runtime.hostOf(threadId)?.hasWork)
    await Promise.all(ended.map(([, following]) => following))
  }

  async #work(store: WatchStore, claimed: ClaimedReply, until: number): Promise<void> {
    const { clock, logger } = this.#runtime
    const { reply: { id, threadId, state, attempts }, claim } = claimed
    const settle: Settle = (step) => store.settleReply({ id, claim, step, now: clock.now() })
    try {
      if (state === 'pending') await this.#send(claimed, settle)
      else await this.#inTurn(threadId, async () => {
        if (state === 'asked' || (await this.#ask(claimed, until, settle))) await this.#check(store, claimed, settle)
      })
    } catch (error) {
      const failure = errorOf(error, 'failed')
      const isClosing = this.#isClosing
      if (!isClosing) logger.warn('a message of a channel could not be given to its agent; it is tried again', { reply: id, ...failure })
      const dueAt = clock.now() + (isClosing ? 0 : waitMs(attempts))
      await settle({ type: 'defer', dueAt, ...(isClosing ? { uncounted: true } : { error: failure }) })
    }
  }

  /** Replies of one thread are looked up one after the other, in the order of their claims: so they leave in that of their messages. */
  async #inTurn(threadId: string, work: () => Promise<void>): Promise<void> {
    const before = this.#checks.get(threadId)
    const turn = (before ?? Promise.resolve()).then(work)
    // A failure is that of its own reply alone.
    const over = turn.catch(() => {})
    this.#checks.set(threadId, over)
    try {
      await turn
    } finally {
      if (this.#checks.get(threadId) === over) this.#checks.delete(threadId)
    }
  }

  // From the message to the run

  /** Gives the message to its thread. True when the thread has it and this claim goes on. */
  async #ask({ reply, inbound }: ClaimedReply, until: number, settle: Settle): Promise<boolean> {
    const runtime = this.#runtime
    const { agentId, threadId, resourceId, inboundId } = reply
    const { deniedBy: policies, awaitsCategories } = await this.#options.ask(agentId, inbound)
    if (policies !== undefined) {
      const isLater = awaitsCategories && inbound.rulesOnly === 'for_now'
      const dueAt = runtime.clock.now() + waitMs(reply.attempts, longestCheckMs)
      await settle(isLater ? { type: 'defer', dueAt, error: { code: policies } } : { type: 'end', reason: 'denied', policies })
      return false
    }
    try {
      // The id of the message is that of the signal and of the run: after a crash, the thread recognizes both.
      const target = { threadId, resourceId, ifIdle: { streamOptions: { runId: inboundId } } }
      await runtime.sends.sendAccepted(runtime.agent(agentId), 'queue', messageSignal(inbound, runtime.clock.now()), target)
      await runtime.store.flush()
    } catch (error) {
      const code = isHeedError(error) ? error.code : undefined
      if (code !== 'thread_forbidden' && code !== 'id_taken') throw error
      await settle({ type: 'end', reason: code })
      return false
    }
    return settle({ type: 'ask', checkAt: until })
  }

  // From the run to the text

  async #check(store: WatchStore, { reply }: ClaimedReply, settle: Settle): Promise<void> {
    // First, so that an end after the read makes the reply due.
    this.#follow(store, reply.threadId)
    const outcome = await this.#outcomeOf(reply).catch((error: unknown) => {
      if (isHeedError(error) && error.code === 'thread_forbidden') return { none: error.code } as const
      throw error
    })
    if ('text' in outcome || 'none' in outcome) this.#awaited.delete(reply.threadId)
    if ('text' in outcome && (await this.#isAfterEnded(store, reply))) await this.#wakeReplies(store, reply.threadId)
    else if ('text' in outcome) await settle({ type: 'answer', ...outcome })
    else if ('none' in outcome) await settle({ type: 'end', reason: outcome.none })
    else {
      const attempts = reply.state === 'asked' ? reply.attempts : 1
      const error = outcome.parked ? { error: { code: 'run_parked' } } : {}
      await settle({ type: 'defer', dueAt: this.#runtime.clock.now() + waitMs(attempts, longestCheckMs), ...error })
    }
  }

  /** Whether an earlier reply of the channel on the thread has not been looked up since its run ended: it leaves first. */
  async #isAfterEnded(store: WatchStore, { id, threadId, channelId }: ReplyRecord): Promise<boolean> {
    const { replies } = await store.listReplies({ threadId, channelId, state: 'asked', limit: maxInFlight })
    for (const earlier of replies) {
      if (earlier.id === id) return false
      // One that could not be looked up delays no other.
      const outcome = earlier.error ? {} : await this.#outcomeOf(earlier)
      if ('text' in outcome || 'none' in outcome) return true
    }
    return false
  }

  /** What the run wrote, or why there is no reply; neither while it goes on, is suspended or parked. */
  async #outcomeOf(reply: ReplyRecord): Promise<RunOutcome> {
    const { store } = this.#runtime
    const { threadId, resourceId, signalId, channelId } = reply
    const scope = { threadId, resourceId }
    const mail = await unlessMissing(store.getSignal(scope, signalId), null)
    if (mail?.state === 'pending') return {}
    if (mail?.state === 'cancelled') return { none: 'cancelled' }
    const runId = mail?.runId ?? signalId
    const run = await unlessMissing(store.getRun(scope, runId), null)
    if (!run) return { none: 'run_lost' }
    switch (run.status) {
      case 'running':
      case 'suspended':
        return {}
      case 'parked':
        return { parked: true }
      case 'finished': {
        const { text } = await storedAnswer(store, scope, runId)
        const answer = replyText(text, this.#channels.get(channelId)?.maxReplyLength)
        return answer.text === '' ? { none: 'empty' } : answer
      }
      default:
        return { none: `run_${run.status}` }
    }
  }

  /** Until the thread has no more runs here, its replies are due at the end of each. The next check finds runs of other processes. */
  #follow(store: WatchStore, threadId: string): void {
    if (this.#followed.has(threadId)) return
    if (this.#runtime.hostOf(threadId)?.hasWork) return this.#track(threadId, this.#followRuns(store, threadId))
    if (this.#awaited.size < maxAwaited) this.#awaited.add(threadId)
  }

  async #followRuns(store: WatchStore, threadId: string): Promise<void> {
    for (let host = this.#runtime.hostOf(threadId); host?.hasWork; host = this.#runtime.hostOf(threadId)) {
      await host.runEnded
      await this.#wakeReplies(store, threadId)
    }
  }

  async #wakeReplies(store: WatchStore, threadId: string): Promise<void> {
    if (this.#isClosing) return
    await store.wakeReplies({ threadId, now: this.#runtime.clock.now() })
    this.#options.wake()
  }

  #track(threadId: string, work: Promise<void>): void {
    const following = work
      .catch((error: unknown) => {
        if (!this.#isClosing) this.#runtime.logger.warn('the end of a run is found later', { threadId, ...errorOf(error, 'failed') })
      })
      .finally(() => {
        if (this.#followed.get(threadId) === following) this.#followed.delete(threadId)
      })
    this.#followed.set(threadId, following)
  }

  // From the text to the provider

  async #send({ reply, inbound }: ClaimedReply, settle: Settle): Promise<void> {
    const { clock, logger } = this.#runtime
    const { id, channelId, attempts, text = '' } = reply
    const { sender, conversation } = inbound
    const late = new AbortController()
    const abortSignal = late.signal
    const timers = [clock.after(sendMs, () => late.abort())]
    const onClosing = () => void timers.push(clock.after(closeMs, () => late.abort()))
    this.#options.closing.addEventListener('abort', onClosing, { once: true })
    const outgoing = { to: sender.address, ...(conversation === undefined ? {} : { conversation }), text, idempotencyKey: id, abortSignal }
    try {
      const send = async () => this.#channels.get(channelId)?.send(outgoing)
      const sent = await untilAborted(send(), abortSignal)
      await settle({ type: 'send', ...(isName(sent?.providerId) ? { providerId: sent.providerId } : {}) })
    } catch (thrown) {
      // The next process sends the reply with the same id.
      if (this.#isClosing) return void (await settle({ type: 'defer', dueAt: clock.now(), uncounted: true }))
      const error = late.signal.aborted ? { code: 'timeout', maybeSent: true } : errorOf(thrown, 'send_failed')
      const wait = replyWait(attempts, late.signal.aborted ? { retryable: true } : retryOf(thrown))
      if (wait === undefined) logger.error('a reply is dead: it can be retried', { reply: id, channel: channelId, attempts, ...error })
      else logger.warn('a reply could not be sent; it is sent again', { reply: id, channel: channelId, attempts, ...error })
      await settle(wait === undefined ? { type: 'give_up', error } : { type: 'defer', dueAt: clock.now() + wait, error })
    } finally {
      this.#options.closing.removeEventListener('abort', onClosing)
      for (const timer of timers) timer.cancel()
    }
  }

  get #isClosing(): boolean {
    return this.#runtime.closing || this.#options.closing.aborted
  }
}

type RunOutcome = { text: string; truncated?: true } | { none: NoReply } | { parked?: true }

/** The delay doubles with each attempt. */
function waitMs(attempts: number, longest = longestWaitMs): number {
  return Math.min(longest, firstWaitMs * 2 ** Math.max(0, attempts - 1))
}

/** What is stored of an error: codes. Its message may quote a provider. `otherwise` is the code of an error without one. */
function errorOf(error: unknown, otherwise: string): ReplyError {
  if (!isHeedError(error)) return { code: otherwise }
  const { status, maybeSent } = error.details ?? {}
  return {
    code: error.code,
    ...(typeof status === 'number' ? { status } : {}),
    ...(typeof maybeSent === 'boolean' ? { maybeSent } : {}),
  }
}

/** An error of an unknown kind may pass. */
function retryOf(error: unknown): { retryable: boolean; retryAfterMs?: number } {
  if (!isHeedError(error)) return { retryable: true }
  const { retryAfterMs } = error.details ?? {}
  return { retryable: error.retryable, ...(typeof retryAfterMs === 'number' ? { retryAfterMs } : {}) }
}
