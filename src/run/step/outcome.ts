import { joinRows } from '../../message/join.ts'
import type { FilePart, Message, SourcePart, ToolInvocationPart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Ending, StepEnd } from '../loop/boundary.ts'
import { noUsage } from '../model/model-parts.ts'
import type { Run } from '../loop/run.ts'
import type { RunResult } from '../output/run-result.ts'
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

type Lists = 'toolCalls' | 'toolResults' | 'files' | 'sources' | 'warnings'

function gathered<Of extends Lists>(steps: readonly StepResult[], of: Of): Array<StepResult[Of][number]> {
  const all: Array<StepResult[Of][number]> = []
  for (const step of steps) for (const one of step[of]) all.push(one)
  return all
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
    toolCalls: gathered(steps, 'toolCalls'),
    toolResults: gathered(steps, 'toolResults'),
    files: gathered(steps, 'files'),
    sources: gathered(steps, 'sources'),
    usage: run.usage,
    totalUsage: run.usage,
    finishReason: end.reason,
    steps,
    warnings: gathered(steps, 'warnings'),
    tripwire: end.tripwire,
    suspended: end.waiting ?? [],
    error: end.error,
    messages: refused ? [] : answerOf(run),
  }
}

/** The caller's own: what it changes in them is nobody else's. */
function answerOf(run: Run): Message[] {
  const rows: MessageRow[] = []
  for (const row of run.rows) if (row.runId === run.id && row.role !== 'signal' && row.role !== 'user') rows.push(row)
  const messages = joinRows(rows)
  for (const message of messages) {
    message.createdAt = new Date(message.createdAt)
    message.content = { ...message.content }
    message.content.parts = message.content.parts.map((part) => ({ ...part }))
  }
  return messages
}
