import { HeedError, isHeedError } from '../errors.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import { normaliseAttributes } from '../signals/attributes.ts'
import { createdSignal } from '../signals/created.ts'
import { signalToDataChunk } from '../signals/echo.ts'
import { signalToRow } from '../signals/row.ts'
import type { Signal, SignalAttributes } from '../signals/signal.ts'
import type { Accepted, Branch, LaneWrite, Send } from '../store/contract.ts'
import { declineAll } from './deciding.ts'
import { storableOptions, withMemory } from './local-call.ts'
import type { ActiveBehavior, IdleBehavior, SendMode } from './machine.ts'
import { optional, type SendReceipt, type SignalOutcome } from './receipt.ts'
import type { Runnable } from './runnable.ts'
import type { ThreadRuntime } from './runtime.ts'

/** Where a signal goes, and what happens to it there. */
export interface SendOptions {
  /** The active run; its thread is found by it. */
  runId?: string
  resourceId?: string
  threadId?: string
  ifActive?: { behavior?: ActiveBehavior; attributes?: SignalAttributes }
  ifIdle?: { behavior?: IdleBehavior; attributes?: SignalAttributes; streamOptions?: AgentExecutionOptions }
}

interface Target {
  threadId: string
  resourceId: string
}

const activeBehaviors: readonly string[] = ['deliver', 'interrupt', 'persist', 'discard']
const idleBehaviors: readonly string[] = ['wake', 'persist', 'discard']

/** Sends a signal and answers at once. What is wrong with it is thrown here; what becomes of it is in the receipt. */
export function sendSignal(runtime: ThreadRuntime, agent: Runnable, mode: SendMode, signal: Signal, options: SendOptions, lane?: LaneWrite): SendReceipt {
  const branches = checkOptions(options)
  runtime.register(agent)
  const now = runtime.clock.now()
  const accepted: Signal = { ...signal, acceptedAt: new Date(now).toISOString() }
  const known = options.threadId === undefined ? options.runId : runtime.hostOf(options.threadId)?.runId
  const fresh = runtime.newId()
  const work = accept(runtime, agent, mode, accepted, options, branches, fresh, now, lane)
  const stored = work.then(() => runtime.store.flush())
  const persists = branches.ifActive.behavior === 'persist' || branches.ifIdle.behavior === 'persist'
  return {
    accepted: true,
    runId: mode === 'queue' ? fresh : (known ?? fresh),
    signal: createdSignal(accepted),
    ...(persists ? { persisted: optional(work.then(() => {})) } : {}),
    stored: optional(stored),
    outcome: work.then(async ({ outcome, answer }) => ({ ...(await outcome), ...(answer.duplicate ? { duplicate: true } : {}) }), rejected),
  }
}

async function accept(
  runtime: ThreadRuntime,
  agent: Runnable,
  mode: SendMode,
  signal: Signal,
  options: SendOptions,
  branches: Branches,
  runId: string,
  now: number,
  lane: LaneWrite | undefined,
): Promise<{ answer: Accepted; outcome: Promise<SignalOutcome> }> {
  const target = await targetOf(runtime, options)
  const streamOptions = agent.memoryOptions ? await withMemory(agent, options.ifIdle?.streamOptions ?? {}) : options.ifIdle?.streamOptions
  const stored = streamOptions && storableOptions(streamOptions)
  const send: Send = {
    ...target,
    agentId: agent.id,
    id: signal.id,
    mode,
    ...branches,
    rows: [signalToRow(signal, target)],
    runId,
    claim: { owner: runtime.owner },
    ...(stored ? { options: stored } : {}),
    ...(lane ? { lane } : {}),
    now,
  }
  const taken = runtime.expectOutcome(target, signal.id)
  if (streamOptions) runtime.expectOptions(target.threadId, signal.id, streamOptions)
  try {
    const answer = await runtime.accept(send)
    const settled = outcomeOf(runtime, answer)
    if (settled) runtime.settleOutcome(target.threadId, signal.id, settled)
    if (answer.route === 'interrupt' && answer.owner === undefined) await declineAll(runtime, agent, target, 'New input came instead of an answer.')
    if (answer.route === 'persist' && !answer.duplicate && answer.owner === undefined) echoIdle(runtime, signal, target, answer)
    return { answer, outcome: taken }
  } catch (error) {
    runtime.settleOutcome(target.threadId, signal.id, rejected(error))
    throw error
  }
}

/** What is certain as soon as the signal is accepted; nothing when a run here will say it. */
function outcomeOf(runtime: ThreadRuntime, answer: Accepted): SignalOutcome | undefined {
  const about = answer.runId === undefined ? {} : { runId: answer.runId }
  if (answer.duplicate && answer.state !== 'pending') return { action: finalActions[answer.state], ...about }
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
      return answer.fence || answer.owner === runtime.owner ? undefined : { action: 'woke', ...about }
    case 'deliver':
    case 'interrupt':
      if (answer.owner === undefined) return { action: 'queued', reason: 'suspended', ...about }
      return answer.owner === runtime.owner ? undefined : { action: 'delivered', ...about }
  }
}

const finalActions = { taken: 'delivered', consumed: 'delivered', rejected: 'rejected', cancelled: 'discarded', pending: 'queued' } as const

/** Nobody runs: watchers see the signal, and nothing that looks like a run. */
function echoIdle(runtime: ThreadRuntime, signal: Signal, { threadId }: Target, answer: Accepted): void {
  const live = runtime.liveOf(threadId)
  if (!live) return
  live.enter(answer.epoch)
  live.publish(signalToDataChunk(signal, signal.id))
}

async function targetOf(runtime: ThreadRuntime, { threadId, resourceId, runId }: SendOptions): Promise<Target> {
  if (threadId !== undefined && resourceId !== undefined) return { threadId, resourceId }
  await runtime.open()
  const run = runId === undefined ? null : await runtime.store.findRun(runId)
  if (!run || (run.status !== 'running' && run.status !== 'suspended')) {
    throw new HeedError('no_active_run', `No active run '${runId}' was found on any thread. Send with resourceId and threadId to wake the thread.`, { details: { runId } })
  }
  if (resourceId !== undefined && resourceId !== run.resourceId) throw new HeedError('thread_forbidden', `Run '${runId}' belongs to another resource.`)
  return { threadId: run.threadId, resourceId: run.resourceId }
}

interface Branches {
  ifActive: Branch<ActiveBehavior>
  ifIdle: Branch<IdleBehavior>
}

function checkOptions({ runId, resourceId, threadId, ifActive = {}, ifIdle = {} }: SendOptions): Branches {
  if (runId === undefined && (!isText(threadId) || !isText(resourceId))) {
    throw new HeedError('invalid_argument', 'A send needs its target: resourceId and threadId, or the runId of an active run.', { details: { field: isText(threadId) ? 'resourceId' : 'threadId' } })
  }
  return {
    ifActive: branch('ifActive', ifActive, 'deliver', activeBehaviors),
    ifIdle: branch('ifIdle', ifIdle, 'wake', idleBehaviors),
  }
}

function branch<Behavior extends string>(
  field: string,
  given: { behavior?: Behavior; attributes?: SignalAttributes },
  fallback: NoInfer<Behavior>,
  known: readonly string[],
): Branch<Behavior> {
  const behavior = given.behavior ?? fallback
  if (!known.includes(behavior)) {
    throw new HeedError('invalid_argument', `${field}.behavior '${behavior}' is not known. Use one of: ${known.join(', ')}.`, { details: { field: `${field}.behavior` } })
  }
  const attributes = given.attributes && normaliseAttributes(given.attributes, `${field}.attributes`)
  return { behavior, ...(attributes ? { attributes } : {}) }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function rejected(error: unknown): SignalOutcome {
  return { action: 'rejected', reason: error instanceof Error ? error.message : String(error), ...(isHeedError(error) ? { code: error.code } : {}) }
}
