import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import type { JSONValue } from '../../base/json.ts'
import type { ToolInvocation } from '../../message/message.ts'
import { describeIssues, type CompiledSchema } from '../../schema/compile.ts'
import type { Run } from '../loop/run.ts'
import { raceTool } from './tool-race.ts'
import type { ModelToolCall } from '../step/step-recorder.ts'
import { ToolExecution } from './tool-context.ts'
import { copyOf, jsonOf, modelOutputOf } from './tool-json.ts'
import type { ResolvedTool } from './tool-set.ts'
import type { ChildCall } from '../chunk.ts'
import type { WaitingCall } from '../output/run-result.ts'

/** What somebody decided about a call that waited. */
export interface Decision {
  approved?: boolean
  reason?: string
  resumeData?: JSONValue
  /** It is about the call of another run, which this one stands for. */
  child?: ChildCall
}

/**
 * How a call went. `settled`: the model gets a result, be it an error. `waiting`: a person or a caller is asked first.
 * `elsewhere`: the tool has no `execute`; whoever called the agent runs it.
 */
export type CallOutcome =
  | { status: 'settled'; invocation: ToolInvocation }
  | { status: 'waiting'; call: WaitingCall }
  | { status: 'elsewhere' }

/** What the calls of one step share. */
export interface CallScope {
  /** Aborts with the run, and when one of the calls ended it. */
  signal: AbortSignal
  /** Ends the run: a processor refused what a tool said, or failed. */
  fail(error: unknown): void
}

/** A tool that returned. Nobody has seen yet what. */
interface Returned {
  status: 'returned'
  resolved: ResolvedTool
  input: unknown
  output: unknown
  json: JSONValue
  /** What is left of its `timeoutMs`. */
  left: number | undefined
}

/** What a tool threw, or what is wrong with what it returned, which may quote it. Nobody has seen it yet. */
class Thrown extends Error {}

/**
 * Runs one call of the model. Whatever goes wrong with it becomes an error that the model can read and correct; it throws only what
 * processors throw.
 */
export async function runCall(run: Run, call: ModelToolCall, scope: CallScope, decision?: Decision): Promise<CallOutcome> {
  const { toolInvocation } = call.part
  const failed = (text: string) => settle({ ...toolInvocation, state: 'output-error', errorText: text })
  const unable = async (error: unknown): Promise<CallOutcome> => {
    const text = errorText(error instanceof Thrown ? error.cause : error, toolInvocation.toolName)
    if (!(error instanceof Thrown) || scope.signal.aborted) return failed(text)
    const checked = await run.processors.toolResult(run, toolInvocation, text, { isError: true })
    if ('refused' in checked) return failed(checked.refused)
    return failed(typeof checked.result === 'string' ? checked.result : JSON.stringify(checked.result))
  }
  let outcome: CallOutcome | Returned
  try {
    outcome = await attempt(run, call, scope, decision)
  } catch (error) {
    run.trace?.toolFailed(toolInvocation, error instanceof Thrown ? error.cause : error)
    return unable(error)
  }
  if (outcome.status !== 'returned') return outcome
  const checked = await run.processors.toolResult(run, toolInvocation, outcome.json)
  if ('refused' in checked) return failed(checked.refused)
  return settled(run, scope, toolInvocation, outcome, checked.result).catch(unable)
}

async function attempt(run: Run, call: ModelToolCall, scope: CallScope, decision: Decision | undefined): Promise<CallOutcome | Returned> {
  const { toolInvocation } = call.part
  const { toolCallId, toolName, args } = toolInvocation
  if (call.invalid !== undefined) throw new HeedError('tool_input_invalid', `${call.invalid}. Call ${toolName} again with valid JSON.`)
  const resolved = run.offered.get(toolName)
  if (!resolved) throw unknownTool(toolName, run)
  if (decision?.approved === false && !decision.child) return denied(toolInvocation, decision.reason)
  const input = await validInput(resolved, args)
  if (decision === undefined && (await needsApproval(run, resolved, input, toolCallId))) {
    return { status: 'waiting', call: { toolCallId, toolName, args, kind: 'approval' } }
  }
  if (!resolved.tool.execute) return { status: 'elsewhere' }
  const work = () => execute(run, resolved, scope, toolInvocation, input, decision)
  try {
    return await (run.trace ? run.trace.tool({ description: resolved.tool.description, invocation: toolInvocation }, work) : work())
  } catch (error) {
    throw new Thrown('', { cause: error })
  }
}

async function execute(
  run: Run, resolved: ResolvedTool, scope: CallScope, invocation: ToolInvocation, input: unknown, decision: Decision | undefined,
): Promise<CallOutcome | Returned> {
  const { tool, name } = resolved
  const { toolCallId, args } = invocation
  const execution = new ToolExecution(run, scope, invocation, decision)
  const resumeData = decision?.resumeData === undefined ? undefined : await check(resolved.resume, decision.resumeData, `${name} was resumed with data that doesn't match its resumeSchema`)
  const began = run.clock.now()
  let output: unknown
  try {
    output = await raceTool(run, resolved, scope.signal, {
      left: tool.timeoutMs,
      start: (signal) => {
        run.host.beforeTool?.()
        scope.signal.throwIfAborted()
        return tool.execute?.(input, execution.context(signal, resumeData))
      },
      onPreliminary: async (preliminary) => {
        const result = jsonOf(preliminary, `What ${name} returned`)
        await showPreliminary(run, invocation, result).catch(scope.fail)
      },
    })
  } catch (error) {
    if (!execution.suspended) throw error
  } finally {
    execution.end()
  }
  if (execution.suspended) {
    const { payload } = execution.suspended
    await check(resolved.suspend, payload, `${name} suspended with something that doesn't match its suspendSchema`)
    return { status: 'waiting', call: { toolCallId, toolName: name, args, ...execution.suspended } }
  }
  // Returned or thrown, it is what went wrong.
  if (output instanceof Error) throw output
  const left = tool.timeoutMs === undefined ? undefined : Math.max(0, tool.timeoutMs - (run.clock.now() - began))
  const checked = await check(resolved.output, output, `${name} returned something that doesn't match its outputSchema`)
  return { status: 'returned', resolved, input, output: checked, json: jsonOf(checked, `What ${name} returned`), left }
}

/** What a tool returned on the way, as watchers may see it. */
async function showPreliminary(run: Run, invocation: ToolInvocation, result: JSONValue): Promise<void> {
  const checked = await run.processors.toolResult(run, invocation, result, { preliminary: true })
  if ('result' in checked) await run.showToolResult({ ...invocation, state: 'result', result: checked.result }, true)
}

async function check(schema: CompiledSchema | undefined, value: unknown, problem: string): Promise<unknown> {
  if (!schema) return value
  const checked = await schema.validate(value)
  if (!checked.ok) throw new HeedError('tool_output_invalid', `${problem}: ${describeIssues(checked.issues)}`)
  return checked.value
}

async function settled(run: Run, scope: CallScope, invocation: ToolInvocation, { resolved, input, output, json, left }: Returned, seen: unknown): Promise<CallOutcome> {
  const { tool, name } = resolved
  const result = jsonOf(seen, `What a processor made of the result of ${name}`)
  if (!tool.toModelOutput) return settle({ ...invocation, state: 'result', result })
  // What a processor took out of a result must not reach the model by this way.
  const modelOutput = await raceTool(run, resolved, scope.signal, {
    left,
    start: () => tool.toModelOutput?.(seen === json ? output : result, { toolCallId: invocation.toolCallId, input }),
  }).catch((error: unknown) => {
    throw new Thrown('', { cause: error })
  })
  return settle({ ...invocation, state: 'result', result, modelOutput: modelOutputOf(modelOutput, name) })
}

/** A copy: what a tool does to its input must not change what the model said. */
async function validInput(resolved: ResolvedTool, args: JSONValue): Promise<unknown> {
  const input = copyOf(args)
  if (!resolved.input) return input
  const checked = await resolved.input.validate(input)
  if (checked.ok) return checked.value
  throw new HeedError(
    'tool_input_invalid',
    `The input of ${resolved.name} is not valid: ${describeIssues(checked.issues)}. Correct it and call the tool again.`,
  )
}

async function needsApproval(run: Run, resolved: ResolvedTool, input: unknown, toolCallId: string): Promise<boolean> {
  if (run.options.requireToolApproval) return true
  const sent = run.sentMessages()
  return resolved.tool.requireApproval(input, {
    toolCallId,
    runId: run.id,
    ...(run.threadId === undefined ? {} : { threadId: run.threadId }),
    ...(run.resourceId === undefined ? {} : { resourceId: run.resourceId }),
    requestContext: run.requestContext,
    get messages() {
      return sent()
    },
  })
}

function denied(invocation: ToolInvocation, reason: string | undefined): CallOutcome {
  return settle({ ...invocation, state: 'output-denied', approval: { approved: false, ...(reason === undefined ? {} : { reason }) } })
}

function settle(invocation: ToolInvocation): CallOutcome {
  return { status: 'settled', invocation }
}

function unknownTool(name: string, run: Run): HeedError {
  const names = [...run.offered.keys()]
  return new HeedError('unknown_tool', names.length === 0 ? `There is no tool '${name}'; no tools are available.` : `There is no tool '${name}'. Available: ${names.join(', ')}.`)
}

function errorText(error: unknown, toolName: string): string {
  return isHeedError(error) ? error.message : `${toolName} failed: ${describe(error)}`
}
