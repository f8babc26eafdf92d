import { untilAborted } from '../../base/until-aborted.ts'
import type { ToolInvocationPart } from '../../message/message.ts'
import type { Run } from '../loop/run.ts'
import type { WaitingCall } from '../step/step-result.ts'
import { aborted, ToolExecution, type CallOutcome, type CallScope, type OpenCall } from './tool-execution.ts'

export interface CallsOutcome {
  /** In the order of the calls: the order of completion would change the bytes of the prompt. */
  results: ToolInvocationPart[]
  suspended: WaitingCall[]
  /** Some calls are for the client to run. */
  forClient: boolean
}

const defaultConcurrency = 10

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
  if (failures.length > 0) throw failures[0]
  return collect(outcomes)
}

async function outcomeOf(run: Run, call: OpenCall, scope: CallScope): Promise<CallOutcome> {
  const { toolInvocation } = call.part
  const failed = (errorText: string): CallOutcome =>
    ({ status: 'completed', invocation: { ...toolInvocation, state: 'output-error', errorText } })
  if (call.interrupted !== undefined) return failed(call.interrupted)
  if (scope.signal.aborted) return failed(aborted(toolInvocation.toolName).message)
  return untilAborted(new ToolExecution(run, scope, call).outcome(), scope.signal).catch((error: unknown) => {
    if (error !== scope.signal.reason) throw error
    return failed(aborted(toolInvocation.toolName).message)
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
