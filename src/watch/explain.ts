import type { CandidateRecord, CandidateState, ConsideredInbound, WatchRecord } from '../store/contract/watches.ts'
import { isInTime } from './machine.ts'

/**
 * Why a message did or did not match. For a candidate, its state: see `CandidateState`. Of the others, `channel` and `contact`: a filter
 * excludes it. `category`: it has none of the expected categories. `annotation_pending`, `annotation_failed`: it has no categories yet, or
 * never will. `expired`: it arrived after the watch expired. `quota`: its sender, or all senders together, had used up their evaluations.
 * `taken`: it ended another watch of the thread, or an exclusive watch has it. `ended`: its watch ended first.
 */
export type MessageReason =
  | CandidateState | 'channel' | 'contact' | 'category' | 'annotation_pending' | 'annotation_failed' | 'expired' | 'quota' | 'taken'

/** One message that a watch considered. Nothing that its sender wrote is in it. */
export interface ExplainedMessage {
  seq: number
  inboundId: string
  channelId: string
  /** The kind of the channel. */
  kind: string
  contactId?: string
  receivedAt: Date
  reason: MessageReason
  /** The expected categories that it has. */
  categories: string[]
  /** How many these are. */
  score: number
  /** How often a judge was asked. */
  attempts?: number
  /** The value of a match. */
  value?: CandidateRecord['value']
  /** The policies that denied it, or the code of the last failure. */
  detail?: string
  settledAt?: Date
}

/** A watch, with every message that it considered, in their order. */
export interface ExplainedWatch extends WatchRecord {
  messages: ExplainedMessage[]
  /** There are more: the next page begins after the `seq` of the last one. */
  more: boolean
}

export function explainMessage(watch: WatchRecord, message: ConsideredInbound): ExplainedMessage {
  const { id: inboundId, seq, channelId, kind, contactId, receivedAt, candidate } = message
  const categories = expectedOf(watch, message)
  return {
    seq, inboundId, channelId, kind, receivedAt, categories,
    reason: reasonOf(watch, message),
    score: categories.length,
    ...(contactId === undefined ? {} : { contactId }),
    ...(candidate === undefined ? {} : { attempts: candidate.attempts }),
    ...(candidate?.value === undefined ? {} : { value: candidate.value }),
    ...(candidate?.detail === undefined ? {} : { detail: candidate.detail }),
    ...(candidate?.settledAt === undefined ? {} : { settledAt: candidate.settledAt }),
  }
}

function expectedOf({ criteria }: WatchRecord, { categories = [] }: ConsideredInbound): string[] {
  return categories.filter((category) => criteria.categories.includes(category))
}

/** In the order in which a message is matched: what excludes it first is the reason. */
function reasonOf(watch: WatchRecord, message: ConsideredInbound): MessageReason {
  const { categories, channels, contacts } = watch.criteria
  if (message.candidate) return message.candidate.state
  if (!isInTime(message.receivedAt.getTime(), watch.expiresAt.getTime())) return 'expired'
  const names = [message.kind, `${message.kind}/${message.channelId}`]
  if (channels.length > 0 && !channels.some((channel) => names.includes(channel))) return 'channel'
  if (contacts.length > 0 && !isFromContact(watch, message)) return 'contact'
  if (categories.length > 0 && message.categories === undefined) return message.failed ? 'annotation_failed' : 'annotation_pending'
  if (categories.length > 0 && expectedOf(watch, message).length === 0) return 'category'
  if (message.taken) return 'taken'
  return watch.state === 'ended' && watch.skipped === 0 ? 'ended' : 'quota'
}

/** An address that became the contact's after the registration does not count. */
function isFromContact({ criteria, createdAt }: WatchRecord, { contactId, contactSince = 0 }: ConsideredInbound): boolean {
  return contactId !== undefined && criteria.contacts.includes(contactId) && contactSince <= createdAt.getTime()
}
