import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider'
import type { ScriptedAnswer, ScriptedFile, ScriptedSource, ScriptedToolCall, ScriptedUsage } from './script.ts'

/** Tool input arrives in pieces of this many characters, so that a reader has to join them. */
const inputPiece = 16

/** The stream parts of a step. Their ids depend on the index of the call only. */
export function stepParts(step: ScriptedAnswer, call: { index: number; inputCharacters: number }): LanguageModelV4StreamPart[] {
  if (step.parts) return [...step.parts]
  const reasoning = deltas(step.reasoning)
  const text = deltas(step.text)
  const toolCalls = (step.toolCalls ?? []).map((toolCall, position) => encodeCall(toolCall, `call_${call.index}_${position}`))
  return [
    ...block('reasoning', reasoning),
    ...(step.sources ?? []).map((source, position) => sourcePart(source, `source_${call.index}_${position}`)),
    ...block('text', text),
    ...(step.files ?? []).map(filePart),
    ...toolCalls.flatMap(toolCallParts),
    {
      type: 'finish',
      finishReason: finishReasonOf(step),
      usage: usageOf(step.usage, {
        input: call.inputCharacters,
        reasoning: length(reasoning),
        output: length(text) + length(toolCalls.map((toolCall) => toolCall.input)),
      }),
    },
  ]
}

function deltas(content: string | readonly string[] = []): readonly string[] {
  return typeof content === 'string' ? (content.match(/\S+\s*|\s+/g) ?? []) : content
}

function block(kind: 'text' | 'reasoning', pieces: readonly string[]): LanguageModelV4StreamPart[] {
  if (pieces.length === 0) return []
  const id = `${kind}-0`
  return [
    { type: `${kind}-start`, id },
    ...pieces.map((delta): LanguageModelV4StreamPart => ({ type: `${kind}-delta`, id, delta })),
    { type: `${kind}-end`, id },
  ]
}

interface EncodedCall {
  id: string
  toolName: string
  input: string
}

function encodeCall({ toolName, input = {}, inputText, toolCallId }: ScriptedToolCall, id: string): EncodedCall {
  return { id: toolCallId ?? id, toolName, input: inputText ?? JSON.stringify(input) }
}

function toolCallParts({ id, toolName, input }: EncodedCall): LanguageModelV4StreamPart[] {
  const pieces = input.match(new RegExp(`[^]{1,${inputPiece}}`, 'g')) ?? []
  return [
    { type: 'tool-input-start', id, toolName },
    ...pieces.map((delta): LanguageModelV4StreamPart => ({ type: 'tool-input-delta', id, delta })),
    { type: 'tool-input-end', id },
    { type: 'tool-call', toolCallId: id, toolName, input },
  ]
}

function sourcePart(source: ScriptedSource, id: string): LanguageModelV4StreamPart {
  return 'url' in source
    ? { type: 'source', sourceType: 'url', id, ...source }
    : { type: 'source', sourceType: 'document', id, ...source }
}

function filePart(file: ScriptedFile): LanguageModelV4StreamPart {
  return {
    type: 'file',
    mediaType: file.mediaType,
    data: 'url' in file ? { type: 'url', url: new URL(file.url) } : { type: 'data', data: file.data },
  }
}

function finishReasonOf({ finishReason, toolCalls }: ScriptedAnswer): LanguageModelV4FinishReason {
  if (typeof finishReason === 'object') return finishReason
  const unified = finishReason ?? (toolCalls?.length ? 'tool-calls' : 'stop')
  return { unified, raw: unified }
}

function length(pieces: readonly string[]): number {
  return pieces.reduce((sum, piece) => sum + piece.length, 0)
}

/** The numbers of characters from which missing numbers of tokens are derived. */
interface Characters {
  input: number
  reasoning: number
  /** Text and tool input. */
  output: number
}

function usageOf(usage: ScriptedUsage | LanguageModelV4Usage = {}, characters: Characters): LanguageModelV4Usage {
  if (isComplete(usage)) return usage
  const cacheRead = usage.cachedInputTokens ?? 0
  const cacheWrite = usage.cacheWriteTokens ?? 0
  const input = usage.inputTokens ?? tokens(characters.input) + cacheRead + cacheWrite
  const reasoning = usage.reasoningTokens ?? tokens(characters.reasoning)
  const output = usage.outputTokens ?? tokens(characters.output) + reasoning
  return {
    inputTokens: { total: input, noCache: Math.max(0, input - cacheRead - cacheWrite), cacheRead, cacheWrite },
    outputTokens: { total: output, text: Math.max(0, output - reasoning), reasoning },
  }
}

/** A token for every four characters, rounded up. */
function tokens(characters: number): number {
  return Math.ceil(characters / 4)
}

function isComplete(usage: ScriptedUsage | LanguageModelV4Usage): usage is LanguageModelV4Usage {
  return typeof usage.inputTokens === 'object'
}
