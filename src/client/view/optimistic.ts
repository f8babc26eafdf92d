import { isURLText, readFileData } from '../../message/file-data.ts'
import type { UIMessage, UIPart } from '../../message/ui/ui-message.ts'
import type { MessageInput, SignalContents } from '../../signals/signal.ts'

/** A message as it will look, before the server has said anything. `metadata.optimistic` tells it apart. */
export function optimisticMessage(id: string, message: MessageInput): UIMessage {
  const contents: SignalContents = typeof message === 'object' && !Array.isArray(message) ? message.contents : message
  const parts = typeof contents === 'string' ? [{ type: 'text' as const, text: contents }] : contents.flatMap(partOf)
  return { id, role: 'user', parts, metadata: { optimistic: true } }
}

function partOf(part: Exclude<SignalContents, string>[number]): UIPart[] {
  if (part.type === 'text') return [{ type: 'text', text: part.text }]
  const read = readFileData(part.type === 'file' ? part.data : part.image)
  // What can't be read is refused by the server, which says why.
  if (typeof read === 'string') return []
  const { data } = read
  const mediaType = part.mediaType ?? 'image/*'
  return [{ type: 'file', url: isURLText(data) ? data : `data:${mediaType};base64,${data}`, mediaType, ...(part.type === 'file' && part.filename !== undefined ? { filename: part.filename } : {}) }]
}
