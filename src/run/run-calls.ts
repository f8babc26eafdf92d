import type { ToolInvocationPart } from '../message/message.ts'
import type { Run } from './run.ts'
import type { WaitingCall } from './run-result.ts'
import type { ModelToolCall } from './step-recorder.ts'
import { showWaiting } from './tool-display.ts'
import { runCall, type CallOutcome, type Decision } from './tool-run.ts'

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

/** Runs the calls of a step side by side, as many at once as the options allow. */
export async function runCalls(run: Run, calls: readonly OpenCall[]): Promise<CallsOutcome> {
  const outcomes = new Array<CallOutcome>(calls.length)
  let next = 0
  const worker = async () => {
    for (let index = next++; index < calls.length; index = next++) {
      const call = calls[index] as OpenCall
      outcomes[index] = await shown(run, call, await outcomeOf(run, call))
    }
  }
  const workers = Math.min(calls.length, Math.max(1, run.options.toolCallConcurrency ?? defaultConcurrency))
  await Promise.all(Array.from({ length: workers }, worker))
  return collect(outcomes)
}

function outcomeOf(run: Run, call: OpenCall): CallOutcome | Promise<CallOutcome> {
  if (call.interrupted === undefined) return runCall(run, call, call.decision)
  return { status: 'settled', invocation: { ...call.part.toolInvocation, state: 'output-error', errorText: call.interrupted } }
}

async function shown(run: Run, call: OpenCall, outcome: CallOutcome): Promise<CallOutcome> {
  if (outcome.status === 'waiting') await showWaiting(run, outcome.call)
  if (outcome.status !== 'settled') return outcome
  const tool = run.tools.tools.get(call.part.toolInvocation.toolName)
  return { status: 'settled', invocation: await run.showToolResult(tool, outcome.invocation) }
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
