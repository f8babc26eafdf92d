import type { ToolInvocationPart } from '../../message/message.ts'
import type { Run } from '../loop/run.ts'
import type { WaitingCall } from '../output/run-result.ts'
import type { ModelToolCall } from '../step/step-recorder.ts'
import { stopped } from './tool-race.ts'
import { runCall, type CallOutcome, type CallScope, type Decision } from './tool-run.ts'
import { untilAborted } from '../../base/until-aborted.ts'

/** A call to run now, with what was decided about it while it waited. */
export interface OpenCall extends ModelToolCall {
  decision?: Decision
  /** Set instead of running it: it had begun when its process died, and may not begin twice. */
  interrupted?: string
}

export interface CallsOutcome {
  /** Results, in the order of the calls: the order of completion would change the bytes of the prompt. */
  settled: ToolInvocationPart[]
  waiting: WaitingCall[]
  /** Some calls are for whoever called the agent. */
  elsewhere: boolean
}

const defaultConcurrency = 10

/** Runs the calls of a step side by side, as many at once as the options allow. Throws what processors throw, when all calls are over. */
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
      const call = calls[index] as OpenCall
      outcomes[index] = await shown(run, await outcomeOf(run, call, scope))
    }
  }
  const workers = Math.min(calls.length, Math.max(1, run.options.toolCallConcurrency ?? defaultConcurrency))
  await Promise.all(Array.from({ length: workers }, () => worker().catch(scope.fail)))
  if (failures.length > 0) throw failures[0]
  return collect(outcomes)
}

async function outcomeOf(run: Run, call: OpenCall, scope: CallScope): Promise<CallOutcome> {
  const { toolInvocation } = call.part
  const unable = (errorText: string): CallOutcome => ({ status: 'settled', invocation: { ...toolInvocation, state: 'output-error', errorText } })
  if (call.interrupted !== undefined) return unable(call.interrupted)
  if (scope.signal.aborted) return unable(stopped(toolInvocation.toolName).message)
  return untilAborted(runCall(run, call, scope, call.decision), scope.signal).catch((error: unknown) => {
    if (error !== scope.signal.reason) throw error
    return unable(stopped(toolInvocation.toolName).message)
  })
}

async function shown(run: Run, outcome: CallOutcome): Promise<CallOutcome> {
  return outcome.status === 'settled' ? { status: 'settled', invocation: await run.showToolResult(outcome.invocation) } : outcome
}

function collect(outcomes: readonly CallOutcome[]): CallsOutcome {
  const settled: ToolInvocationPart[] = []
  const waiting: WaitingCall[] = []
  let elsewhere = false
  for (const outcome of outcomes) {
    if (outcome.status === 'settled') settled.push({ type: 'tool-invocation', toolInvocation: outcome.invocation })
    else if (outcome.status === 'waiting') waiting.push(outcome.call)
    else elsewhere = true
  }
  return { settled, waiting, elsewhere }
}
