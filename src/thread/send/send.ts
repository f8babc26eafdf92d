import { isName } from '../../base/arguments.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import { isoTime } from '../../base/iso.ts'
import type { MessageRow } from '../../message/row.ts'
import type { AgentExecutionOptions } from '../../run/options.ts'
import { normaliseAttributes } from '../../signals/attributes.ts'
import { readField } from '../../signals/json-copy.ts'
import { signalToRow } from '../../signals/row.ts'
import type { Signal, SignalAttributes } from '../../signals/signal.ts'
import type { Accepted, Branch, LaneWrite, Send } from '../../store/contract/threads.ts'
import { traceAccept } from '../../tracing/accept-trace.ts'
import { declineAll } from '../control/decide.ts'
import { withMemory } from './local-call.ts'
import type { ActiveBehavior, IdleBehavior, SendMode } from '../../machine.ts'
import type { SendReceipt, SignalOutcome, StateReceipt } from './receipt.ts'
import type { Runnable } from '../runtime/runnable.ts'
import type { Target, ThreadRuntime } from '../runtime/runtime.ts'
import { Sent, type Work } from './sent.ts'
import { outcomeOfMail, outcomeOfRow, settleElsewhere, settleWaiting } from './outcomes.ts'
import { storedOptions } from './stored-options.ts'

/** Where a signal goes, and what happens to it there. */
export interface SendOptions {
  /** The active run; its thread is found by it. */
  runId?: string
  resourceId?: string
  threadId?: string
  ifActive?: { behavior?: ActiveBehavior; attributes?: SignalAttributes }
  ifIdle?: { behavior?: IdleBehavior; attributes?: SignalAttributes; streamOptions?: AgentExecutionOptions }
}

/** What of a send was decided before it. */
interface Chosen {
  /** The run that it starts if it wakes. */
  runId?: string
  /** Whether the signal's id is its sender's own: the thread may have it already. */
  named?: boolean
}

const activeBehaviors: readonly string[] = ['deliver', 'interrupt', 'persist', 'discard']
const idleBehaviors: readonly string[] = ['wake', 'persist', 'discard']

/** Routes of signals that wait on an active thread. */
const waits: ReadonlySet<string> = new Set<Accepted['route']>(['deliver', 'interrupt', 'queue'])

/** Sends a signal and answers at once. What is wrong with it is thrown here; what becomes of it is in the receipt. */
export function sendSignal(runtime: ThreadRuntime, agent: Runnable, mode: SendMode, signal: Signal, options: SendOptions, chosen: Chosen = {}): SendReceipt {
  return send(runtime, agent, mode, signal, options, undefined, chosen).receipt
}

/** Throws what is wrong with the options of a send. */
export function checkSendOptions(options: SendOptions): void {
  checkOptions(options)
}

/** Whether the signal may go into history and nowhere else. */
export function persists({ ifActive, ifIdle }: Pick<SendOptions, 'ifActive' | 'ifIdle'>): boolean {
  return ifActive?.behavior === 'persist' || ifIdle?.behavior === 'persist'
}

/** Whether what is sent starts a run or enters one. What doesn't is known by its own id alone. */
export function hasRun({ behavior }: { behavior?: ActiveBehavior | IdleBehavior } = {}): boolean {
  return behavior !== 'persist' && behavior !== 'discard'
}

/**
 * Sends a signal whose id is made of what it says, and answers when it is accepted: from then on it is the thread's. Refused with `id_taken` where the thread has a
 * message of that id which never was sent: what it says would be nowhere.
 */
export async function sendAccepted(runtime: ThreadRuntime, agent: Runnable, mode: SendMode, signal: Signal, options: SendOptions): Promise<SendReceipt> {
  const { receipt, work } = send(runtime, agent, mode, signal, options, undefined, { named: true })
  await work
  return receipt
}

/** Sends the state of a lane; answers when it is accepted, or says that the lane has it already. */
export async function sendState(runtime: ThreadRuntime, agent: Runnable, signal: Signal, options: SendOptions, lane: LaneWrite, chosen: Chosen = {}): Promise<StateReceipt> {
  const { receipt, work } = send(runtime, agent, 'now', signal, options, lane, chosen)
  const { answer } = await work
  if (answer.route === 'skipped') return { accepted: true, skipped: true, reason: 'unchanged' }
  return Object.assign(receipt, { skipped: false as const, signal: (await receipt.acceptance).signal })
}

function send(runtime: ThreadRuntime, agent: Runnable, mode: SendMode, signal: Signal, options: SendOptions, lane?: LaneWrite, chosen: Chosen = {}): { receipt: SendReceipt; work: Promise<Work> } {
  const branches = signal.transient ? unkept(checkOptions(options)) : checkOptions(options)
  runtime.register(agent)
  const now = runtime.clock.now()
  const accepted: Signal = { ...signal }
  accepted.acceptedAt = isoTime(now)
  const target = targetHere(runtime, options)
  const fresh = chosen.runId ?? runtime.newId()
  const active = target ? activeRun(runtime, target) : options.runId
  const runId = hasRun(active === undefined ? branches.ifIdle : branches.ifActive) ? ((mode === 'queue' ? undefined : active) ?? fresh) : signal.id
  const threadId = target?.threadId ?? options.threadId
  const order: Order = { before: threadId === undefined ? undefined : runtime.sending.get(threadId), reached: false }
  const work = accept(runtime, agent, { mode, signal: accepted, options, branches, runId: fresh, newRunId: chosen.runId === undefined, named: chosen.named, now, lane, target, order })
  if (threadId !== undefined && !order.reached) takePlace(runtime, threadId, order)
  const outcome = work.then(({ outcome, answer }) => (answer.duplicate ? outcome.then((first) => ({ ...first, duplicate: true })) : outcome), rejected)
  if (target && mode === 'now' && runId === fresh && branches.ifIdle.behavior === 'wake') promiseRun(runtime, fresh, target, outcome)
  return { receipt: new Sent({ runId, signal: accepted, persists: persists(branches), work, outcome, flush: runtime.flush }), work }
}

interface Sending {
  mode: SendMode
  signal: Signal
  options: SendOptions
  branches: Branches
  runId: string
  newRunId: boolean
  named: boolean | undefined
  now: number
  lane: LaneWrite | undefined
  target: Target | undefined
  order: Order
}

async function accept(runtime: ThreadRuntime, agent: Runnable, sending: Sending): Promise<Work> {
  const { mode, signal, options, branches, runId, named, now, lane, order } = sending
  const trace = traceAccept(runtime.tracing, { agentId: agent.id, signal, mode, lane })
  let accepting: Promise<Accepted> | undefined
  let target: Target
  let row: MessageRow
  let outcome: Promise<SignalOutcome>
  try {
    target = sending.target ?? (await findTarget(runtime, options, named ? signal.id : undefined))
    row = signalToRow(signal, target)
    const given = options.ifIdle?.streamOptions
    const finding = withMemory(agent, given ?? {})
    const streamOptions = finding instanceof Promise ? await finding : given
    const stored = streamOptions && (await storedOptions(agent, streamOptions))
    if (order.before) await order.before
    outcome = runtime.expectations.outcome(target.threadId, signal.id)
    if (streamOptions) runtime.expectations.options(target.threadId, signal.id, streamOptions)
    const asked: Send = {
      threadId: target.threadId,
      resourceId: target.resourceId,
      agentId: agent.id,
      id: signal.id,
      mode,
      ifActive: branches.ifActive,
      ifIdle: branches.ifIdle,
      rows: [trace ? trace.mark(row) : row],
      runId,
      newRunId: sending.newRunId,
      claim: runtime.claim,
      now,
    }
    if (named) asked.given = [signal.id]
    if (stored) asked.options = stored
    if (lane) asked.lane = lane
    accepting = runtime.accept(asked)
  } catch (error) {
    trace?.fail(error)
    throw error
  } finally {
    order.reached = true
    order.done?.()
  }
  // From here on it may be stored: a process that goes waits until its sender knows.
  runtime.underway.begin()
  try {
    let answer: Accepted
    try {
      answer = await accepting
      trace?.end(target.threadId, answer)
    } catch (error) {
      trace?.fail(error)
      runtime.expectations.settle(target.threadId, signal.id, rejected(error))
      throw error
    }
    // Its runner went and nobody has taken its place yet: this process can.
    const unowned = answer.owner === undefined && waits.has(answer.route)
    const orphan = unowned && (await runtime.wake(target.threadId))
    const isSuspended = unowned && !orphan && (await runtime.store.getThread(target))?.status === 'suspended'
    const settled = orphan ? undefined : answer.duplicate ? await outcomeOfFirst(runtime, target, signal.id, answer, isSuspended) : outcomeOf(answer, isSuspended)
    if (settled) runtime.expectations.settle(target.threadId, signal.id, settled)
    else {
      runtime.expectations.accepted(target.threadId, signal.id)
      const elsewhere = unowned ? !orphan && !isSuspended : answer.owner !== undefined && answer.owner !== runtime.owner
      if (elsewhere) await waitElsewhere(runtime, target.threadId, signal.id)
      // The run that was to take it may be over before its acceptance was known here.
      else if (answer.owner === runtime.owner && !runtime.hostOf(target.threadId)) runtime.settle(target.threadId)
    }
    if (answer.route === 'interrupt' && answer.owner === undefined && !orphan) interruptSuspended(runtime, agent, target)
    return { answer, content: row.content, outcome }
  } finally {
    runtime.underway.end()
  }
}

/** The process that runs the thread says what becomes of the signal; it may have done so already. */
async function waitElsewhere(runtime: ThreadRuntime, threadId: string, id: string): Promise<void> {
  runtime.expectations.awaitElsewhere(threadId, id)
  await settleElsewhere(runtime, threadId)
}

/** Sends of one thread reach the store in the order in which they were made, however long each takes to find what it needs. */
interface Order {
  before: Promise<void> | undefined
  /** It is with the store, or will not be. */
  reached: boolean
  done?(): void
}

/** Those that come after it wait for this one. */
function takePlace(runtime: ThreadRuntime, threadId: string, order: Order): void {
  const { promise, resolve } = Promise.withResolvers<void>()
  runtime.sending.set(threadId, promise)
  order.done = () => {
    resolve()
    if (runtime.sending.get(threadId) === promise) runtime.sending.delete(threadId)
  }
}

/** Until its outcome is known, others may be sent to the run that this one starts. */
function promiseRun(runtime: ThreadRuntime, runId: string, target: Target, outcome: Promise<SignalOutcome>): void {
  runtime.active.set(runId, target)
  void outcome.then(() => {
    if (runtime.hostOf(target.threadId)?.runId !== runId) runtime.active.delete(runId)
  })
}

/** New input in place of an answer: what is waited for is declined, and the run goes on with the input. */
function interruptSuspended(runtime: ThreadRuntime, agent: Runnable, target: Target): void {
  declineAll(runtime, agent, target)
    .then(() => (runtime.hostOf(target.threadId) ? undefined : settleWaiting(runtime, target.threadId)))
    .catch((error: unknown) => {
      if (!runtime.closing) runtime.logger.error('a suspended call could not be declined', { threadId: target.threadId, error: String(error) })
    })
}

/** What is certain as soon as the signal is accepted; nothing when a run will say it. */
function outcomeOf(answer: Accepted, isSuspended: boolean): SignalOutcome | undefined {
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
      // The run that takes it says so, wherever it runs.
      if (!isSuspended) return undefined
      // An interrupt goes on at once.
      return answer.route === 'interrupt' ? undefined : { action: 'queued', reason: 'suspended', ...about }
  }
}

/** A repeated send is told what became of the first. */
async function outcomeOfFirst(runtime: ThreadRuntime, target: Target, id: string, answer: Accepted, isSuspended: boolean): Promise<SignalOutcome | undefined> {
  if (answer.state === 'pending') return outcomeOf(answer, isSuspended)
  // Where its record was pruned, its row tells as much.
  const mail = await runtime.store.getSignal(target, id)
  return mail ? outcomeOfMail(runtime, mail) : outcomeOfRow({ ...answer, step: answer.rows[0]?.step })
}

/** The thread that is meant, where that is known without asking the store. */
function targetHere(runtime: ThreadRuntime, { threadId, resourceId, runId }: SendOptions): Target | undefined {
  if (runId === undefined) return threadId !== undefined && resourceId !== undefined ? { threadId, resourceId } : undefined
  const target = runtime.active.get(runId)
  const meant = target && (threadId ?? target.threadId) === target.threadId && (resourceId ?? target.resourceId) === target.resourceId
  return meant ? target : undefined
}

/** `given`: the id that its sender gave it. A send that is repeated is known by it when its run is over. */
async function findTarget(runtime: ThreadRuntime, options: SendOptions, given: string | undefined): Promise<Target> {
  await runtime.open()
  const { runId, threadId, resourceId } = options
  const run = runId === undefined ? null : await runtime.store.findRun(runId)
  if (run && resourceId !== undefined && resourceId !== run.resourceId) throw new HeedError('thread_forbidden', `Run '${runId}' belongs to another resource.`, { details: { runId } })
  if (run && (threadId ?? run.threadId) === run.threadId) {
    const target = { threadId: run.threadId, resourceId: run.resourceId }
    if (run.status === 'running' || run.status === 'suspended' || (given !== undefined && (await runtime.store.getSignal(target, given)))) return target
  }
  throw new HeedError('no_active_run', `No active run '${runId}' was found. Send with resourceId and threadId to wake the thread.`, { details: { runId } })
}

/** The run that is active on a thread, as far as it is known here and nobody else's. */
function activeRun(runtime: ThreadRuntime, { threadId, resourceId }: Target): string | undefined {
  const live = runtime.liveOf(threadId)
  return live?.resourceId === resourceId ? (runtime.hostOf(threadId)?.runId ?? (live.running ? undefined : live.runId)) : undefined
}

interface Branches {
  ifActive: Branch<ActiveBehavior>
  ifIdle: Branch<IdleBehavior>
}

function checkOptions(options: SendOptions | undefined): Branches {
  const { runId, resourceId, threadId, ifActive, ifIdle } = options ?? {}
  if (runId !== undefined && !isName(runId)) throw badTarget('runId')
  if (resourceId !== undefined && !isName(resourceId)) throw badTarget('resourceId')
  if (threadId !== undefined && !isName(threadId)) throw badTarget('threadId')
  checkKeys(options ?? {}, '', known)
  if (runId === undefined && (threadId === undefined || resourceId === undefined)) throw badTarget(threadId === undefined ? 'threadId' : 'resourceId')
  return {
    ifActive: branch('ifActive', ifActive ?? {}, 'deliver', activeBehaviors, ofActive),
    ifIdle: branch('ifIdle', ifIdle ?? {}, 'wake', idleBehaviors, ofIdle),
  }
}

const known: readonly string[] = ['runId', 'resourceId', 'threadId', 'ifActive', 'ifIdle']
const ofActive: readonly string[] = ['behavior', 'attributes']
const ofIdle: readonly string[] = [...ofActive, 'streamOptions']

/** A misspelt option would otherwise pass for one that isn't given. */
function checkKeys(given: object, under: string, names: readonly string[]): void {
  for (const key of Object.keys(given)) {
    if (names.includes(key) || given[key as keyof typeof given] === undefined) continue
    throw new HeedError('invalid_argument', `A send has no option '${under}${key}'. Known: ${names.map((name) => under + name).join(', ')}.`, { details: { field: under + key } })
  }
}

/** What is for one run is for none where there is none. */
function unkept({ ifActive, ifIdle }: Branches): Branches {
  return { ifActive: ifActive.behavior === 'persist' ? { behavior: 'discard' } : ifActive, ifIdle: ifIdle.behavior === 'persist' ? { behavior: 'discard' } : ifIdle }
}

function badTarget(field: string): HeedError {
  return new HeedError('invalid_argument', `A send needs its target: resourceId and threadId, or the runId of an active run. '${field}' is missing, or no text of whole characters without NUL.`, { details: { field } })
}

function branch<Behavior extends string>(
  field: string,
  given: { behavior?: Behavior; attributes?: SignalAttributes },
  fallback: NoInfer<Behavior>,
  known: readonly string[],
  names: readonly string[],
): Branch<Behavior> {
  if (typeof given !== 'object') throw new HeedError('invalid_argument', `${field} must be an object, such as { behavior: '${fallback}' }.`, { details: { field } })
  checkKeys(given, `${field}.`, names)
  const behavior = given.behavior ?? fallback
  if (!known.includes(behavior)) {
    throw new HeedError('invalid_argument', `${field}.behavior '${String(behavior)}' is not known. Use one of: ${known.join(', ')}.`, { details: { field: `${field}.behavior` } })
  }
  const attributes = given.attributes && readField(`${field}.attributes`, () => normaliseAttributes(given.attributes, `${field}.attributes`))
  return { behavior, ...(attributes ? { attributes } : {}) }
}

export function rejected(error: unknown): SignalOutcome {
  return { action: 'rejected', reason: error instanceof Error ? error.message : String(error), ...(isHeedError(error) ? { code: error.code } : {}) }
}
