import { createHash } from 'node:crypto'
import type { ScheduleInput } from '../../agent/schedules.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import { checkTiming, cronOf, invalidSchedule } from '../../schedule/timing.ts'
import type { MessageInput, SignalInput } from '../../signals/signal.ts'
import type { ScheduleMissed, ScheduleOverlap, ScheduleRecord, ScheduleStatus } from '../../store/contract/schedules.ts'
import { isOperator, requireResource, resolveResource } from '../auth/principal.ts'
import { checkKeyMatchesId, keyReused, omitUndefined, parseDate } from '../request/fields.ts'
import { route, type Call, type Route } from '../route.ts'
import * as responses from '../schema/response-schemas.ts'
import { date, id, limit, message, object, signal, text, threadScope } from '../schema/schemas.ts'

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
const newSchedule = object(
  {
    ...threadScope, id, message, signal, cron: text, timeZone: text, every: { type: 'integer', minimum: 1 }, at: date,
    overlap: { enum: ['allow', 'skip', 'replace'] }, missed: { enum: ['once', 'skip', 'all'] },
  },
  ['threadId'],
)

export const schedules: readonly Route[] = [
  route<NewSchedule>({
    method: 'POST', path: all, summary: 'Creates a schedule, or replaces the one with the same id', response: 'json', send: true,
    responseSchema: responses.schedule, creates: true, body: newSchedule,
    handle: createSchedule,
  }),
  route<never, Owner & { threadId?: string; status?: ScheduleStatus; limit?: number; after?: string }>({
    method: 'GET', path: all, summary: 'Schedules, by id', response: 'json', read: true, responseSchema: responses.schedulePage,
    query: object({ ...threadScope, status: { enum: ['active', 'paused', 'done'] }, limit, after: id }),
    handle: ({ agent, principal, query: { resourceId, ...rest } }) =>
      agent.schedules.list({ ...rest, ...omitUndefined({ resourceId: resolveResource(principal, resourceId) }) }),
  }),
  route<never, Owner>({
    method: 'GET', path: one, summary: 'One schedule', response: 'json', read: true, query: object({ resourceId: id }),
    responseSchema: responses.schedule,
    handle: (call) => requireSchedule(call, call.query.resourceId),
  }),
  ...(['pause', 'resume'] as const).map((action) =>
    route<Owner>({
      method: 'POST', path: `${one}/${action}`, response: 'json', responseSchema: responses.schedule, body: object({ resourceId: id }),
      summary: action === 'pause' ? 'Pauses a schedule' : 'Resumes a schedule with its next occurrence',
      async handle(call) {
        const { id, resourceId } = await requireSchedule(call, call.body.resourceId)
        return call.agent.schedules[action]({ id, resourceId })
      },
    })),
  route<never, Owner>({
    method: 'DELETE', path: one, summary: 'Removes a schedule', response: 'json', query: object({ resourceId: id }),
    responseSchema: responses.removedSchedule,
    async handle(call) {
      const { id, resourceId } = await requireSchedule(call, call.query.resourceId)
      return { removed: await call.agent.schedules.remove({ id, resourceId }) }
    },
  }),
]

async function createSchedule(call: Call<NewSchedule, unknown>): Promise<object> {
  const { agent, principal, body, idempotencyKey: key } = call
  const { id, at, ...rest } = body
  const resourceId = requireResource(principal, body.resourceId)
  const optional = omitUndefined({ id, at: at === undefined ? undefined : parseDate('at', at) })
  // The agent checks that it has either a message or a signal.
  const input = { ...rest, resourceId, ...optional } as ScheduleInput
  checkKeyMatchesId(key, id)
  checkInterval(call, input)
  if (key === undefined) return agent.schedule(input)
  const keyed = { ...input, id: id ?? idFromKey(resourceId, key) }
  const { schedule, created, differs } = await agent.schedules.createOnce(keyed).catch((error: unknown) => {
    throw id === undefined && isHeedError(error) && error.code === 'id_taken' ? keyReused() : error
  })
  if (differs) throw keyReused()
  return created ? schedule : { ...schedule, duplicate: true }
}

/** A principal that is no operator can't make a schedule that runs an agent all the time. */
function checkInterval({ principal, heed, scheduleMs }: Call<unknown, unknown>, input: ScheduleInput): void {
  if (isOperator(principal)) return
  const now = heed.clock.now()
  const { timing, first } = checkTiming(input, now)
  if ('at' in timing) return
  if ('every' in timing) return checkGap('every', timing.every, scheduleMs)
  // The next two occurrences may be far apart, and later ones close together.
  const times = cronOf(timing.cron, timing.timeZone)
  let last = first
  for (let checked = 0; checked < checkedOccurrences; checked++) {
    const next = times.nextAfter(last)
    if (next === undefined) return
    checkGap('cron', next - last, scheduleMs)
    last = next
  }
}

/** Two hours of a cron for every other minute. Each costs up to a millisecond. */
const checkedOccurrences = 64

function checkGap(field: 'every' | 'cron', ms: number, scheduleMs: number): void {
  if (ms < scheduleMs) throw invalidSchedule(field, `must occur at most every ${scheduleMs} ms`)
}

/** Ids of schedules are unique in the store, keys only in a resource: two resources may use the same key. */
function idFromKey(resourceId: string, key: string): string {
  return `key-${createHash('sha256').update(JSON.stringify([resourceId, key])).digest('hex').slice(0, 32)}`
}

/** A schedule of this agent that the caller may access. */
async function requireSchedule(
  { agent, principal, params: { scheduleId = '' } }: Call<unknown, unknown>, resourceId: string | undefined,
): Promise<ScheduleRecord> {
  const schedule = await agent.schedules.get({ id: scheduleId, ...omitUndefined({ resourceId: resolveResource(principal, resourceId) }) })
  if (!schedule) throw new HeedError('not_found', `There is no schedule ${scheduleId}.`, { details: { scheduleId } })
  return schedule
}
