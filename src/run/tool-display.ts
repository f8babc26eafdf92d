import type { JSONValue } from '../json.ts'
import type { ToolInvocation } from '../message/message.ts'
import type { Chunk } from './chunk.ts'
import type { Run } from './run.ts'
import type { WaitingCall } from './run-result.ts'
import type { ResolvedTool } from './tool-set.ts'
import type { TransformPhase } from './transform.ts'

/** Shows a chunk about a tool call, or what the tool's and the agent's `transform` make of it. */
export function showToolCall(run: Run, chunk: Chunk): void | Promise<void> {
  if (chunk.type !== 'tool-call' && chunk.type !== 'tool-call-delta') return run.say(chunk)
  const tool = toolOf(run, chunk.payload.toolName)
  if (run.transformer.idle(tool?.tool.transform)) return run.say(chunk)
  return chunk.type === 'tool-call' ? showCall(run, chunk, tool) : showDelta(run, chunk, tool)
}

type Of<Type extends Chunk['type']> = Extract<Chunk, { type: Type }>

async function showCall(run: Run, chunk: Of<'tool-call'>, tool: ResolvedTool | undefined): Promise<void> {
  const { toolCallId, toolName, args } = chunk.payload
  const shown = await run.transformer.apply(tool?.tool.transform, { target: 'display', phase: 'input-available', toolName, toolCallId, input: args })
  await run.say(shown === undefined ? chunk : { ...chunk, payload: { ...chunk.payload, args: shown } })
}

async function showDelta(run: Run, chunk: Of<'tool-call-delta'>, tool: ResolvedTool | undefined): Promise<void> {
  const { toolCallId, toolName = '', argsTextDelta } = chunk.payload
  if (run.transformer.hidesInput(tool?.tool.transform)) return
  const shown = await run.transformer.apply(tool?.tool.transform, { target: 'display', phase: 'input-delta', toolName, toolCallId, inputTextDelta: argsTextDelta })
  await run.say(shown === undefined ? chunk : { ...chunk, payload: { ...chunk.payload, argsTextDelta: String(shown) } })
}

/** Shows how a call went; answers the invocation with what transcripts see of it. */
export async function showToolResult(run: Run, tool: ResolvedTool | undefined, invocation: ToolInvocation, preliminary: boolean): Promise<ToolInvocation> {
  const { transform } = tool?.tool ?? {}
  if (run.transformer.idle(transform)) {
    await run.say(resultChunk(run, invocation, preliminary))
    return invocation
  }
  await run.say(resultChunk(run, await seenBy(run, tool, invocation, 'display'), preliminary))
  const seen = await seenBy(run, tool, invocation, 'transcript')
  const transcript = {
    ...(seen.args === invocation.args ? {} : { args: seen.args }),
    ...(seen.result === invocation.result ? {} : { result: seen.result }),
    ...(seen.errorText === invocation.errorText ? {} : { errorText: seen.errorText }),
  }
  return Object.keys(transcript).length === 0 ? invocation : { ...invocation, transcript }
}

async function seenBy(run: Run, tool: ResolvedTool | undefined, invocation: ToolInvocation, target: 'display' | 'transcript'): Promise<ToolInvocation> {
  const { toolName, toolCallId, args: input, result: output, errorText } = invocation
  const apply = (phase: TransformPhase): Promise<JSONValue | undefined> =>
    run.transformer.apply(tool?.tool.transform, {
      target,
      phase,
      toolName,
      toolCallId,
      input,
      ...(output === undefined ? {} : { output }),
      ...(errorText === undefined ? {} : { error: errorText }),
    })
  const args = await apply('input-available')
  const result = invocation.state === 'result' ? await apply('output-available') : undefined
  const error = invocation.state === 'output-error' ? await apply('error') : undefined
  return {
    ...invocation,
    ...(args === undefined ? {} : { args }),
    ...(result === undefined ? {} : { result }),
    ...(error === undefined ? {} : { errorText: String(error) }),
  }
}

function resultChunk(run: Run, invocation: ToolInvocation, preliminary: boolean): Chunk {
  const { toolCallId, toolName, args, result, errorText, state, approval } = invocation
  const call = { toolCallId, toolName, args }
  if (state === 'output-error') return run.chunk('tool-error', { ...call, error: { name: 'ToolError', message: errorText ?? '' } })
  if (state === 'output-denied') return run.chunk('tool-output-denied', { ...call, ...(approval?.reason === undefined ? {} : { reason: approval.reason }) })
  return run.chunk('tool-result', { ...call, result: result ?? null, ...(preliminary ? { preliminary: true } : {}) })
}

/** Shows that a call waits for somebody. */
export async function showWaiting(run: Run, waiting: WaitingCall): Promise<void> {
  const tool = toolOf(run, waiting.toolName)
  const { toolCallId, toolName, args, payload = null } = waiting
  const transform = tool?.tool.transform
  const shape = tool?.tool.resumeSchema === undefined ? approvalShape : JSON.stringify(await tool.resume?.jsonSchema())
  if (waiting.kind === 'approval') {
    const shown = await run.transformer.apply(transform, { target: 'display', phase: 'approval', toolName, toolCallId, input: args })
    return run.say(run.chunk('tool-call-approval', { toolCallId, toolName, args: shown ?? args, resumeSchema: approvalShape }))
  }
  const input = await run.transformer.apply(transform, { target: 'display', phase: 'input-available', toolName, toolCallId, input: args })
  const suspendPayload = await run.transformer.apply(transform, { target: 'display', phase: 'suspend', toolName, toolCallId, input: args, suspendPayload: payload })
  return run.say(run.chunk('tool-call-suspended', { toolCallId, toolName, args: input ?? args, suspendPayload: suspendPayload ?? payload, resumeSchema: shape }))
}

const approvalShape = JSON.stringify({ type: 'object', properties: { approved: { type: 'boolean' }, reason: { type: 'string' } }, required: ['approved'] })

function toolOf(run: Run, name: string | undefined): ResolvedTool | undefined {
  return name === undefined ? undefined : run.tools.tools.get(name)
}
