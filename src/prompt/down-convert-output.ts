import type {
  LanguageModelV2ToolResultOutput,
  LanguageModelV3ToolResultPart,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider'
import { toBase64 } from '../message/file-data.ts'

type Output = LanguageModelV4ToolResultPart['output']
type V3Output = LanguageModelV3ToolResultPart['output']
type V2Output = LanguageModelV2ToolResultOutput
type Item<O> = O extends { type: 'content'; value: Array<infer I> } ? I : never
type FileItem = Extract<Item<Output>, { type: 'file' }>

export function toV3Output(output: Output): V3Output {
  if (output.type !== 'content') return output
  return { type: 'content', value: output.value.map(item => (item.type === 'file' ? v3File(item) : item)) }
}

export function toV2Output(output: Output): V2Output {
  switch (output.type) {
    case 'content':
      return { type: 'content', value: output.value.flatMap(v2Item) }
    case 'execution-denied':
      return { type: 'error-text', value: output.reason ?? 'The call was denied.' }
    case 'text':
    case 'error-text':
      return { type: output.type, value: output.value }
    case 'json':
    case 'error-json':
      return { type: output.type, value: output.value }
  }
}

// Providers of that version look for images under names of their own.
function v3File({ data, mediaType, filename, providerOptions }: FileItem): Item<V3Output> {
  const options = providerOptions && { providerOptions }
  const isImage = /^image(\/|$)/.test(mediaType)
  switch (data.type) {
    case 'data': {
      const content = { data: base64(data.data), mediaType, ...options }
      if (isImage) return { type: 'image-data', ...content }
      return { type: 'file-data', ...content, ...(filename !== undefined && { filename }) }
    }
    case 'url':
      return { type: isImage ? 'image-url' : 'file-url', url: data.url.href, ...options }
    case 'reference':
      return { type: isImage ? 'image-file-id' : 'file-id', fileId: data.reference, ...options }
    case 'text':
      return { type: 'text', text: data.text, ...options }
  }
}

function v2Item(item: Item<Output>): Array<Item<V2Output>> {
  if (item.type === 'text') return [{ type: 'text', text: item.text }]
  if (item.type === 'custom') return []
  const { data, mediaType } = item
  switch (data.type) {
    case 'data':
      return [{ type: 'media', data: base64(data.data), mediaType }]
    case 'url':
      return [{ type: 'text', text: data.url.href }]
    case 'text':
      return [{ type: 'text', text: data.text }]
    case 'reference':
      return []
  }
}

function base64(data: Uint8Array | string): string {
  return typeof data === 'string' ? data : toBase64(data)
}
