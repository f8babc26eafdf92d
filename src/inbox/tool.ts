import { checkNames } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { joinTaint } from '../message/taint.ts'
import { createTool, nestingOf, type Tool, type ToolContext } from '../run/tools/tool.ts'
import { maxSearchLength, notificationStatuses } from '../store/contract/notifications.ts'
import type {
  InboxScope, MarkedStatus, NotificationPriority, NotificationRecord, NotificationStatus, NotificationStore,
} from '../store/contract/notifications.ts'
import { priorities } from './policy.ts'
import { taintOfNotification } from './signals.ts'

/** What an agent may do with its inbox. */
export type NotificationInboxAction = 'list' | 'read' | 'markSeen' | 'dismiss' | 'archive' | 'search'

/** The arguments of the inbox tool. */
export interface NotificationInboxInput {
  action: NotificationInboxAction
  /** Only for programs that call the tool outside of a thread: a model is not offered it. Within a thread, it must be that thread. */
  threadId?: string
  id?: string
  status?: NotificationStatus
  priority?: NotificationPriority
  source?: string
  query?: string
  limit?: number
}

const marks: Partial<Record<NotificationInboxAction, MarkedStatus>> = { markSeen: 'seen', dismiss: 'dismissed', archive: 'archived' }
const defaultLimit = 20
const maxLimit = 100

const text = { type: 'string', minLength: 1 } as const
const inputSchema = {
  type: 'object',
  properties: {
    action: {
      enum: ['list', 'read', 'markSeen', 'dismiss', 'archive', 'search'],
      description:
        'read brings the full text of pending notifications here; search needs query; markSeen, dismiss and archive need id',
    },
    id: text,
    status: { enum: notificationStatuses },
    priority: { enum: [...priorities] },
    source: text,
    query: { ...text, maxLength: maxSearchLength },
    limit: { type: 'integer', minimum: 1, maximum: maxLimit },
  },
  required: ['action'],
  additionalProperties: false,
} as const

/** A tool for the inbox of an agent. It is restricted to the thread in which it is called, whatever the model passes. */
export function createNotificationInboxTool(options: {
  storage: NotificationStore | undefined
}): Tool<'notification-inbox', NotificationInboxInput> {
  const { storage } = options ?? {}
  if (options) checkNames('createNotificationInboxTool()', options, ['storage'])
  if (typeof storage?.listNotifications !== 'function') {
    throw new HeedError(
      'invalid_argument',
      "createNotificationInboxTool needs the inbox of a storage: { storage: await storage.getStore('notifications') }.",
      { details: { field: 'storage' } },
    )
  }
  return createTool({
    id: 'notification-inbox',
    description: 'Lists, reads, searches, dismisses and archives the notifications of this conversation.',
    inputSchema,
    // A second read delivers nothing more, and a repeated mark changes nothing.
    idempotent: true,
    execute: (input, context) => execute(storage, input as NotificationInboxInput, context),
  })
}

async function execute(store: NotificationStore, input: NotificationInboxInput, context: ToolContext): Promise<unknown> {
  const scope = scopeOf(input, context)
  const { action, id, limit = defaultLimit } = input
  if (action === 'list' || action === 'search') {
    if (action === 'search' && input.query === undefined) throw missing('query', action)
    const { notifications, more } = await store.listNotifications({ ...scope, ...filters(input), limit: Math.min(limit, maxLimit) })
    taint(context, notifications)
    return { notifications: notifications.map(visibleFields), hasMore: more }
  }
  if (action === 'read') return read(store, scope, input, context)
  const status = marks[action]
  if (id === undefined || status === undefined) throw missing('id', action)
  const record = await store.getNotification({ ...scope, id })
  if (!record) throw new HeedError('invalid_argument', `No notification '${id}' exists in this conversation.`, { details: { id } })
  const [marked] = await store.markNotifications(scope, [id], status, readerFor(store, context.agentId)?.now())
  taint(context, [record])
  return { notification: visibleFields(marked ?? record) }
}

/** The run that reads notifications is tainted like one that receives them. */
function taint(context: ToolContext, records: readonly NotificationRecord[]): void {
  nestingOf(context)?.addTaint(records.map(taintOfNotification).reduce(joinTaint, []))
}

async function read(
  store: NotificationStore, scope: InboxScope, { id, limit = defaultLimit, ...input }: NotificationInboxInput, context: ToolContext,
): Promise<unknown> {
  const found =
    id === undefined
      ? (
          await store.listNotifications({ ...scope, ...filters({ status: 'pending', ...input }), limit: Math.min(limit, maxLimit) })
        ).notifications.toReversed()
      : [await store.getNotification({ ...scope, id })].flatMap((record) => record ?? [])
  const reader = readerFor(store, context.agentId)
  const result = { delivered: 0, markedSeen: 0, unavailable: id !== undefined && found.length === 0 ? 1 : 0, alreadyRead: 0 }
  const unread: Unread[] = []
  for (const record of found) {
    if (isUnread(record)) unread.push(unreadOf(record))
    else if (record.status !== 'pending' && record.status !== 'delivered') result.alreadyRead++
    else if (record.status === 'delivered')
      result.markedSeen += (await store.markNotifications(scope, [record.id], 'seen', reader?.now())).length
    else if (!reader) result.unavailable++
    else {
      await reader.read(record, context.agentId)
      result.delivered++
    }
  }
  const delivered =
    result.delivered === 0 ? 'No unread notifications needed delivery.' : `${result.delivered} notification(s) will now be delivered.`
  if (unread.length === 0) return { message: delivered, ...result }
  const others = unread
    .map(({ id: one, status, reason }) => `'${one}' is ${status}${reason === undefined ? '' : ` (${reason})`}`)
    .join('; ')
  return {
    message: `${result.delivered === 0 ? '' : `${delivered} `}Not delivered, and not read: ${others}.`,
    ...result,
    unavailable: result.unavailable + unread.length,
    unread,
  }
}

/** A notification that never entered the conversation and cannot be delivered by reading it. */
interface Unread {
  id: string
  status: NotificationStatus
  reason?: string
}

/** A dismissed or archived notification may have been read before. */
function isUnread({ status, seenAt, deliveredAt }: NotificationRecord): boolean {
  if (status === 'failed' || status === 'discarded') return true
  return (status === 'dismissed' || status === 'archived') && seenAt === undefined && deliveredAt === undefined
}

function unreadOf({ id, status, lastDeliveryError, deliveryReason }: NotificationRecord): Unread {
  const reason = status === 'failed' ? lastDeliveryError : status === 'discarded' ? deliveryReason : undefined
  return { id, status, ...(reason === undefined ? {} : { reason }) }
}

/** A call within a thread is restricted to it. A call outside of one may name a thread of its resource. */
function scopeOf({ threadId }: NotificationInboxInput, context: ToolContext): InboxScope {
  const { resourceId } = context
  const own = context.threadId
  if (own !== undefined && (threadId === undefined || threadId === own))
    return { threadId: own, ...(resourceId === undefined ? {} : { resourceId }) }
  if (own === undefined && threadId !== undefined && resourceId !== undefined) return { threadId, resourceId }
  if (own === undefined && threadId === undefined)
    throw new HeedError('invalid_argument', 'notification-inbox requires a threadId: call it on a thread.', {
      details: { field: 'threadId' },
    })
  throw new HeedError('thread_forbidden', 'notification-inbox sees the notifications of its own conversation only.', {
    details: { threadId },
  })
}

function filters({ status, priority, source, query }: Partial<NotificationInboxInput>) {
  return {
    ...(status === undefined ? {} : { status: [status] }),
    ...(priority === undefined ? {} : { priority: [priority] }),
    ...(source === undefined ? {} : { source }),
    ...(query === undefined ? {} : { search: query }),
  }
}

/** The fields that a model gets in lists: no payload and no metadata, which are for programs. */
function visibleFields({ id, source, kind, priority, status, summary, coalescedCount, createdAt }: NotificationRecord) {
  return { id, source, kind, priority, status, summary, count: coalescedCount, createdAt: createdAt.toISOString() }
}

function missing(field: string, action: string): HeedError {
  return new HeedError('invalid_argument', `notification-inbox needs ${field} for '${action}'.`, { details: { field } })
}

/** Sends the full text of a record to an agent of this process. */
interface NotificationReader {
  hasAgent(agentId: string): boolean
  /** The clock of its Heed. */
  now(): number
  read(record: NotificationRecord, agentId: string): Promise<void>
}

/** The readers of each store in this process: two Heeds may share a store. */
const readers = new WeakMap<NotificationStore, Set<NotificationReader>>()

export function addReader(store: NotificationStore, reader: NotificationReader): void {
  const others = readers.get(store)
  if (others) others.add(reader)
  else readers.set(store, new Set([reader]))
}

export function removeReader(store: NotificationStore, reader: NotificationReader): void {
  readers.get(store)?.delete(reader)
}

function readerFor(store: NotificationStore, agentId: string): NotificationReader | undefined {
  for (const reader of readers.get(store) ?? []) if (reader.hasAgent(agentId)) return reader
  return undefined
}
