import type { JSONValue } from '../../base/json.ts'
import type { FilePart, Message, SourcePart } from '../../message/message.ts'
import type { Tripwire } from '../../processors/processor.ts'
import type { ChildCall, FinishReason, Usage } from '../chunk.ts'
import { noUsage } from '../model/model-parts.ts'
import type { StepResult, ToolCall, ToolResult } from '../step/step-result.ts'

/** A call that waits for somebody: to be approved, or to be resumed with data. */
export interface WaitingCall {
  toolCallId: string
  toolName: string
  args: JSONValue
  kind: 'approval' | 'suspend'
  payload?: JSONValue
  /** The call of another agent's run that this one stands for. */
  child?: ChildCall
}

/** Everything a finished run has to say. */
export interface RunResult<Calls = ToolCall, Results = ToolResult, Obj = unknown> {
  runId: string
  /** Of the last step, and of those before it whose stream broke: it goes on with what they began. */
  text: string
  /** Of the last step. */
  reasoningText: string
  /** The validated value, when `structuredOutput` was asked for. */
  object: Obj
  toolCalls: Calls[]
  toolResults: Results[]
  files: FilePart[]
  sources: SourcePart['source'][]
  /** Of all steps. */
  usage: Usage
  totalUsage: Usage
  finishReason: FinishReason
  steps: StepResult[]
  warnings: unknown[]
  /** Set when a processor refused. */
  tripwire: Tripwire | undefined
  /** Calls that wait, when `finishReason` is `suspended`. */
  suspended: WaitingCall[]
  error: Error | undefined
  /** What the run added to the conversation. */
  messages: Message[]
}

/** A run that failed before its first step. */
export function failedResult(runId: string, error: Error): RunResult {
  return {
    runId, text: '', reasoningText: '', object: undefined, toolCalls: [], toolResults: [], files: [], sources: [], usage: noUsage,
    totalUsage: noUsage, finishReason: 'error', steps: [], warnings: [], tripwire: undefined, suspended: [], error, messages: [],
  }
}
