import { createHash } from 'node:crypto'
import type { ScheduleInput } from '../../agent/schedules.ts'
import type { MessageInput, SignalInput } from '../../signals/signal.ts'
import type { ScheduleMissed, ScheduleOverlap, ScheduleRecord, ScheduleStatus } from '../../store/contract/schedules.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import { neededResource, resourceOf } from '../auth/principal.ts'
import { route, type Call, type Route } from '../route.ts'
import { closed, date, id, limit, message, object, signal, text, threadScope } from '../schema/schemas.ts'
import { checkKey, keyReused } from '../request/idempotency.ts'
import { dateOf } from './approvals.ts'
import { given } from './threads.ts'

interface NewSchedule {
  id?: string
  threadId: string
  resourceId?: string
  message?: MessageInput
  signal?: SignalInput
  cron?: string
  timeZone?: string
  every?: number
  at?: string
  overlap?: ScheduleOverlap
  missed?: ScheduleMissed
}

interface Owner {
  resourceId?: string
}

const all = '/agents/:agentId/schedules'
const one = `${all}/:scheduleId`

/** What is sent at certain times. */
export const schedules: readonly Route[] = [
  route<NewSchedule>({
    method: 'POST', path: all, summary: 'A schedule; the id of one that is there replaces it', answer: 'json', send: true,
    body: closed(
      {
        ...threadScope, id, message, signal, cron: text, timeZone: text, every: { type: 'integer', minimum: 1 }, at: date,
        overlap: { enum: ['allow', 'skip', 'replace'] }, missed: { enum: ['once', 'skip', 'all'] },
      },
      ['threadId'],
    ),
    async handle({ agent, principal, body: { id: name, resourceId, at, ...rest }, idempotencyKey }) {
      // Which of message and signal is there, the agent checks.
      const input = { ...rest, resourceId: neededResource(principal, resourceId), ...given({ id: name, at: at === undefined ? undefined : dateOf('at', at) }) } as ScheduleInput
      checkKey(idempotencyKey, name)
      if (idempotencyKey === undefined) return agent.schedule(input)
      const { schedule, created, differs } = await agent.schedules.createOnce({ ...input, id: name ?? idOfKey(input.resourceId, idempotencyKey) }).catch((error: unknown) => {
        throw name === undefined && isHeedError(error) && error.code === 'id_taken' ? keyReused() : error
      })
      if (differs) throw keyReused()
      return created ? schedule : { ...schedule, duplicate: true }
    },
  }),
  route<never, Owner & { threadId?: string; status?: ScheduleStatus; limit?: number; after?: string }>({
    method: 'GET', path: all, summary: 'Schedules by their id', answer: 'json', read: true,
    query: object({ ...threadScope, status: { enum: ['active', 'paused', 'done'] }, limit, after: id }),
    handle: ({ agent, principal, query: { resourceId, ...rest } }) => agent.schedules.list({ ...rest, ...given({ resourceId: resourceOf(principal, resourceId) }) }),
  }),
  route<never, Owner>({
    method: 'GET', path: one, summary: 'One schedule', answer: 'json', read: true, query: object({ resourceId: id }),
    handle: (call) => scheduleOf(call, call.query.resourceId),
  }),
  ...(['pause', 'resume'] as const).map((action) =>
    route<Owner>({
      method: 'POST', path: `${one}/${action}`, summary: action === 'pause' ? 'Stops a schedule for now' : 'Lets a schedule go on with its next occurrence', answer: 'json', body: closed({ resourceId: id }),
      async handle(call) {
        const { id: name, resourceId } = await scheduleOf(call, call.body.resourceId)
        return call.agent.schedules[action]({ id: name, resourceId })
      },
    })),
  route<never, Owner>({
    method: 'DELETE', path: one, summary: 'Removes a schedule', answer: 'json', query: object({ resourceId: id }),
    async handle(call) {
      const { id: name, resourceId } = await scheduleOf(call, call.query.resourceId)
      return { removed: await call.agent.schedules.remove({ id: name, resourceId }) }
    },
  }),
]

/** Ids of schedules are the whole store's, a key is its sender's own: two resources may take the same. */
function idOfKey(resourceId: string, key: string): string {
  return `key-${createHash('sha256').update(JSON.stringify([resourceId, key])).digest('hex').slice(0, 32)}`
}

/** One of this agent that the caller may reach. */
async function scheduleOf({ agent, principal, params: { scheduleId = '' } }: Call<unknown, unknown>, resourceId: string | undefined): Promise<ScheduleRecord> {
  const found = await agent.schedules.get({ id: scheduleId, ...given({ resourceId: resourceOf(principal, resourceId) }) })
  if (!found) throw new HeedError('not_found', `There is no schedule ${scheduleId}.`, { details: { scheduleId } })
  return found
}
