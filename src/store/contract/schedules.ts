import type { Signal } from '../../signals/signal.ts'
import type { Belongings } from './thread-dependents.ts'
import type { DueClaim } from './notifications.ts'

/**
 * What is to be sent at certain times (its conformance suite is `scheduleConformance` in `heed/testing`). Each method is one transaction. What is claimed is hidden from every other claim until `until`;
 * a claimer that dies leaves it to the next. A scope with a `resourceId` sees nothing of another resource, one with an `agentId` nothing of another agent.
 */
export interface ScheduleStore extends Belongings {
  open(): Promise<void>
  close(): Promise<void>
  /** Creates it, or replaces the one of this id. Refuses with `thread_forbidden` when that belongs to another resource, with `id_taken` when it is another agent's. */
  putSchedule(schedule: NewSchedule): Promise<ScheduleRecord>
  /** Creates it, unless one of this id is there: that stays as it is. Refuses as `putSchedule` does. */
  addSchedule(schedule: NewSchedule): Promise<{ schedule: ScheduleRecord; added: boolean }>
  getSchedule(scope: ScheduleScope): Promise<ScheduleRecord | null>
  /** By id, ascending. */
  listSchedules(query: ScheduleQuery): Promise<{ schedules: ScheduleRecord[]; more: boolean }>
  /** Pauses it, or lets it go on at `nextAt`; one that goes on already, or is done and to be paused, stays as it is. Null when there is none. */
  setSchedule(scope: ScheduleScope, change: { status: ScheduleStatus; nextAt?: number; now: number }): Promise<ScheduleRecord | null>
  deleteSchedule(scope: ScheduleScope): Promise<boolean>
  claimSchedules(claim: DueClaim): Promise<ScheduleRecord[]>
  /** The occurrence is over. False when somebody paused it or moved it on since it was claimed: then only what was `sent` is written down, and of one that was replaced nothing. */
  advanceSchedule(advance: ScheduleAdvance): Promise<boolean>
  /**
   * Tried in vain: due again at `retryAt`, with the error on it. `updatedAt` stays that of the first failure of an occurrence. Nothing, and
   * false, when somebody moved the schedule on, or replaced it, since it was claimed.
   */
  failSchedule(failure: ScheduleFailure): Promise<boolean>
  nextScheduleDue(agentIds: readonly string[]): Promise<number | undefined>
}

/** `done`: its one time is over. */
export type ScheduleStatus = 'active' | 'paused' | 'done'

/** `every` is in milliseconds. */
export type ScheduleTiming = { cron: string; timeZone?: string } | { every: number } | { at: Date }

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
  /** The occurrence that was last sent, and as which signal. */
  lastAt?: Date
  lastSignalId?: string
  lastError?: string
  createdAt: Date
  updatedAt: Date
}

/** While the thread is active. `allow`: a turn of its own afterwards. `skip`: not this time. `replace`: what is being said is cut, and goes on with it. */
export type ScheduleOverlap = 'allow' | 'skip' | 'replace'
/** What was due while nobody was there, or the schedule was late by more than a minute. `once`: one for all. `skip`: none. `all`: each, up to 100. */
export type ScheduleMissed = 'once' | 'skip' | 'all'

export interface ScheduleScope {
  id: string
  resourceId?: string
  agentId?: string
}

export interface NewSchedule extends Pick<ScheduleRecord, 'id' | 'agentId' | 'threadId' | 'resourceId' | 'timing' | 'overlap' | 'missed' | 'signal'> {
  nextAt: number
  now: number
}

export interface ScheduleQuery {
  resourceId?: string
  threadId?: string
  agentId?: string
  status?: ScheduleStatus
  limit: number
  /** The id of the last of the page before. */
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

export interface ScheduleAdvance {
  id: string
  /** The `nextAt` that it was claimed with. */
  from: number
  /** The id of its `signal` when it was claimed: one that was replaced since is another. */
  signalId?: string
  /** Absent: it is done. */
  nextAt?: number
  sent?: { at: number; signalId: string }
  error?: string
  now: number
}
