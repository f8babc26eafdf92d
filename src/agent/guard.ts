import type { MessageRow } from '../message/row.ts'
import { needsGuard, RESERVED_TAGS } from '../signals/forgery.ts'
import { messageInputToSignal } from '../signals/normalise.ts'
import { modelSignalOf, signalToRow } from '../signals/row.ts'

/** Input whose text imitates a signal's tag becomes a user's signal, which the model sees inside an escaped element. */
export function guardInput(rows: MessageRow[], context: { now: number; reservedTags: readonly string[] }): MessageRow[] {
  const reserved = [...RESERVED_TAGS, ...context.reservedTags]
  return rows.map((row) => {
    if (row.role !== 'user') return row
    const texts = row.content.parts.filter((part) => part.type === 'text')
    if (!needsGuard(texts.map(({ text }) => ({ type: 'text', text })), reserved)) return row
    const { contents, providerOptions } = modelSignalOf(row)
    const given = { contents: typeof contents === 'string' ? contents : [...contents], ...(providerOptions && { providerOptions }) }
    const signal = messageInputToSignal(given, { ...context, id: row.id, reservedTags: [...context.reservedTags] })
    return signalToRow(signal, { messageId: row.messageId })
  })
}
