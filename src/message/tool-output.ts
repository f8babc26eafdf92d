import { isObject } from '../base/json.ts'
import { readFileData } from './file-data.ts'
import type { ModelToolOutput } from './message.ts'
import type { Raw } from './read/raw.ts'
import { asJSON, firstString, providerMetadataOf } from './read/raw.ts'

/**
 * The model's output of a tool as a row stores it: JSON, bytes as base64, URLs as text. A prompt from the row has the same bytes as one
 * from the output itself. Items of earlier interface versions are converted to the current one.
 */
export function storableOutput(output: ModelToolOutput): ModelToolOutput {
  if (output.type !== 'content') return asJSON(output) as ModelToolOutput
  return asJSON({ ...output, value: (output.value as unknown[]).flatMap(currentItem) }) as ModelToolOutput
}

function currentItem(item: unknown): unknown[] {
  if (!isObject(item)) return []
  switch (item.type) {
    case 'file':
    case 'file-data':
    case 'image-data':
    case 'media':
      return fileItem(item, item.data)
    case 'file-url':
    case 'image-url':
      return fileItem(item, item.url)
    case 'file-id':
    case 'image-file-id':
      return fileItem(item, item.fileId)
    default:
      return [item]
  }
}

function fileItem(item: Raw, source: unknown): unknown[] {
  const file = isObject(source) && source.type === 'text' ? undefined : readFileData(source)
  if (typeof file === 'string') return []
  const image = firstString(item.type)?.startsWith('image')
  const { providerMetadata } = providerMetadataOf(item)
  return [{
    type: 'file',
    data: file ? taggedData(file) : source,
    mediaType: firstString(item.mediaType) ?? (image ? 'image/*' : 'application/octet-stream'),
    ...(typeof item.filename === 'string' && { filename: item.filename }),
    ...(providerMetadata && { providerOptions: providerMetadata }),
  }]
}

function taggedData({ data, reference }: { data: string; reference?: Record<string, string> }): object {
  if (reference) return { type: 'reference', reference }
  return /^https?:/i.test(data) ? { type: 'url', url: data } : { type: 'data', data }
}
