import { describe, HeedError, isHeedError } from '../base/errors.ts'
import type { SendMode } from '../machine.ts'
import type { SendReceipt } from '../thread/send/receipt.ts'
import type { Attendant } from '../thread/runtime/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import type { SettlementTerms, NotificationRecord, NotificationStore, Settled, SummaryBatch } from '../store/contract/notifications.ts'
import { ChangeBell, checkSubscribe, InboxWatchers, type InboxSubscribeOptions, type InboxSubscription } from './subscription.ts'
import { Confirmations, confirmDelivery, confirmMs } from './confirmations.ts'
import { Decisions, priorities, settledDecision, type NotifiedAgent } from './policy.ts'
import { claimMs, Dispatcher, type Dispatched } from '../schedule/dispatcher.ts'
import { checkNotifications, type CheckedNotification, type NotificationInput } from './input.ts'
import { checkTarget, type InboxSettings, type NotificationTarget } from './options.ts'
import {
  duplicate, isSentNow, modeOf, recheckOf, resultOf, settlementOf, stateOf, type Arrival, type Foretold,
  type NotificationResult, type Placing, type ThreadState,
} from './settlement.ts'
import { join, leave } from './tool.ts'
import { fullSignal } from './signals.ts'
import { Summaries } from './summaries.ts'

const firstRetryMs = 1_000
const longestRetryMs = 300_000

export interface InboxOptions {
  /** The inbox of the storage, if it has one. */
  store(): Promise<NotificationStore | undefined>
  settings: InboxSettings
  /** Nothing can be left of an earlier process: there is no need to look before the inbox is used. */
  ephemeral: boolean
}

/** The notifications of one store in one process: takes them in, and sends them when they are due. */
export class Inbox implements Attendant {
  readonly #runtime: ThreadRuntime
  readonly #options: InboxOptions
  readonly #dispatcher: Dispatcher
  readonly #watchers: InboxWatchers
  readonly #bell: ChangeBell
  readonly #confirmations: Confirmations
  readonly #summaries: Summaries
  readonly #decisions: Decisions
  #stopListening: (() => void) | undefined
  #opening: Promise<NotificationStore | undefined> | undefined
  /** Threads and notifications are in one database: what was written first is also kept first. */
  #together = false

  constructor(runtime: ThreadRuntime, options: InboxOptions) {
    this.#runtime = runtime
    this.#options = options
    this.#watchers = new InboxWatchers(runtime.keepAlive)
    this.#decisions = new Decisions(runtime, options.settings.decideTimeoutMs)
    this.#summaries = new Summaries(runtime, async (store) => (this.#together ? undefined : store.flush()))
    this.#bell = new ChangeBell((resourceIds) => runtime.peers.inbox(resourceIds))
    this.#dispatcher = new Dispatcher(runtime, options.settings, {
      dispatch: (limit) => this.#dispatch(limit),
      nextDue: async () => (await this.store()).nextDue(this.#runtime.agentIds()),
    })
    this.#confirmations = new Confirmations(runtime, this.#dispatcher, () => this.store())
  }

  /** The inbox of the storage; a named error where there is none. */
  async store(): Promise<NotificationStore> {
    const store = await this.#open()
    if (store) return store
    throw new HeedError('unsupported_option', "The storage has no 'notifications' domain. Use one that has, such as LibSQLStore.", { details: { domain: 'notifications' } })
  }

  /** What changes in an inbox, through whichever process. */
  async subscribe(options: InboxSubscribeOptions): Promise<InboxSubscription> {
    checkSubscribe(options)
    return this.#watchers.open(await this.store(), options)
  }

  // Ingress

  async send(agent: NotifiedAgent, inputs: readonly NotificationInput[], target: NotificationTarget, { areNew = false } = {}): Promise<NotificationResult[]> {
    checkTarget(target)
    const checked = checkNotifications(inputs)
    const { threadId, resourceId } = target
    const runtime = this.#runtime
    runtime.register(agent)
    await runtime.open()
    const store = await this.store()
    const thread = await runtime.store.getThread({ threadId, resourceId })
    const threadState = stateOf(thread)
    const now = runtime.clock.now()
    const foretold = checked.map((item) => this.#foretell(agent, item, threadState, now))
    const ingested = await store.ingest(checked.map((item, index) => {
      const { settlement } = foretold[index] ?? {}
      return { ...item, id: item.id ?? runtime.newId(), threadId, resourceId, agentId: agent.id, now, undecidedUntil: this.#decisions.hiddenFrom(now), rememberMs: this.#options.settings.dedupeMemoryMs, ...(settlement ? { settlement } : {}), ...(thread || item.id === undefined ? {} : { awaitsThread: true }), ...(areNew ? { isNew: true } : {}) }
    }))
    return this.#place(store, agent, threadState, ingested.map((one, index) => ({ ...one, foretold: foretold[index] })), target)
  }

  /**
   * Stores a notification for an agent that is not in this process: one that has the agent decides about it. Resolves when the record would
   * survive a power cut. Rejects with `thread_forbidden` for a thread of another resource.
   */
  async ingestForPeer(input: NotificationInput, target: { agentId: string; threadId: string; resourceId: string }): Promise<void> {
    const [checked] = checkNotifications([input])
    const runtime = this.#runtime
    const { agentId, threadId, resourceId } = target
    const store = await this.store()
    await runtime.store.getThread({ threadId, resourceId })
    const now = runtime.clock.now()
    if (checked) await store.ingest([{ ...checked, id: checked.id ?? runtime.newId(), threadId, resourceId, agentId, now, undecidedUntil: now }])
    await store.flush()
  }

  /** Where nobody has to be asked, what is decided is stored with the record. Newer words may yet join one that has a `coalesceKey`. */
  #foretell(agent: NotifiedAgent, { source, priority = 'medium', coalesceKey }: CheckedNotification, threadState: ThreadState, now: number): Foretold | undefined {
    const policy = agent.deliveryPolicy ?? {}
    if (policy.decide || coalesceKey !== undefined) return undefined
    const decision = settledDecision(policy, { record: { source, priority }, threadState, now: new Date(now) })
    return { decision, settlement: settlementOf(decision, threadState, { now, settings: this.#options.settings }) }
  }

  /** Decides about what came in, writes that down, and sends what is to be sent at once, in the order in which it came. */
  async #place(store: NotificationStore, agent: NotifiedAgent, threadState: ThreadState, arrivals: readonly Arrival[], target?: NotificationTarget): Promise<NotificationResult[]> {
    const placings = await Promise.all(arrivals.map(async ({ record, outcome, settled, foretold }): Promise<Placing> => {
      if (outcome === 'counted') return { record, decision: duplicate }
      return foretold && settled ? { record, settled, ...foretold } : { record, decision: await this.#decisions.decide(agent, record, threadState) }
    }))
    await this.#settle(store, placings, threadState)
    const receipts = new Map<string, SendReceipt>()
    const summaries = new Map<string, Promise<SendReceipt | undefined>>()
    await Promise.all(placings.map(async ({ record, settled, settlement }) => {
      const receipt = settled?.applied && settlement ? await this.#sendNow(store, settled, settlement, summaries, target) : undefined
      if (receipt) receipts.set(record.id, receipt)
    }))
    if (this.#options.settings.enabled && placings.some(({ settlement }) => settlement?.whenIdle)) await this.#lookAgain(store, placings)
    this.#expect(placings)
    return Promise.all(placings.map(async ({ record, decision, settled, settlement }) => {
      const receipt = receipts.get(record.id)
      // What was sent, also in vain, isn't as it was decided any more, and what came several times is as the last of them left it.
      const known = placings.length === 1 && settled && !isSentNow(settled, settlement) ? settled.record : undefined
      const stored = known ?? (await store.getNotification({ threadId: record.threadId, id: record.id })) ?? record
      return resultOf(store, stored, decision, receipt && { receipt, acceptance: await receipt.acceptance })
    }))
  }

  /** Writes down what was decided about those of which that isn't yet. */
  async #settle(store: NotificationStore, placings: readonly Placing[], threadState: ThreadState): Promise<void> {
    const now = this.#runtime.clock.now()
    const open = placings.filter(({ decision, settled }) => decision !== duplicate && !settled)
    if (open.length === 0) return
    for (const placing of open) placing.settlement = settlementOf(placing.decision, threadState, { now, settings: this.#options.settings })
    const settled = await store.settle(open.flatMap(({ record: { threadId, id }, settlement }) => (settlement ? { ...settlement, threadId, id } : [])))
    for (const [index, placing] of open.entries()) placing.settled = settled[index]
  }

  /** One summary is that of several: it is sent once, and each has its receipt. */
  async #sendNow(
    store: NotificationStore, { record, batch }: Settled, { action }: SettlementTerms, summaries: Map<string, Promise<SendReceipt | undefined>>, target?: NotificationTarget,
  ): Promise<SendReceipt | undefined> {
    if (record && (action === 'deliver' || action === 'queue')) return this.#deliver(store, record, modeOf(record), target)
    if (!batch) return undefined
    const sending = summaries.get(batch.id) ?? this.#emit(store, batch)
    summaries.set(batch.id, sending)
    return sending
  }

  /** The run may have ended between the look at the thread and the word that something waits for its end. */
  async #lookAgain(store: NotificationStore, placings: readonly Placing[]): Promise<void> {
    for (const threadId of new Set(placings.map(({ record }) => record.threadId))) await this.#becameIdle(store, threadId)
  }

  /** Sets the timer for what was just put off. */
  #expect(placings: readonly Placing[]): void {
    for (const { settled, settlement } of placings) {
      for (const at of [settled?.record?.deliverAt, settled?.record?.summaryAt]) if (at) this.#dispatcher.expect(at.getTime())
      if (settlement?.whenIdle) this.#dispatcher.expect(settlement.whenIdle.recheckAt)
    }
  }

  // Sending

  /** Sends the full text. A second time it is the same signal, and the thread takes it once. */
  async #deliver(store: NotificationStore, record: NotificationRecord, mode: SendMode, target?: NotificationTarget): Promise<SendReceipt | undefined> {
    const { threadId, resourceId, id } = record
    const runtime = this.#runtime
    try {
      // Since it was taken it may have been put away, or deleted with its thread, which its text would bring back.
      if (!target && (await store.getNotification({ threadId, id }))?.status !== 'pending') return undefined
      const receipt = await this.#sendFull(record, mode, target)
      const now = runtime.clock.now()
      const { dedupeMemoryMs } = this.#options.settings
      const remember = dedupeMemoryMs > 0 ? { rememberUntil: now + dedupeMemoryMs } : {}
      // Whoever waits for its outcome may be gone when it comes.
      const confirm = runtime.agent(record.agentId).canRefuse ? { confirmAt: now + confirmMs } : {}
      await store.delivered([{ threadId, id, signalId: receipt.signal.id, status: 'delivered', now, ...remember, ...confirm }])
      if (confirm.confirmAt !== undefined) this.#confirmations.expect({ threadId, id, deliveredSignalId: receipt.signal.id }, confirm.confirmAt)
      void receipt.outcome.then(({ action, reason }) => action === 'rejected' ? store.failed({ threadId, id, error: reason ?? 'rejected', now: runtime.clock.now() }) : undefined)
        .catch((error: unknown) => this.#warn('a rejected notification could not be marked', error))
      return receipt
    } catch (error) {
      await this.#retryLater(error, record.deliveryAttempts, (retryAt, now) => store.failed({ threadId, id, error: describe(error), now, ...(retryAt === undefined ? {} : { retryAt }) }))
      this.#runtime.logger.warn('a notification could not be delivered', { threadId, resourceId, notificationId: id, error: describe(error) })
      return undefined
    }
  }

  /** Sends the full text of a record to the agent that reads it, and marks it seen. Whoever else sends it sends the same signal. */
  async read(record: NotificationRecord, agentId: string): Promise<void> {
    const { threadId, id } = record
    const receipt = await this.#sendFull({ ...record, agentId }, 'now')
    const store = await this.store()
    await store.delivered([{ threadId, id, signalId: receipt.signal.id, status: 'seen', now: this.#runtime.clock.now() }])
  }

  knows(agentId: string): boolean {
    return this.#runtime.knows(agentId)
  }

  now(): number {
    return this.#runtime.clock.now()
  }

  async #sendFull(record: NotificationRecord, mode: SendMode, target?: NotificationTarget): Promise<SendReceipt> {
    const { threadId, resourceId, agentId } = record
    const runtime = this.#runtime
    const options = { threadId, resourceId, ...(target?.ifIdle ? { ifIdle: target.ifIdle } : {}) }
    const receipt = await runtime.sends.sendAccepted(runtime.agent(agentId), mode, fullSignal(record, runtime.clock.now()), options)
    if (!this.#together) await runtime.store.flush()
    return receipt
  }

  /** Since it was taken what it counts may have been put away, or deleted with its thread. */
  async #emitDue(store: NotificationStore, batch: SummaryBatch): Promise<void> {
    try {
      const now = await store.joinBatches(batch.id, [])
      if (now) await this.#emit(store, now)
    } catch (error) {
      this.#warn('a summary could not be looked at; it is due again when its claim ends', error)
    }
  }

  async #emit(store: NotificationStore, batch: SummaryBatch): Promise<SendReceipt | undefined> {
    const { threadId, resourceId, id } = batch
    try {
      const told = await this.#summaries.send(store, batch)
      if (!told) return undefined
      if (!this.#together) await this.#runtime.store.flush()
      await store.summarised(id, told.signalId)
      return told.receipt
    } catch (error) {
      await this.#retryLater(error, batch.attempts, (retryAt, now) => store.batchFailed({ batchId: id, error: describe(error), now, ...(retryAt === undefined ? {} : { retryAt }) }))
      this.#runtime.logger.warn('a summary could not be delivered', { threadId, resourceId, error: describe(error) })
      return undefined
    }
  }

  /** What fails is tried again, later each time, and a limited number of times. What a close interrupts is no failure. */
  async #retryLater(error: unknown, attempts: number, write: (retryAt: number | undefined, now: number) => Promise<void>): Promise<void> {
    if (this.#runtime.closing) return
    const now = this.#runtime.clock.now()
    const last = attempts + 1 >= this.#options.settings.maxAttempts
    const retryAt = now + Math.min(longestRetryMs, firstRetryMs * 2 ** attempts)
    try {
      await write(last ? undefined : retryAt, now)
      if (!last) this.#dispatcher.expect(retryAt)
    } catch (again) {
      this.#warn(`what failed (${describe(error)}) could not be written down; it is due again when its claim ends`, again)
    }
  }

  // Dispatch

  async #dispatch(limit: number): Promise<Dispatched> {
    const runtime = this.#runtime
    await runtime.open()
    const store = await this.store()
    const now = runtime.clock.now()
    const undecided = { limit: this.#decisions.room, until: this.#decisions.hiddenFrom(now) }
    const due = await store.claimDue({ now, until: now + claimMs, limit, agentIds: runtime.agentIds(), undecided, recheckMs: recheckOf(this.#options.settings) })
    const rank = (record: NotificationRecord) => priorities.indexOf(record.priority)
    // A policy may take its time: nothing else that is due waits for it.
    for (const record of due.undecided) this.#decisions.later(this.#dispatcher.tracked(this.#placeLate(store, record), 'a notification could not be decided about'))
    await Promise.all([
      ...due.batches.map((batch) => this.#emitDue(store, batch)),
      ...due.records.toSorted((one, other) => rank(one) - rank(other)).map((record) => this.#deliver(store, record, modeOf(record))),
      ...due.unconfirmed.map((record) => confirmDelivery(runtime, store, record)),
    ])
    const sent = await Promise.all(due.idleThreads.map((threadId) => this.#becameIdle(store, threadId)))
    const others = due.records.length + due.batches.length + due.undecided.length + due.unconfirmed.length
    return { taken: others + due.idleThreads.length, done: others + sent.reduce((sum, count) => sum + count, 0) }
  }

  /** Nobody decided about it. Where that can't be done its record says why, and nothing else waits for it. */
  async #placeLate(store: NotificationStore, record: NotificationRecord): Promise<void> {
    const { threadId, resourceId, id, agentId } = record
    try {
      await this.#place(store, this.#runtime.agent(agentId), await this.#stateOf(threadId, resourceId), [{ record, outcome: 'coalesced' }])
    } catch (error) {
      this.#warn('a notification could not be decided about', error)
      const lost = isHeedError(error) && error.code === 'thread_forbidden'
      if (lost) await store.failed({ threadId, id, error: describe(error), now: this.#runtime.clock.now() })
    }
  }

  /** Also tells agents of other processes, where something waits for them. */
  async #becameIdle(store: NotificationStore, threadId: string, agentIds = this.#runtime.agentIds()): Promise<number> {
    if (!(await store.awaitsIdle(threadId)) || (await this.#stateOf(threadId)) === 'active') return 0
    const now = this.#runtime.clock.now()
    const records = await store.claimIdle(threadId, { now, until: now + claimMs, limit: this.#options.settings.batchSize, agentIds })
    await Promise.all(records.map((record) => this.#deliver(store, record, 'now')))
    return records.length
  }

  // For the runtime

  /** A run ended here. */
  idle(threadId: string): void {
    this.#confirmations.ended(threadId)
    if (this.#quiet()) return
    const agentIds = this.#options.settings.enabled ? this.#runtime.agentIds() : []
    const tell = async () => {
      const store = await this.#open()
      if (store) await this.#becameIdle(store, threadId, agentIds)
    }
    this.#dispatcher.track(tell(), 'what waited for a thread to be idle could not be sent')
  }

  /** Sends what waited for the end of a run, and answers how much that was, where somebody waits for it. */
  async deliverToIdle(threadId: string): Promise<number> {
    await this.#dispatcher.settled()
    const store = this.#quiet() ? undefined : await this.#open()
    return store ? this.#becameIdle(store, threadId) : 0
  }

  /** Another process changed the inboxes of these resources. */
  changed(resourceIds: readonly string[]): void {
    this.#watchers.ring(resourceIds)
  }

  look(): void {
    this.#watchers.ringAll()
    if (!this.#quiet()) this.#dispatcher.track(this.#open().then((store) => store && this.#dispatcher.findNext()), 'looking for notifications that are due failed')
  }

  /** Does what is due. Answers how much that was. */
  async sweep(limit?: number): Promise<number> {
    if (this.#quiet() || !(await this.#open())) return 0
    return limit === undefined ? this.#dispatcher.look() : this.#dispatcher.once(limit)
  }

  /** Resolves when what was left undecided is decided, and sent where that is to be. */
  decided(): Promise<void> {
    return this.#decisions.settled()
  }

  async close(): Promise<void> {
    this.#watchers.close()
    this.#decisions.close()
    await this.#dispatcher.close()
    this.#stopListening?.()
    this.#bell.close()
    const store = await this.#opening?.catch(() => undefined)
    if (store) leave(store, this)
  }

  #quiet(): boolean {
    return this.#options.ephemeral && this.#opening === undefined
  }

  #open(): Promise<NotificationStore | undefined> {
    if (this.#opening) return this.#opening
    this.#opening = this.#find().catch((error: unknown) => {
      this.#opening = undefined
      throw error
    })
    // Sweeps before the first use skip a database in memory; another Heed on the same store may have left something that is due.
    if (this.#options.ephemeral) this.#opening.then(() => this.look(), () => {})
    return this.#opening
  }

  async #find(): Promise<NotificationStore | undefined> {
    await this.#runtime.open()
    const store = await this.#options.store()
    await store?.open()
    if (store) {
      join(store, this)
      this.#stopListening = store.onChange((resourceIds, due) => {
        if (due) this.#dispatcher.track(this.#dispatcher.findNext(), 'looking for notifications that are due failed')
        this.#watchers.ring(resourceIds)
        this.#bell.ring(resourceIds)
      })
    }
    const threads: object = this.#runtime.store
    this.#together = store !== undefined && 'getStore' in threads && typeof threads.getStore === 'function' && (await threads.getStore('notifications')) === store
    return store
  }

  async #stateOf(threadId: string, resourceId?: string): Promise<ThreadState> {
    return stateOf(await this.#runtime.store.getThread({ threadId, ...(resourceId === undefined ? {} : { resourceId }) }))
  }

  #warn(message: string, error: unknown): void {
    if (!this.#runtime.closing) this.#runtime.logger.warn(message, { error: describe(error) })
  }
}
