import { isURLText } from './file-data.ts'
import type { Attachment, FilePart, MessageContent, MessagePart } from './message.ts'

/** Made once for each part: whoever gives it back unchanged is known to have changed nothing. */
const shownAs = new WeakMap<FilePart, Attachment>()

/**
 * A user's content with all of its files among the attachments, first those of its parts: processors find them in one place, whichever way they came.
 * A file that only its provider has an id for has nothing to show.
 */
export function withAttachments(content: MessageContent): MessageContent {
  if (!content.parts.some(isShown)) return content
  return { ...content, experimental_attachments: [...content.parts.filter(isShown).map(attachmentOf), ...ownAttachments(content)] }
}

/** The attachments that no part of the content is as well: programs that know both ways write a file twice, and mean one. */
export function ownAttachments({ parts, experimental_attachments: given }: MessageContent): Attachment[] {
  const files = given?.length ? parts.filter(isShown) : []
  if (!given || files.length === 0) return given ?? []
  const inParts = new Set(files.map(({ data }) => fileKey(data)))
  return given.filter(({ url }) => !inParts.has(fileKey(url)))
}

/** The same for the same bytes, inline or in a `data:` URL, and for the same address. */
function fileKey(data: string): string {
  const inline = /^data:[^,]*;base64,/i.exec(data)
  if (inline) return data.slice(inline[0].length)
  return /^https?:/i.test(data) && URL.canParse(data) ? new URL(data).href : data
}

/** The content without the attachments that its own parts are shown as. */
export function withoutShown(content: MessageContent): MessageContent {
  const { experimental_attachments: given } = content
  if (!given) return content
  const shown = new Set(content.parts.filter(isShown).map((part) => shownAs.get(part)))
  return given.some((one) => shown.has(one)) ? withOwn(content, given.filter((one) => !shown.has(one))) : content
}

/**
 * What a processor made of a content that it was shown with its files as attachments. A changed attachment changes the part that it stands for,
 * one that is missing removes it, and others are attachments of the message's own: a file is neither lost nor there twice.
 */
export function takenBack(before: MessageContent, after: MessageContent): MessageContent {
  const files = before.parts.filter(isShown)
  const given = after.experimental_attachments
  if (files.length === 0 || !given) return after
  const inPlace = given.length === files.length + ownAttachments(before).length
  const standing = new Set<Attachment>()
  const changes = new Map<FilePart, Attachment | undefined>()
  for (const [index, file] of files.entries()) {
    const shown = attachmentOf(file)
    const now = given.includes(shown) ? shown : inPlace ? given[index] : undefined
    if (now) standing.add(now)
    if (!now || !isSame(now, shown)) changes.set(file, now)
  }
  const own = given.filter((one) => !standing.has(one))
  const { parts, unplaced } = changedParts(after.parts, files, changes)
  return withOwn({ ...after, parts }, [...unplaced, ...own])
}

/** Parts with the changes of the files that they are: known by themselves, or by their place where all are still there. */
function changedParts(parts: readonly MessagePart[], files: readonly FilePart[], changes: ReadonlyMap<FilePart, Attachment | undefined>): { parts: MessagePart[]; unplaced: Attachment[] } {
  if (changes.size === 0) return { parts: [...parts], unplaced: [] }
  const now = parts.filter(isShown)
  const inPlace = now.length === files.length
  const placed = new Set<FilePart>()
  const changed = parts.flatMap((part): MessagePart[] => {
    if (!isShown(part)) return [part]
    const file = files.includes(part) ? part : inPlace ? files[now.indexOf(part)] : undefined
    if (!file || !changes.has(file)) return [part]
    placed.add(file)
    const to = changes.get(file)
    return to ? [filePart(part, to)] : []
  })
  return { parts: changed, unplaced: [...changes].flatMap(([file, to]) => (to && !placed.has(file) ? [to] : [])) }
}

function filePart({ filename: _, ...part }: FilePart, { url, contentType, name }: Attachment): FilePart {
  return { ...part, data: url, mimeType: contentType ?? part.mimeType, ...(name !== undefined && { filename: name }) }
}

function attachmentOf(part: FilePart): Attachment {
  let shown = shownAs.get(part)
  if (!shown) {
    const { data, mimeType, filename } = part
    shown = { url: isURLText(data) ? data : `data:${mimeType};base64,${data}`, contentType: mimeType, ...(filename !== undefined && { name: filename }) }
    shownAs.set(part, shown)
  }
  return shown
}

function withOwn(content: MessageContent, own: Attachment[]): MessageContent {
  const { experimental_attachments: _, ...rest } = content
  return own.length === 0 ? rest : { ...rest, experimental_attachments: own }
}

function isShown(part: MessagePart): part is FilePart {
  return part.type === 'file' && !part.reference && part.data !== ''
}

function isSame(a: Attachment, b: Attachment): boolean {
  return a === b || (a.url === b.url && a.contentType === b.contentType && a.name === b.name)
}
