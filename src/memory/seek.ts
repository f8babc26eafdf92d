import { checkName, checkNames, checkWhole, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import type { Message } from '../message/message.ts'
import type { MessageStart } from '../store/contract/messages.ts'
import type { Scope, ThreadStore } from '../store/contract/threads.ts'
import { parseScope } from './arguments.ts'
import { findStart, messagesAt, readStarts } from './messages.ts'

/** A page of a thread by a place in it. Exactly one of `around`, `before`, `after` and `at` is given. */
export interface SeekArgs {
  threadId: string
  /** Rejects a thread that belongs to another resource. */
  resourceId?: string
  /** A message in the middle of the page. */
  around?: string
  /** The page ends before this message. */
  before?: string
  /** The page begins after this message. */
  after?: string
  /** The page begins with the message at this place, from 0. */
  at?: number
  /** Defaults to 40. */
  perPage?: number
}

/** Messages in the order of the thread. */
export interface SoughtMessages {
  messages: Message[]
  /** The place of the first of them in the thread, from 0. */
  first: number
  /** The number of messages of the thread. */
  total: number
  hasBefore: boolean
  hasAfter: boolean
}

const names = ['threadId', 'resourceId', 'around', 'before', 'after', 'at', 'perPage']

/** The cost does not grow with the place, except for two counts in an index. */
export async function seekMessages(store: ThreadStore, args: SeekArgs): Promise<SoughtMessages> {
  checkNames('seekMessages()', args, names)
  const { around, before, after, at, perPage = 40 } = args
  checkWhole('perPage', perPage, 1)
  const given = Object.entries({ around, before, after, at }).filter(([, value]) => value !== undefined)
  if (given.length !== 1) throw refused('around', 'given, or one of before, after and at, and none of the others')
  for (const [name, id] of Object.entries({ around, before, after })) if (id !== undefined) checkName(name, id)
  if (at !== undefined) checkWhole('at', at)
  const scope = parseScope(args.threadId, args.resourceId)
  const starts = await startsOf(store, scope, { around, before, after, at }, perPage)
  const [first] = starts
  const total = await store.countMessages(scope)
  const place = first ? await store.countMessages(scope, { before: first.seq }) : total
  const messages = (await messagesAt(store, scope, starts)).map(({ message }) => message)
  return { messages, first: place, total, hasBefore: place > 0, hasAfter: place + starts.length < total }
}

interface Place {
  around: string | undefined
  before: string | undefined
  after: string | undefined
  at: number | undefined
}

async function startsOf(store: ThreadStore, scope: Scope, { around, before, after, at }: Place, perPage: number): Promise<MessageStart[]> {
  if (at !== undefined) return (await store.listMessageStarts(scope, { after: -1, offset: at, limit: perPage })).starts
  const start = await requireStart(store, scope, around ?? before ?? after ?? '')
  const beyond = start.seq
  if (before !== undefined) return (await readStarts(store, scope, { from: 'newest', beyond, limit: perPage })).starts
  if (after !== undefined) return (await readStarts(store, scope, { from: 'oldest', beyond, limit: perPage })).starts
  const half = Math.floor((perPage - 1) / 2)
  const earlier = await readStarts(store, scope, { from: 'newest', beyond, limit: perPage - 1 })
  const later = await readStarts(store, scope, { from: 'oldest', beyond, limit: perPage - 1 })
  // Near an end of the thread, the other side fills the page.
  const fromLater = Math.max(perPage - 1 - half, perPage - 1 - earlier.starts.length)
  const kept = later.starts.slice(0, fromLater)
  const fromEarlier = perPage - 1 - kept.length
  return [...(fromEarlier === 0 ? [] : earlier.starts.slice(-fromEarlier)), start, ...kept]
}

async function requireStart(store: ThreadStore, scope: Scope, messageId: string): Promise<MessageStart> {
  const start = await findStart(store, scope, messageId)
  if (start) return start
  throw new HeedError('message_not_found', `Thread ${scope.threadId} has no message ${messageId}.`, { details: { messageId } })
}
