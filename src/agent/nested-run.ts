import { describe, HeedError, isHeedError } from '../base/errors.ts'
import type { JSONValue } from '../base/json.ts'
import type { Chunk, Usage } from '../run/chunk.ts'
import type { NestedDecision, Nesting } from '../run/tools/nesting.ts'
import type { ToolContext } from '../run/tools/tool.ts'
import type { RunRow } from '../store/contract/threads.ts'
import { enqueueTurn } from '../thread/send/enqueue-turn.ts'
import { decide } from '../thread/control/decide.ts'
import { RunFollower } from '../thread/cluster/run-follower.ts'
import { shownWaits } from '../thread/watch/snapshot.ts'
import { storedAnswer } from '../thread/send/stored-result.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import type { Agent } from './agent.ts'
import { checkInput, inputRows } from './input.ts'

/** A call on a thread. */
type Call = ToolContext & { threadId: string; resourceId: string }

/**
 * Asks an agent on the thread below this one and answers what it says. The question has the name of the call, so that it is asked
 * once however often the call runs: after a crash, or after somebody decided what the agent below waited for.
 */
export async function askOnThread(agent: Agent, prompt: string, call: Call, nesting: Nesting): Promise<string> {
  const runtime = agent.threads()
  const { resourceId, requestContext, abortSignal } = call
  const scope = { threadId: `${call.threadId}/${call.toolCallId}`, resourceId }
  // The step is part of it: some providers number their calls anew in every step.
  const id = `${call.runId}/${nesting.step}/${call.toolCallId}`
  const rows = inputRows(agent, prompt)
  checkInput(rows, true)
  await runtime.open()
  const stop = new AbortController()
  const payloads = new Map<string, JSONValue>()
  const follower = new RunFollower(runtime, scope, id, (chunk) => {
    keepPayload(payloads, chunk)
    call.report(chunk)
  })
  try {
    if (nesting.decision) await handOn(runtime, agent, resourceId, nesting.decision)
    const memory = { thread: scope.threadId, resource: resourceId }
    await enqueueTurn(runtime, agent, { ...scope, thread: { parentId: call.threadId }, askedBy: { threadId: call.threadId, runId: call.runId }, id, runId: id, rows, options: { requestContext, abortSignal: stop.signal, memory } })
    const run = await follower.end(id, abortSignal)
    if (run.status === 'suspended') return await wait(runtime, nesting, run, payloads)
    runtime.waiters.takeOptions(id)
    if (run.usage) nesting.addUsage(run.usage as unknown as Usage)
    if (run.status !== 'finished') throw unanswered(agent.name, run)
    return await storedAnswer(runtime.store, scope, id)
  } catch (error) {
    if (abortSignal.aborted && !nesting.isHandedOver()) {
      stop.abort(abortSignal.reason)
      await end(runtime, follower, id)
    }
    throw error
  } finally {
    follower.close()
  }
}

/** What was decided above is for the call below. One that was decided already stays as it was. */
async function handOn(runtime: ThreadRuntime, agent: Agent, resourceId: string, { child, ...decision }: NestedDecision): Promise<void> {
  if (decision.approved === undefined && decision.resumeData === undefined) return
  const { threadId, runId, step, toolCallId } = child
  try {
    await decide(runtime, agent, { threadId, resourceId, runId, step, toolCallId, ...decision })
  } catch (error) {
    if (!isHeedError(error) || error.code !== 'run_not_suspended') throw error
  }
}

/** One question at a time: when it is decided, the next is asked. */
async function wait(runtime: ThreadRuntime, nesting: Nesting, run: RunRow, payloads: ReadonlyMap<string, JSONValue>): Promise<never> {
  const { threadId, runId, step, suspended } = run
  const open = suspended.find((call) => !call.decision)
  if (!open) throw new HeedError('store_failed', `Run ${runId} is suspended and waits for nothing.`)
  const { kind, toolCallId, toolName } = open
  // Nobody here heard what was said before it was listened to.
  const payload = payloads.get(toolCallId) ?? (kind === 'suspend' ? (await shownWaits(runtime, run, [open]))[0]?.payload : undefined)
  return nesting.suspend({ kind, ...(payload === undefined ? {} : { payload }), child: { threadId, runId, step, toolCallId, toolName } })
}

/** What the agent below showed of it, which is all that may be shown above. */
function keepPayload(payloads: Map<string, JSONValue>, chunk: Chunk): void {
  if (chunk.type === 'tool-call-suspended') payloads.set(chunk.payload.toolCallId, chunk.payload.suspendPayload)
}

function unanswered(name: string, { status, error }: RunRow): HeedError {
  const why = typeof error?.message === 'string' ? `: ${error.message}` : '.'
  if (status === 'rejected') return new HeedError('tripwire', `${name} refused${why}`)
  if (status === 'aborted') return new HeedError('aborted', `${name} was stopped before it answered.`)
  return new HeedError('tool_interrupted', `${name} failed${why}`)
}

async function end(runtime: ThreadRuntime, follower: RunFollower, id: string): Promise<void> {
  try {
    await follower.abort(id)
  } catch (error) {
    if (!runtime.closing) runtime.logger.error('the run of an agent that was asked could not be aborted', { runId: id, error: describe(error) })
  }
}
