import { HeedError } from '../../../base/errors.ts'
import type { Rewound } from '../../contract/threads.ts'
import type { WireStatement } from '../wire/batch.ts'
import type { Dialect } from '../dialect.ts'
import { sqlState } from '../errors.ts'
import type { Session } from '../sessions.ts'

/**
 * The history of a PostgreSQL server has a number, its timeline, which grows when a replica is promoted and when a backup is restored. The
 * new timeline may lack the last commits of the one before. A process that goes on as if they were there would use leases that were granted
 * in them; and one that is granted the same lease again could not tell its two runs apart. So each write checks the timeline, and each
 * timeline has epochs of its own, above all that were granted before it.
 */
export interface Timeline {
  /** Undefined where the server does not tell it: then nothing is checked. */
  readonly id: string | undefined
  /** The lowest epoch that is granted on it. */
  readonly floor: number
  /** For so many milliseconds no lease is granted, from when this was read. */
  readonly restMs: number
}

/** How many epochs of a thread a timeline has room for. */
const epochsEach = 2 ** 32
/** How long a process relies on its lease, where no heartbeat says it. */
const usualLeaseMs = 10_000

/** More changes than an inbox may lose. A reader finds what changed after so many numbers in one call. */
const inboxJump = 2 ** 18

/**
 * The table of the timelines on which the tables were used. The numbers of an inbox, which the cursors of its readers have, jump with its
 * first change on a timeline.
 */
export const timelineTable = `
  CREATE TABLE heed_timelines (id text COLLATE "C" PRIMARY KEY, floor bigint NOT NULL, since bigint NOT NULL);
  ALTER TABLE heed_notification_changes ADD COLUMN timelines bigint NOT NULL DEFAULT 0;
  CREATE OR REPLACE FUNCTION heed_change(resource text) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    INSERT INTO heed_notification_changes AS c (resource_id, last, timelines)
      SELECT resource, 1 + ${inboxJump} * greatest(0, count(*) - 1), count(*) FROM heed_timelines
    ON CONFLICT (resource_id) DO UPDATE SET
      last = c.last + CASE WHEN c.timelines IN (0, excluded.timelines) THEN 1 ELSE ${inboxJump} END, timelines = excluded.timelines
    RETURNING last
  $$;
`

/** Functions that every role may call. */
const current = 'substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)'
const serverTime = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'
/** That of the logarithm of 0. No statement of a store has logarithms. */
const otherTimeline = '2201E'

/** An expression that fails where the server is on another timeline; undefined where the server tells none. */
export function onTimeline({ id }: Timeline): string | undefined {
  return id === undefined ? undefined : `ln(CASE WHEN ${current} = '${id}' THEN 1 ELSE 0 END)`
}

/** Whether a statement failed since the server is on another timeline. */
export function isOtherTimeline(error: unknown): boolean {
  return sqlState(error) === otherTimeline
}

export const replaced = 'another server has replaced it'

const plain = (text: string, ...values: string[]): WireStatement => ({ name: '', text, values })

/** The number of the server's timeline in eight digits. A server that has no such function, or does not allow it, tells none. */
export async function currentTimeline(session: Session): Promise<string | undefined> {
  try {
    const [answer] = await session.batch([plain(`SELECT ${current} AS id`)])
    const id = answer?.rows[0]?.id
    return typeof id === 'string' && /^[0-9A-F]{8}$/.test(id) ? id : undefined
  } catch (error) {
    if (['42883', '42501', '0A000'].includes(sqlState(error) ?? '')) return undefined
    // A replica that is about to be promoted.
    if (sqlState(error) === '55000') throw notWritable('it is in recovery')
    throw error
  }
}

/** The error of a server that must not be written to. The same may succeed on another connection. */
export function notWritable(why: string): Error {
  return Object.assign(new Error(why), { code: '25006', severity: 'ERROR' })
}

/**
 * Reads the timeline of the server, and records it if no process has done so. Leases of the timeline before may be lost with its last
 * commits, and their owners not know it yet: on a new timeline none is granted for as long as a process relies on its lease. `before`: the
 * last that this process knows. A server on an earlier one was replaced.
 */
export async function enterTimeline(session: Session, { schema }: Dialect, before?: string): Promise<Timeline> {
  const id = await currentTimeline(session)
  if (before !== undefined && (id === undefined || id < before)) throw notWritable(replaced)
  if (id === undefined) return { id, floor: 0, restMs: 0 }
  const table = `${schema}.heed_timelines`
  // Tables that were copied to a server on a lower timeline have epochs of higher ones.
  const find = plain(`
    SELECT (SELECT max(floor) FROM ${table}) AS floor, ${serverTime} - since AS age,
      (SELECT coalesce(max(length), ${usualLeaseMs}) FROM ${schema}.heed_processes) AS lease
    FROM ${table} WHERE id = $1`, id)
  const add = plain(`
    INSERT INTO ${table} (id, floor, since)
    SELECT $1, coalesce(max(floor) + ${epochsEach}, 0), CASE WHEN count(*) = 0 THEN 0 ELSE ${serverTime} END FROM ${table}
    ON CONFLICT DO NOTHING`, id)
  const check = plain(`SELECT ${onTimeline({ id, floor: 0, restMs: 0 })}`)
  const [, known] = await session.batch([check, find])
  const [found] = known?.rows.length ? known.rows : ((await session.batch([check, add, find]))[2]?.rows ?? [])
  const { floor, age, lease } = found as { floor: number; age: number; lease: number }
  return { id, floor, restMs: Math.min(lease, Math.max(0, lease - age)) }
}

/** The error of a write that was requested before the process knew of the new timeline. Nothing of it is stored. */
export function rewoundFailure(name: string): HeedError {
  const why = `The database ${name} was replaced by one that may lack its last commits. Nothing of this call was stored.`
  return new HeedError('store_rewound', `${why} Call again: leases from before count no more.`, { retryable: true })
}

export function rewoundTo(timeline: Timeline, before: Timeline, lost: number): Rewound {
  return { floor: timeline.floor, restMs: timeline.restMs, lost, from: before.id ?? '', to: timeline.id ?? '' }
}
