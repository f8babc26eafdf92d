import type { Signal } from '../../signals/signal.ts'
import type { DueClaim } from './notifications.ts'
import type { Quota } from './usage.ts'
import type { ThreadDependents } from './thread-row.ts'

/**
 * Sends at given times (its conformance suite is `scheduleConformance` in `heed/testing`). Each method is one transaction. A claimed
 * schedule is hidden from every other claim until `until`; if the claimer dies, the next claim gets it. A scope with a `resourceId` never
 * sees another resource, one with an `agentId` never another agent.
 */
export interface ScheduleStore extends ThreadDependents {
  open(): Promise<void>
  close(): Promise<void>
  /**
   * Creates the schedule, or replaces the one of the resource with this id. Rejects with `id_taken` when that belongs to another agent.
   * Where another resource has the id, the schedule gets it with a suffix, and scopes with its `resourceId` find it by both.
   */
  putSchedule(schedule: NewSchedule): Promise<ScheduleRecord>
  /** Creates the schedule, unless one with this id exists: that is not changed. Rejects as `putSchedule` does. */
  addSchedule(schedule: NewSchedule): Promise<{ schedule: ScheduleRecord; added: boolean }>
  getSchedule(scope: ScheduleScope): Promise<ScheduleRecord | null>
  /** By id, ascending. */
  listSchedules(query: ScheduleQuery): Promise<{ schedules: ScheduleRecord[]; more: boolean }>
  /** Pauses it, or resumes it at `nextAt`. Has no effect if it is active already, or done and to be paused. Null if it doesn't exist. */
  setSchedule(scope: ScheduleScope, change: { status: ScheduleStatus; nextAt?: number; now: number }): Promise<ScheduleRecord | null>
  deleteSchedule(scope: ScheduleScope): Promise<boolean>
  claimSchedules(claim: DueClaim): Promise<ScheduleRecord[]>
  /**
   * Ends the occurrence. False if the schedule was paused or advanced since it was claimed: then only `sent` is stored. If it was replaced,
   * nothing is stored.
   */
  advanceSchedule(advance: ScheduleAdvance): Promise<boolean>
  /**
   * The send failed: the schedule is due again at `retryAt`, and stores the error. `updatedAt` stays that of the first failure of the
   * occurrence. False without effect if the schedule was advanced or replaced since it was claimed.
   */
  failSchedule(failure: ScheduleFailure): Promise<boolean>
  nextScheduleDue(agentIds: readonly string[]): Promise<number | undefined>
}

/** `done`: it had one occurrence, which has ended. */
export type ScheduleStatus = 'active' | 'paused' | 'done'

/** `every` is in milliseconds. */
export type ScheduleTiming = { cron: string; timeZone?: string } | { every: number } | { at: Date }

/** A schedule as it is stored. */
export interface ScheduleRecord {
  id: string
  agentId: string
  threadId: string
  resourceId: string
  timing: ScheduleTiming
  overlap: ScheduleOverlap
  missed: ScheduleMissed
  signal: Signal
  status: ScheduleStatus
  nextAt?: Date
  /** The time and the signal of the occurrence that was last sent. */
  lastAt?: Date
  lastSignalId?: string
  lastError?: string
  createdAt: Date
  updatedAt: Date
}

/** On an active thread. `allow`: a queued run afterwards. `skip`: no send. `replace`: interrupts the run, which continues with it. */
export type ScheduleOverlap = 'allow' | 'skip' | 'replace'
/**
 * For occurrences that were due while no process ran, or more than a minute ago. `once`: one send for all of them. `skip`: none. `all`: one
 * send for each, up to 100.
 */
export type ScheduleMissed = 'once' | 'skip' | 'all'

/** A schedule, within a resource and an agent if they are named. */
export interface ScheduleScope {
  id: string
  resourceId?: string
  agentId?: string
}

/** A schedule that is to be stored. */
export interface NewSchedule extends Pick<
  ScheduleRecord, 'id' | 'agentId' | 'threadId' | 'resourceId' | 'timing' | 'overlap' | 'missed' | 'signal'
> {
  nextAt: number
  quota?: Quota
  now: number
}

/** Which schedules a list has, by id. */
export interface ScheduleQuery {
  resourceId?: string
  threadId?: string
  agentId?: string
  status?: ScheduleStatus
  limit: number
  /** The last id of the previous page. */
  after?: string
}

/** An occurrence that could not be sent. `from` and `signalId` are as in `ScheduleAdvance`. */
export interface ScheduleFailure {
  id: string
  from: number
  signalId?: string
  error: string
  retryAt: number
  now: number
}

/** The step of a schedule from one occurrence to the next. */
export interface ScheduleAdvance {
  id: string
  /** The `nextAt` that it was claimed with. */
  from: number
  /** The id of its `signal` when it was claimed: a replaced schedule has another. */
  signalId?: string
  /** If absent, the schedule is done. */
  nextAt?: number
  sent?: { at: number; signalId: string }
  error?: string
  now: number
}
