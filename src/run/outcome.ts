import { joinRows } from '../message/join.ts'
import type { FilePart, SourcePart, ToolInvocationPart } from '../message/message.ts'
import type { Ending, StepEnd } from './boundary.ts'
import { noUsage } from './model-parts.ts'
import type { Run } from './run.ts'
import type { RunResult } from './run-result.ts'
import type { StepResult, ToolCall, ToolResult } from './step-result.ts'

export function stepResult(stepNumber: number, step: StepEnd): StepResult {
  const { said, settled = [] } = step
  const parts = said?.parts ?? []
  const invocations = parts.filter((part): part is ToolInvocationPart => part.type === 'tool-invocation')
  const result: StepResult = {
    stepNumber,
    text: said?.text ?? '',
    reasoningText: said?.reasoningText ?? '',
    toolCalls: invocations.map(callOf),
    toolResults: [...invocations.filter((part) => part.toolInvocation.state === 'result'), ...settled].map(resultOf),
    files: parts.filter((part): part is FilePart => part.type === 'file' && !part.reasoning),
    sources: parts.filter((part): part is SourcePart => part.type === 'source').map((part) => part.source),
    finishReason: said?.finishReason ?? 'tool-calls',
    usage: said?.usage ?? noUsage,
    warnings: said?.warnings ?? [],
  }
  if (said?.modelId !== undefined) result.modelId = said.modelId
  if (said?.providerMetadata !== undefined) result.providerMetadata = said.providerMetadata
  return result
}

export function callOf({ toolInvocation, providerExecuted }: ToolInvocationPart): ToolCall {
  const { toolCallId, toolName, args } = toolInvocation
  return { toolCallId, toolName, args, ...(providerExecuted ? { providerExecuted } : {}) }
}

export function resultOf(part: ToolInvocationPart): ToolResult {
  const { state, result = null, errorText, approval } = part.toolInvocation
  if (state === 'result') return { ...callOf(part), result }
  const text = state === 'output-denied' ? (approval?.reason ?? 'The call was declined.') : (errorText ?? '')
  return { ...callOf(part), result: text, isError: true }
}

export function runResult(run: Run, end: Ending): RunResult {
  const refused = end.status === 'rejected'
  // A refusal leaves nothing of what was said; what it cost stays.
  const steps = refused ? [] : run.steps
  const last = steps.at(-1)
  return {
    runId: run.id,
    text: refused ? '' : run.text,
    reasoningText: last?.reasoningText ?? '',
    object: end.object,
    toolCalls: steps.flatMap((step) => step.toolCalls),
    toolResults: steps.flatMap((step) => step.toolResults),
    files: steps.flatMap((step) => step.files),
    sources: steps.flatMap((step) => step.sources),
    usage: run.usage,
    totalUsage: run.usage,
    finishReason: end.reason,
    steps,
    warnings: steps.flatMap((step) => step.warnings),
    tripwire: end.tripwire,
    suspended: end.waiting ?? [],
    error: end.error,
    messages: refused ? [] : joinRows(run.rows.filter((row) => row.runId === run.id && row.role !== 'signal' && row.role !== 'user')),
  }
}
