import { describe, HeedError, isHeedError } from '../base/errors.ts'
import { orderedJSON, type JSONObject, type JSONValue } from '../base/json.ts'
import { untilAborted } from '../base/promises.ts'
import type { RunEdit } from '../editor/contract.ts'
import type { Site } from '../heed/site.ts'
import type { AgentInput } from '../message/read/input.ts'
import type { MessageRow } from '../message/row.ts'
import type { Chunk } from '../message/chunk.ts'
import { runLoop } from '../run/loop/loop.ts'
import type { RunCommit, RunCommitted, RunHost } from '../run/loop/run-contract.ts'
import { Run } from '../run/loop/run.ts'
import type { AgentExecutionOptions, MemoryTarget } from '../run/options.ts'
import { ChunkLog } from '../run/output/chunk-log.ts'
import type { RunResult } from '../run/output/run-result.ts'
import type { ToolCall, ToolResult, WaitingCall } from '../run/step/step-result.ts'
import { isUserAuthored } from '../signals/conversions.ts'
import { checkDecision, findUndecided } from '../store/contract/decisions.ts'
import type { Decided, SuspendedCall } from '../store/contract/threads.ts'
import { followSuspended } from '../thread/cluster/run-follower.ts'
import { decide } from '../thread/control/resume.ts'
import { continuationOf } from '../thread/runtime/run-rows.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { callOnThread, checkRunId, enqueueTurn, unlessAborted } from '../thread/send/turns.ts'
import type { LocalCall } from '../thread/send/waiters.ts'
import { prepareInTrace, runInTrace, traceRun } from '../tracing/run-trace.ts'
import { activeContext } from '../tracing/telemetry.ts'
import type { Askable } from './askable.ts'
import { readHistory } from './inspect.ts'
import { checkInput, inputWithCallerIds } from './input.ts'
import { checkMemory, checkUnsaved } from './options.ts'
import { AgentStream } from './stream.ts'

type AnyStream = AgentStream<ToolCall, ToolResult, unknown>

/** Runs `generate()` or `stream()`: on the thread of its options, else without one. Without `logged`, chunks are not kept. */
export async function runCall(agent: Askable, messages: AgentInput, options: AgentExecutionOptions, logged: boolean): Promise<AnyStream> {
  const { rows, given } = inputWithCallerIds(agent, messages)
  const runId = options.runId ?? agent.threads().newId()
  const log = new ChunkLog()
  const emit = logged ? (chunk: Chunk) => log.push(chunk) : () => {}
  const found = agent.memoryOf(options)
  // Without a wait where there is none: an abort in this tick is seen below.
  const memory = found instanceof Promise ? await found : found
  const target = memory && targetOf(memory)
  checkInput(rows, target !== undefined)
  const here = memory ? await unlessAborted(agent.resolveStorage(options.requestContext), options.abortSignal) : agent
  const site = here.site()
  if (memory?.options?.save === false) {
    checkUnsaved(memory)
    const reading = readHistory(here, { ...options, memory }, rows.filter((row) => isUserAuthored(row)).length)
    const history = await unlessAborted(reading, options.abortSignal)
    const unsaved = { runId, rows: [...history, ...rows], inputCount: rows.length, options: { ...options, memory: undefined }, emit }
    return streamOf(runId, log, (await ephemeral(here, site, unsaved)).result)
  }
  const thread = target && (await unlessAborted(agent.describeThread(target.thread, options), options.abortSignal))
  const call = { runId, rows, given, options: memory ? { ...options, memory } : options, emit }
  const { result } = target
    ? await callOnThread(site.threads, here, { ...target, ...call, thread })
    : await ephemeral(agent, site, { ...call, inputCount: rows.length })
  return streamOf(runId, log, result)
}

/** A decision about a call of a suspended run. */
export interface RunDecision {
  runId: string
  toolCallId?: string | undefined
  approvalId?: string | undefined
  digest?: string | undefined
  by?: string | undefined
  resourceId?: string | undefined
  approved?: boolean
  reason?: string | undefined
  resumeData?: JSONValue
}

type RunFollower = Pick<LocalCall, 'emit' | 'resolve' | 'reject'>

/** Decides a suspended call and streams the run from there. */
export async function continueSuspended(agent: Askable, decision: RunDecision): Promise<AnyStream> {
  const log = new ChunkLog()
  const { promise, resolve, reject } = Promise.withResolvers<RunResult>()
  promise.catch(() => {})
  const follower = { emit: (chunk: Chunk) => log.push(chunk), resolve, reject }
  if (agent.site().ephemeralRuns.suspended(decision.runId)?.agentId === agent.id) await decideEphemeral(agent, decision, follower)
  else await decideOnThread(agent, decision, follower)
  return streamOf(decision.runId, log, promise)
}

async function decideOnThread(agent: Askable, decision: RunDecision, follower: RunFollower): Promise<void> {
  const runtime = agent.threads()
  const caller = { from: activeContext(), ...follower }
  const unfollow = runtime.waiters.follow(decision.runId, caller)
  let decided: Decided
  try {
    decided = await decide(runtime, agent, decision)
  } catch (error) {
    unfollow()
    throw (await isUnknownRun(runtime, decision.runId, error)) ? notStored(decision.runId) : error
  }
  if (decided.fence) return
  await followSuspended(runtime, decided, caller, unfollow).catch((error: unknown) => {
    // The decision is stored.
    const fields = { runId: decided.runId, error: describe(error) }
    runtime.logger.warn('a run that waits for more decisions is followed in this process alone', fields)
  })
}

/** Decides a call of a run without a thread, which this process keeps. The run continues when no other call is undecided. */
async function decideEphemeral(agent: Askable, decision: RunDecision, follower: RunFollower): Promise<void> {
  const site = agent.site()
  const { runId } = decision
  const suspended = site.ephemeralRuns.suspended(runId)
  const call = suspended && findUndecided(suspended.calls, decision, `run ${runId}`)
  if (!suspended || !call || decision.resourceId !== undefined) throw notWaiting(decision)
  checkDecision(call, decision)
  const { approved, reason, by, resumeData } = decision
  call.decision = { approved, reason, by, resumeData }
  suspended.followers.push(follower)
  if (!suspended.calls.every((other) => other.decision)) return
  site.ephemeralRuns.resume(runId)
  const { options, step, calls, decided, edit, followers } = suspended
  const emit = (chunk: Chunk) => {
    for (const one of followers) one.emit(chunk)
  }
  const continued = { runId, rows: [...suspended.rows()], inputCount: 0, options, emit, continues: { step, calls, decided, edit } }
  const running = ephemeral(agent, site, continued).then(({ result }) => result)
  running.then(
    (result) => {
      for (const one of followers) one.resolve(result)
    },
    (error: unknown) => {
      for (const one of followers) one.reject(error)
    },
  )
}

function notWaiting({ runId, approvalId, toolCallId }: RunDecision): HeedError {
  const which = approvalId ?? toolCallId
  const call = which === undefined ? 'No call' : `No call ${which}`
  const message = `${call} of run '${runId}' waits for a decision. It may have been decided already.`
  return new HeedError('run_not_suspended', message, { details: { runId } })
}

async function isUnknownRun(runtime: ThreadRuntime, runId: string, error: unknown): Promise<boolean> {
  return isHeedError(error) && error.code === 'run_not_suspended' && (await runtime.store.findRun(runId)) === null
}

function notStored(runId: string): HeedError {
  const why =
    'A run without a thread is kept by the process that runs it, until it is decided or the process ends. To keep it longer, call it with '
    + "memory: { thread: 'chat-1', resource: 'user-7' }."
  return new HeedError('run_not_suspended', `No run '${runId}' is stored here. ${why}`, { details: { runId } })
}

interface EphemeralCall {
  runId: string
  /** History and input, or all rows of a run that continues. */
  rows: MessageRow[]
  /** How many of the last rows are new input. */
  inputCount: number
  options: AgentExecutionOptions
  /** The step in which the run was suspended, with its decided calls. */
  continues?: { step: number; calls: readonly SuspendedCall[]; decided: ReadonlySet<string>; edit?: RunEdit | undefined }
  emit(chunk: Chunk): void
}

async function ephemeral(agent: Askable, site: Site, call: EphemeralCall): Promise<{ result: Promise<RunResult> }> {
  const { runId, rows, inputCount, options, continues, emit } = call
  if (site.ephemeralRuns.suspended(runId)) throw suspendedAlready(runId)
  const ephemeralRun = site.ephemeralRuns.begin()
  let slot: (() => void) | undefined
  try {
    slot = await site.threads.runSlots.enterEphemeral(ephemeralRun.closing, options.abortSignal)
    const trace = traceRun(site.tracing, () => ({ agent, runId, parent: activeContext() }))
    // It continues with the version that it began with.
    const request = { runId, rows, inputCount, stepsDone: continues?.step ?? 0, trace, edit: continues?.edit }
    const setup = await prepareInTrace(trace, () => untilAborted(agent.prepare(options, request, site), ephemeralRun.closing))
    const onSuspend = (step: number, waiting: readonly WaitingCall[]) => {
      const { abortSignal: _, ...kept } = options
      const { edit } = setup
      // A call with an id that was decided before: the id does not name the new request.
      const decided = new Set([...(continues?.decided ?? []), ...(continues?.calls.map(({ toolCallId }) => toolCallId) ?? [])])
      const calls = waiting.map((one): SuspendedCall => ({ ...one, ...(decided.has(one.toolCallId) ? { again: true } : {}) }))
      site.ephemeralRuns.suspend(
        runId, { agentId: agent.id, rows: () => run.rows, options: kept, step, calls, decided, edit, followers: [] },
      )
    }
    const run = new Run(setup, new EphemeralHost(emit, ephemeralRun.closing, onSuspend))
    const unlink = [setup.options.abortSignal, ephemeralRun.closing].map((signal) => linkAbort(run, signal))
    const over = () => {
      for (const end of unlink) end()
      slot?.()
      ephemeralRun.end()
    }
    const waited = continues && { runId, threadId: '', step: 0, suspended: [...continues.calls], started: [] }
    const continuation = waited && continuationOf(waited, rows, () => true)
    return { result: runInTrace(trace, () => runLoop(run, continuation)).finally(over) }
  } catch (error) {
    slot?.()
    ephemeralRun.end()
    throw error
  }
}

function suspendedAlready(runId: string): HeedError {
  return new HeedError('invalid_argument', `The run '${runId}' waits for a decision. Leave runId out, or choose a unique one.`, {
    details: { field: 'runId' },
  })
}

/** Aborts the run when the signal aborts. Returns the function that removes the listener. */
function linkAbort(run: Run, signal: AbortSignal | undefined): () => void {
  const onAbort = () => run.abort(signal?.reason)
  if (signal?.aborted) onAbort()
  signal?.addEventListener('abort', onAbort, { once: true })
  return () => signal?.removeEventListener('abort', onAbort)
}

function streamOf(runId: string, log: ChunkLog, running: Promise<RunResult>): AnyStream {
  const result = running.then((finished) => {
    if (finished.error) throw finished.error
    return finished
  })
  result.then(() => log.end(), (error: unknown) => log.fail(error))
  return new AgentStream(runId, log, result)
}

function targetOf(memory: MemoryTarget): { threadId: string; resourceId: string; thread: { title?: string; metadata?: JSONObject } } {
  const target = checkMemory(memory)
  const { id: _, ...about } = typeof memory.thread === 'string' ? { id: memory.thread } : memory.thread
  return { ...target, thread: about }
}

interface QueuedTurn {
  threadId: string
  resourceId: string
  /** Identifies the turn on its thread: a repeat is the same turn. */
  id?: string | undefined
  messages: AgentInput
  options: AgentExecutionOptions
}

/**
 * Queues messages as a turn of their own, without waiting for the run. Resolves when they are stored, with the id of the run that will
 * answer them; for a repeated id, with the first run's.
 */
export async function queueTurn(agent: Askable, { threadId, resourceId, id, messages, options }: QueuedTurn): Promise<{ runId: string }> {
  const { rows, given } = inputWithCallerIds(agent, messages)
  checkInput(rows, true)
  const here = await agent.resolveStorage(options.requestContext)
  const runtime = here.threads()
  if (options.runId !== undefined) await checkRunId(runtime, options.runId, threadId)
  const runId = options.runId ?? runtime.newId()
  const thread = await agent.describeThread({}, options)
  const memory = { ...options.memory, thread: threadId, resource: resourceId }
  const accepted = await enqueueTurn(runtime, here, {
    threadId,
    resourceId,
    id: id ?? runtime.newId(),
    runId,
    thread,
    rows,
    given,
    ...(options.runId === undefined ? {} : { givenRunId: true }),
    refuseSuspended: true,
    options: { ...options, memory },
  })
  if (accepted.duplicate) {
    runtime.waiters.takeRetainedOptions(runId)
    if (accepted.rows.length > 0 && comparable(accepted.rows) !== comparable(rows)) {
      throw new HeedError('idempotency_key_reused', 'This id was used for different messages on this thread. Use a new id for each send.', {
        details: { field: 'id' },
      })
    }
  }
  await runtime.sends.flush()
  return { runId: accepted.runId ?? runId }
}

/** The messages without ids and times, for comparison. */
function comparable(rows: readonly MessageRow[]): string {
  return orderedJSON(rows.map(({ role, content: { parts } }) => [role, parts]))
}

/** The host of a run without a thread: nothing is stored, and no signal enters. */
class EphemeralHost implements RunHost {
  readonly lanes = []
  readonly #emit: (chunk: Chunk) => void
  readonly #closing: AbortSignal
  readonly #onSuspend: (step: number, calls: readonly WaitingCall[]) => void

  /** `closing` aborts when this Heed closes; the run then ends with its reason. */
  constructor(emit: (chunk: Chunk) => void, closing: AbortSignal, onSuspend: (step: number, calls: readonly WaitingCall[]) => void) {
    this.#emit = emit
    this.#closing = closing
    this.#onSuspend = onSuspend
  }

  emit(chunk: Chunk): void {
    this.#emit(chunk)
  }

  async commit(commit: RunCommit): Promise<RunCommitted> {
    this.#closing.throwIfAborted()
    if (commit.end?.status === 'suspended') this.#onSuspend(commit.step, commit.end.calls)
    return { entered: [], ended: commit.end !== undefined }
  }

  async reviseInput(): Promise<void> {}

  async history(): Promise<[]> {
    return []
  }

  async laneRows(): Promise<{ rows: []; left: number }> {
    return { rows: [], left: 0 }
  }
}
