import { ownAttachments } from '../attachments.ts'
import { isTransient, partsOf, signalOf } from '../content.ts'
import { isURLText } from '../file-data.ts'
import type { FilePart, Message, MessageContent, MessagePart, SourcePart, ToolInvocationPart } from '../message.ts'
import { asJSON } from '../read/raw.ts'
import type { UIFilePart, UIMessage, UIMetadata, UIPart, UIToolPart } from './ui-message.ts'

/**
 * Messages for user interfaces. Input of a user is a `user` message, stored as a message or as a signal. Any other signal is a `system`
 * message with one `data-signal` part; transient ones are left out. A payload that a transcript replaces is replaced here too.
 */
export function toUIMessages(messages: Iterable<Message>): UIMessage[] {
  return Array.from(messages).filter(({ content }) => !isTransient(content)).map(toUIMessage)
}

export function toUIMessage(message: Message): UIMessage {
  const { id, role, content } = message
  if (role === 'signal') return signalMessage(message)
  return { id, role, metadata: metadataOf(message), parts: uiParts(content) }
}

function signalMessage(message: Message): UIMessage {
  const { id, content } = message
  const signal = signalOf(message)
  const metadata = { ...metadataOf(message), signal }
  if (signal.type === 'user') return { id, role: 'user', metadata, parts: uiParts(content) }
  const parts = uiParts(content)
  const [only] = parts
  const contents = parts.length === 1 && only?.type === 'text' ? only.text : parts
  return { id, role: 'system', metadata, parts: [{ type: 'data-signal', id, data: asJSON({ ...signal, contents }) }] }
}

function metadataOf({ createdAt, content }: Message): UIMetadata {
  return { ...content.metadata, createdAt: createdAt.toISOString() }
}

function uiParts(content: MessageContent): UIPart[] {
  return [
    ...partsOf(content).map(uiPart),
    ...ownAttachments(content).map(({ url, contentType = 'application/octet-stream', name }): UIPart => (
      { type: 'file', url, mediaType: contentType, ...(name !== undefined && { filename: name }) }
    )),
  ]
}

function uiPart(part: MessagePart): UIPart {
  switch (part.type) {
    case 'reasoning':
      return { type: 'reasoning', text: part.reasoning, ...providerMetadataOf(part) }
    case 'file':
      return filePart(part)
    case 'tool-invocation':
      return toolPart(part)
    case 'source':
      return sourcePart(part)
    case 'error':
      return { type: 'data-error', data: { ...part.error } }
    case 'step-start':
      return { type: 'step-start' }
    default:
      return part
  }
}

function filePart(part: FilePart): UIPart {
  const { data, mimeType: mediaType, filename, reference } = part
  const url = data === '' || isURLText(data) ? data : `data:${mediaType};base64,${data}`
  if (part.reasoning) return { type: 'reasoning-file', url, mediaType, ...providerMetadataOf(part) }
  const file: UIFilePart = { type: 'file', url, mediaType, ...providerMetadataOf(part) }
  if (filename !== undefined) file.filename = filename
  if (reference) file.providerReference = reference
  return file
}

function sourcePart(part: SourcePart): UIPart {
  const { source } = part
  if (source.sourceType === 'url') {
    const { id, url, title } = source
    return { type: 'source-url', sourceId: id, url, ...(title !== undefined && { title }), ...providerMetadataOf(part) }
  }
  const { id, mediaType, title, filename } = source
  const named = filename === undefined ? {} : { filename }
  return { type: 'source-document', sourceId: id, mediaType, title, ...named, ...providerMetadataOf(part) }
}

function toolPart(part: ToolInvocationPart): UIToolPart {
  const { toolCallId, toolName, args, state, result, errorText, approval, transcript } = part.toolInvocation
  // A call has one approval, so the call's id is also that of the approval.
  const { by, reason } = approval ?? {}
  const decision = { id: toolCallId, ...(by !== undefined && { by }), ...(reason !== undefined && { reason }) }
  const approved = approval?.approved === true ? { approval: { ...decision, approved: true as const } } : {}
  const metadata = part.resultProviderMetadata && { resultProviderMetadata: part.resultProviderMetadata }
  const call = {
    type: `tool-${toolName}` as const,
    toolCallId,
    ...(part.providerExecuted && { providerExecuted: true }),
    input: transcript?.args !== undefined ? transcript.args : args,
    ...(part.providerMetadata && { callProviderMetadata: part.providerMetadata }),
  }
  const output = transcript?.result !== undefined ? transcript.result : result
  switch (state) {
    case 'result':
      return { ...call, state: 'output-available', output, ...metadata, ...approved }
    case 'output-error':
      return { ...call, state, errorText: transcript?.errorText ?? errorText ?? 'The tool failed.', ...metadata, ...approved }
    case 'output-denied':
      return { ...call, state, approval: { ...decision, approved: false } }
    case 'approval-requested':
      return { ...call, state, approval: { id: toolCallId } }
    case 'call':
      return approved.approval ? { ...call, state: 'approval-responded', ...approved } : { ...call, state: 'input-available' }
  }
}

function providerMetadataOf({ providerMetadata }: MessagePart): Pick<FilePart, 'providerMetadata'> {
  return providerMetadata ? { providerMetadata } : {}
}
