import { HeedError, isHeedError } from '../base/errors.ts'
import type { JSONObject, JSONValue } from '../base/json.ts'
import type { AgentInput } from '../message/read/input.ts'
import type { MessageRow } from '../message/row.ts'
import { ChunkLog } from '../run/output/chunk-log.ts'
import type { Chunk } from '../run/chunk.ts'
import { runLoop } from '../run/loop/loop.ts'
import type { AgentExecutionOptions, MemoryTarget } from '../run/options.ts'
import { Run } from '../run/loop/run.ts'
import type { RunResult } from '../run/output/run-result.ts'
import type { ToolCall, ToolResult } from '../run/step/step-result.ts'
import { untilAborted } from '../base/until-aborted.ts'
import { isUserAuthored } from '../signals/row.ts'
import { callOnThread } from '../thread/send/call.ts'
import { decide } from '../thread/control/decide.ts'
import { activeContext } from '../tracing/telemetry.ts'
import { runInTrace, traceRun, prepareInTrace } from '../tracing/run-trace.ts'
import type { Site } from '../heed/site.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import type { Askable } from './askable.ts'
import { checkMemory } from './check-options.ts'
import { EphemeralHost } from './ephemeral.ts'
import { historyOf } from './explain.ts'
import { checkInput, namedRows } from './input.ts'
import { unlessAborted } from './prepare.ts'
import { AgentStream } from './stream.ts'

type AnyStream = AgentStream<ToolCall, ToolResult, unknown>

/** One question and its answer: on a thread when there is one, else in memory alone. Without `logged`, chunks are not kept. */
export async function answer(agent: Askable, messages: AgentInput, options: AgentExecutionOptions, logged: boolean): Promise<AnyStream> {
  const { rows, given } = namedRows(agent, messages)
  const runId = options.runId ?? agent.threads().newId()
  const log = new ChunkLog()
  const emit = logged ? (chunk: Chunk) => log.push(chunk) : () => {}
  const memory = options.memory ?? (await agent.defaultMemory(options))
  const target = memory && threadOf(memory)
  checkInput(rows, target !== undefined)
  const here = memory ? await unlessAborted(agent.resolveStorage(options.requestContext), options.abortSignal) : agent
  const site = here.site()
  if (memory?.options?.save === false) {
    const history = await historyOf(here, { ...options, memory }, rows.filter((row) => isUserAuthored(row)).length)
    const unsaved = { runId, rows, history, options: { ...options, memory: undefined }, emit }
    return streamOf(runId, log, (await ephemeral(here, site, unsaved)).result)
  }
  const thread = target && (await agent.describeThread(target.thread, options))
  const call = { runId, rows, given, options: memory ? { ...options, memory } : options, emit }
  const { result } = target ? await callOnThread(site.threads, here, { ...target, ...call, thread }) : await ephemeral(agent, site, call)
  return streamOf(runId, log, result)
}

/** What was decided about a call of a run that waits. */
export interface RunDecision {
  runId: string
  toolCallId?: string | undefined
  resourceId?: string | undefined
  approved?: boolean
  reason?: string | undefined
  resumeData?: JSONValue
}

/** Answers a call that waits, and follows the run from there. */
export async function answerSuspended(agent: Askable, decision: RunDecision): Promise<AnyStream> {
  const runtime = agent.threads()
  const log = new ChunkLog()
  const { promise, resolve, reject } = Promise.withResolvers<RunResult>()
  promise.catch(() => {})
  const unfollow = runtime.waiters.follow(decision.runId, { from: activeContext(), emit: (chunk) => log.push(chunk), resolve, reject })
  try {
    await decide(runtime, agent, decision)
  } catch (error) {
    unfollow()
    throw (await isUnknown(runtime, decision.runId, error)) ? neverStored(decision.runId) : error
  }
  return streamOf(decision.runId, log, promise)
}

async function isUnknown(runtime: ThreadRuntime, runId: string, error: unknown): Promise<boolean> {
  return isHeedError(error) && error.code === 'run_not_suspended' && (await runtime.store.findRun(runId)) === null
}

function neverStored(runId: string): HeedError {
  const why = "A run without a thread ends where it waits and can't be resumed: ask with memory: { thread: 'chat-1', resource: 'user-7' }."
  return new HeedError('run_not_suspended', `No run '${runId}' is stored here. ${why}`, { details: { runId } })
}

async function ephemeral(
  agent: Askable,
  site: Site,
  call: { runId: string; rows: MessageRow[]; history?: MessageRow[]; options: AgentExecutionOptions; emit(chunk: Chunk): void },
): Promise<{ result: Promise<RunResult> }> {
  const { runId, rows, history = [], options, emit } = call
  const ephemeralRun = site.ephemeralRuns.begin()
  try {
    const trace = traceRun(site.tracing, () => ({ agent, runId, parent: activeContext() }))
    const request = { runId, rows: [...history, ...rows], inputCount: rows.length, stepsDone: 0, trace }
    const setup = await prepareInTrace(trace, () => untilAborted(agent.prepare(options, request, site), ephemeralRun.closing))
    const run = new Run(setup, new EphemeralHost(emit, ephemeralRun.closing))
    const unlink = [setup.options.abortSignal, ephemeralRun.closing].map((signal) => abortWith(run, signal))
    const over = () => {
      for (const end of unlink) end()
      ephemeralRun.end()
    }
    return { result: runInTrace(trace, () => runLoop(run)).finally(over) }
  } catch (error) {
    ephemeralRun.end()
    throw error
  }
}

/** Aborts the run when the signal does, until the answered function is called. */
function abortWith(run: Run, signal: AbortSignal | undefined): () => void {
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

function threadOf(memory: MemoryTarget): { threadId: string; resourceId: string; thread: { title?: string; metadata?: JSONObject } } {
  const target = checkMemory(memory)
  const { id: _, ...about } = typeof memory.thread === 'string' ? { id: memory.thread } : memory.thread
  return { ...target, thread: about }
}
