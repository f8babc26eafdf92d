import { readFileData } from './file-data.ts'
import type { Raw } from './read/raw.ts'
import { asJSON, firstText, isRaw, optionsOf } from './read/raw.ts'
import type { ModelToolOutput } from './tool-output.ts'

/**
 * What a tool wants its model to see, in the form a row keeps: JSON, bytes as base64, URLs as text. A prompt made from the row
 * has the same bytes as one made from the output itself. Items as tools of earlier interface versions write them are brought up
 * to date.
 */
export function storableOutput(output: ModelToolOutput): ModelToolOutput {
  if (output.type !== 'content') return asJSON(output) as ModelToolOutput
  return asJSON({ ...output, value: (output.value as unknown[]).flatMap(todaysItem) }) as ModelToolOutput
}

function todaysItem(item: unknown): unknown[] {
  if (!isRaw(item)) return []
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
  const file = isRaw(source) && source.type === 'text' ? undefined : readFileData(source)
  if (typeof file === 'string') return []
  const image = firstText(item.type)?.startsWith('image')
  const { providerMetadata } = optionsOf(item)
  return [{
    type: 'file',
    data: file ? taggedData(file) : source,
    mediaType: firstText(item.mediaType) ?? (image ? 'image/*' : 'application/octet-stream'),
    ...(typeof item.filename === 'string' && { filename: item.filename }),
    ...(providerMetadata && { providerOptions: providerMetadata }),
  }]
}

function taggedData({ data, reference }: { data: string; reference?: Record<string, string> }): object {
  if (reference) return { type: 'reference', reference }
  return /^https?:/i.test(data) ? { type: 'url', url: data } : { type: 'data', data }
}
