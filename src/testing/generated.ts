import type {
  LanguageModelV4Content,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider'

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
