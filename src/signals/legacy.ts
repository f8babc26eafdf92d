import type { ProviderOptions } from '../message/message.ts'
import { canonicalContents } from './contents.ts'
import { imageMediaType } from './file-data.ts'
import { isPlainObject } from './json-copy.ts'
import type { StoredContents, StoredPart } from './signal.ts'

/**
 * The contents that older rows keep beside their parts: a text, parts, a user message, or a list of parts and messages.
 * Undefined when it is anything else, so that a reader can turn to the parts of the row.
 */
export function decodeStash(stash: unknown): StoredContents | undefined {
  const parts = stashParts(stash)
  return parts && parts.length > 0 ? canonicalContents(parts) : undefined
}

/** A text, file or image part in any spelling that rows have; undefined for every other part. */
export function decodePart(part: unknown): StoredPart | undefined {
  if (!isPlainObject(part)) return undefined
  const options = optionsOf(part)
  if (part.type === 'text') return typeof part.text === 'string' ? { type: 'text', text: part.text, ...options } : undefined
  if (part.type !== 'file' && part.type !== 'image') return undefined
  const data = firstText(part.data, part.image, part.url)
  if (data === undefined) return undefined
  const mediaType = firstText(part.mediaType, part.mimeType, part.contentType)
  const fallback = part.type === 'image' ? imageMediaType(data) : 'application/octet-stream'
  const filename = firstText(part.filename, part.name)
  return { type: 'file', data, mediaType: mediaType ?? fallback, ...(filename !== undefined && { filename }), ...options }
}

export function isProviderOptions(value: unknown): value is ProviderOptions {
  return isPlainObject(value) && Object.values(value).every(isPlainObject)
}

function stashParts(stash: unknown): StoredPart[] | undefined {
  if (typeof stash === 'string') return [{ type: 'text', text: stash }]
  if (isPlainObject(stash)) return stash.role === 'user' ? stashParts(stash.content) : undefined
  if (!Array.isArray(stash)) return undefined
  const parts: StoredPart[] = []
  for (const item of stash as unknown[]) {
    const part = decodePart(item)
    const decoded = part ? [part] : isPlainObject(item) ? stashParts(item) : undefined
    if (!decoded) return undefined
    parts.push(...decoded)
  }
  return parts
}

function optionsOf(part: Record<string, unknown>): { providerOptions?: ProviderOptions } {
  const options = part.providerOptions ?? part.providerMetadata
  return isProviderOptions(options) ? { providerOptions: options } : {}
}

function firstText(...values: unknown[]): string | undefined {
  return values.find(value => typeof value === 'string')
}
