import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import type { Chunk } from '../../message/chunk.ts'
import type { MessageRow } from '../../message/row.ts'
import type { AgentExecutionOptions } from '../../run/options.ts'
import { isProviderError } from '../../run/model/provider-error.ts'
import type { RunResult } from '../../run/output/run-result.ts'
import type { NestedDecision } from '../../run/tools/tool.ts'
import type { ChildCall, RunRow, SuspendedCall } from '../../store/contract/threads.ts'
import { RunFollower, storedAnswer } from '../cluster/run-follower.ts'
import { decide } from '../control/resume.ts'
import type { Runnable } from '../runtime/runnable.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { visibleSuspendedCalls } from '../stream/snapshot.ts'
import { enqueueTurn } from './turns.ts'

/** What an agent is asked on a child thread: by a tool call of another agent, or by a step of a workflow. */
export interface ChildTurn {
  /** The child thread. */
  scope: { threadId: string; resourceId: string }
  /** Who asks. */
  asker: { threadId: string; runId: string }
  /** The id of the input and of the run. It derives from what asks, so that the agent runs once however often it is asked. */
  id: string
  rows: MessageRow[]
  options: Pick<AgentExecutionOptions, 'requestContext' | 'structuredOutput'>
  /** What was decided about the call that the agent waited for. */
  decision?: NestedDecision | undefined
  abortSignal: AbortSignal
  /** True when another process continues what asks: the run of the agent must go on. */
  isHandedOver(): boolean
  emit(chunk: Chunk): void
}

/** A call of the child that waits for a decision. */
export type ChildSuspension = Pick<SuspendedCall, 'kind' | 'toolName' | 'args' | 'payload' | 'request'> & { child: ChildCall }

/** How the turn ended: the agent has answered or failed, or waits for a decision. */
export type ChildTurnEnd =
  | { run: RunRow; suspended: ChildSuspension }
  /** `result` is there where the run ended in this process. */
  | { run: RunRow; suspended?: undefined; text: string; taintedBy: readonly string[]; result: RunResult | undefined }

/** Asks an agent on a child thread and resolves when its run has ended or is suspended. A repeated question follows the first run. */
export async function askOnChildThread(runtime: ThreadRuntime, agent: Runnable, turn: ChildTurn): Promise<ChildTurnEnd> {
  const { scope, asker, id, rows, options, decision, abortSignal } = turn
  await runtime.open()
  const stop = new AbortController()
  const published = new Map<string, PublishedCall>()
  const follower = new RunFollower(runtime, scope, id, (chunk) => {
    recordSuspension(published, chunk)
    turn.emit(chunk)
  })
  try {
    if (decision) await forwardDecision(runtime, agent, scope.resourceId, decision)
    const memory = { thread: scope.threadId, resource: scope.resourceId }
    const asked = { ...scope, thread: { parentId: asker.threadId }, askedBy: asker, id, runId: id, rows }
    await enqueueTurn(runtime, agent, { ...asked, options: { ...options, abortSignal: stop.signal, memory } })
    const run = await follower.end(id, abortSignal)
    if (run.status === 'suspended') return { run, suspended: await suspensionOf(runtime, run, published) }
    runtime.waiters.takeRetainedOptions(id)
    return { run, result: follower.result, ...(await storedAnswer(runtime.store, scope, id)) }
  } catch (error) {
    if (abortSignal.aborted && !turn.isHandedOver()) {
      stop.abort(abortSignal.reason)
      await abortChild(runtime, follower, id)
    }
    throw error
  } finally {
    follower.close()
  }
}

/** Applies the decision to the child's call. A call that is decided already stays unchanged. */
async function forwardDecision(
  runtime: ThreadRuntime, agent: Runnable, resourceId: string, { child, ...decision }: NestedDecision,
): Promise<void> {
  if (decision.approved === undefined && decision.resumeData === undefined) return
  const { toolName: _, ...call } = child
  try {
    await decide(runtime, agent, { ...call, resourceId, ...decision })
  } catch (error) {
    if (!isHeedError(error) || error.code !== 'run_not_suspended') throw error
  }
}

/** The first undecided call of the child; the next one follows its decision. */
async function suspensionOf(
  runtime: ThreadRuntime, run: RunRow, published: ReadonlyMap<string, PublishedCall>,
): Promise<ChildSuspension> {
  const { threadId, runId, step, suspended } = run
  const open = suspended.find((call) => !call.decision)
  if (!open) throw new HeedError('store_failed', `Run ${runId} is suspended, but none of its calls is undecided.`)
  const { kind, toolCallId, toolName, request: stored } = open
  // The follower missed chunks that were published before it subscribed, and those of another process that asked again for the same call.
  const seen = published.get(toolCallId)
  const isCurrent = seen !== undefined && seen.request?.id === stored?.id
  const { args, payload, request } = isCurrent ? seen : ((await visibleSuspendedCalls(runtime, run, [open]))[0] ?? { args: null })
  return {
    kind,
    toolName,
    args,
    ...(kind === 'suspend' && payload !== undefined ? { payload } : {}),
    ...(request ? { request } : {}),
    child: { threadId, runId, step, toolCallId, toolName, ...(stored ? { approvalId: stored.id } : {}) },
  }
}

/** A suspended call as its run published it. */
type PublishedCall = Pick<SuspendedCall, 'args' | 'payload' | 'request'>

/** Keeps the suspension as the child published it: who asked may show nothing else. */
function recordSuspension(published: Map<string, PublishedCall>, chunk: Chunk): void {
  if (chunk.type !== 'tool-call-suspended' && chunk.type !== 'tool-call-approval') return
  const { toolCallId, args, request } = chunk.payload
  const payload = chunk.type === 'tool-call-suspended' ? { payload: chunk.payload.suspendPayload } : {}
  published.set(toolCallId, { args, ...payload, ...(request ? { request } : {}) })
}

/** The error of who asked, for a run of the agent that did not finish. */
export function childRunError(name: string, { status, error }: RunRow): HeedError {
  // The thread of the child run has the words of its provider.
  const text = isProviderError(error?.code) ? `the provider of its model failed (${String(error?.code)})` : error?.message
  const why = typeof text === 'string' ? `: ${text}` : '.'
  if (status === 'rejected') return new HeedError('tripwire', `${name} refused${why}`)
  if (status === 'aborted') return new HeedError('aborted', `${name} was aborted before it answered.`)
  return new HeedError('tool_interrupted', `${name} failed${why}`)
}

async function abortChild(runtime: ThreadRuntime, follower: RunFollower, id: string): Promise<void> {
  try {
    await follower.abort(id)
  } catch (error) {
    if (!runtime.closing) runtime.logger.error('the run of a called agent could not be aborted', { runId: id, error: describe(error) })
  }
}
