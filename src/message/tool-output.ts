import type { LanguageModelV4ToolResultPart } from '@ai-sdk/provider'

/** What a model is shown as the outcome of a tool call. */
export type ModelToolOutput = LanguageModelV4ToolResultPart['output']
