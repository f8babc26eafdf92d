import type { JSONValue } from '../../base/json.ts'
import type { FilePart, ProviderOptions, SourcePart } from '../../message/message.ts'
import type { FinishReason, Usage } from '../chunk.ts'

export interface ToolCall<Name extends string = string, Args = JSONValue> {
  toolCallId: string
  toolName: Name
  /** As the model wrote them: what the tool's schema takes, not what it makes of it. After bad input they may be anything. */
  args: Args
  providerExecuted?: boolean
}

/** What a call came to: the tool's output as JSON keeps it (a date is a text). With `isError`, `result` is what the model was told. */
export type ToolResult<Name extends string = string, Args = JSONValue, Result = JSONValue> =
  & ToolCall<Name, Args>
  & ({ result: Result; isError?: undefined } | { result: string; isError: true })

/** One model call and what its tools did. */
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
