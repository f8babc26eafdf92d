import { sendNotifications, type NotificationTarget } from '../../agent/sends.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import { orderedJSON } from '../../base/json.ts'
import { checkNotifications, type CheckedNotification, type NotificationInput } from '../../inbox/input.ts'
import type { NotificationResult } from '../../inbox/settlement.ts'
import { maxSearchLength, notificationStatuses } from '../../store/contract/notifications.ts'
import type {
  InboxScope, MarkedStatus, NotificationRecord, NotificationStore, RequestedNotifications,
} from '../../store/contract/notifications.ts'
import { requireResource, resolveResource } from '../auth/principal.ts'
import { memoryAgent, memoryQuery, scopeOf, threadIdOf, unlessForeign, type MemoryQuery } from '../request/access.ts'
import { checkKeyMatchesId, keyReused, omitUndefined, readStreamOptions } from '../request/fields.ts'
import { route, type Call, type JSONSchema, type Route } from '../route.ts'
import * as responses from '../schema/response-schemas.ts'
import { anything, id, ids, limit, object, record, streamOptions, text, threadScope } from '../schema/schemas.ts'

interface SendBody {
  threadId: string
  resourceId?: string
  notification?: NotificationInput
  notifications?: NotificationInput[]
  ifIdle?: { streamOptions?: Record<string, unknown> }
}

interface ListQuery extends RequestedNotifications {
  resourceId?: string
}

const priorities = ['low', 'medium', 'high', 'urgent']
const notification = object(
  {
    id, source: text, kind: text, summary: text, priority: { enum: priorities }, payload: anything, dedupeKey: text, coalesceKey: text,
    attributes: record, metadata: record,
  },
  ['source', 'kind', 'summary'],
)
const list = { type: 'array', items: notification, minItems: 1, maxItems: 1_000 }
const path = '/agents/:agentId/threads/:threadId/notifications'
const filters = {
  status: oneOf(notificationStatuses), priority: oneOf(priorities), source: text, kind: text,
  search: { ...text, maxLength: maxSearchLength }, limit,
}

/** Notifications: sent to the inbox of a thread, listed and marked there. */
export const notifications: readonly Route[] = [
  route<SendBody>({
    method: 'POST', path: '/agents/:agentId/notifications', summary: 'Sends one or several notifications to the inbox of a thread',
    response: 'json', responseSchema: responses.sentNotifications, send: true, creates: true,
    body: object({ ...threadScope, notification, notifications: list, ifIdle: object({ streamOptions }) }, ['threadId']),
    handle: send,
  }),
  route<never, ListQuery>({
    method: 'GET', path, summary: 'The notifications of a thread, newest first, and their number by status', response: 'json', read: true,
    responseSchema: responses.notificationPage,
    query: object({ resourceId: id, ...filters, after: id }),
    async handle(call) {
      const { resourceId, limit = 100, ...rest } = call.query
      const { store, scope } = await openInbox(call, resourceId)
      return { ...(await store.listNotifications({ ...scope, ...rest, limit })), counts: await store.countNotifications(scope) }
    },
  }),
  route<never, MemoryQuery & RequestedNotifications & { threadId?: string }>({
    method: 'GET', path: '/notifications', summary: 'The notifications of all threads of a resource, newest first', response: 'json',
    read: true, responseSchema: responses.inboxPage,
    query: object({ ...memoryQuery, ...filters, threadId: id, after: text }),
    async handle(call) {
      const { agentId: _, resourceId, limit = 100, ...rest } = call.query
      const { threads, inbox } = (await memoryAgent(call)).site()
      await threads.open()
      const resource = omitUndefined({ resourceId: resolveResource(call.principal, resourceId) })
      return (await inbox.store()).listInbox({ ...rest, ...resource, limit })
    },
  }),
  route<never, { resourceId?: string }>({
    method: 'GET', path: `${path}/:notificationId`, summary: 'One notification, with its payload', response: 'json', read: true,
    responseSchema: responses.notification,
    query: object({ resourceId: id }),
    async handle(call) {
      const { notificationId = '' } = call.params
      const { store, scope } = await openInbox(call, call.query.resourceId)
      const record = await store.getNotification({ ...scope, id: notificationId })
      if (!record) throw new HeedError('not_found', `The thread has no notification ${notificationId}.`, { details: { notificationId } })
      return record
    },
  }),
  route<{ resourceId?: string; ids: string[]; status: MarkedStatus }>({
    method: 'POST', path: `${path}/mark`, summary: 'Marks notifications as seen, dismissed or archived', response: 'json',
    responseSchema: responses.markedNotifications,
    body: object({ resourceId: id, ids, status: { enum: ['seen', 'dismissed', 'archived'] } }, ['ids', 'status']),
    async handle(call) {
      const { store, scope } = await openInbox(call, call.body.resourceId, 'write')
      return { notifications: await store.markNotifications(scope, call.body.ids, call.body.status, call.heed.clock.now()) }
    },
  }),
  route<{ resourceId?: string; ids: string[] }>({
    method: 'POST', path: `${path}/retry`, summary: 'Retries notifications that could not be delivered', response: 'json',
    responseSchema: responses.retriedNotifications,
    body: object({ resourceId: id, ids }, ['ids']),
    async handle(call) {
      const { store, scope } = await openInbox(call, call.body.resourceId, 'write')
      return { retried: await store.retryNotifications(scope, call.body.ids, call.heed.clock.now()) }
    },
  }),
]

function oneOf(values: readonly unknown[]): JSONSchema {
  return { type: 'array', items: { enum: values }, maxItems: 20 }
}

async function send(call: Call<SendBody, unknown>): Promise<unknown> {
  const { threadId, resourceId, notification: one, notifications: several, ifIdle } = call.body
  if ((one === undefined) === (several === undefined)) {
    throw new HeedError('invalid_argument', 'Send either notification or notifications.', { details: { field: 'notification' } })
  }
  const scope = { threadId, resourceId: requireResource(call.principal, resourceId) }
  const target = { ...scope, ifIdle: { streamOptions: await readStreamOptions(call, ifIdle?.streamOptions) } }
  const inputs = withIds(several ?? (one ? [one] : []), call.idempotencyKey)
  const { sent, known } = await sendOnce(call, inputs, target)
  await Promise.all(sent.map(({ stored }) => stored))
  const results = sent.map(({ accepted, record, decision, runId, signal }, index) => {
    const result = { accepted, record, decision, ...omitUndefined({ runId, signal }) }
    return known[index] ? { ...result, duplicate: true } : result
  })
  return one === undefined ? { accepted: true, results } : results[0]
}

/** Gives each notification an id made of the idempotency key and its index, by which a repeat is recognized. */
function withIds(inputs: readonly NotificationInput[], key: string | undefined): NotificationInput[] {
  return inputs.map((input, index) => {
    const id = key === undefined || index === 0 ? key : idAt(key, index)
    checkKeyMatchesId(id, input.id)
    return id === undefined ? input : { ...input, id }
  })
}

function idAt(key: string, index: number): string {
  return `${key}:${index}`
}

/** With a key, either all notifications are new and are stored in one transaction, or they are those that were sent with it before. */
async function sendOnce(
  call: Call<unknown, unknown>, inputs: readonly NotificationInput[], target: NotificationTarget,
): Promise<{ sent: NotificationResult[]; known: boolean[] }> {
  const { agent, idempotencyKey: key } = call
  if (key === undefined) return { sent: await agent.sendNotificationSignal(inputs, target), known: [] }
  const checked = checkNotifications(inputs)
  try {
    return { sent: [await sendNotifications(agent, inputs, target, { areNew: true })].flat(), known: [] }
  } catch (error) {
    if (!isHeedError(error) || error.code !== 'id_taken') throw error
  }
  const known = await findSent(call, target, checked, key)
  return { sent: await agent.sendNotificationSignal(inputs, target), known }
}

/**
 * Which of the notifications the inbox already has. Rejects a key that was used for other notifications, or for another number of them.
 * A notification that was merged into another record has no record of its own: the inbox recognizes it.
 */
async function findSent(
  { agent }: Call<unknown, unknown>, { threadId, resourceId }: Required<InboxScope>, inputs: readonly CheckedNotification[], key: string,
): Promise<boolean[]> {
  const { threads, inbox } = agent.site()
  await threads.open()
  const store = await inbox.store()
  const find = (id = key) => store.getNotification({ threadId, resourceId, id })
  const [next, ...records] = await Promise.all([find(idAt(key, inputs.length)), ...inputs.map(({ id }) => find(id))])
  if (!next && records.every((record) => record === null)) return []
  const isReused = inputs.some((input, index) => {
    const record = records[index]
    return record ? differs(record, input) : input.dedupeKey === undefined && input.coalesceKey === undefined
  })
  if (isReused || next) throw keyReused()
  return records.map((record) => record !== null)
}

/** Whether the record with this id was made from other input. If later input was coalesced into it, the fields that remain are compared. */
function differs(record: NotificationRecord, input: CheckedNotification): boolean {
  if (input.id !== record.id) return false
  const isCoalesced = record.coalesceKey !== undefined && record.coalescedCount > 1
  return identity(record, isCoalesced) !== identity(input, isCoalesced)
}

function identity(notification: NotificationRecord | CheckedNotification, isCoalesced: boolean): string {
  const { source, kind, summary, priority = 'medium', payload, dedupeKey, coalesceKey, attributes = {}, metadata = {} } = notification
  if (isCoalesced) return orderedJSON([source, coalesceKey])
  return orderedJSON([source, kind, summary, priority, payload, dedupeKey, coalesceKey, attributes, metadata])
}

/** A caller finds the inbox of another resource empty; one that may access all resources may not change it in the name of another. */
async function openInbox(
  call: Call<unknown, unknown>, resourceId: string | undefined, use: 'read' | 'write' = 'read',
): Promise<{ store: NotificationStore; scope: { threadId: string; resourceId?: string } }> {
  const { threads, inbox } = call.agent.site()
  await threads.open()
  const scope = scopeOf(call.principal, threadIdOf(call), resourceId)
  // The inbox of another resource is empty for a caller that may not access it.
  if (use === 'write') await unlessForeign(call, threads.store.getThread(scope), () => null)
  return { store: await inbox.store(), scope }
}
