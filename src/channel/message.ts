import { checkName, checkObject, refused } from '../base/arguments.ts'
import { isName } from '../base/json.ts'
import type { InboundSender } from '../store/contract/watches.ts'

export type { InboundSender }

/** A message that a channel received, as its adapter mapped it. */
export interface InboundMessage {
  /** The provider's id of the message. A repeat with the same id is the same message. */
  providerId: string
  /** `address` is in the normal form of the kind where `verified`, and otherwise as the provider wrote it. */
  sender: InboundSender
  /** The chat in which it was written, where the provider has one: a group, a room, or a thread of one. */
  conversation?: string
  text: string
  subject?: string
  /** What was attached. The contents are not fetched. */
  attachments?: InboundAttachment[]
  /** The sender's or the provider's time, which is not checked. */
  sentAt?: Date
  /** Sent by this channel itself and received as an echo: it is not stored, and never evaluated or answered. */
  own?: true
  /** Written by a program: a bot, an automatic reply, a mailing list. A reply could start a loop: watches get it, agents do not answer. */
  automatic?: true
  /** The text or the attachments were longer than the limits of a message. */
  truncated?: true
}

/** A file of a message; its contents are not fetched. */
export interface InboundAttachment {
  filename?: string
  mediaType?: string
  size?: number
}

/** Longer texts are cut; more attachments are left out. */
export const messageLimits = { text: 65_536, attachments: 100, label: 1_000, id: 512 } as const

/**
 * The message with texts that every store returns unchanged, within the limits. Texts and labels are cut; a missing or invalid id,
 * address or text is rejected by name.
 */
export function checkMessage(of: string, given: unknown): InboundMessage {
  checkObject(of, given)
  const { sender, conversation, subject, sentAt, own, automatic } = given
  checkObject(`${of}.sender`, sender)
  if (typeof sender.verified !== 'boolean') throw refused(`${of}.sender.verified`, 'true or false')
  if (typeof given.text !== 'string') throw refused(`${of}.text`, 'a text')
  const text = cut(given.text, messageLimits.text)
  const attached = readAttachments(of, given.attachments)
  const name = label(`${of}.sender.name`, sender.name)
  const about = label(`${of}.subject`, subject)
  const isCut = given.truncated === true || text.length < given.text.length || attached.length > messageLimits.attachments
  return {
    providerId: readId(`${of}.providerId`, given.providerId),
    sender: { address: readId(`${of}.sender.address`, sender.address), ...(name === undefined ? {} : { name }), verified: sender.verified },
    ...(conversation === undefined ? {} : { conversation: readId(`${of}.conversation`, conversation) }),
    text,
    ...(about === undefined ? {} : { subject: about }),
    ...(attached.length === 0 ? {} : { attachments: attached.slice(0, messageLimits.attachments) }),
    ...(sentAt === undefined ? {} : { sentAt: readDate(`${of}.sentAt`, sentAt) }),
    ...(readFlag(`${of}.own`, own) ? { own: true } : {}),
    ...(readFlag(`${of}.automatic`, automatic) ? { automatic: true } : {}),
    ...(isCut ? { truncated: true } : {}),
  }
}

/** At most `most` characters, without half of a surrogate pair, and without NUL, at which some stores end a text. */
export function cut(text: string, most: number): string {
  return text.slice(0, most).replace(/[\uD800-\uDBFF]$/, '').toWellFormed().replaceAll('\0', '\uFFFD')
}

function readAttachments(of: string, given: unknown): InboundAttachment[] {
  if (given === undefined) return []
  if (!Array.isArray(given)) throw refused(`${of}.attachments`, 'a list')
  // One more than the limit, so that the caller sees that there were more.
  return given.slice(0, messageLimits.attachments + 1).map((one: unknown, index) => {
    const field = `${of}.attachments[${index}]`
    checkObject(field, one)
    const filename = label(`${field}.filename`, one.filename)
    const mediaType = label(`${field}.mediaType`, one.mediaType)
    const { size } = one
    if (size !== undefined && !(Number.isSafeInteger(size) && Number(size) >= 0)) throw refused(`${field}.size`, 'a number of bytes')
    return {
      ...(filename === undefined ? {} : { filename }),
      ...(mediaType === undefined ? {} : { mediaType }),
      ...(size === undefined ? {} : { size: Number(size) }),
    }
  })
}

function label(field: string, value: unknown): string | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'string') throw refused(field, 'a text')
  return cut(value, messageLimits.label) || undefined
}

/** An id is never cut: two that differ would become one. */
function readId(field: string, value: unknown): string {
  checkName(field, value)
  if (!isId(value)) throw refused(field, `at most ${messageLimits.id} characters long`)
  return value
}

export function isId(value: unknown): value is string {
  return isName(value) && value.length <= messageLimits.id
}

function readDate(field: string, value: unknown): Date {
  if (!(value instanceof Date) || Number.isNaN(value.getTime())) throw refused(field, 'a valid Date')
  return value
}

function readFlag(field: string, value: unknown): boolean {
  if (value !== undefined && typeof value !== 'boolean') throw refused(field, 'true or false')
  return value === true
}
