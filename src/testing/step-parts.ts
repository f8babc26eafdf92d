import type {
  LanguageModelV4Content, LanguageModelV4FinishReason, LanguageModelV4GenerateResult, LanguageModelV4StreamPart, LanguageModelV4Usage,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider'
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

/** The result of `doGenerate` for the parts of a stream. An `error` part is thrown. */
export function generated(parts: Iterable<LanguageModelV4StreamPart>): LanguageModelV4GenerateResult {
  const result: LanguageModelV4GenerateResult = {
    content: [],
    finishReason: { unified: 'interrupted', raw: undefined },
    usage: {
      inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
      outputTokens: { total: undefined, text: undefined, reasoning: undefined },
    },
    warnings: [],
  }
  const blocks = new Map<string, Block>()
  for (const part of parts) add(result, blocks, part)
  return result
}

/** Every part of a stream, in order. */
export async function readParts<Part>(stream: ReadableStream<Part>): Promise<Part[]> {
  const parts: Part[] = []
  for await (const part of stream) parts.push(part)
  return parts
}

type Block = Extract<LanguageModelV4Content, { type: 'text' | 'reasoning' }>

function add(result: LanguageModelV4GenerateResult, blocks: Map<string, Block>, part: LanguageModelV4StreamPart): void {
  switch (part.type) {
    case 'text-start':
    case 'reasoning-start': {
      const block: Block = { type: part.type === 'text-start' ? 'text' : 'reasoning', text: '' }
      annotate(block, part)
      blocks.set(part.id, block)
      result.content.push(block)
      break
    }
    case 'text-delta':
    case 'reasoning-delta':
    case 'text-end':
    case 'reasoning-end': {
      const block = blocks.get(part.id)
      if (!block) break
      if ('delta' in part) block.text += part.delta
      annotate(block, part)
      break
    }
    case 'tool-call':
    case 'tool-result':
    case 'tool-approval-request':
    case 'custom':
    case 'file':
    case 'reasoning-file':
    case 'source':
      result.content.push(part)
      break
    case 'stream-start':
      result.warnings = part.warnings
      break
    case 'response-metadata': {
      const { type: _, ...response } = part
      result.response = response
      break
    }
    case 'finish': {
      const { type: _, ...finish } = part
      Object.assign(result, finish)
      break
    }
    case 'error':
      throw part.error
    default:
  }
}

function annotate(block: Block, part: { providerMetadata?: SharedV4ProviderMetadata }): void {
  if (part.providerMetadata) block.providerMetadata = part.providerMetadata
}
