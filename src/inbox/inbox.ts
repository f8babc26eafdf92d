import { describe, HeedError, isHeedError } from '../base/errors.ts'
import type { SendMode } from '../machine.ts'
import type { SendReceipt } from '../thread/send/receipt.ts'
import type { BackgroundService } from '../thread/runtime/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import type { SettlementTerms, NotificationRecord, NotificationStore, Settled, SummaryBatch } from '../store/contract/notifications.ts'
import { callerQuota } from '../store/contract/usage.ts'
import { ChangeAnnouncer, checkSubscribe, InboxWatchers, type InboxSubscribeOptions, type InboxSubscription } from './subscription.ts'
import { Confirmations, confirmDelivery, confirmMs } from './confirmations.ts'
import { Decisions, priorities, decideByRules, type NotifiedAgent } from './policy.ts'
import { claimMs, Dispatcher, type Dispatched } from '../schedule/dispatcher.ts'
import { checkNotifications, type CheckedNotification, type NotificationInput } from './input.ts'
import { checkTarget, type InboxSettings, type NotificationTarget } from './options.ts'
import {
  duplicate, isSentNow, modeOf, recheckOf, notificationResult, settlementOf, threadStateOf, type ArrivedNotification, type EarlyDecision,
  type NotificationResult, type DecidedNotification, type ThreadState,
} from './settlement.ts'
import { addReader, removeReader } from './tool.ts'
import { fullSignal } from './signals.ts'
import { Summaries } from './summaries.ts'

const firstRetryMs = 1_000
const longestRetryMs = 300_000

interface InboxOptions {
  /** The inbox of the storage, if it has one. */
  store(): Promise<NotificationStore | undefined>
  settings: InboxSettings
  /** The store is empty when the process starts: it need not be polled before the inbox is used. */
  ephemeral: boolean
}

/** The notifications of one store in one process: stores them, and sends them when they are due. */
export class Inbox implements BackgroundService {
  readonly #runtime: ThreadRuntime
  readonly #options: InboxOptions
  readonly #dispatcher: Dispatcher
  readonly #watchers: InboxWatchers
  readonly #announcer: ChangeAnnouncer
  readonly #confirmations: Confirmations
  readonly #summaries: Summaries
  readonly #decisions: Decisions
  #stopListening: (() => void) | undefined
  #opening: Promise<NotificationStore | undefined> | undefined
  /** Threads and notifications are in one database, so that writes are durable in their order. */
  #sharesDatabase = false

  constructor(runtime: ThreadRuntime, options: InboxOptions) {
    this.#runtime = runtime
    this.#options = options
    this.#watchers = new InboxWatchers(runtime.keepAlive)
    this.#decisions = new Decisions(runtime, options.settings.decideTimeoutMs)
    this.#summaries = new Summaries(runtime, async (store) => (this.#sharesDatabase ? undefined : store.flush()))
    this.#announcer = new ChangeAnnouncer((resourceIds) => runtime.peers.announceInbox(resourceIds))
    this.#dispatcher = new Dispatcher(runtime, options.settings, {
      dispatch: (limit) => this.#dispatch(limit),
      nextDue: async () => (await this.store()).nextDue(this.#runtime.agentIds()),
    })
    this.#confirmations = new Confirmations(runtime, this.#dispatcher, () => this.store())
  }

  /** The notification store; throws `unsupported_option` where the storage has none. */
  async store(): Promise<NotificationStore> {
    const store = await this.#open()
    if (store) return store
    throw new HeedError('unsupported_option', "The storage has no 'notifications' domain. Use one that has it, such as LibSQLStore.", {
      details: { domain: 'notifications' },
    })
  }

  /** Subscribes to the changes of an inbox, made in any process. */
  async subscribe(options: InboxSubscribeOptions): Promise<InboxSubscription> {
    checkSubscribe(options)
    return this.#watchers.open(await this.store(), options)
  }

  // Ingress

  async send(
    agent: NotifiedAgent, inputs: readonly NotificationInput[], target: NotificationTarget, { areNew = false } = {},
  ): Promise<NotificationResult[]> {
    checkTarget(target)
    const checked = checkNotifications(inputs)
    const { threadId, resourceId } = target
    const runtime = this.#runtime
    runtime.register(agent)
    await runtime.open()
    const store = await this.store()
    const thread = await runtime.store.getThread({ threadId, resourceId })
    const threadState = threadStateOf(thread)
    const now = runtime.clock.now()
    const early = checked.map((item) => this.#decideEarly(agent, item, threadState, now))
    const ingested = await store.ingest(
      checked.map((item, index) => {
        const { settlement } = early[index] ?? {}
        return {
          ...item,
          id: item.id ?? runtime.newId(),
          threadId,
          resourceId,
          agentId: agent.id,
          now,
          undecidedUntil: this.#decisions.hiddenUntil(now),
          rememberMs: this.#options.settings.dedupeMemoryMs,
          ...(settlement ? { settlement } : {}),
          ...(thread || item.id === undefined ? {} : { awaitsThread: true }),
          ...(areNew ? { isNew: true } : {}),
          ...callerQuota(),
        }
      }),
    )
    return this.#decideAndSend(store, agent, threadState, ingested.map((one, index) => ({ ...one, early: early[index] })), target)
  }

  /**
   * Stores a notification for an agent that is not in this process; a process that has the agent decides about it. Resolves when the record
   * would survive a power cut. Rejects with `thread_forbidden` for a thread of another resource.
   */
  async ingestForPeer(input: NotificationInput, target: { agentId: string; threadId: string; resourceId: string }): Promise<void> {
    const [checked] = checkNotifications([input])
    const runtime = this.#runtime
    const { agentId, threadId, resourceId } = target
    const store = await this.store()
    await runtime.store.getThread({ threadId, resourceId })
    const now = runtime.clock.now()
    if (checked)
      await store.ingest([{ ...checked, id: checked.id ?? runtime.newId(), threadId, resourceId, agentId, now, undecidedUntil: now }])
    await store.flush()
  }

  /**
   * Where the policy has no `decide()`, the decision is stored with the record. Not for a record with a `coalesceKey`, whose contents a
   * later one may replace.
   */
  #decideEarly(
    agent: NotifiedAgent, { source, priority = 'medium', coalesceKey }: CheckedNotification, threadState: ThreadState, now: number,
  ): EarlyDecision | undefined {
    const policy = agent.deliveryPolicy ?? {}
    if (policy.decide || coalesceKey !== undefined) return undefined
    const decision = decideByRules(policy, { record: { source, priority }, threadState, now: new Date(now) })
    return { decision, settlement: settlementOf(decision, threadState, { now, settings: this.#options.settings }) }
  }

  /** Decides about stored notifications, stores the decisions, and sends what is due at once, in the order of arrival. */
  async #decideAndSend(
    store: NotificationStore,
    agent: NotifiedAgent,
    threadState: ThreadState,
    arrivals: readonly ArrivedNotification[],
    target?: NotificationTarget,
  ): Promise<NotificationResult[]> {
    const notifications = await Promise.all(
      arrivals.map(async ({ record, outcome, settled, early }): Promise<DecidedNotification> => {
        if (outcome === 'counted') return { record, decision: duplicate }
        return early && settled
          ? { record, settled, ...early }
          : { record, decision: await this.#decisions.decide(agent, record, threadState) }
      }),
    )
    await this.#settle(store, notifications, threadState)
    const receipts = new Map<string, SendReceipt>()
    const summaries = new Map<string, Promise<SendReceipt | undefined>>()
    await Promise.all(
      notifications.map(async ({ record, settled, settlement }) => {
        const receipt = settled?.applied && settlement ? await this.#sendNow(store, settled, settlement, summaries, target) : undefined
        if (receipt) receipts.set(record.id, receipt)
      }),
    )
    if (this.#options.settings.enabled && notifications.some(({ settlement }) => settlement?.whenIdle))
      await this.#recheckIdle(store, notifications)
    this.#scheduleDue(notifications)
    return Promise.all(
      notifications.map(async ({ record, decision, settled, settlement }) => {
        const receipt = receipts.get(record.id)
        // A send may have changed the record, also where it failed, and a repeated notification is as the last one left it.
        const known = notifications.length === 1 && settled && !isSentNow(settled, settlement) ? settled.record : undefined
        const stored = known ?? (await store.getNotification({ threadId: record.threadId, id: record.id })) ?? record
        return notificationResult(store, stored, decision, receipt && { receipt, acceptance: await receipt.acceptance })
      }),
    )
  }

  /** Stores the decisions that are not stored yet. */
  async #settle(store: NotificationStore, notifications: readonly DecidedNotification[], threadState: ThreadState): Promise<void> {
    const now = this.#runtime.clock.now()
    const open = notifications.filter(({ decision, settled }) => decision !== duplicate && !settled)
    if (open.length === 0) return
    for (const decided of open) decided.settlement = settlementOf(decided.decision, threadState, { now, settings: this.#options.settings })
    const settled = await store.settle(
      open.flatMap(({ record: { threadId, id }, settlement }) => (settlement ? { ...settlement, threadId, id } : [])),
    )
    for (const [index, decided] of open.entries()) decided.settled = settled[index]
  }

  /** Several notifications may be in one summary: it is sent once, and each gets its receipt. */
  async #sendNow(
    store: NotificationStore,
    { record, batch }: Settled,
    { action }: SettlementTerms,
    summaries: Map<string, Promise<SendReceipt | undefined>>,
    target?: NotificationTarget,
  ): Promise<SendReceipt | undefined> {
    if (record && (action === 'deliver' || action === 'queue')) return this.#deliver(store, record, modeOf(record), target)
    if (!batch) return undefined
    const sending = summaries.get(batch.id) ?? this.#emit(store, batch)
    summaries.set(batch.id, sending)
    return sending
  }

  /** The run may have ended between the read of the thread and the write of the record that waits for its end. */
  async #recheckIdle(store: NotificationStore, notifications: readonly DecidedNotification[]): Promise<void> {
    for (const threadId of new Set(notifications.map(({ record }) => record.threadId))) await this.#deliverWhenIdle(store, threadId)
  }

  /** Sets the timer for deferred notifications. */
  #scheduleDue(notifications: readonly DecidedNotification[]): void {
    for (const { settled, settlement } of notifications) {
      for (const at of [settled?.record?.deliverAt, settled?.record?.summaryAt]) if (at) this.#dispatcher.wakeAt(at.getTime())
      if (settlement?.whenIdle) this.#dispatcher.wakeAt(settlement.whenIdle.recheckAt)
    }
  }

  // Sending

  /** Sends the full text. A repeated send has the same signal id, and the thread accepts it once. */
  async #deliver(
    store: NotificationStore, record: NotificationRecord, mode: SendMode, target?: NotificationTarget,
  ): Promise<SendReceipt | undefined> {
    const { threadId, resourceId, id } = record
    const runtime = this.#runtime
    try {
      // Since it was claimed, the record may have been dismissed, or deleted with its thread, which a send would create again.
      if (!target && (await store.getNotification({ threadId, id }))?.status !== 'pending') return undefined
      const receipt = await this.#sendFull(record, mode, target)
      const now = runtime.clock.now()
      const { dedupeMemoryMs } = this.#options.settings
      const remember = dedupeMemoryMs > 0 ? { rememberUntil: now + dedupeMemoryMs } : {}
      // The process that waits for the outcome may stop before it is known.
      const confirm = runtime.agent(record.agentId).canRejectInput ? { confirmAt: now + confirmMs } : {}
      await store.delivered([{ threadId, resourceId, id, signalId: receipt.signal.id, status: 'delivered', now, ...remember, ...confirm }])
      if (confirm.confirmAt !== undefined)
        this.#confirmations.expect({ threadId, id, deliveredSignalId: receipt.signal.id }, confirm.confirmAt)
      void receipt.outcome
        .then(({ action, reason }) =>
          action === 'rejected'
            ? store.failed({ threadId, id, error: reason ?? 'rejected', signalId: receipt.signal.id, now: runtime.clock.now() })
            : undefined,
        )
        .catch((error: unknown) => this.#warn('a rejected notification could not be marked', error))
      return receipt
    } catch (error) {
      await this.#retryLater(error, record.deliveryAttempts, (retryAt, now) =>
        store.failed({ threadId, id, error: describe(error), now, ...(retryAt === undefined ? {} : { retryAt }) }),
      )
      this.#runtime.logger.warn('a notification could not be delivered', {
        threadId, resourceId, notificationId: id, error: describe(error),
      })
      return undefined
    }
  }

  /** Sends the full text of a record to the agent that reads it, and marks it seen. The signal id is the same as that of a delivery. */
  async read(record: NotificationRecord, agentId: string): Promise<void> {
    const { threadId, id } = record
    const receipt = await this.#sendFull({ ...record, agentId }, 'now')
    const store = await this.store()
    await store.delivered([{ threadId, id, signalId: receipt.signal.id, status: 'seen', now: this.#runtime.clock.now() }])
  }

  hasAgent(agentId: string): boolean {
    return this.#runtime.hasAgent(agentId)
  }

  now(): number {
    return this.#runtime.clock.now()
  }

  async #sendFull(record: NotificationRecord, mode: SendMode, target?: NotificationTarget): Promise<SendReceipt> {
    const { threadId, resourceId, agentId } = record
    const runtime = this.#runtime
    const options = { threadId, resourceId, ...(target?.ifIdle ? { ifIdle: target.ifIdle } : {}) }
    const receipt = await runtime.sends.sendAccepted(runtime.agent(agentId), mode, fullSignal(record, runtime.clock.now()), options)
    if (!this.#sharesDatabase) await runtime.store.flush()
    return receipt
  }

  /** Since it was claimed, the notifications of the batch may have been dismissed, or deleted with their thread. */
  async #emitDue(store: NotificationStore, batch: SummaryBatch): Promise<void> {
    try {
      const now = await store.joinBatches(batch.id, [])
      if (now) await this.#emit(store, now)
    } catch (error) {
      this.#warn('a summary could not be read; it is due again when its claim ends', error)
    }
  }

  async #emit(store: NotificationStore, batch: SummaryBatch): Promise<SendReceipt | undefined> {
    const { threadId, resourceId, id } = batch
    try {
      const sent = await this.#summaries.send(store, batch)
      if (!sent) return undefined
      if (!this.#sharesDatabase) await this.#runtime.store.flush()
      await store.summarised(id, sent.signalId)
      return sent.receipt
    } catch (error) {
      await this.#retryLater(error, batch.attempts, (retryAt, now) =>
        store.batchFailed({ batchId: id, error: describe(error), now, ...(retryAt === undefined ? {} : { retryAt }) }),
      )
      this.#runtime.logger.warn('a summary could not be delivered', { threadId, resourceId, error: describe(error) })
      return undefined
    }
  }

  /** Failures are retried with growing delays, a limited number of times. A close is not a failure. */
  async #retryLater(error: unknown, attempts: number, write: (retryAt: number | undefined, now: number) => Promise<void>): Promise<void> {
    if (this.#runtime.closing) return
    const now = this.#runtime.clock.now()
    const last = attempts + 1 >= this.#options.settings.maxAttempts
    const retryAt = now + Math.min(longestRetryMs, firstRetryMs * 2 ** attempts)
    try {
      await write(last ? undefined : retryAt, now)
      if (!last) this.#dispatcher.wakeAt(retryAt)
    } catch (again) {
      this.#warn(`a failure (${describe(error)}) could not be stored; the delivery is due again when its claim ends`, again)
    }
  }

  // Dispatch

  async #dispatch(limit: number): Promise<Dispatched> {
    const runtime = this.#runtime
    await runtime.open()
    const store = await this.store()
    const now = runtime.clock.now()
    const undecided = { limit: this.#decisions.room, until: this.#decisions.hiddenUntil(now) }
    const due = await store.claimDue({
      now, until: now + claimMs, limit, agentIds: runtime.agentIds(), undecided, recheckMs: recheckOf(this.#options.settings),
    })
    const rank = (record: NotificationRecord) => priorities.indexOf(record.priority)
    // A policy may be slow: other notifications that are due do not wait for it.
    for (const record of due.undecided)
      this.#decisions.trackLate(this.#dispatcher.tracked(this.#decideLate(store, record), 'no decision about a notification could be made'))
    await Promise.all([
      ...due.batches.map((batch) => this.#emitDue(store, batch)),
      ...due.records.toSorted((one, other) => rank(one) - rank(other)).map((record) => this.#deliver(store, record, modeOf(record))),
      ...due.unconfirmed.map((record) => confirmDelivery(runtime, store, record)),
    ])
    const sent = await Promise.all(due.idleThreads.map((threadId) => this.#deliverWhenIdle(store, threadId)))
    const others = due.records.length + due.batches.length + due.undecided.length + due.unconfirmed.length
    return { taken: others + due.idleThreads.length, done: others + sent.reduce((sum, count) => sum + count, 0) }
  }

  /** Decides about a notification whose process stopped before it decided. A failure is stored on the record. */
  async #decideLate(store: NotificationStore, record: NotificationRecord): Promise<void> {
    const { threadId, resourceId, id, agentId } = record
    try {
      await this.#decideAndSend(store, this.#runtime.agent(agentId), await this.#stateOf(threadId, resourceId), [
        { record, outcome: 'coalesced' },
      ])
    } catch (error) {
      this.#warn('no decision about a notification could be made', error)
      const lost = isHeedError(error) && error.code === 'thread_forbidden'
      if (lost) await store.failed({ threadId, id, error: describe(error), now: this.#runtime.clock.now() })
    }
  }

  /** Sends the notifications that are due when the thread is idle. */
  async #deliverWhenIdle(store: NotificationStore, threadId: string, agentIds = this.#runtime.agentIds()): Promise<number> {
    if (!(await store.awaitsIdle(threadId)) || (await this.#stateOf(threadId)) === 'active') return 0
    const now = this.#runtime.clock.now()
    const records = await store.claimIdle(threadId, { now, until: now + claimMs, limit: this.#options.settings.batchSize, agentIds })
    await Promise.all(records.map((record) => this.#deliver(store, record, 'now')))
    return records.length
  }

  // For the runtime

  /** The last run of the thread ended here. */
  onThreadIdle(threadId: string): void {
    this.#confirmations.confirmThread(threadId)
    if (this.#isUnused()) return
    const agentIds = this.#options.settings.enabled ? this.#runtime.agentIds() : []
    const deliver = async () => {
      const store = await this.#open()
      if (store) await this.#deliverWhenIdle(store, threadId, agentIds)
    }
    this.#dispatcher.track(deliver(), 'notifications for an idle thread could not be sent')
  }

  /** Sends the notifications that are due when the thread is idle. Returns how many notifications it sent. */
  async deliverToIdle(threadId: string): Promise<number> {
    await this.#dispatcher.whenIdle()
    const store = this.#isUnused() ? undefined : await this.#open()
    return store ? this.#deliverWhenIdle(store, threadId) : 0
  }

  /** Another process changed the inboxes of these resources. */
  onInboxChange(resourceIds: readonly string[]): void {
    this.#watchers.notify(resourceIds)
  }

  poll(): void {
    this.#watchers.notifyAll()
    if (!this.#isUnused())
      this.#dispatcher.track(this.#open().then((store) => store && this.#dispatcher.scheduleNext()), 'the read of due notifications failed')
  }

  /** Dispatches what is due. Returns how much that was. */
  async sweep(limit?: number): Promise<number> {
    if (this.#isUnused() || !(await this.#open())) return 0
    return limit === undefined ? this.#dispatcher.dispatchAll() : this.#dispatcher.dispatchOnce(limit)
  }

  /** Resolves when the late decisions are made, and their notifications sent where they are due. */
  whenDecided(): Promise<void> {
    return this.#decisions.whenIdle()
  }

  async close(): Promise<void> {
    this.#watchers.close()
    this.#decisions.close()
    await this.#dispatcher.close()
    this.#stopListening?.()
    this.#announcer.close()
    const store = await this.#opening?.catch(() => undefined)
    if (store) removeReader(store, this)
  }

  #isUnused(): boolean {
    return this.#options.ephemeral && this.#opening === undefined
  }

  #open(): Promise<NotificationStore | undefined> {
    if (this.#opening) return this.#opening
    this.#opening = this.#openStore().catch((error: unknown) => {
      this.#opening = undefined
      throw error
    })
    // Sweeps before the first use skip a database in memory; another Heed on the same store may have left notifications that are due.
    if (this.#options.ephemeral)
      this.#opening.then(() => this.poll(), () => {})
    return this.#opening
  }

  async #openStore(): Promise<NotificationStore | undefined> {
    await this.#runtime.open()
    const store = await this.#options.store()
    await store?.open()
    if (store) {
      addReader(store, this)
      this.#stopListening = store.onChange((resourceIds, due) => {
        if (due) this.#dispatcher.track(this.#dispatcher.scheduleNext(), 'the read of due notifications failed')
        this.#watchers.notify(resourceIds)
        this.#announcer.announce(resourceIds)
      })
    }
    const threads: object = this.#runtime.store
    this.#sharesDatabase =
      store !== undefined &&
      'getStore' in threads &&
      typeof threads.getStore === 'function' &&
      (await threads.getStore('notifications')) === store
    return store
  }

  async #stateOf(threadId: string, resourceId?: string): Promise<ThreadState> {
    return threadStateOf(await this.#runtime.store.getThread({ threadId, ...(resourceId === undefined ? {} : { resourceId }) }))
  }

  #warn(message: string, error: unknown): void {
    if (!this.#runtime.closing) this.#runtime.logger.warn(message, { error: describe(error) })
  }
}
