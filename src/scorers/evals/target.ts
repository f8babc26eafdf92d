import { Agent } from '../../agent/agent.ts'
import { checkOptions } from '../../agent/options.ts'
import type { RunLike } from '../../agent/workflows.ts'
import { refused } from '../../base/arguments.ts'
import { describe, HeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { isObject } from '../../base/json.ts'
import { untilAborted } from '../../base/promises.ts'
import type { Usage } from '../../message/chunk.ts'
import type { Message } from '../../message/message.ts'
import { MessageList } from '../../message/list/list.ts'
import type { AgentInput } from '../../message/read/input.ts'
import { systemMessages, type SystemMessageInput } from '../../prompt/system.ts'
import type { AgentExecutionOptions } from '../../run/options.ts'
import { RequestContext } from '../../run/request-context.ts'
import { noUsage } from '../../run/model/model-parts.ts'
import type { AgentScorerInput, RunMetrics, TrajectoryStep } from '../contract.ts'
import { trajectoryOf } from '../messages.ts'
import { isEvalTurn, type EvalItem } from './data.ts'

/** A function of your own that is evaluated. */
export type EvalFunction<Input, Output> = (
  input: Input, context: { item: EvalItem<Input>; abortSignal: AbortSignal },
) => Output | Promise<Output>

/** A workflow that is evaluated: one of `heed/workflows`, or of another engine. Steps are scored where its runs have `path`. */
export interface EvalWorkflow<Input = never, Output = unknown> {
  readonly id: string
  createRun(options: { runId: string }): {
    start(args: { inputData?: Input; initialState?: never; requestContext?: RequestContext }): Promise<WorkflowOutcome<Output>>
  }
}

/** What became of a run of a workflow. */
export interface WorkflowOutcome<Output = unknown> {
  status: string
  result?: Output
  error?: unknown
  /** What the agents of its steps took. */
  usage?: Usage
  /** The steps that ran, in their order. */
  path?: ReadonlyArray<{
    stepId: string; status: string; payload?: unknown; output?: unknown; startedAt?: number | undefined; endedAt?: number | undefined
  }>
}

/** What is evaluated: an agent, a workflow, or a function. */
export type EvalTarget<Input, Output> = Agent | EvalWorkflow<Input, unknown> | EvalFunction<Input, Output>

/** What a target did with a case. */
export interface TargetRun {
  runId?: string
  input: unknown
  output: unknown
  metrics?: RunMetrics
  /** The steps of a workflow, or the tool calls of an agent. */
  trajectory?: TrajectoryStep[]
  /** Of a conversation: each turn. The last one is also the run itself. */
  turns?: TargetRun[]
}

/** Runs a target on one case. */
export type RunTarget = (item: EvalItem<unknown>, abortSignal: AbortSignal) => Promise<TargetRun>

/** Options of the agent's calls. */
export type TargetOptions = Omit<AgentExecutionOptions, 'requestContext' | 'abortSignal' | 'runId' | 'scorers'>

export function targetOf(target: unknown, options: TargetOptions | undefined): RunTarget {
  if (target instanceof Agent) {
    if (options !== undefined) checkTargetOptions(options)
    return (item, abortSignal) => runAgent(target, options ?? {}, item, abortSignal)
  }
  if (options !== undefined) throw new HeedError('unsupported_option', 'targetOptions are for an agent, and the target is none.')
  if (isWorkflow(target)) return (item, abortSignal) => runWorkflow(target, item, abortSignal)
  if (typeof target !== 'function') throw refused('target', 'an Agent, a workflow, or a function of the input')
  return (item, abortSignal) => runFunction(target as EvalFunction<unknown, unknown>, item, abortSignal)
}

export function isWorkflow(target: unknown): target is EvalWorkflow {
  return isObject(target) && typeof target.createRun === 'function'
}

const ofCase = {
  requestContext: 'requestContext of the case',
  abortSignal: 'abortSignal of runEvals()',
  runId: 'no id: each run has its own',
  scorers: 'scorers of runEvals()',
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
  checkPlain(item)
  return { input: item.input, output: await target(item.input, { item, abortSignal }) }
}

function checkPlain({ turns, startOptions }: EvalItem<unknown>, target: 'function' | 'workflow' = 'function'): void {
  if (turns !== undefined) throw new HeedError('unsupported_option', 'turns are for agents. Give the case an input.')
  if (startOptions !== undefined && target === 'function') throw new HeedError('unsupported_option', 'startOptions are for workflows.')
}

/** Runs the workflow to its end. */
async function runWorkflow(target: EvalWorkflow, item: EvalItem<unknown>, abortSignal: AbortSignal): Promise<TargetRun> {
  checkPlain(item, 'workflow')
  const { input, requestContext, startOptions } = item
  const runId = newId()
  const begin = performance.now()
  const run = target.createRun({ runId }) as RunLike
  const outcome = await untilAborted(run.start({
    inputData: input, ...startOptions, requestContext: new RequestContext(Object.entries(requestContext ?? {})),
  }), abortSignal)
  const { status, result, error, path = [], usage = noUsage } = outcome as WorkflowOutcome
  if (status !== 'success') {
    const why = error === undefined ? '' : `: ${describe(error)}`
    throw new HeedError('step_failed', `The run of workflow '${target.id}' ended as ${status}${why}`, { details: { runId, status } })
  }
  const steps = path.map(({ stepId, status: ended, payload, output, startedAt, endedAt }): TrajectoryStep => ({
    stepType: 'workflow_step', name: stepId, toolArgs: payload, success: ended === 'success',
    ...(output === undefined ? {} : { toolResult: output }),
    ...(startedAt === undefined || endedAt === undefined ? {} : { durationMs: endedAt - startedAt }),
  }))
  return { runId, input, output: result, metrics: { durationMs: performance.now() - begin, usage }, trajectory: steps }
}

/** Calls the agent turn by turn. The answers to earlier turns are history of the last one. */
async function runAgent(agent: Agent, options: TargetOptions, item: EvalItem<unknown>, abortSignal: AbortSignal): Promise<TargetRun> {
  if (item.startOptions !== undefined) throw new HeedError('unsupported_option', 'startOptions are for workflows.')
  const turns = (item.turns ?? [item.input as AgentInput]).map((turn) => (isEvalTurn(turn) ? turn.input : turn))
  const runs: TargetRun[] = []
  const requestContext = new RequestContext(Object.entries(item.requestContext ?? {}))
  const history: Message[] = []
  for (const [index, turn] of turns.entries()) {
    const given = new MessageList().add(turn, 'input').get.all.db()
    const begin = performance.now()
    const result = await agent.generate([...history, ...given] as AgentInput, { ...options, requestContext, abortSignal })
    const durationMs = performance.now() - begin
    const { tripwire, finishReason, runId, totalUsage: usage, steps, messages: output } = result
    if (tripwire) throw new HeedError('tripwire', `A processor rejected the run: ${tripwire.reason}`)
    if (finishReason === 'suspended') throw new HeedError('thread_suspended', 'The run waits for a decision about a tool call.')
    const { instructions, system = [] } = options
    const own = instructions === undefined ? await agent.getInstructions({ requestContext }) : textsOf(instructions)
    const input: AgentScorerInput = { inputMessages: given, rememberedMessages: [...history], systemMessages: [...own, ...textsOf(system)] }
    runs.push({ runId, input, output, metrics: { durationMs, usage, steps: steps.length }, trajectory: trajectoryOf(output) })
    if (index === turns.length - 1) return { ...(runs.at(-1) as TargetRun), ...(item.turns === undefined ? {} : { turns: runs }) }
    history.push(...given, ...output)
  }
  throw refused('turns', 'a list with at least one message')
}

function textsOf(instructions: SystemMessageInput): string[] {
  return systemMessages(instructions).map(({ content }) => content)
}
