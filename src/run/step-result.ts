import type { JSONValue } from '../json.ts'
import type { FilePart, ProviderOptions, SourcePart } from '../message/message.ts'
import type { FinishReason, Usage } from './chunk.ts'

export interface ToolCall<Name extends string = string, Args = JSONValue> {
  toolCallId: string
  toolName: Name
  args: Args
  providerExecuted?: boolean
}

/** What a call came to. With `isError`, `result` is what the model was told. */
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
