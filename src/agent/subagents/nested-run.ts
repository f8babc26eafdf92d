import { HeedError, describe, isHeedError } from '../../base/errors.ts'
import type { JSONValue } from '../../base/json.ts'
import type { Chunk, Usage } from '../../message/chunk.ts'
import type { NestedDecision, Nesting, ToolContext } from '../../run/tools/tool.ts'
import type { RunRow } from '../../store/contract/threads.ts'
import { RunFollower, storedAnswer } from '../../thread/cluster/run-follower.ts'
import { decide } from '../../thread/control/resume.ts'
import type { ThreadRuntime } from '../../thread/runtime/runtime.ts'
import { enqueueTurn } from '../../thread/send/turns.ts'
import { shownWaits } from '../../thread/watch/snapshot.ts'
import type { Agent } from '../agent.ts'
import { checkInput, inputRows } from '../input.ts'

/** A call on a thread. */
type Call = ToolContext & { threadId: string; resourceId: string }

/**
 * Runs an agent on the child thread of this call and returns its text. The ids of the input and the run derive from the call, so that the
 * agent runs once however often the call is executed: after a crash, or after a decision about a suspended call of the child.
 */
export async function runOnChildThread(agent: Agent, prompt: string, call: Call, nesting: Nesting): Promise<string> {
  const runtime = agent.threads()
  const { resourceId, requestContext, abortSignal } = call
  const scope = { threadId: `${call.threadId}/${call.toolCallId}`, resourceId }
  // With the step: some providers restart the numbers of their calls in every step.
  const id = `${call.runId}/${nesting.step}/${call.toolCallId}`
  const rows = inputRows(agent, prompt)
  checkInput(rows, true)
  await runtime.open()
  const stop = new AbortController()
  const payloads = new Map<string, JSONValue>()
  const follower = new RunFollower(runtime, scope, id, (chunk) => {
    recordPayload(payloads, chunk)
    call.report(chunk)
  })
  try {
    if (nesting.decision) await forwardDecision(runtime, agent, resourceId, nesting.decision)
    const memory = { thread: scope.threadId, resource: resourceId }
    await enqueueTurn(runtime, agent, {
      ...scope,
      thread: { parentId: call.threadId },
      askedBy: { threadId: call.threadId, runId: call.runId },
      id,
      runId: id,
      rows,
      options: { requestContext, abortSignal: stop.signal, memory },
    })
    const run = await follower.end(id, abortSignal)
    if (run.status === 'suspended') return await suspendFor(runtime, nesting, run, payloads)
    runtime.waiters.takeOptions(id)
    if (run.usage) nesting.addUsage(run.usage as unknown as Usage)
    if (run.status !== 'finished') throw childRunError(agent.name, run)
    return await storedAnswer(runtime.store, scope, id)
  } catch (error) {
    if (abortSignal.aborted && !nesting.isHandedOver()) {
      stop.abort(abortSignal.reason)
      await abortChild(runtime, follower, id)
    }
    throw error
  } finally {
    follower.close()
  }
}

/** Applies the decision about the outer call to the child's call. A call that is decided already stays unchanged. */
async function forwardDecision(
  runtime: ThreadRuntime,
  agent: Agent,
  resourceId: string,
  { child, ...decision }: NestedDecision,
): Promise<void> {
  if (decision.approved === undefined && decision.resumeData === undefined) return
  const { threadId, runId, step, toolCallId } = child
  try {
    await decide(runtime, agent, { threadId, resourceId, runId, step, toolCallId, ...decision })
  } catch (error) {
    if (!isHeedError(error) || error.code !== 'run_not_suspended') throw error
  }
}

/** Suspends the outer call for the first undecided call of the child; the next one follows its decision. */
async function suspendFor(runtime: ThreadRuntime, nesting: Nesting, run: RunRow, payloads: ReadonlyMap<string, JSONValue>): Promise<never> {
  const { threadId, runId, step, suspended } = run
  const open = suspended.find((call) => !call.decision)
  if (!open) throw new HeedError('store_failed', `Run ${runId} is suspended, but none of its calls is undecided.`)
  const { kind, toolCallId, toolName } = open
  // The follower missed chunks that were published before it subscribed.
  const payload = payloads.get(toolCallId) ?? (kind === 'suspend' ? (await shownWaits(runtime, run, [open]))[0]?.payload : undefined)
  return nesting.suspend({ kind, ...(payload === undefined ? {} : { payload }), child: { threadId, runId, step, toolCallId, toolName } })
}

/** Keeps the payload as the child published it: the outer stream may show nothing else. */
function recordPayload(payloads: Map<string, JSONValue>, chunk: Chunk): void {
  if (chunk.type === 'tool-call-suspended') payloads.set(chunk.payload.toolCallId, chunk.payload.suspendPayload)
}

function childRunError(name: string, { status, error }: RunRow): HeedError {
  const why = typeof error?.message === 'string' ? `: ${error.message}` : '.'
  if (status === 'rejected') return new HeedError('tripwire', `${name} refused${why}`)
  if (status === 'aborted') return new HeedError('aborted', `${name} was aborted before it answered.`)
  return new HeedError('tool_interrupted', `${name} failed${why}`)
}

async function abortChild(runtime: ThreadRuntime, follower: RunFollower, id: string): Promise<void> {
  try {
    await follower.abort(id)
  } catch (error) {
    if (!runtime.closing) runtime.logger.error('the run of a subagent could not be aborted', { runId: id, error: describe(error) })
  }
}
