import type { LanguageModelV4FilePart, LanguageModelV4ReasoningFilePart } from '@ai-sdk/provider'
import type { Attachment, FilePart } from '../message/message.ts'
import { isURLText, parseDataURL } from '../message/file-data.ts'

type FileData = LanguageModelV4FilePart['data']
type InlineData = LanguageModelV4ReasoningFilePart['data']

/** A file as a model receives it: inline data where it was stored inline, a URL where it was a URL. */
export function modelFile(part: FilePart): LanguageModelV4FilePart {
  const { data, mimeType, filename, reference, providerMetadata } = part
  const content: FileData = reference ? { type: 'reference', reference } : fileData(data)
  return {
    type: 'file',
    ...(filename !== undefined && { filename }),
    data: content,
    mediaType: mediaTypeOf(mimeType, data),
    ...(providerMetadata && { providerOptions: providerMetadata }),
  }
}

/** A file that a model made while it reasoned. */
export function modelReasoningFile({ data, mimeType, providerMetadata }: FilePart): LanguageModelV4ReasoningFilePart {
  return {
    type: 'reasoning-file',
    data: fileData(data),
    mediaType: mediaTypeOf(mimeType, data),
    ...(providerMetadata && { providerOptions: providerMetadata }),
  }
}

export function modelAttachment({ url, contentType, name }: Attachment): LanguageModelV4FilePart {
  return {
    type: 'file',
    ...(name !== undefined && { filename: name }),
    data: fileData(url),
    mediaType: mediaTypeOf(contentType, url),
  }
}

function fileData(data: string): InlineData {
  const inline = parseDataURL(data)
  if (inline) return { type: 'data', data: inline.base64 }
  if (!isURLText(data) || !URL.canParse(data)) return { type: 'data', data }
  const url = new URL(data)
  // Providers with URI schemes of their own need theirs letter for letter.
  return url.protocol.startsWith('http') || url.href === data ? { type: 'url', url } : { type: 'url', url, originalUrl: data }
}

function mediaTypeOf(written: string | undefined, data: string): string {
  return written || parseDataURL(data)?.mediaType || 'application/octet-stream'
}
