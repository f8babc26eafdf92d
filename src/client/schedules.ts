import type { ScheduleInput, ScheduleRecord } from '../agent/schedules.ts'
import type { ScheduleStatus } from '../store/contract/schedules.ts'
import { onceBy, type Connection } from './connection.ts'
import type { OverWire } from './wire.ts'

/** `resourceId` may be left out where the server knows it from who asks. */
export type NewSchedule = Omit<ScheduleInput, 'resourceId'> & { resourceId?: string }

interface Named {
  id: string
  resourceId?: string
}

/** What is sent to the threads of an agent at certain times. */
export class SchedulesClient {
  readonly #connection: Connection
  readonly #path: string

  /** @internal */
  constructor(connection: Connection, path: string) {
    this.#connection = connection
    this.#path = `${path}/schedules`
  }

  /** The id of one that is there replaces it. */
  create(schedule: NewSchedule): Promise<OverWire<ScheduleRecord>> {
    return this.#connection.json(this.#path, { body: schedule, ...onceBy(schedule.id) })
  }

  list(query: { threadId?: string; resourceId?: string; status?: ScheduleStatus; limit?: number; after?: string } = {}): Promise<{ schedules: Array<OverWire<ScheduleRecord>>; more: boolean }> {
    return this.#connection.json(this.#path, { query })
  }

  get({ id, resourceId }: Named): Promise<OverWire<ScheduleRecord>> {
    return this.#connection.json(this.#at(id), { query: { resourceId } })
  }

  pause({ id, ...body }: Named): Promise<OverWire<ScheduleRecord>> {
    return this.#connection.json(this.#at(id, '/pause'), { body })
  }

  /** Goes on with the next occurrence from now. */
  resume({ id, ...body }: Named): Promise<OverWire<ScheduleRecord>> {
    return this.#connection.json(this.#at(id, '/resume'), { body })
  }

  async remove({ id, resourceId }: Named): Promise<boolean> {
    return (await this.#connection.json<{ removed: boolean }>(this.#at(id), { method: 'DELETE', query: { resourceId } })).removed
  }

  #at(id: string, rest = ''): string {
    return `${this.#path}/${encodeURIComponent(id)}${rest}`
  }
}
