import { fail as close, type NotifyClient } from '../../bus/postgres/client.ts'
import { newId } from '../../base/ids.ts'
import { currentTimeline } from './failover/timeline.ts'
import { steps } from './schema.ts'
import { Session, type PgClient } from './sessions.ts'

/** What a server tells of itself and of the tables of a schema. Nothing is created for it. */
export interface PostgresFacts {
  version: string
  /** As a number: 180004 for 18.4. */
  versionNumber: number
  isReplica: boolean
  isReadOnly: boolean
  /** The version of the tables, undefined where there are none, and the oldest Heed that may use them. */
  schema: { version: number; codeFrom: number } | undefined
  /** The version that this Heed knows. */
  known: number
  /** What the role may not do. */
  missingRights: string[]
  /** By how many milliseconds its clock is ahead of that of this machine. */
  skewMs: number
  connections: { most: number; used: number }
  /** How long the oldest transaction is open, in seconds. */
  oldestTransaction: number
  synchronousCommit: string
  /** The standbys that commits wait for, and how many replicas are connected. */
  synchronousStandbys: string
  replicas: number
  fsync: string
  /** Undefined where the server does not tell it. */
  timeline: string | undefined
  /** Whether statements that are sent together are answered. Some poolers hang. */
  takesBatches: boolean
  /** The median of some, in milliseconds; of a commit, undefined where the role may not measure it. */
  roundTripMs: number
  commitMs: number | undefined
  /** The updates of the tables that change most, and how many of them stayed within their page (HOT). */
  updates: { all: number; hot: number }
  /** Sessions that have waited for a lock for more than a second. */
  waiting: number
  /** How full the queue of notifications is, from 0 to 1. */
  queue: number
  /** Whether a connection hears what another one says. */
  delivers: boolean
}

/** How long a notification, and the answer to statements that are sent together, may take. */
const notifyMs = 2_000
const batchMs = 2_000
const changedMost = ['heed_threads', 'heed_runs', 'heed_processes', 'heed_mailbox']
const measured = 20
/** A message in the log: its commit is flushed as others are, and nothing is stored. */
const emptyCommit = `SELECT pg_logical_emit_message(true, 'heed', '')`

export async function factsOf(connect: () => Promise<NotifyClient>, schemaName: string, quoted: string): Promise<PostgresFacts> {
  const client = await connect()
  try {
    const one = async (text: string, ...values: unknown[]) => (await client.query(text, values)).rows[0] ?? {}
    const since = Date.now()
    const { now } = await one('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now')
    const skewMs = Number(now) - (since + Date.now()) / 2
    const about = await one(`
      SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS number,
        pg_is_in_recovery() AS replica, current_setting('transaction_read_only')::boolean AS readonly,
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS most,
        (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend') AS used,
        (SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::int FROM pg_stat_activity
          WHERE xact_start IS NOT NULL AND backend_type = 'client backend' AND pid <> pg_backend_pid()) AS oldest,
        (SELECT count(*)::int FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
          AND state_change < clock_timestamp() - interval '1 second') AS waiting,
        current_setting('synchronous_commit') AS synchronous, current_setting('fsync') AS fsync, pg_notification_queue_usage() AS queue,
        current_setting('synchronous_standby_names') AS standbys, (SELECT count(*)::int FROM pg_stat_replication) AS replicas,
        (SELECT coalesce(sum(n_tup_upd), 0)::float8 FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = ANY ($2)) AS updates,
        (SELECT coalesce(sum(n_tup_hot_upd), 0)::float8 FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = ANY ($2)) AS hot,
        EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE n.nspname = $1 AND c.relname = 'heed_schema') AS made,
        EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1) AS schema`, schemaName, changedMost)
    const writes = !about.replica && !about.readonly
    const takesBatches = await answersBatch(connect)
    const missingRights = await missing(one, schemaName, Boolean(about.schema), Boolean(about.made))
    const isReadable = Boolean(about.made) && missingRights.length === 0
    const newest = `SELECT version, code_from AS "codeFrom" FROM ${quoted}.heed_schema ORDER BY version DESC LIMIT 1`
    const schema = isReadable ? await one(newest) : undefined
    return {
      version: String(about.version).split(' ', 1)[0] ?? '', versionNumber: Number(about.number), isReplica: Boolean(about.replica),
      isReadOnly: Boolean(about.readonly), known: steps.length, missingRights, skewMs: Math.round(skewMs),
      schema: schema?.version === undefined ? undefined : { version: Number(schema.version), codeFrom: Number(schema.codeFrom) },
      connections: { most: Number(about.most), used: Number(about.used) }, oldestTransaction: Number(about.oldest),
      synchronousCommit: String(about.synchronous), fsync: String(about.fsync), queue: Number(about.queue),
      synchronousStandbys: String(about.standbys), replicas: Number(about.replicas), waiting: Number(about.waiting),
      updates: { all: Number(about.updates), hot: Number(about.hot) }, takesBatches,
      timeline: writes && takesBatches ? await currentTimeline(new Session(client as unknown as PgClient, () => {})) : undefined,
      roundTripMs: await leastMs(() => client.query('SELECT 1')),
      commitMs: writes ? await leastMs(() => client.query(emptyCommit)).catch(() => undefined) : undefined,
      delivers: !about.replica && (await delivers(client, connect)),
    }
  } finally {
    await client.end().catch(() => {})
  }
}

type One = (text: string, ...values: unknown[]) => Promise<Record<string, unknown>>

/** The rights that opening the store and writing its tables need. */
async function missing(one: One, schemaName: string, hasSchema: boolean, hasTables: boolean): Promise<string[]> {
  if (!hasSchema) {
    const { may } = await one(`SELECT has_database_privilege(current_database(), 'CREATE') AS may`)
    return may ? [] : ['CREATE on the database']
  }
  const wanted = hasTables ? ['USAGE'] : ['USAGE', 'CREATE']
  const lacking: string[] = []
  for (const right of wanted) {
    const { may } = await one('SELECT has_schema_privilege($1, $2) AS may', schemaName, right)
    if (!may) lacking.push(`${right} on the schema ${schemaName}`)
  }
  if (lacking.length > 0 || !hasTables) return lacking
  const { closed } = await one(`
    SELECT string_agg(relname, ', ' ORDER BY relname) AS closed FROM pg_class
    WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND relkind = 'r' AND relname LIKE 'heed\\_%'
      AND NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'UPDATE')
        AND has_table_privilege(oid, 'DELETE'))`, schemaName)
  return typeof closed === 'string' ? [`SELECT, INSERT, UPDATE, DELETE on ${closed}`] : []
}

/** The shortest of several times: what a busy machine adds is not the network's. */
async function leastMs(act: () => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (let nth = 0; nth < measured; nth += 1) {
    const since = performance.now()
    await act()
    times.push(performance.now() - since)
  }
  return Math.min(...times)
}

/** Sends some statements in one write, as the store does, on a connection of its own: one that hangs is closed. */
async function answersBatch(connect: () => Promise<NotifyClient>): Promise<boolean> {
  const client = (await connect()) as NotifyClient & PgClient
  const session = new Session(client, () => {})
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), batchMs)))
  const statements = ['SELECT 1', 'SELECT 2', 'SELECT 3'].map((text) => ({ name: '', text, values: [] }))
  const answered = await Promise.race([session.batch(statements).then(({ length }) => length === 3, () => false), late])
  clearTimeout(timer)
  if (answered) await client.end().catch(() => {})
  else close(client)
  return answered
}

async function delivers(listener: NotifyClient, connect: () => Promise<NotifyClient>): Promise<boolean> {
  const channel = `heed_probe_${newId().replaceAll(/\W/g, '').toLowerCase().slice(0, 30)}`
  const heard = new Promise<true>((resolve) => listener.on('notification', () => resolve(true)))
  await listener.query(`LISTEN ${channel}`)
  const sender = await connect()
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), notifyMs)))
  try {
    await sender.query('SELECT pg_notify($1, $2)', [channel, ''])
    return await Promise.race([heard, late])
  } finally {
    clearTimeout(timer)
    await sender.end().catch(() => {})
  }
}
