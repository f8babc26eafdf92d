import { HeedError } from '../../base/errors.ts'
import type { Signal } from '../../signals/signal.ts'
import type { DueClaim } from '../contract/notifications.ts'
import type {
  NewSchedule, ScheduleAdvance, ScheduleFailure, ScheduleMissed, ScheduleOverlap, ScheduleQuery, ScheduleRecord, ScheduleScope,
  ScheduleStatus, ScheduleStore, ScheduleTiming,
} from '../contract/schedules.ts'
import { byteLength } from '../core/records.ts'
import { forgetSchedules, transferSchedules } from './thread-dependents.ts'
import { checkNotCompleted, completedId } from './completed-id.ts'
import { SqlDomain } from './domain.ts'
import { longestWaiting } from './notifications/dispatch.ts'
import type { SqlValue, Statements } from './statements.ts'
import { checkUsage } from './usage.ts'

interface ScheduleRow {
  id: string
  agentId: string
  threadId: string
  resourceId: string
  status: ScheduleStatus
  nextAt: number | null
  lastAt: number | null
  createdAt: number
  updatedAt: number
  overlap: ScheduleOverlap
  missed: ScheduleMissed
  lastSignalId: string | null
  error: string | null
  timing: string
  signal: string
}

const columns = `
  id, agent_id AS agentId, thread_id AS threadId, resource_id AS resourceId, status, next_at AS nextAt, last_at AS lastAt,
  created_at AS createdAt, updated_at AS updatedAt, overlap, missed, last_signal_id AS lastSignalId, error, timing, signal`

/** The statements of schedules. */
export const scheduleSql = {
  byId: `SELECT ${columns} FROM heed_schedules WHERE id = ?`,
  byIds: `SELECT ${columns} FROM heed_schedules WHERE id IN (?, ?)`,
  put: `
    INSERT INTO heed_schedules (id, agent_id, thread_id, resource_id, status, next_at, due_at, created_at, updated_at, overlap, missed,
      timing, signal)
    VALUES (?1, ?2, ?3, ?4, 'active', ?5, ?5, ?6, ?6, ?7, ?8, ?9, ?10)
    ON CONFLICT (id) DO UPDATE SET thread_id = ?3, status = 'active', next_at = ?5, due_at = ?5, updated_at = ?6, overlap = ?7,
      missed = ?8, timing = ?9, signal = ?10, error = NULL`,
  set: `UPDATE heed_schedules SET status = ?1, next_at = ?2, due_at = ?2, updated_at = ?3 WHERE id = ?4`,
  remove: `DELETE FROM heed_schedules WHERE id = ?`,
  due: `SELECT ${columns} FROM heed_schedules WHERE agent_id = ? AND due_at IS NOT NULL AND due_at <= ? ORDER BY due_at LIMIT ?`,
  take: `UPDATE heed_schedules SET due_at = ? WHERE id = ?`,
  nextDue: `SELECT min(due_at) AS at FROM heed_schedules WHERE agent_id = ? AND due_at IS NOT NULL`,
  fail: `
    UPDATE heed_schedules SET due_at = ?1, error = ?2,
      updated_at = CASE WHEN error IS NOT NULL AND updated_at >= next_at THEN updated_at ELSE ?3 END
    WHERE id = ?4`,
  advance: `
    UPDATE heed_schedules SET status = ?1, next_at = ?2, due_at = ?2, last_at = coalesce(?3, last_at),
      last_signal_id = coalesce(?4, last_signal_id), error = ?5, updated_at = ?6
    WHERE id = ?7`,
  // A late report of an occurrence does not replace that of a later one.
  noteSent: `
    UPDATE heed_schedules SET last_at = ?1, last_signal_id = ?2, error = NULL, updated_at = ?3
    WHERE id = ?4 AND (last_at IS NULL OR last_at <= ?1)`,
}

/** Schedules, in the database of the threads or in another one. */
export class SqlSchedules extends SqlDomain implements ScheduleStore {
  putSchedule(schedule: NewSchedule): Promise<ScheduleRecord> {
    return this.write((statements) => {
      lock(statements, schedule)
      const { found, id } = existing(statements, schedule)
      if (found?.status !== 'active') checkSchedules(statements, schedule)
      return put(statements, { ...schedule, id })
    })
  }

  addSchedule(schedule: NewSchedule): Promise<{ schedule: ScheduleRecord; added: boolean }> {
    return this.write((statements) => {
      lock(statements, schedule)
      const { found, id } = existing(statements, schedule)
      if (found) return { schedule: recordOf(found), added: false }
      checkSchedules(statements, schedule)
      return { schedule: put(statements, { ...schedule, id }), added: true }
    })
  }

  getSchedule(scope: ScheduleScope): Promise<ScheduleRecord | null> {
    return this.read((statements) => {
      const row = scoped(statements, scope)
      return row ? recordOf(row) : null
    })
  }

  listSchedules(query: ScheduleQuery): Promise<{ schedules: ScheduleRecord[]; more: boolean }> {
    return this.read((statements) => {
      const { resourceId, threadId, agentId, status, after, limit } = query
      const wanted = Object.entries({
        'resource_id = ?': resourceId, 'thread_id = ?': threadId, 'agent_id = ?': agentId, 'status = ?': status, 'id > ?': after,
      }).filter((entry): entry is [string, string] => entry[1] !== undefined)
      const where = wanted.length === 0 ? '' : `WHERE ${wanted.map(([condition]) => condition).join(' AND ')}`
      const values: SqlValue[] = wanted.map(([, value]) => value)
      const rows = statements.all<ScheduleRow>(`SELECT ${columns} FROM heed_schedules ${where} ORDER BY id LIMIT ?`, ...values, limit + 1)
      return { schedules: rows.slice(0, limit).map(recordOf), more: rows.length > limit }
    })
  }

  setSchedule(
    scope: ScheduleScope,
    { status, nextAt, now }: { status: ScheduleStatus; nextAt?: number; now: number },
  ): Promise<ScheduleRecord | null> {
    return this.write((statements) => {
      lock(statements, scope)
      const found = scoped(statements, scope)
      if (!found) return null
      // Another call was faster, or the schedule was replaced by an active one.
      if (status === 'active' && found.status === 'active') return recordOf(found)
      if (status === 'paused' && found.status === 'done') return recordOf(found)
      statements.execute(scheduleSql.set, status, nextAt ?? null, now, found.id)
      return recordOf(statements.one<ScheduleRow>(scheduleSql.byId, found.id) as ScheduleRow)
    })
  }

  deleteSchedule(scope: ScheduleScope): Promise<boolean> {
    return this.write((statements) => {
      lock(statements, scope)
      const found = scoped(statements, scope)
      return found !== undefined && statements.run(scheduleSql.remove, found.id) === 1
    })
  }

  claimSchedules({ now, until, limit, agentIds }: DueClaim): Promise<ScheduleRecord[]> {
    return this.write((statements) => {
      statements.lockDomain?.('schedules')
      const waiting = longestWaiting(
        agentIds, now, (agentId) => statements.one<{ at: number | null }>(scheduleSql.nextDue, agentId)?.at ?? undefined,
      )
      const share = Math.max(1, Math.ceil(limit / Math.max(1, waiting.length)))
      const taken: ScheduleRow[] = []
      // Each agent first gets an equal share; the rest of the limit goes to agents with more due schedules.
      for (const most of [share, limit]) {
        for (const agentId of waiting) {
          const rows = statements.all<ScheduleRow>(scheduleSql.due, agentId, now, Math.min(most, limit - taken.length))
          for (const { id } of rows) statements.execute(scheduleSql.take, until, id)
          taken.push(...rows)
        }
      }
      return taken.map(recordOf)
    })
  }

  advanceSchedule({ id, from, signalId, nextAt, sent, error, now }: ScheduleAdvance): Promise<boolean> {
    return this.write((statements) => {
      statements.lockDomain?.('schedules', [id])
      if (!isAsClaimed(statements, { id, from, signalId })) {
        if (sent && sendsSignal(statements.one<ScheduleRow>(scheduleSql.byId, id), signalId))
          statements.execute(scheduleSql.noteSent, sent.at, sent.signalId, now, id)
        return false
      }
      statements.execute(
        scheduleSql.advance, nextAt === undefined ? 'done' : 'active', nextAt ?? null, sent?.at ?? null, sent?.signalId ?? null,
        error ?? null, now, id,
      )
      return true
    })
  }

  failSchedule({ id, from, signalId, error, retryAt, now }: ScheduleFailure): Promise<boolean> {
    return this.write((statements) => {
      statements.lockDomain?.('schedules', [id])
      return isAsClaimed(statements, { id, from, signalId }) && statements.run(scheduleSql.fail, retryAt, error, now, id) === 1
    })
  }

  nextScheduleDue(agentIds: readonly string[]): Promise<number | undefined> {
    return this.read((statements) => {
      const times = agentIds.flatMap((agentId) => statements.one<{ at: number | null }>(scheduleSql.nextDue, agentId)?.at ?? [])
      return times.length === 0 ? undefined : times.reduce((one, other) => Math.min(one, other))
    })
  }

  forgetThreads(threadIds: readonly string[], resourceId?: string): Promise<void> {
    return this.write((statements) => {
      for (const threadId of threadIds) forgetSchedules(statements, threadId, resourceId)
    })
  }

  giveThread(threadId: string, resourceId: string): Promise<void> {
    return this.write((statements) => transferSchedules(statements, threadId, resourceId))
  }
}

/** Whether the schedule is still as it was claimed: not paused, advanced or replaced since. */
function isAsClaimed(statements: Statements, { id, from, signalId }: { id: string; from: number; signalId: string | undefined }): boolean {
  const row = statements.one<ScheduleRow>(scheduleSql.byId, id)
  return row?.status === 'active' && row.nextAt === from && sendsSignal(row, signalId)
}

/** Whether the schedule still sends this signal. */
function sendsSignal(row: ScheduleRow | undefined, signalId: string | undefined): boolean {
  return row !== undefined && (signalId === undefined || (JSON.parse(row.signal) as Signal).id === signalId)
}

function lock(statements: Statements, { id, resourceId }: ScheduleScope): void {
  statements.lockDomain?.('schedules', resourceId === undefined ? [id] : [id, completedId(id, resourceId)].toSorted())
}

/**
 * The schedule of the resource with this id, and the id under which a new one is stored. Throws if it is one of another agent, or was given
 * to another resource with its thread.
 */
function existing(statements: Statements, { id, resourceId, agentId }: NewSchedule): { found: ScheduleRow | undefined; id: string } {
  const completed = completedId(id, resourceId)
  const rows = statements.all<ScheduleRow>(scheduleSql.byIds, id, completed)
  const taken = (wanted: string) => rows.find((row) => row.id === wanted)
  const found = ownOf(rows, { id, resourceId })
  if (found && found.agentId !== agentId)
    throw new HeedError('id_taken', `Schedule '${id}' is one of agent '${found.agentId}'. Choose another id, or remove that one.`, {
      details: { id, agentId: found.agentId },
    })
  if (found) return { found, id: found.id }
  checkNotCompleted(id, resourceId)
  if (!taken(id)) return { found, id }
  if (!taken(completed)) return { found, id: completed }
  throw new HeedError('id_taken', `Schedule '${id}' belongs to another resource. Choose another id.`, { details: { id } })
}

/** Of rows with an id and its completed form, that of the resource; the id as it was chosen goes first. */
function ownOf(rows: readonly ScheduleRow[], { id, resourceId }: { id: string; resourceId: string }): ScheduleRow | undefined {
  const own = rows.filter((row) => row.resourceId === resourceId)
  return own.find((row) => row.id === id) ?? own[0]
}

/** A schedule that is done counts no longer; one that replaces it does. */
function checkSchedules(statements: Statements, { resourceId, quota, signal }: NewSchedule): void {
  checkUsage(statements, resourceId, quota, { schedules: 1, bytes: byteLength(JSON.stringify(signal)) })
}

function put(
  statements: Statements,
  { id, agentId, threadId, resourceId, nextAt, now, overlap, missed, timing, signal }: NewSchedule,
): ScheduleRecord {
  statements.execute(
    scheduleSql.put, id, agentId, threadId, resourceId, nextAt, now, overlap, missed, JSON.stringify(timing), JSON.stringify(signal),
  )
  return recordOf(statements.one<ScheduleRow>(scheduleSql.byId, id) as ScheduleRow)
}

function scoped(statements: Statements, { id, resourceId, agentId }: ScheduleScope): ScheduleRow | undefined {
  const row = resourceId === undefined
    ? statements.one<ScheduleRow>(scheduleSql.byId, id)
    : ownOf(statements.all<ScheduleRow>(scheduleSql.byIds, id, completedId(id, resourceId)), { id, resourceId })
  return row && (agentId === undefined || row.agentId === agentId) ? row : undefined
}

function recordOf({ timing, signal, nextAt, lastAt, lastSignalId, error, createdAt, updatedAt, ...row }: ScheduleRow): ScheduleRecord {
  return {
    ...row,
    timing: timingOf(JSON.parse(timing) as { at?: string }),
    signal: JSON.parse(signal) as Signal,
    createdAt: new Date(createdAt),
    updatedAt: new Date(updatedAt),
    ...(nextAt === null ? {} : { nextAt: new Date(nextAt) }),
    ...(lastAt === null ? {} : { lastAt: new Date(lastAt) }),
    ...(lastSignalId === null ? {} : { lastSignalId }),
    ...(error === null ? {} : { lastError: error }),
  }
}

function timingOf(stored: { at?: string }): ScheduleTiming {
  return stored.at === undefined ? (stored as ScheduleTiming) : { at: new Date(stored.at) }
}
