import type { JSONObject, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { toBase64 } from '../../message/file-data.ts'
import { generated } from '../step-parts.ts'
import { frame, openaiError, type WireAnswer, type WireProtocol, type WireWriter } from './wire-protocol.ts'

/** The protocol of the gateway in the `ai` package: stream parts of any model as JSON, files included. */
export const aiGateway: WireProtocol = {
  name: 'ai-gateway',
  path: '/v4/ai/language-model',
  readHeaders: (headers) => {
    return { model: String(headers['ai-language-model-id']), streaming: headers['ai-language-model-streaming'] === 'true' }
  },
  writer: gatewayWriter,
  failure: (failure) => ({ error: gatewayError(failure) }),
}

function gatewayWriter({ index, model, parts }: WireAnswer): WireWriter {
  const metadata: LanguageModelV4StreamPart = { type: 'response-metadata', id: `gen_${index}`, modelId: model, timestamp: new Date(0) }
  return {
    open: () => frame({ type: 'stream-start', warnings: [] }) + frame(metadata),
    part: (part) => frame(withBase64(part)),
    failure: (failure) => frame({ type: 'error', error: gatewayError(failure) }),
    document() {
      const { content, finishReason, usage } = generated([...parts])
      return JSON.parse(JSON.stringify({ content: content.map(withBase64), finishReason, usage, warnings: [] })) as JSONObject
    },
  }
}

/** Encodes bytes as base64: JSON has no type for them. */
function withBase64<Part extends { type: string }>(part: Part): Part {
  if (!('data' in part) || typeof part.data !== 'object' || part.data === null || !('data' in part.data)) return part
  const { data } = part.data
  return data instanceof Uint8Array ? { ...part, data: { ...part.data, data: toBase64(data) } } : part
}

function gatewayError(failure: Parameters<WireProtocol['failure']>[0]): JSONObject {
  const { message, type } = openaiError(failure)
  return { message, type }
}
