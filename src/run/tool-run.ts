import { HeedError, isHeedError } from '../errors.ts'
import type { JSONValue } from '../json.ts'
import type { ToolInvocation } from '../message/message.ts'
import { describeIssues } from '../schema/compile.ts'
import { describe } from './provider-error.ts'
import type { Run } from './run.ts'
import { raceTool } from './tool-race.ts'
import type { ModelToolCall } from './step-recorder.ts'
import type { ResolvedTool } from './tool-set.ts'
import type { ToolContext } from './tool.ts'
import type { WaitingCall } from './run-result.ts'

/** What somebody decided about a call that waited. */
export interface Decision {
  approved?: boolean
  reason?: string
  resumeData?: JSONValue
}

/**
 * How a call went. `settled`: the model gets a result, be it an error. `waiting`: a person or a caller is asked first.
 * `elsewhere`: the tool has no `execute`; whoever called the agent runs it.
 */
export type CallOutcome =
  | { status: 'settled'; invocation: ToolInvocation }
  | { status: 'waiting'; call: WaitingCall }
  | { status: 'elsewhere' }

/** Runs one call of the model. Never throws: whatever goes wrong becomes an error that the model can read and correct. */
export async function runCall(run: Run, call: ModelToolCall, decision?: Decision): Promise<CallOutcome> {
  const { toolInvocation } = call.part
  try {
    return await attempt(run, call, decision)
  } catch (error) {
    return settle({ ...toolInvocation, state: 'output-error', errorText: errorText(error, toolInvocation.toolName) })
  }
}

async function attempt(run: Run, call: ModelToolCall, decision: Decision | undefined): Promise<CallOutcome> {
  const { toolInvocation } = call.part
  const { toolCallId, toolName, args } = toolInvocation
  if (call.invalid !== undefined) throw new HeedError('tool_input_invalid', `${call.invalid}. Call ${toolName} again with valid JSON.`)
  const resolved = run.offered.get(toolName)
  if (!resolved) throw unknownTool(toolName, run)
  if (decision?.approved === false) return denied(toolInvocation, decision.reason)
  const input = await validInput(resolved, args)
  if (decision === undefined && (await needsApproval(run, resolved, input, toolCallId))) {
    return { status: 'waiting', call: { toolCallId, toolName, args, kind: 'approval' } }
  }
  if (!resolved.tool.execute) return { status: 'elsewhere' }
  return execute(run, resolved, toolInvocation, input, decision)
}

async function execute(run: Run, resolved: ResolvedTool, invocation: ToolInvocation, input: unknown, decision: Decision | undefined): Promise<CallOutcome> {
  const { tool, name } = resolved
  const { toolCallId, args } = invocation
  const suspension: { payload?: JSONValue; asked: boolean } = { asked: false }
  const context = (abortSignal: AbortSignal): ToolContext => ({
    toolCallId,
    toolName: name,
    runId: run.id,
    agentId: run.agent.id,
    ...(run.threadId === undefined ? {} : { threadId: run.threadId }),
    ...(run.resourceId === undefined ? {} : { resourceId: run.resourceId }),
    abortSignal,
    requestContext: run.requestContext,
    suspend(payload: unknown): never {
      suspension.asked = true
      suspension.payload = jsonOf(payload, `What ${name} suspended with`)
      throw new HeedError('tool_interrupted', `${name} suspended itself.`)
    },
    ...(decision?.resumeData === undefined ? {} : { resumeData: decision.resumeData }),
    write: (part) => void run.say({ runId: run.id, ...part }),
    report: (output) => void run.say(run.chunk('tool-output', { toolCallId, toolName: name, output })),
    async sendSignal(signal) {
      await run.sendSignal(signal)
    },
  })
  let output: unknown
  try {
    output = await raceTool(
      run,
      resolved,
      (signal) => tool.execute?.(input, context(signal)),
      (preliminary) => run.showToolResult(resolved, { ...invocation, state: 'result', result: jsonOf(preliminary, `What ${name} returned`) }, true),
    )
  } catch (error) {
    if (!suspension.asked) throw error
  }
  if (suspension.asked) {
    return { status: 'waiting', call: { toolCallId, toolName: name, args, kind: 'suspend', payload: suspension.payload ?? null } }
  }
  return settle(await resultOf(run, resolved, invocation, output))
}

async function resultOf(run: Run, resolved: ResolvedTool, invocation: ToolInvocation, output: unknown): Promise<ToolInvocation> {
  const { tool, name } = resolved
  if (resolved.output) {
    const checked = await resolved.output.validate(output)
    if (!checked.ok) throw new HeedError('tool_output_invalid', `${name} returned something that doesn't match its outputSchema: ${describeIssues(checked.issues)}`)
    output = checked.value
  }
  const result = await run.processors.toolResult(run, invocation, jsonOf(output, `What ${name} returned`))
  const modelOutput = await tool.toModelOutput?.(output)
  return {
    ...invocation,
    state: 'result',
    result,
    ...(modelOutput === undefined ? {} : { modelOutput: jsonOf(modelOutput, `The model output of ${name}`) as ToolInvocation['modelOutput'] }),
  }
}

async function validInput(resolved: ResolvedTool, args: JSONValue): Promise<unknown> {
  if (!resolved.input) return args
  const checked = await resolved.input.validate(args)
  if (checked.ok) return checked.value
  throw new HeedError(
    'tool_input_invalid',
    `The input of ${resolved.name} is not valid: ${describeIssues(checked.issues)}. Correct it and call the tool again.`,
  )
}

async function needsApproval(run: Run, resolved: ResolvedTool, input: unknown, toolCallId: string): Promise<boolean> {
  if (run.options.requireToolApproval) return true
  return resolved.tool.requireApproval(input, {
    toolCallId,
    runId: run.id,
    ...(run.threadId === undefined ? {} : { threadId: run.threadId }),
    ...(run.resourceId === undefined ? {} : { resourceId: run.resourceId }),
    requestContext: run.requestContext,
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

/** The value as JSON, since that is what is stored and what the model sees. `undefined` becomes null. */
export function jsonOf(value: unknown, subject: string): JSONValue {
  if (value === undefined || value === null) return null
  if (typeof value === 'string' || typeof value === 'boolean') return value
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (cause) {
    throw new HeedError('tool_output_invalid', `${subject} can't be stored as JSON: ${describe(cause)}`, { cause })
  }
  if (text === undefined) throw new HeedError('tool_output_invalid', `${subject} can't be stored as JSON: it is a ${typeof value}.`)
  return JSON.parse(text) as JSONValue
}
