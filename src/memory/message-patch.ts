import { checkStorable, invalidMessage } from '../message/read/invalid-message.ts'
import type { MessageContent, MessagePart } from '../message/message.ts'
import { isCurrent, readParts } from '../message/read/stored-content.ts'
import type { MessagePatch } from '../store/contract/messages.ts'
import { checkNames, checkObject, checkName, refused, timeOf } from './arguments.ts'

export type GivenPatch = MessagePatch & { threadId?: string; resourceId?: string }

const fields = ['id', 'threadId', 'resourceId', 'role', 'createdAt', 'type', 'content']
const contentFields = ['format', 'parts', 'content', 'experimental_attachments', 'metadata', 'providerMetadata']

/** A change of a message, with all that could make the message unreadable refused. */
export function patchOf(given: GivenPatch, index: number): { patch: MessagePatch; threadId: string | undefined; resourceId: string | undefined } {
  checkNames('updateMessages()', given, fields)
  const { id, threadId, resourceId, role, type } = given
  checkName('messages.id', id)
  for (const [name, value] of Object.entries({ threadId, resourceId, role, type })) if (value !== undefined) checkName(`messages.${name}`, value)
  const createdAt = timeOf('messages.createdAt', given.createdAt)
  const content = contentOf(given.content, index)
  const patch = { id, ...(role !== undefined && { role }), ...(createdAt && { createdAt }), ...(type !== undefined && { type }), ...(content && { content }) }
  return { patch, threadId, resourceId }
}

function contentOf(content: unknown, index: number): MessagePatch['content'] {
  if (content === undefined) return undefined
  checkNames('messages.content', content, contentFields)
  const { format, ...rest } = content as Partial<MessageContent>
  const { parts, content: text, experimental_attachments: attachments, metadata, providerMetadata } = rest
  if (format !== undefined && format !== 2) throw refused('messages.content.format', '2, or left out')
  if (text !== undefined && typeof text !== 'string') throw refused('messages.content.content', 'a text')
  if (metadata !== undefined) checkObject('messages.content.metadata', metadata)
  if (providerMetadata !== undefined) checkObject('messages.content.providerMetadata', providerMetadata)
  if (attachments !== undefined && !(Array.isArray(attachments) && attachments.every(isAttachment))) {
    throw refused('messages.content.experimental_attachments', 'a list of objects with a url')
  }
  checkStorable(rest, index)
  return { ...rest, ...(parts !== undefined && { parts: partsOf(parts, index) }) }
}

function partsOf(parts: unknown, index: number): MessagePart[] {
  if (!Array.isArray(parts)) throw refused('messages.content.parts', 'a list of parts')
  const content = { format: 2, parts }
  if (isCurrent(content)) return content.parts
  return readParts(parts, (_, at, why) => {
    throw invalidMessage(index, `parts[${at}]: ${why}`, { part: at })
  })
}

function isAttachment(one: unknown): boolean {
  return typeof one === 'object' && one !== null && 'url' in one && typeof one.url === 'string'
}
