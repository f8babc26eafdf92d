import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import { InFlight } from '../../base/promises.ts'
import { isoTime, signalToRow } from '../../signals/conversions.ts'
import type { SendMode } from '../../machine.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Signal } from '../../signals/signal.ts'
import type { Accepted, LaneWrite, Send } from '../../store/contract/threads.ts'
import { callerQuota } from '../../store/contract/usage.ts'
import { AcceptTrace } from '../../tracing/accept-trace.ts'
import { telemetryFor } from '../../tracing/telemetry.ts'
import { declineAll } from '../control/resume.ts'
import type { SendClaim } from '../runtime/run-slots.ts'
import type { Runnable } from '../runtime/runnable.ts'
import type { Target, ThreadRuntime } from '../runtime/runtime.ts'
import { publishPersisted } from '../stream/echoes.ts'
import { outcomeOfMail, outcomeOfRow, resolveLocalWaiters, resolveRemoteWaiters } from './outcomes.ts'
import { Receipt, type AcceptedSend, type SendReceipt, type SignalOutcome, type StateReceipt } from './receipt.ts'
import { checkSendOptions, discardInsteadOfPersist, hasRun, persists, runOptions, type CheckedSend, type SendOptions } from './options.ts'
import { storedOptions, threadFields, withMemoryOptions } from './stored-options.ts'
import { checkRunId } from './turns.ts'

/** The parts of a send that its caller determined. */
interface Preset {
  /** The id of the run that the send starts if it wakes the thread. */
  runId?: string
  /** Whether the signal's id is a caller id: the thread may have it already. */
  named?: boolean
  lane?: LaneWrite
  /** When the thread was created: it is not sent to a later one with the same id. */
  threadCreatedAt?: number
}

/** Routes of signals that are pending on an active thread. */
const pendingRoutes: ReadonlySet<string> = new Set<Accepted['route']>(['deliver', 'interrupt', 'queue'])

/** The state of one send on its way to the store. */
interface PreparedSend extends Preset {
  mode: SendMode
  signal: Signal
  send: CheckedSend
  runId: string
  newRunId: boolean
  now: number
  target: Target | undefined
  order: SendOrder
}

/** The order of a send among those of its thread: they reach the store in the order of their calls, however long each takes to prepare. */
interface SendOrder {
  before: Promise<void> | undefined
  /** It was passed to the store, or failed before. */
  reached: boolean
  done?(): void
}

interface StartedSend {
  receipt: Receipt
  work: Promise<AcceptedSend>
}

/** Sends signals to the threads of a runtime. */
export class Sends {
  readonly #runtime: ThreadRuntime
  /** For each thread, the last send that has not reached the store. */
  readonly #last = new Map<string, Promise<void>>()
  /** For each thread that is idle here, the run that the first pending send starts if it wakes the thread. Later sends enter it. */
  readonly #starting = new Map<string, { runId: string; agentId: string; resourceId: string }>()
  /** Sends whose threads wait for a process that begins their run. */
  readonly #deferred = new WeakSet<Accepted>()
  /** Sends on their way to the store or to the disk. A close waits for them. */
  readonly inFlight = new InFlight()

  constructor(runtime: ThreadRuntime) {
    this.#runtime = runtime
  }

  /** Sends a signal and returns a receipt at once. Failures of the store are reported through the receipt. */
  send(agent: Runnable, mode: SendMode, signal: Signal, send: CheckedSend, preset: Preset = {}): SendReceipt {
    return this.#start(agent, mode, signal, send, preset).receipt
  }

  /**
   * Sends a signal whose id is derived from its contents. Resolves when it is accepted. Rejects with `id_taken` where the thread has a
   * message of that id which was not sent: nothing of the signal would be stored.
   */
  async sendAccepted(
    agent: Runnable, mode: SendMode, signal: Signal, options: SendOptions, preset: Pick<Preset, 'threadCreatedAt'> = {},
  ): Promise<SendReceipt> {
    const { receipt, work } = this.#start(agent, mode, signal, checkSendOptions(options), { ...preset, named: true })
    await work
    return receipt
  }

  /** Sends the state of a lane. Resolves when it is accepted, or skipped because the lane has this state already. */
  async sendState(agent: Runnable, signal: Signal, send: CheckedSend, preset: Preset & { lane: LaneWrite }): Promise<StateReceipt> {
    const { receipt, work } = this.#start(agent, 'now', signal, send, preset)
    const { answer } = await work
    if (answer.route === 'skipped') return { accepted: true, skipped: true, reason: 'unchanged' }
    return Object.assign(receipt, { skipped: false as const, signal: (await receipt.acceptance).signal })
  }

  #start(agent: Runnable, mode: SendMode, signal: Signal, checked: CheckedSend, preset: Preset): StartedSend {
    const runtime = this.#runtime
    const { options } = checked
    const send = signal.transient ? discardInsteadOfPersist(checked) : checked
    runtime.register(agent)
    const now = runtime.clock.now()
    const accepted: Signal = { ...signal }
    accepted.acceptedAt = isoTime(now)
    const target = this.#knownTarget(options)
    const chosen = preset.runId ?? options.ifIdle?.streamOptions?.runId
    const fresh = chosen ?? runtime.newId()
    const active = target ? this.#activeRun(agent, target) : options.runId
    const enters = mode === 'queue' ? undefined : active
    const runId = hasRun(active === undefined ? send.ifIdle : send.ifActive) ? (enters ?? fresh) : signal.id
    const threadId = target?.threadId ?? options.threadId
    const order: SendOrder = { before: threadId === undefined ? undefined : this.#last.get(threadId), reached: false }
    const { named, lane, threadCreatedAt } = preset
    const newRunId = chosen === undefined
    const work = this.#accept(
      agent, { mode, signal: accepted, send, runId: fresh, newRunId, named, lane, threadCreatedAt, now, target, order },
    )
    if (threadId !== undefined && !order.reached) this.#orderAfter(threadId, order)
    const outcome = work.then(finalOutcome, rejected)
    if (target && active === undefined && send.ifIdle.behavior === 'wake') this.#reserveRun(agent, mode, fresh, target, outcome)
    return { receipt: new Receipt({ runId, signal: accepted, persists: persists(send), work, outcome, flush: this.flush }), work }
  }

  async #accept(agent: Runnable, sending: PreparedSend): Promise<AcceptedSend> {
    const runtime = this.#runtime
    const { signal, order } = sending
    const telemetry = telemetryFor(runtime.tracing)
    const trace =
      telemetry && new AcceptTrace(telemetry, runtime.tracing || {}, { agentId: agent.id, signal, mode: sending.mode, lane: sending.lane })
    let accepting: Promise<Accepted> | undefined
    let target: Target
    let row: MessageRow
    let outcome: Promise<SignalOutcome>
    try {
      target = sending.target ?? (await this.#findTarget(sending.send.options, sending.named ? signal.id : undefined))
      row = signalToRow(signal, target)
      const given = runOptions(sending.send.options.ifIdle?.streamOptions, target)
      if (given?.runId !== undefined) await checkRunId(runtime, given.runId, target.threadId)
      const fields = given && threadFields(agent, given)
      const thread = fields && (await fields)
      const memory = agent.memoryOptions?.(given ?? {})
      const streamOptions = memory ? withMemoryOptions(given ?? {}, await memory) : given
      const stored = streamOptions && storedOptions(agent, streamOptions)
      if (order.before) await order.before
      outcome = runtime.waiters.waitForOutcome(target.threadId, signal.id)
      if (streamOptions) runtime.waiters.setOptions(target.threadId, signal.id, streamOptions)
      const send = this.#storeInput(agent, sending, target, trace ? trace.mark(row) : row)
      if (stored) send.options = stored
      if (thread) send.thread = thread
      if (given?.runId !== undefined) send.givenRunId = true
      accepting = this.accept(send)
    } catch (error) {
      trace?.fail(error)
      throw error
    } finally {
      order.reached = true
      order.done?.()
    }
    // From here on the signal may be stored: a closing process waits until the sender has the answer.
    this.inFlight.begin()
    try {
      let answer: Accepted
      try {
        answer = await accepting
        trace?.end(target.threadId, answer)
      } catch (error) {
        trace?.fail(error)
        runtime.waiters.resolveOutcome(target.threadId, signal.id, rejected(error))
        throw error
      }
      const settling = this.#resolveAccepted(agent, target, signal.id, answer)
      if (settling) await settling.catch((error: unknown) => this.#readOutcomeLater(target.threadId, signal.id, error))
      return { answer, content: row.content, outcome }
    } finally {
      this.inFlight.end()
    }
  }

  /** The signal is stored: a failure of what is read or claimed after that must not reject the send. A later sweep reads its outcome. */
  #readOutcomeLater(threadId: string, id: string, error: unknown): void {
    const { waiters, logger, closing } = this.#runtime
    waiters.markAccepted(threadId, id)
    waiters.awaitRemote(threadId, id)
    if (!closing) logger.warn('the outcome of a stored signal could not be read; it is read again', { threadId, error: describe(error) })
  }

  #storeInput(
    agent: Runnable, { mode, signal, send, runId, newRunId, named, lane, threadCreatedAt, now }: PreparedSend, target: Target,
    row: MessageRow,
  ): Send {
    const { owner, windows } = this.#runtime
    const made: Send = {
      threadId: target.threadId,
      resourceId: target.resourceId,
      agentId: agent.id,
      id: signal.id,
      mode,
      ifActive: send.ifActive,
      ifIdle: send.ifIdle,
      rows: [row],
      runId,
      newRunId,
      claim: { owner, begin: windows },
      now,
    }
    if (named) made.given = [signal.id]
    if (lane) made.lane = lane
    if (threadCreatedAt !== undefined) made.threadCreatedAt = threadCreatedAt
    return made
  }

  /** Stores a send, and starts the run, the echo or the interrupt that follows from it. */
  accept(send: Send): Promise<Accepted> {
    const keeps = send.ifIdle.behavior === 'persist' || send.ifActive.behavior === 'persist'
    return keeps ? this.#runtime.pendingEchoes.persisted.during(send.threadId, () => this.#store(send)) : this.#store(send)
  }

  async #store(send: Send): Promise<Accepted> {
    const runtime = this.#runtime
    const { quota } = callerQuota()
    if (quota) send.quota = quota
    if (!runtime.isOpen || runtime.closing) await runtime.open()
    if (runtime.lease.failure) throw runtime.lease.failure
    // A run of the thread here has its slot.
    const isHosted = !runtime.draining && runtime.hostOf(send.threadId) !== undefined
    const checking = isHosted ? undefined : runtime.runSlots.checkOverload(send)
    if (checking) await checking
    const { mayClaim, slot }: SendClaim = isHosted ? { mayClaim: true } : runtime.runSlots.forSend(send)
    const { lapses } = runtime.lease
    const accept = () => runtime.store.accept([mayClaim ? ownSend(send, runtime) : withoutClaim(send)])
    const [answer] = await runtime.retryOnce(send.threadId, accept).catch((error: unknown) => {
      slot?.()
      throw error
    })
    if (!answer || 'error' in answer || !answer.fence) slot?.()
    if (!answer) throw new HeedError('store_failed', 'The store returned no answer to a send.')
    if ('error' in answer) throw answer.error
    const isOurs = answer.owner === undefined || answer.owner === runtime.owner
    if (!mayClaim && answer.owner === undefined && answer.state === 'pending') this.#defer(send, answer)
    if (answer.fence) {
      // If the lease lapsed while the answer was under way, another process may have the thread: the host asks the store.
      const begun = lapses === runtime.lease.lapses ? answer.begun : undefined
      runtime.run(answer.fence, send.resourceId, begun, slot)
    } else if (answer.route === 'persist' && isOurs && !answer.duplicate) publishPersisted(runtime, send, answer)
    // It may have entered the run before this process received the answer.
    else if (answer.route === 'interrupt' && runtime.waiters.awaitsOutcome(send.threadId, send.id)) this.#interrupt(send, answer.owner)
    return answer
  }

  /** This process begins no run of the thread now: it is claimed when a slot is free, here or in another process. */
  #defer({ threadId, resourceId }: Send, answer: Accepted): void {
    this.#deferred.add(answer)
    this.#runtime.peers.requestRunner(threadId)
    this.#runtime.runSlots.claimLater(threadId, resourceId)
  }

  /** Cuts the stream of the run that a signal interrupts, in whichever process it runs. */
  #interrupt({ threadId, id }: Send, owner: string | undefined): void {
    const { peers } = this.#runtime
    if (owner === undefined || owner === this.#runtime.owner) this.#runtime.hostOf(threadId)?.interrupt(id)
    else peers.interrupt(owner, threadId, id)
  }

  /**
   * Resolves the outcome where the answer of the store decides it, else leaves that to the run that drains the signal. A promise only where
   * the store is read: most sends need none.
   */
  #resolveAccepted(agent: Runnable, target: Target, id: string, answer: Accepted): Promise<void> | undefined {
    if (this.#deferred.has(answer)) {
      const about = answer.runId === undefined ? {} : { runId: answer.runId }
      this.#runtime.waiters.resolveOutcome(target.threadId, id, { action: 'queued', reason: 'busy', ...about })
      return undefined
    }
    const unowned = answer.owner === undefined && pendingRoutes.has(answer.route)
    if (unowned) return this.#resolveUnowned(agent, target, id, answer)
    if (answer.duplicate) return this.#resolveDuplicate(target, id, answer)
    return this.#resolveOrWait(target.threadId, id, answer, outcomeOfAnswer(answer, false))
  }

  async #resolveDuplicate(target: Target, id: string, answer: Accepted): Promise<void> {
    await this.#resolveOrWait(target.threadId, id, answer, await this.#outcomeOfFirst(target, id, answer, false))
  }

  #resolveOrWait(threadId: string, id: string, { owner }: Accepted, outcome: SignalOutcome | undefined): Promise<void> | undefined {
    const runtime = this.#runtime
    if (outcome) runtime.waiters.resolveOutcome(threadId, id, outcome)
    else {
      runtime.waiters.markAccepted(threadId, id)
      if (owner !== undefined && owner !== runtime.owner) return this.#awaitRemote(threadId, id)
      // The run may have ended before this process received the answer.
      if (owner !== undefined && !runtime.hostOf(threadId)) runtime.resolveWaiters(threadId)
    }
    return undefined
  }

  /** The runner is gone and no process has claimed the thread: this process claims it if it can. */
  async #resolveUnowned(agent: Runnable, target: Target, id: string, answer: Accepted): Promise<void> {
    const runtime = this.#runtime
    const { threadId } = target
    const claimed = await runtime.wake(threadId)
    const isSuspended = !claimed && (await runtime.store.getThread(target))?.status === 'suspended'
    const first = !claimed && answer.duplicate ? await this.#outcomeOfFirst(target, id, answer, isSuspended) : undefined
    const settled = claimed || answer.duplicate ? first : outcomeOfAnswer(answer, isSuspended)
    if (settled) runtime.waiters.resolveOutcome(threadId, id, settled)
    else {
      runtime.waiters.markAccepted(threadId, id)
      if (!claimed && !isSuspended) await this.#awaitRemote(threadId, id)
    }
    if (answer.route === 'interrupt' && !claimed) this.#interruptSuspended(agent, target)
  }

  /** The process that runs the thread resolves the signal, and may have done so already. */
  #awaitRemote(threadId: string, id: string): Promise<void> {
    this.#runtime.waiters.awaitRemote(threadId, id)
    return resolveRemoteWaiters(this.#runtime, threadId)
  }

  /** Later sends of the thread wait until this one has reached the store. */
  #orderAfter(threadId: string, order: SendOrder): void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#last.set(threadId, promise)
    order.done = () => {
      resolve()
      if (this.#last.get(threadId) === promise) this.#last.delete(threadId)
    }
  }

  /**
   * Until the outcome is known, other sends enter the run that this one starts, and signals can be sent to it by its id. Where the thread
   * turns out to be active, a queued signal waits for its run.
   */
  #reserveRun(agent: Runnable, mode: SendMode, runId: string, target: Target, outcome: Promise<SignalOutcome>): void {
    const { activeRuns } = this.#runtime
    const { threadId, resourceId } = target
    const starting = { runId, agentId: agent.id, resourceId }
    this.#starting.set(threadId, starting)
    // The sender may have chosen the id of another thread's run, and is rejected then.
    if (mode === 'now' && !activeRuns.has(runId)) activeRuns.set(runId, target)
    void outcome.then(() => {
      if (this.#starting.get(threadId) === starting) this.#starting.delete(threadId)
      if (activeRuns.get(runId) === target && this.#runtime.hostOf(threadId)?.runId !== runId) activeRuns.delete(runId)
    })
  }

  /** New input instead of a decision: the suspended calls are declined, and the run continues with the input. */
  #interruptSuspended(agent: Runnable, target: Target): void {
    const runtime = this.#runtime
    declineAll(runtime, agent, target)
      .then(() => (runtime.hostOf(target.threadId) ? undefined : resolveLocalWaiters(runtime, target.threadId)))
      .catch((error: unknown) => {
        if (runtime.closing) return
        runtime.logger.error('a suspended call could not be declined', { threadId: target.threadId, error: String(error) })
      })
  }

  /** The outcome of the first send, for one that repeats it. */
  async #outcomeOfFirst(target: Target, id: string, answer: Accepted, isSuspended: boolean): Promise<SignalOutcome | undefined> {
    if (answer.state === 'pending') return outcomeOfAnswer(answer, isSuspended)
    const mail = await this.#runtime.store.getSignal(target, id)
    // Where its mailbox record was pruned, its row has what is needed.
    return mail ? outcomeOfMail(this.#runtime, mail) : outcomeOfRow({ ...answer, step: answer.rows[0]?.step })
  }

  /** The target thread, where it is known without a read from the store. */
  #knownTarget({ threadId, resourceId, runId }: SendOptions): Target | undefined {
    if (runId === undefined) return threadId !== undefined && resourceId !== undefined ? { threadId, resourceId } : undefined
    const target = this.#runtime.activeRuns.get(runId)
    const matches = target && (threadId ?? target.threadId) === target.threadId && (resourceId ?? target.resourceId) === target.resourceId
    return matches ? target : undefined
  }

  /** `given`: the caller id of the signal. A repeated send is accepted by this id also when its run has ended. */
  async #findTarget(options: SendOptions, given: string | undefined): Promise<Target> {
    const runtime = this.#runtime
    await runtime.open()
    const { runId, threadId, resourceId } = options
    const run = runId === undefined ? null : await runtime.store.findRun(runId)
    if (run && resourceId !== undefined && resourceId !== run.resourceId) {
      throw new HeedError('thread_forbidden', `Run '${runId}' belongs to another resource.`, { details: { runId } })
    }
    if (run && (threadId ?? run.threadId) === run.threadId) {
      const target = { threadId: run.threadId, resourceId: run.resourceId }
      if (run.status === 'running' || run.status === 'suspended') return target
      if (given !== undefined && (await runtime.store.getSignal(target, given))) return target
    }
    throw new HeedError('no_active_run', `No active run '${runId}' was found. Send with resourceId and threadId to wake the thread.`, {
      details: { runId },
    })
  }

  /** The run of a thread that is active or about to start, as known in this process, if the thread belongs to this resource. */
  #activeRun({ id }: Runnable, { threadId, resourceId }: Target): string | undefined {
    const live = this.#runtime.liveOf(threadId)
    if (live?.resourceId === resourceId) {
      const run = this.#runtime.hostOf(threadId)?.runId ?? (live.running ? undefined : live.runId)
      if (run !== undefined) return run
    }
    const starting = this.#starting.get(threadId)
    return starting?.agentId === id && starting.resourceId === resourceId ? starting.runId : undefined
  }

  /** Resolves when all accepted signals would survive a power cut. */
  readonly flush = (): Promise<void> => {
    const flushed = this.#runtime.store.flush()
    this.inFlight.begin()
    return flushed.catch((error: unknown) => {
      this.#runtime.lease.fail(error, true)
      throw error
    }).finally(() => this.inFlight.end())
  }
}

/** The send in the name that this process has in leases now. */
function ownSend(send: Send, { owner, lease }: ThreadRuntime): Send {
  if (!lease.hasBegunAnew || !send.claim) return send
  return { ...send, claim: { ...send.claim, owner }, ...(send.boundTo !== undefined && { boundTo: owner }) }
}

function withoutClaim({ claim: _, ...send }: Send): Send {
  return send
}

/** The outcome of an accepted send; for a repeated send, the outcome of the first. */
function finalOutcome({ outcome, answer }: AcceptedSend): Promise<SignalOutcome> {
  return answer.duplicate ? outcome.then((first) => ({ ...first, duplicate: true })) : outcome
}

/** The outcome that the answer of the store determines; undefined where the run that drains the signal determines it. */
function outcomeOfAnswer(answer: Accepted, isSuspended: boolean): SignalOutcome | undefined {
  const about = answer.runId === undefined ? {} : { runId: answer.runId }
  switch (answer.route) {
    case 'persist':
      return { action: 'persisted', ...about }
    case 'discard':
      return { action: 'discarded', ...about }
    case 'skipped':
      return { action: 'discarded', reason: 'unchanged', ...about }
    case 'queue':
      return { action: 'queued', ...about }
    case 'wake':
      return answer.owner === undefined && !answer.fence ? { action: 'woke', ...about } : undefined
    default:
      if (!isSuspended) return undefined
      // An interrupt of a suspended run declines its calls and enters at once.
      return answer.route === 'interrupt' ? undefined : { action: 'queued', reason: 'suspended', ...about }
  }
}

/** The outcome of a send that failed. */
export function rejected(error: unknown): SignalOutcome {
  const reason = error instanceof Error ? error.message : String(error)
  return { action: 'rejected', reason, ...(isHeedError(error) ? { code: error.code } : {}) }
}
