import { ownAttachments } from '../message/attachments.ts'
import type { MessageRow } from '../message/row.ts'
import { needsGuard, RESERVED_TAGS } from '../signals/forgery.ts'
import { messageInputToSignal } from '../signals/normalise.ts'
import { signalToRow } from '../signals/row.ts'
import type { SignalFilePart, SignalTextPart } from '../signals/signal.ts'

/** Input whose text imitates a signal's tag becomes a user's signal, which the model sees inside an escaped element. */
export function guardInput(rows: MessageRow[], context: { now: number; reservedTags: readonly string[] }): MessageRow[] {
  const reserved = [...RESERVED_TAGS, ...context.reservedTags]
  return rows.map((row) => {
    if (row.role !== 'user') return row
    const texts = row.content.parts.filter((part) => part.type === 'text')
    if (!needsGuard(texts.map(({ text }) => ({ type: 'text', text })), reserved)) return row
    const contents = row.content.parts.flatMap((part): Array<SignalTextPart | SignalFilePart> => {
      if (part.type === 'text') return [{ type: 'text', text: part.text }]
      if (part.type !== 'file') return []
      return [{ type: 'file', data: part.data, mediaType: part.mimeType, ...(part.filename === undefined ? {} : { filename: part.filename }) }]
    })
    const attached = ownAttachments(row.content).map(({ url, contentType = 'application/octet-stream', name }): SignalFilePart =>
      ({ type: 'file', data: url, mediaType: contentType, ...(name === undefined ? {} : { filename: name }) }))
    const signal = messageInputToSignal({ contents: [...contents, ...attached], id: row.id }, { ...context, id: row.id, reservedTags: [...context.reservedTags] })
    return signalToRow(signal, { messageId: row.messageId })
  })
}
