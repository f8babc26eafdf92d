import type {
  LanguageModelV2StreamPart,
  LanguageModelV2Usage,
  LanguageModelV3StreamPart,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from '@ai-sdk/provider'
import type { FinishReason, Usage } from '../../message/chunk.ts'

/** A stream part of any version of the provider interface. */
export type AnyPart = LanguageModelV4StreamPart | LanguageModelV3StreamPart | LanguageModelV2StreamPart

/** Converts a part of any version to version 4, with metadata and results that can be stored. Only files and the finish differ. */
export function toV4Part(given: AnyPart): LanguageModelV4StreamPart {
  const part = withJSON(given)
  if (part.type === 'finish') {
    return {
      type: 'finish',
      finishReason: typeof part.finishReason === 'string' ? fromV2FinishReason(part.finishReason) : part.finishReason,
      usage: isV2Usage(part.usage) ? fromV2Usage(part.usage) : part.usage,
      providerMetadata: part.providerMetadata,
    }
  }
  if (part.type === 'file' && (typeof part.data === 'string' || part.data instanceof Uint8Array)) {
    return { ...part, data: { type: 'data', data: part.data } }
  }
  return part as LanguageModelV4StreamPart
}

/** Providers may pass values that JSON has not, such as a bigint: a commit with one would fail, and the model call would be repeated. */
function withJSON(part: AnyPart): AnyPart {
  const metadata = 'providerMetadata' in part ? part.providerMetadata : undefined
  const result = part.type === 'tool-result' ? part.result : undefined
  if (part.type === 'raw') return isJSON(part.rawValue) ? part : { ...part, rawValue: storable(part.rawValue) }
  if ((metadata === undefined || isJSON(metadata)) && (result === undefined || isJSON(result))) return part
  const changed = { ...part, providerMetadata: storable(metadata) }
  return (result === undefined ? changed : { ...changed, result: storable(result) }) as AnyPart
}

function isJSON(value: unknown): boolean {
  try {
    JSON.stringify(value)
    return true
  } catch {
    return false
  }
}

/** The value with a string in place of each bigint; undefined where it still has no JSON, such as a circle. */
function storable(value: unknown): unknown {
  try {
    const text = JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? String(inner) : inner)) as string | undefined
    return text === undefined ? undefined : (JSON.parse(text) as unknown)
  } catch {
    return undefined
  }
}

function fromV2FinishReason(reason: string): LanguageModelV4FinishReason {
  const known = ['stop', 'length', 'content-filter', 'tool-calls', 'error']
  return { unified: known.includes(reason) ? (reason as LanguageModelV4FinishReason['unified']) : 'other', raw: reason }
}

function isV2Usage(usage: LanguageModelV2Usage | LanguageModelV4Usage | undefined): usage is LanguageModelV2Usage {
  return usage !== undefined && typeof usage.inputTokens !== 'object'
}

function fromV2Usage(usage: LanguageModelV2Usage): LanguageModelV4Usage {
  const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens } = usage
  return {
    inputTokens: {
      total: inputTokens,
      noCache: inputTokens === undefined ? undefined : inputTokens - (cachedInputTokens ?? 0),
      cacheRead: cachedInputTokens,
      cacheWrite: undefined,
    },
    outputTokens: {
      total: outputTokens,
      text: outputTokens === undefined ? undefined : outputTokens - (reasoningTokens ?? 0),
      reasoning: reasoningTokens,
    },
  }
}

export const noUsage: Usage = Object.freeze({
  inputTokens: 0,
  outputTokens: 0,
  totalTokens: 0,
  reasoningTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
})

export function usageOf(usage: LanguageModelV4Usage | undefined): Usage {
  if (!usage) return noUsage
  const input = usage.inputTokens.total ?? 0
  const output = usage.outputTokens.total ?? 0
  return {
    inputTokens: input,
    outputTokens: output,
    totalTokens: input + output,
    reasoningTokens: usage.outputTokens.reasoning ?? 0,
    cachedInputTokens: usage.inputTokens.cacheRead ?? 0,
    cacheWriteTokens: usage.inputTokens.cacheWrite ?? 0,
  }
}

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    totalTokens: a.totalTokens + b.totalTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    cachedInputTokens: a.cachedInputTokens + b.cachedInputTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
  }
}

export function finishReasonOf(reason: LanguageModelV4FinishReason | undefined): FinishReason {
  return reason?.unified ?? 'other'
}
