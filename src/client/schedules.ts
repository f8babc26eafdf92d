import type { ScheduleInput, ScheduleRecord } from '../agent/schedules.ts'
import { checkNames } from '../base/arguments.ts'
import type { ScheduleStatus } from '../store/contract/schedules.ts'
import { retryPolicy, type Connection, type OverWire } from './connection.ts'
import { scopeFields } from './fields.ts'

/** `resourceId` is optional if the principal has one resource only. */
export type NewSchedule = Omit<ScheduleInput, 'resourceId'> & { resourceId?: string }

interface Named {
  id: string
  resourceId?: string
}

/** The schedules of an agent. */
export class SchedulesClient {
  readonly #connection: Connection
  readonly #path: string

  /** @internal */
  constructor(connection: Connection, path: string) {
    this.#connection = connection
    this.#path = `${path}/schedules`
  }

  /** Replaces a schedule with the same id. */
  async create(schedule: NewSchedule): Promise<OverWire<ScheduleRecord>> {
    checkNames('create()', schedule, scheduleFields)
    return this.#connection.json(this.#path, { body: schedule, ...retryPolicy(schedule.id) })
  }

  async list(
    query: { threadId?: string; resourceId?: string; status?: ScheduleStatus; limit?: number; after?: string } = {},
  ): Promise<{ schedules: Array<OverWire<ScheduleRecord>>; more: boolean }> {
    checkNames('list()', query, [...scopeFields, 'status', 'limit', 'after'])
    return this.#connection.json(this.#path, { query })
  }

  async get(schedule: Named): Promise<OverWire<ScheduleRecord>> {
    const { id, resourceId } = named('get()', schedule)
    return this.#connection.json(this.#schedulePath(id), { query: { resourceId } })
  }

  async pause(schedule: Named): Promise<OverWire<ScheduleRecord>> {
    const { id, ...body } = named('pause()', schedule)
    return this.#connection.json(this.#schedulePath(id, '/pause'), { body })
  }

  /** Continues with the next occurrence from now. */
  async resume(schedule: Named): Promise<OverWire<ScheduleRecord>> {
    const { id, ...body } = named('resume()', schedule)
    return this.#connection.json(this.#schedulePath(id, '/resume'), { body })
  }

  async remove(schedule: Named): Promise<boolean> {
    const { id, resourceId } = named('remove()', schedule)
    return (await this.#connection.json<{ removed: boolean }>(this.#schedulePath(id), { method: 'DELETE', query: { resourceId } })).removed
  }

  #schedulePath(id: string, rest = ''): string {
    return `${this.#path}/${encodeURIComponent(id)}${rest}`
  }
}

const scheduleFields = ['id', ...scopeFields, 'message', 'signal', 'cron', 'timeZone', 'every', 'at', 'overlap', 'missed']

function named(method: string, schedule: Named): Named {
  checkNames(method, schedule, ['id', 'resourceId'])
  return schedule
}
