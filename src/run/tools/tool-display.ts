import type { JSONValue } from '../../base/json.ts'
import type { MessagePart, ToolInvocation } from '../../message/message.ts'
import type { Chunk, RunChunk } from '../chunk.ts'
import type { Run } from '../loop/run.ts'
import type { Shown } from '../step/step-recorder.ts'
import type { WaitingCall } from '../output/run-result.ts'
import type { ToolCall } from '../step/step-result.ts'
import { withheld, type ToolTransform, type TransformContext, type TransformPhase, type TransformTarget } from './transform.ts'

type Of<Type extends Chunk['type']> = Extract<Chunk, { type: Type }>

/** Shows a chunk about a tool call, or what the tool's and the agent's `transform` make of it. */
export function showToolCall(run: Run, chunk: Chunk): Shown | Promise<Shown> {
  if (chunk.type !== 'tool-call' && chunk.type !== 'tool-call-delta' && chunk.type !== 'tool-result') return run.say(chunk)
  const transform = transformOf(run, chunk.payload.toolName)
  if (run.transformer.idle(transform)) return run.say(chunk)
  if (chunk.type === 'tool-call') return showCall(run, chunk)
  return chunk.type === 'tool-result' ? showProviderResult(run, chunk) : showDelta(run, chunk, transform)
}

async function showCall(run: Run, chunk: Of<'tool-call'>): Promise<Shown> {
  const [call] = await shownCalls(run, [chunk.payload])
  return run.say(call === chunk.payload ? chunk : { ...chunk, payload: { ...chunk.payload, ...call } })
}

/** What a provider ran itself was never in our hands, but what is shown of it is. */
async function showProviderResult(run: Run, chunk: Of<'tool-result'>): Promise<Shown> {
  const { toolCallId, toolName, args, result, isError } = chunk.payload
  const invocation: ToolInvocation = isError
    ? { toolCallId, toolName, args, state: 'output-error', errorText: textOf(result) }
    : { toolCallId, toolName, args, state: 'result', result }
  const seen = await seenBy(run, invocation, 'display')
  const hidden = seen.errorText !== invocation.errorText ? { result: seen.errorText ?? '' } : isError ? {} : { result: seen.result ?? null }
  return run.say({ ...chunk, payload: { ...chunk.payload, args: seen.args, ...hidden } })
}

async function showDelta(run: Run, chunk: Of<'tool-call-delta'>, transform: ToolTransform | undefined): Promise<Shown> {
  const { toolCallId, toolName = '', argsTextDelta } = chunk.payload
  const context: TransformContext = { target: 'display', phase: 'input-delta', toolName, toolCallId, inputTextDelta: argsTextDelta }
  const shown = await orWithheld(run, run.transformer.delta(transform, context))
  if (shown === null) return []
  return run.say(shown === undefined ? chunk : { ...chunk, payload: { ...chunk.payload, argsTextDelta: textOf(shown) } })
}

/** The calls as displays see them. */
export async function shownCalls<Call extends Pick<ToolCall, 'toolCallId' | 'toolName' | 'args'>>(run: Run, calls: readonly Call[]): Promise<Call[]> {
  return Promise.all(calls.map(async (call) => {
    if (run.transformer.idle(transformOf(run, call.toolName))) return call
    const args = await apply(run, call, 'display', 'input-available')
    return args === undefined ? call : { ...call, args }
  }))
}

/** Writes into calls what transcripts see of them. To be done before they are stored. */
export async function hideInTranscript(run: Run, parts: readonly MessagePart[]): Promise<void> {
  for (const part of parts) if (part.type === 'tool-invocation') part.toolInvocation = await transcribed(run, part.toolInvocation)
}

/** Shows how a call went; answers the invocation with what transcripts see of it. */
export async function showToolResult(run: Run, invocation: ToolInvocation, preliminary: boolean): Promise<ToolInvocation> {
  if (run.transformer.idle(transformOf(run, invocation.toolName))) {
    await run.say(resultChunk(run, invocation, preliminary))
    return invocation
  }
  await run.say(resultChunk(run, await seenBy(run, invocation, 'display'), preliminary))
  return preliminary ? invocation : transcribed(run, invocation)
}

async function transcribed(run: Run, invocation: ToolInvocation): Promise<ToolInvocation> {
  if (run.transformer.idle(transformOf(run, invocation.toolName))) return invocation
  const seen = await seenBy(run, invocation, 'transcript')
  const transcript = {
    ...(seen.args === invocation.args ? {} : { args: seen.args }),
    ...(seen.result === invocation.result ? {} : { result: seen.result }),
    ...(seen.errorText === invocation.errorText ? {} : { errorText: seen.errorText }),
  }
  return Object.keys(transcript).length === 0 ? invocation : { ...invocation, transcript }
}

async function seenBy(run: Run, invocation: ToolInvocation, target: TransformTarget): Promise<ToolInvocation> {
  const { state, result: output, errorText } = invocation
  const more = { ...(output === undefined ? {} : { output }), ...(errorText === undefined ? {} : { error: errorText }) }
  const args = await apply(run, invocation, target, 'input-available', more)
  const result = state === 'result' ? await apply(run, invocation, target, 'output-available', more) : undefined
  const error = state === 'output-error' ? await apply(run, invocation, target, 'error', more) : undefined
  return {
    ...invocation,
    ...(args === undefined ? {} : { args }),
    ...(result === undefined ? {} : { result }),
    ...(error === undefined ? {} : { errorText: textOf(error) }),
  }
}

function resultChunk(run: Run, invocation: ToolInvocation, preliminary: boolean): Chunk {
  const { toolCallId, toolName, args, result, errorText, state, approval } = invocation
  const call = { toolCallId, toolName, args }
  if (state === 'output-error') return run.chunk('tool-error', { ...call, error: { name: 'ToolError', message: errorText ?? '' } })
  if (state === 'output-denied') return run.chunk('tool-output-denied', { ...call, ...(approval?.reason === undefined ? {} : { reason: approval.reason }) })
  return run.chunk('tool-result', { ...call, result: result ?? null, ...(preliminary ? { preliminary: true } : {}) })
}

/** How watchers are told that a call waits for somebody. */
export async function waitingChunk(run: Run, waiting: WaitingCall, more: boolean): Promise<RunChunk> {
  const { toolCallId, toolName, args, payload = null, child } = waiting
  const nested = { ...(child ? { child } : {}), ...(more ? { more } : {}) }
  const input = await apply(run, waiting, 'display', 'input-available')
  if (waiting.kind === 'approval') {
    const shown = (await apply(run, waiting, 'display', 'approval')) ?? input
    return run.chunk('tool-call-approval', { toolCallId, toolName, args: shown ?? args, resumeSchema: approvalShape, ...nested })
  }
  const tool = run.tools.tools.get(toolName)
  const resumeSchema = tool?.resume ? JSON.stringify(await tool.resume.jsonSchema()) : approvalShape
  const suspendPayload = await apply(run, waiting, 'display', 'suspend', { suspendPayload: payload })
  return run.chunk('tool-call-suspended', { toolCallId, toolName, args: input ?? args, suspendPayload: suspendPayload ?? payload, resumeSchema, ...nested })
}

const approvalShape = JSON.stringify({ type: 'object', properties: { approved: { type: 'boolean' }, reason: { type: 'string' } }, required: ['approved'] })

type Call = Pick<ToolCall, 'toolCallId' | 'toolName' | 'args'>

function apply(run: Run, call: Call, target: TransformTarget, phase: TransformPhase, more: Partial<TransformContext> = {}): Promise<JSONValue | undefined> {
  const { toolName, toolCallId, args: input } = call
  return orWithheld(run, run.transformer.apply(transformOf(run, toolName), { target, phase, toolName, toolCallId, input, ...more }))
}

/** A rule that has not answered when the run is aborted shows nothing. */
async function orWithheld<T>(run: Run, ruled: Promise<T>): Promise<T | string> {
  try {
    return await run.unlessAborted(ruled)
  } catch {
    return withheld
  }
}

function transformOf(run: Run, toolName: string | undefined): ToolTransform | undefined {
  return toolName === undefined ? undefined : run.tools.tools.get(toolName)?.tool.transform
}

function textOf(value: JSONValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
