import { sendNotifications, type NotificationTarget } from '../../agent/notifications.ts'
import { checkNotifications, type CheckedNotification, type NotificationInput } from '../../inbox/input.ts'
import type { NotificationResult } from '../../inbox/result.ts'
import type { InboxScope, MarkedStatus, NotificationPriority, NotificationStatus, NotificationStore } from '../../store/contract/notifications.ts'
import { longestSearch } from '../../store/contract/notification-query.ts'
import { notificationStatuses } from '../../store/contract/notification-states.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import { checkKey, keyReused } from '../request/idempotency.ts'
import { isOther } from './notification-essence.ts'
import { neededResource } from '../auth/principal.ts'
import { route, type Call, type Route } from '../route.ts'
import { optionsFrom } from '../request/run-options.ts'
import { anything, closed, id, ids, limit, object, record, text, threadScope } from '../schema/schemas.ts'
import { given } from './threads.ts'
import { scopeOf } from './watching.ts'

interface Sent {
  threadId: string
  resourceId?: string
  notification?: NotificationInput
  notifications?: NotificationInput[]
  ifIdle?: { streamOptions?: Record<string, unknown> }
}

interface Listing {
  resourceId?: string
  status?: NotificationStatus[]
  priority?: NotificationPriority[]
  source?: string
  kind?: string
  search?: string
  limit?: number
  after?: string
}

const priority = { enum: ['low', 'medium', 'high', 'urgent'] }
const notification = closed(
  { id, source: text, kind: text, summary: text, priority, payload: anything, dedupeKey: text, coalesceKey: text, attributes: record, metadata: record },
  ['source', 'kind', 'summary'],
)
const inThread = '/agents/:agentId/threads/:threadId/notifications'

/** What happened elsewhere: sent to an agent's inbox, read there, and put away. */
export const notifications: readonly Route[] = [
  route<Sent>({
    method: 'POST', path: '/agents/:agentId/notifications', summary: 'One or several notifications, into the inbox of a thread', answer: 'json', send: true,
    body: closed({ ...threadScope, notification, notifications: { type: 'array', items: notification, minItems: 1, maxItems: 1_000 }, ifIdle: closed({ streamOptions: record }) }, ['threadId']),
    async handle(call) {
      const { threadId, resourceId, notification: one, notifications: several, ifIdle } = call.body
      if ((one === undefined) === (several === undefined)) {
        throw new HeedError('invalid_argument', 'Send a notification, or a list of notifications, and not both.', { details: { field: 'notification' } })
      }
      const target = { threadId, resourceId: neededResource(call.principal, resourceId), ifIdle: { streamOptions: await optionsFrom(call, ifIdle?.streamOptions ?? {}) } }
      const inputs = keyed(several ?? (one ? [one] : []), call.idempotencyKey)
      const { sent, known } = await sendOnce(call, inputs, target)
      await Promise.all(sent.map(({ stored }) => stored))
      const results = sent.map((result, index) => (known[index] ? { ...answered(result), duplicate: true } : answered(result)))
      return one === undefined ? { accepted: true, results } : results[0]
    },
  }),
  route<never, Listing>({
    method: 'GET', path: inThread, summary: 'The notifications of a thread, newest first, and how many there are of each status', answer: 'json', read: true,
    query: object({ resourceId: id, status: list(notificationStatuses), priority: list(priority.enum), source: text, kind: text, search: { ...text, maxLength: longestSearch }, limit, after: id }),
    async handle(call) {
      const { resourceId: _, limit: most = 100, ...rest } = call.query
      const { store, scope } = await inbox(call, call.query.resourceId)
      return { ...(await store.listNotifications({ ...scope, ...rest, limit: most })), counts: await store.countNotifications(scope) }
    },
  }),
  route<never, { resourceId?: string }>({
    method: 'GET', path: `${inThread}/:notificationId`, summary: 'One notification, with its payload', answer: 'json', read: true, query: object({ resourceId: id }),
    async handle(call) {
      const { notificationId = '' } = call.params
      const { store, scope } = await inbox(call, call.query.resourceId)
      const found = await store.getNotification({ ...scope, id: notificationId })
      if (!found) throw new HeedError('not_found', `The thread has no notification ${notificationId}.`, { details: { notificationId } })
      return found
    },
  }),
  route<{ resourceId?: string; ids: string[]; status: MarkedStatus }>({
    method: 'POST', path: `${inThread}/mark`, summary: 'Marks notifications as seen, dismissed or archived', answer: 'json',
    body: closed({ resourceId: id, ids, status: { enum: ['seen', 'dismissed', 'archived'] } }, ['ids', 'status']),
    async handle(call) {
      const { store, scope } = await inbox(call, call.body.resourceId, 'write')
      return { notifications: await store.markNotifications(scope, call.body.ids, call.body.status, call.heed.clock.now()) }
    },
  }),
  route<{ resourceId?: string; ids: string[] }>({
    method: 'POST', path: `${inThread}/retry`, summary: 'Sends again what could not be delivered', answer: 'json', body: closed({ resourceId: id, ids }, ['ids']),
    async handle(call) {
      const { store, scope } = await inbox(call, call.body.resourceId, 'write')
      return { retried: await store.retryNotifications(scope, call.body.ids, call.heed.clock.now()) }
    },
  }),
]

function list(values: readonly unknown[]): { type: 'array'; items: { enum: readonly unknown[] }; maxItems: number } {
  return { type: 'array', items: { enum: values }, maxItems: 20 }
}

/** The same key again is the same notifications, each under its place in the list. */
function keyed(inputs: readonly NotificationInput[], key: string | undefined): NotificationInput[] {
  return inputs.map((input, index) => {
    const id = key === undefined || index === 0 ? key : placed(key, index)
    checkKey(id, input.id)
    return id === undefined ? input : { ...input, id }
  })
}

function placed(key: string, index: number): string {
  return `${key}:${index}`
}

/** Under a key they are new, all of them in one transaction, or those that were sent under it before. */
async function sendOnce(call: Call<unknown, unknown>, inputs: readonly NotificationInput[], target: NotificationTarget): Promise<{ sent: NotificationResult[]; known: boolean[] }> {
  const { agent, idempotencyKey: key } = call
  if (key === undefined) return { sent: await agent.sendNotificationSignal(inputs, target), known: [] }
  const checked = checkNotifications(inputs)
  try {
    return { sent: [await sendNotifications(agent, inputs, target, { areNew: true })].flat(), known: [] }
  } catch (error) {
    if (!isHeedError(error) || error.code !== 'id_taken') throw error
  }
  const known = await sentBefore(call, target, checked, key)
  return { sent: await agent.sendNotificationSignal(inputs, target), known }
}

/**
 * Which of these the thread has under their ids. Refuses a key that was used for others, or for more or fewer of them. What was counted on another
 * record has none of its own, and is known to the inbox.
 */
async function sentBefore({ agent }: Call<unknown, unknown>, { threadId, resourceId }: Required<InboxScope>, inputs: readonly CheckedNotification[], key: string): Promise<boolean[]> {
  const { threads, inbox } = agent.site()
  await threads.open()
  const store = await inbox.store()
  const find = (id = key) => store.getNotification({ threadId, resourceId, id })
  const [further, ...found] = await Promise.all([find(placed(key, inputs.length)), ...inputs.map(({ id }) => find(id))])
  if (!further && found.every((record) => record === null)) return []
  const reused = inputs.some((input, index) => {
    const record = found[index]
    return record ? isOther(record, input) : input.dedupeKey === undefined && input.coalesceKey === undefined
  })
  if (reused || further) throw keyReused()
  return found.map((record) => record !== null)
}

/** Who reads in the inbox of another resource finds nothing there; who writes is refused. */
async function inbox(
  { agent, principal, params: { threadId = '' } }: Call<unknown, unknown>, resourceId: string | undefined, use: 'read' | 'write' = 'read',
): Promise<{ store: NotificationStore; scope: { threadId: string; resourceId?: string } }> {
  const { threads, inbox } = agent.site()
  await threads.open()
  const scope = scopeOf(principal, threadId, resourceId)
  if (use === 'write') await threads.store.getThread(scope)
  return { store: await inbox.store(), scope }
}

function answered({ accepted, record: stored, decision, runId, signal }: NotificationResult): Record<string, unknown> {
  return { accepted, record: stored, decision, ...given({ runId, signal }) }
}
