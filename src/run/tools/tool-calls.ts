import { untilAborted } from '../../base/promises.ts'
import type { ToolInvocation, ToolInvocationPart } from '../../message/message.ts'
import type { Run } from '../loop/run.ts'
import type { WaitingCall } from '../step/step-result.ts'
import { needsNoApproval } from './tool.ts'
import { aborted, isPermitted, ToolExecution, type CallOutcome, type CallScope, type OpenCall } from './tool-execution.ts'

export type { OpenCall } from './tool-execution.ts'

/** The outcomes of the calls of one step. */
export interface CallsOutcome {
  /** In the order of the calls: the order of completion would change the bytes of the prompt. */
  results: ToolInvocationPart[]
  suspended: WaitingCall[]
  /** Some calls are for the client to run. */
  forClient: boolean
}

const defaultConcurrency = 10

/**
 * Marks the calls that wait for no decision as begun, and returns their ids for the commit that precedes them. Of the other calls it is
 * stored that they have begun when they do: until then they were not run, whatever becomes of the process.
 */
export function beginCalls(run: Run, calls: readonly OpenCall[]): string[] {
  const beginning = calls.filter(({ part, permitted }) => {
    if (permitted === false) return false
    const resolved = run.offeredTools.get(part.toolInvocation.toolName)
    return !run.options.requireToolApproval && (!resolved || needsNoApproval(resolved.tool))
  })
  for (const call of beginning) call.begun = true
  return beginning.map(({ part }) => part.toolInvocation.toolCallId)
}

/** Asks the policies about all calls of a step, before it is stored which of them begin. */
export async function askPolicies(run: Run, calls: readonly OpenCall[]): Promise<void> {
  await Promise.all(calls.map((call) => isPermitted(run, call)))
}

/** Runs the calls of a step in parallel, as many at once as the options allow. When all have ended, throws what processors threw. */
export async function runCalls(run: Run, calls: readonly OpenCall[]): Promise<CallsOutcome> {
  const outcomes = new Array<CallOutcome>(calls.length)
  const stop = new AbortController()
  const failures: unknown[] = []
  const scope: CallScope = {
    signal: AbortSignal.any([run.signal, stop.signal]),
    fail(error) {
      failures.push(error)
      stop.abort(error)
    },
  }
  let next = 0
  const worker = async () => {
    for (let index = next++; index < calls.length && failures.length === 0; index = next++) {
      const outcome = await outcomeOf(run, calls[index] as OpenCall, scope)
      if (outcome.status === 'completed') outcome.invocation = await run.display.publishResult(outcome.invocation)
      outcomes[index] = outcome
    }
  }
  const workers = Math.min(calls.length, Math.max(1, run.options.toolCallConcurrency ?? defaultConcurrency))
  await Promise.all(Array.from({ length: workers }, () => worker().catch(scope.fail)))
  if (failures.length > 0) {
    if (run.isLost(failures[0])) await withdrawBegun(run, calls)
    throw failures[0]
  }
  if (run.signal.aborted) await endWaiting(run, outcomes)
  return collect(outcomes)
}

/** The run continues elsewhere. Of calls that were stored as begun and did not begin, it must not report that they were interrupted. */
async function withdrawBegun(run: Run, calls: readonly OpenCall[]): Promise<void> {
  await Promise.allSettled(calls.flatMap(({ beginning }) => beginning ?? []))
  const waiting = calls.filter(({ begun, hasRun, startedBefore }) => begun && !hasRun && !startedBefore)
  if (waiting.length > 0) await run.host.withdrawBegun?.(run.step, waiting.map(({ part }) => part.toolInvocation.toolCallId))
}

/** The result of a call whose run was aborted before the call began. */
export function notRun(invocation: ToolInvocation): ToolInvocation {
  const reason = 'The run was aborted before this call began. The call was not run.'
  return { ...invocation, state: 'output-denied', approval: { approved: false, reason } }
}

/**
 * The run ends instead of waiting. A call that needs an approval was not run; one that suspended itself was stopped, with the run that it
 * called. The model and displays receive that as its result.
 */
async function endWaiting(run: Run, outcomes: CallOutcome[]): Promise<void> {
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome.status !== 'suspended') continue
    const { kind, child, toolName } = outcome.call
    if (child) run.host.abortChild?.(child)
    const invocation: ToolInvocation = kind === 'approval' && !child
      ? notRun(outcome.invocation)
      : { ...outcome.invocation, state: 'output-error', errorText: aborted(toolName).message }
    outcomes[index] = { status: 'completed', invocation: await run.display.publishResult(invocation) }
  }
}

async function outcomeOf(run: Run, call: OpenCall, scope: CallScope): Promise<CallOutcome> {
  const { toolInvocation } = call.part
  const failed = (errorText: string): CallOutcome =>
    ({ status: 'completed', invocation: { ...toolInvocation, state: 'output-error', errorText } })
  if (call.interrupted !== undefined) return failed(call.interrupted)
  const execution = new ToolExecution(run, scope, call)
  const stopped = (): CallOutcome => {
    // The process that continues the run has the outcome of the call: this one publishes none.
    if (run.isLost(scope.signal.reason)) throw scope.signal.reason
    const { hasRun, startedBefore, decision } = call
    const child = hasRun ? undefined : (decision?.child ?? startedBefore?.child)
    if (child) run.host.abortChild?.(child)
    if (hasRun || decision?.child) return failed(aborted(toolInvocation.toolName).message)
    if (startedBefore) return failed(startedBefore.interrupted)
    return { status: 'completed', invocation: notRun(toolInvocation) }
  }
  if (scope.signal.aborted) return stopped()
  return untilAborted(execution.outcome(), scope.signal).catch((error: unknown) => {
    if (error !== scope.signal.reason) throw error
    return stopped()
  })
}

function collect(outcomes: readonly CallOutcome[]): CallsOutcome {
  const results: ToolInvocationPart[] = []
  const suspended: WaitingCall[] = []
  let forClient = false
  for (const outcome of outcomes) {
    if (outcome.status === 'completed') results.push({ type: 'tool-invocation', toolInvocation: outcome.invocation })
    else if (outcome.status === 'suspended') suspended.push(outcome.call)
    else forClient = true
  }
  return { results, suspended, forClient }
}
