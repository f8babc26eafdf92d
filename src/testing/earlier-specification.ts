import type {
  LanguageModelV2,
  LanguageModelV2CallWarning,
  LanguageModelV2FinishReason,
  LanguageModelV2StreamPart,
  LanguageModelV2Usage,
  LanguageModelV3Content,
  LanguageModelV3FinishReason,
  LanguageModelV3GenerateResult,
  LanguageModelV3StreamPart,
  LanguageModelV4Content,
  LanguageModelV4File,
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
  SharedV3Warning,
  SharedV4Warning,
} from '@ai-sdk/provider'
import { HeedError } from '../base/errors.ts'

type LanguageModelV2GenerateResult = Awaited<ReturnType<LanguageModelV2['doGenerate']>>

/** The part in version 3; undefined if version 3 has no such part. */
export function toV3Part(part: LanguageModelV4StreamPart): LanguageModelV3StreamPart | undefined {
  switch (part.type) {
    case 'custom':
    case 'reasoning-file':
    case 'ping':
      return undefined
    case 'file':
      return { ...part, data: inlineData(part) }
    case 'text-end': {
      const { citations: _, ...end } = part
      return end
    }
    case 'tool-input-start': {
      const { inputEncoding: _, ...start } = part
      return start
    }
    case 'stream-start':
      return { ...part, warnings: part.warnings.map(toV3Warning) }
    case 'finish':
      return { ...part, finishReason: toV3FinishReason(part.finishReason) }
    default:
      return part
  }
}

/** The part in version 2; undefined if version 2 has no such part. */
export function toV2Part(part: LanguageModelV4StreamPart): LanguageModelV2StreamPart | undefined {
  // Only the types still differ: the provider metadata of v2 allows no undefined values.
  return v2Shape(part) as LanguageModelV2StreamPart | undefined
}

export function toV3Result(result: LanguageModelV4GenerateResult): LanguageModelV3GenerateResult {
  return {
    ...result,
    content: contentAs(toV3Part, result.content) as LanguageModelV3Content[],
    finishReason: toV3FinishReason(result.finishReason),
    warnings: result.warnings.map(toV3Warning),
  }
}

export function toV2Result(result: LanguageModelV4GenerateResult): LanguageModelV2GenerateResult {
  return {
    ...result,
    content: contentAs(v2Shape, result.content),
    finishReason: toV2FinishReason(result.finishReason),
    usage: toV2Usage(result.usage),
    warnings: result.warnings.map(toV2Warning),
  } as LanguageModelV2GenerateResult
}

function v2Shape(source: LanguageModelV4StreamPart) {
  if (source.type === 'finish') {
    return { ...source, finishReason: toV2FinishReason(source.finishReason), usage: toV2Usage(source.usage) }
  }
  const part = toV3Part(source)
  switch (part?.type) {
    case 'tool-approval-request':
      return undefined
    case 'file':
      return { type: part.type, mediaType: part.mediaType, data: part.data }
    case 'tool-input-start': {
      const { dynamic: _, title: _title, ...start } = part
      return start
    }
    case 'tool-call': {
      const { dynamic: _, ...call } = part
      return call
    }
    case 'tool-result': {
      const { dynamic: _, preliminary: _preliminary, ...result } = part
      return { ...result, providerExecuted: true }
    }
    case 'stream-start':
      return { ...part, warnings: part.warnings.map(toV2Warning) }
    default:
      return part
  }
}

/** Text and reasoning have the same fields in every version; all other content has the shape of a stream part. */
function contentAs<Part>(convert: (part: LanguageModelV4StreamPart) => Part | undefined, content: LanguageModelV4Content[]) {
  return content.flatMap((part): Array<Part | { type: string; text: string }> => {
    if (part.type === 'text') return [{ type: part.type, text: part.text, ...metadata(part) }]
    if (part.type === 'reasoning') return [part]
    return [convert(part)].filter((converted) => converted !== undefined)
  })
}

function metadata<Metadata>({ providerMetadata }: { providerMetadata?: Metadata }): { providerMetadata?: Metadata } {
  return providerMetadata ? { providerMetadata } : {}
}

function toV3FinishReason({ unified, raw }: LanguageModelV4FinishReason): LanguageModelV3FinishReason {
  return { unified: unified === 'interrupted' ? 'other' : unified, raw }
}

function toV2FinishReason({ unified }: LanguageModelV4FinishReason): LanguageModelV2FinishReason {
  return unified === 'interrupted' ? 'unknown' : unified
}

function toV2Usage({ inputTokens, outputTokens }: LanguageModelV4Usage): LanguageModelV2Usage {
  const { total: input } = inputTokens
  const { total: output } = outputTokens
  return {
    inputTokens: input,
    outputTokens: output,
    totalTokens: input === undefined || output === undefined ? undefined : input + output,
    reasoningTokens: outputTokens.reasoning,
    cachedInputTokens: inputTokens.cacheRead,
  }
}

function toV3Warning(warning: SharedV4Warning): SharedV3Warning {
  return warning.type === 'deprecated' ? { type: 'other', message: `${warning.setting}: ${warning.message}` } : warning
}

function toV2Warning(warning: SharedV3Warning | SharedV4Warning): LanguageModelV2CallWarning {
  const known = toV3Warning(warning)
  if (known.type === 'other') return known
  return { type: 'other', message: [`${known.type} ${known.feature}`, known.details].filter(Boolean).join(': ') }
}

function inlineData({ data }: LanguageModelV4File): string | Uint8Array {
  if (data.type === 'data') return data.data
  throw new HeedError('invalid_argument', "A v3 or v2 model can't return a file by its URL. Script the data of the file.")
}
