import type { JSONValue } from '../../base/json.ts'
import type { FilePart, ProviderOptions, SourcePart, ToolInvocationPart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import type { ApprovalRequest, ChildCall, FinishReason, Tripwire, Usage } from '../../message/chunk.ts'
import { noUsage } from '../model/model-parts.ts'
import type { StepRecorder } from './step-recorder.ts'

/** A tool call of a step. */
export interface ToolCall<Name extends string = string, Args = JSONValue> {
  toolCallId: string
  toolName: Name
  /** As the model wrote them: the input of the tool's schema, not its output. Invalid input may have any shape. */
  args: Args
  providerExecuted?: boolean
}

/** The outcome of a call: the tool's output as JSON (a date is a string). With `isError`, `result` is the text that the model reads. */
export type ToolResult<Name extends string = string, Args = JSONValue, Result = JSONValue> =
  & ToolCall<Name, Args>
  & ({ result: Result; isError?: undefined } | { result: string; isError: true })

/** A suspended call: it waits for an approval, or for data to resume with. */
export interface WaitingCall {
  toolCallId: string
  toolName: string
  args: JSONValue
  kind: 'approval' | 'suspend'
  payload?: JSONValue
  /** What the decision is about. */
  request?: ApprovalRequest
  /** The suspended call of a child thread for which this call is suspended. */
  child?: ChildCall
}

/** One model call with the tool calls that it made. */
export interface StepResult {
  stepNumber: number
  text: string
  reasoningText: string
  toolCalls: ToolCall[]
  toolResults: ToolResult[]
  files: FilePart[]
  sources: SourcePart['source'][]
  finishReason: FinishReason
  usage: Usage
  warnings: unknown[]
  modelId?: string
  providerMetadata?: ProviderOptions
}

/** A step that is complete and not yet committed: the rows that it adds to history, and how the run is to continue. */
export interface StepEnd {
  /** Absent when the step made no model call. */
  recorder?: StepRecorder
  rows: MessageRow[]
  toolResults?: ToolInvocationPart[]
  /** Drain the mailbox in the commit of this step. */
  drain?: boolean
  /** The run ends with this step, unless the drain takes input. */
  end?: Ending
  /** Output processors have checked the whole segment; `rows` and `change` are what they left of it. */
  checked?: boolean
  /** What output processors changed in rows that are already stored. */
  change?: RowChange
  /** The stream broke; the next step continues the same answer. */
  broken?: boolean
  /** Published chunks of this step were rejected, or can't be checked. */
  withdrawn?: boolean
}

/** How a run ends. */
export interface Ending {
  status: 'finished' | 'failed' | 'aborted' | 'rejected' | 'suspended'
  reason: FinishReason
  suspended?: WaitingCall[]
  tripwire?: Tripwire
  error?: Error
  object?: unknown
}

/** A change of stored rows: rows with new contents, and ids of rows to delete. */
export interface RowChange {
  revised: MessageRow[]
  removed: string[]
}

export function stepResult(stepNumber: number, { recorder, toolResults = [] }: StepEnd): StepResult {
  const parts = recorder?.parts ?? []
  const invocations = parts.filter((part): part is ToolInvocationPart => part.type === 'tool-invocation')
  const result: StepResult = {
    stepNumber,
    text: recorder?.text ?? '',
    reasoningText: recorder?.reasoningText ?? '',
    toolCalls: invocations.map(toolCallOf),
    toolResults: [...invocations.filter((part) => part.toolInvocation.state === 'result'), ...toolResults].map(toolResultOf),
    files: parts.filter((part): part is FilePart => part.type === 'file' && !part.reasoning),
    sources: parts.filter((part): part is SourcePart => part.type === 'source').map((part) => part.source),
    finishReason: recorder?.finishReason ?? 'tool-calls',
    usage: recorder?.usage ?? noUsage,
    warnings: recorder?.warnings ?? [],
  }
  if (recorder?.modelId !== undefined) result.modelId = recorder.modelId
  if (recorder?.providerMetadata !== undefined) result.providerMetadata = recorder.providerMetadata
  return result
}

/** The result of a committed step after output processors changed its rows. */
export function revisedResult(step: StepResult, rows: readonly MessageRow[]): StepResult {
  const assistantRows = rows.filter(({ role }) => role === 'assistant')
  const parts = assistantRows.flatMap(({ content }) => content.parts)
  const calls = toolInvocations(assistantRows)
  const results = [
    ...calls.filter(({ toolInvocation }) => toolInvocation.state === 'result'),
    ...toolInvocations(rows.filter(({ role }) => role === 'tool')),
  ]
  return {
    ...step,
    text: parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    reasoningText: parts.map((part) => (part.type === 'reasoning' ? part.reasoning : '')).join(''),
    toolCalls: calls.map(toolCallOf),
    toolResults: results.map(toolResultOf),
    files: parts.filter((part): part is FilePart => part.type === 'file' && !part.reasoning),
    sources: parts.filter((part): part is SourcePart => part.type === 'source').map((part) => part.source),
  }
}

export function toolInvocations(rows: readonly MessageRow[]): ToolInvocationPart[] {
  return rows.flatMap(({ content }) => content.parts.filter((part) => part.type === 'tool-invocation'))
}

export function toolCallOf({ toolInvocation, providerExecuted }: ToolInvocationPart): ToolCall {
  const { toolCallId, toolName, args } = toolInvocation
  return { toolCallId, toolName, args, ...(providerExecuted ? { providerExecuted } : {}) }
}

export function toolResultOf(part: ToolInvocationPart): ToolResult {
  const { state, result = null, errorText, approval } = part.toolInvocation
  if (state === 'result') return { ...toolCallOf(part), result }
  const text = state === 'output-denied' ? (approval?.reason ?? 'The call was declined.') : (errorText ?? '')
  return { ...toolCallOf(part), result: text, isError: true }
}
