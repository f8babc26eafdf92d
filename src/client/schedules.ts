import type { ScheduleInput, ScheduleRecord } from '../agent/schedules.ts'
import type { ScheduleStatus } from '../store/contract/schedules.ts'
import { retryPolicy, type Connection, type OverWire } from './connection.ts'

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
  create(schedule: NewSchedule): Promise<OverWire<ScheduleRecord>> {
    return this.#connection.json(this.#path, { body: schedule, ...retryPolicy(schedule.id) })
  }

  list(
    query: { threadId?: string; resourceId?: string; status?: ScheduleStatus; limit?: number; after?: string } = {},
  ): Promise<{ schedules: Array<OverWire<ScheduleRecord>>; more: boolean }> {
    return this.#connection.json(this.#path, { query })
  }

  get({ id, resourceId }: Named): Promise<OverWire<ScheduleRecord>> {
    return this.#connection.json(this.#schedulePath(id), { query: { resourceId } })
  }

  pause({ id, ...body }: Named): Promise<OverWire<ScheduleRecord>> {
    return this.#connection.json(this.#schedulePath(id, '/pause'), { body })
  }

  /** Continues with the next occurrence from now. */
  resume({ id, ...body }: Named): Promise<OverWire<ScheduleRecord>> {
    return this.#connection.json(this.#schedulePath(id, '/resume'), { body })
  }

  async remove({ id, resourceId }: Named): Promise<boolean> {
    return (await this.#connection.json<{ removed: boolean }>(this.#schedulePath(id), { method: 'DELETE', query: { resourceId } })).removed
  }

  #schedulePath(id: string, rest = ''): string {
    return `${this.#path}/${encodeURIComponent(id)}${rest}`
  }
}
