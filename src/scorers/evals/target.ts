import { Agent } from '../../agent/agent.ts'
import { checkOptions } from '../../agent/options.ts'
import { refused } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import type { Message } from '../../message/message.ts'
import { MessageList } from '../../message/list/list.ts'
import type { AgentInput } from '../../message/read/input.ts'
import { systemMessages, type SystemMessageInput } from '../../prompt/system.ts'
import type { AgentExecutionOptions } from '../../run/options.ts'
import { RequestContext } from '../../run/request-context.ts'
import type { AgentScorerInput, RunMetrics } from '../contract.ts'
import type { EvalItem } from './data.ts'

/** A function of your own that is evaluated. */
export type EvalFunction<Input, Output> = (
  input: Input, context: { item: EvalItem<Input>; abortSignal: AbortSignal },
) => Output | Promise<Output>

/** What is evaluated: an agent, or a function. */
export type EvalTarget<Input, Output> = Agent | EvalFunction<Input, Output>

/** What a target did with a case. */
export interface TargetRun {
  runId?: string
  input: unknown
  output: unknown
  metrics?: RunMetrics
}

/** Runs a target on one case. */
export type RunTarget = (item: EvalItem<unknown>, abortSignal: AbortSignal) => Promise<TargetRun>

/** Options of the agent's calls. */
export type TargetOptions = Omit<AgentExecutionOptions, 'requestContext' | 'abortSignal' | 'runId'>

export function targetOf(target: unknown, options: TargetOptions | undefined): RunTarget {
  if (target instanceof Agent) {
    if (options !== undefined) checkTargetOptions(options)
    return (item, abortSignal) => runAgent(target, options ?? {}, item, abortSignal)
  }
  if (typeof target !== 'function') throw refused('target', 'an Agent, or a function of the input')
  if (options !== undefined) throw new HeedError('unsupported_option', 'targetOptions are for an agent, and the target is a function.')
  return (item, abortSignal) => runFunction(target as EvalFunction<unknown, unknown>, item, abortSignal)
}

const ofCase = {
  requestContext: 'requestContext of the case',
  abortSignal: 'abortSignal of runEvals()',
  runId: 'no id: each run has its own',
}

/** Rejects what a case or `runEvals()` sets for each call: it would be replaced. */
function checkTargetOptions(options: TargetOptions): void {
  checkOptions(options, 'targetOptions')
  const taken = Object.entries(ofCase).find(([name]) => (options as Record<string, unknown>)[name] !== undefined)
  if (!taken) return
  const [option, instead] = taken
  throw new HeedError('unsupported_option', `targetOptions has no option '${option}'. Use ${instead}.`, { details: { option } })
}

async function runFunction(target: EvalFunction<unknown, unknown>, item: EvalItem<unknown>, abortSignal: AbortSignal): Promise<TargetRun> {
  if (item.turns !== undefined) throw new HeedError('unsupported_option', 'turns are for agents. Give the case an input.')
  return { input: item.input, output: await target(item.input, { item, abortSignal }) }
}

/** Calls the agent turn by turn. The answers to earlier turns are history of the last one. */
async function runAgent(agent: Agent, options: TargetOptions, item: EvalItem<unknown>, abortSignal: AbortSignal): Promise<TargetRun> {
  const turns = (item.turns ?? [item.input]) as AgentInput[]
  const requestContext = new RequestContext(Object.entries(item.requestContext ?? {}))
  const history: Message[] = []
  for (const [index, turn] of turns.entries()) {
    const given = new MessageList().add(turn, 'input').get.all.db()
    const begin = performance.now()
    const result = await agent.generate([...history, ...given] as AgentInput, { ...options, requestContext, abortSignal })
    const durationMs = performance.now() - begin
    if (index < turns.length - 1) {
      history.push(...given, ...result.messages)
      continue
    }
    const { tripwire, finishReason, runId, totalUsage: usage, steps } = result
    if (tripwire) throw new HeedError('tripwire', `A processor rejected the run: ${tripwire.reason}`)
    if (finishReason === 'suspended') throw new HeedError('thread_suspended', 'The run waits for a decision about a tool call.')
    const { instructions, system = [] } = options
    const own = instructions === undefined ? await agent.getInstructions({ requestContext }) : textsOf(instructions)
    const input: AgentScorerInput = { inputMessages: given, rememberedMessages: history, systemMessages: [...own, ...textsOf(system)] }
    return { runId, input, output: result.messages, metrics: { durationMs, usage, steps: steps.length } }
  }
  throw refused('turns', 'a list with at least one message')
}

function textsOf(instructions: SystemMessageInput): string[] {
  return systemMessages(instructions).map(({ content }) => content)
}
