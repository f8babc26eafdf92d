import type { PostgresFacts } from '../../store/postgres/facts.ts'
import { fail, ok, reasonOf, warn, type Finding } from './finding.ts'

/** The part of a `PostgresStore` that tells of its server. */
interface OnPostgres {
  facts(): Promise<PostgresFacts>
  /** The connections that a process may have. */
  readonly most: number
}

const oldestVersion = 140_000
/** By major version, the first that keeps what LISTEN reads. Earlier ones delete it while notifications wait. Later majors have the fix. */
const firstKeepingNotifications: Readonly<Record<number, number>> = { 14: 21, 15: 16, 16: 12, 17: 8, 18: 2 }
const skewMs = 2_000
const longTransaction = 60
const slowTripMs = 5
const slowFlushMs = 20
/** The share of updates within their page below which something is wrong, and from how many updates on that is known. */
const [lowShare, fewUpdates] = [0.1, 10_000] as const

export function isOnPostgres(store: object): store is OnPostgres {
  return 'facts' in store && typeof store.facts === 'function' && 'most' in store
}

/** Checks the server of a store on PostgreSQL. The store may be opened if nothing failed and no finding is about the schema. */
export async function checkPostgres(store: OnPostgres, name: string): Promise<Finding[]> {
  let facts: PostgresFacts
  try {
    facts = await store.facts()
  } catch (error) {
    const remedy = 'Check the address, the credentials, the database and the network.'
    return [fail('postgres', `${name} can not be used: ${reasonOf(error)}`, remedy)]
  }
  if (facts.versionNumber < oldestVersion) {
    return [fail('postgres', `PostgreSQL ${facts.version} is too old.`, `Install ${oldestVersion / 10_000} or newer.`)]
  }
  const found = [ok('postgres', `PostgreSQL ${facts.version} answers.`), ...defects(facts)]
  if (facts.isReplica) {
    return [...found, fail('replica', `${name} is a replica, which can not be written.`, 'Use the address of its primary.')]
  }
  if (facts.isReadOnly) {
    const remedy = 'Set default_transaction_read_only = off for the role and the database.'
    return [...found, fail('replica', `${name} accepts no writes.`, remedy)]
  }
  if (!facts.takesBatches) {
    const remedy = 'Connect to the server, or to a pooler in session mode.'
    return [...found, fail('batches', 'Statements that are sent together are not answered: this is a pooler that can not be used.', remedy)]
  }
  return [
    ...found, ...rights(facts), ...schemaOf(facts, name), ...server(facts), ...failover(facts), ...speed(facts),
    ...connections(facts, store.most),
  ]
}

/** Of the server, which a newer one of the same major version does not have. */
function defects({ version, versionNumber }: PostgresFacts): Finding[] {
  const [major, minor] = [Math.floor(versionNumber / 10_000), versionNumber % 10_000]
  const first = firstKeepingNotifications[major] ?? 0
  if (minor >= first) return []
  return [warn(
    'listen', `PostgreSQL ${version} may reject LISTEN with "could not access status of transaction", until it is restarted.`,
    `Install ${major}.${first} or newer. Meanwhile sweeps find the work.`,
  )]
}

/** What a failover would cost. */
function failover({ timeline, synchronousStandbys, replicas }: PostgresFacts): Finding[] {
  const found: Finding[] = []
  if (timeline === undefined) found.push(warn(
    'timeline', 'The server does not tell its timeline: a failover that loses commits is not noticed.',
    'Allow pg_walfile_name and pg_current_wal_lsn to the role, or restart all processes after a failover.',
  ))
  const connected = `${replicas} ${replicas === 1 ? 'replica is' : 'replicas are'} connected`
  if (replicas > 0 && synchronousStandbys === '') found.push(warn(
    'standbys', `${connected}, and no commit waits for one: a failover loses messages that were accepted.`,
    `If it must not, set synchronous_standby_names, as 'ANY 1 (…)' with two standbys or more.`,
  ))
  return found
}

function speed({ roundTripMs, commitMs, updates, waiting }: PostgresFacts): Finding[] {
  const found: Finding[] = []
  const flushMs = commitMs === undefined ? undefined : Math.max(0, commitMs - roundTripMs)
  const flush = flushMs === undefined ? '' : `, and a commit ${flushMs.toFixed(1)} ms more`
  const text = `A round trip takes ${roundTripMs.toFixed(1)} ms${flush}.`
  const isSlow = flushMs !== undefined && flushMs > slowFlushMs
  if (roundTripMs > slowTripMs) found.push(warn('latency', text, 'Run processes near the server: a turn takes three round trips.'))
  else if (isSlow) found.push(warn('latency', text, 'Its disk is slow to flush: give the log of the server a faster one.'))
  else found.push(ok('latency', text))
  if (waiting > 0) found.push(warn(
    'locks', `${waiting} ${waiting === 1 ? 'session has' : 'sessions have'} waited for a lock for more than a second.`,
    'Find who has it with pg_blocking_pids(): a transaction of another program, or a migration.',
  ))
  if (updates.all > fewUpdates && updates.hot / updates.all < lowShare) found.push(warn(
    'updates', `Only ${Math.round((updates.hot / updates.all) * 100)} % of the updates stay within their page (HOT).`,
    'Remove indexes that were added to tables of Heed, and leave autovacuum on.',
  ))
  return found
}

function rights({ missingRights }: PostgresFacts): Finding[] {
  if (missingRights.length === 0) return [ok('rights', 'The role has the rights that it needs.')]
  return [fail('rights', `The role lacks ${missingRights.join(' and ')}.`, 'Grant it, or use the role that owns the tables.')]
}

/** Only a problem: a schema that is as it should be is reported when the database was opened. */
function schemaOf({ schema, known, missingRights }: PostgresFacts, name: string): Finding[] {
  if (missingRights.length > 0) return []
  if (!schema) {
    const remedy = 'The first process creates them. If there should be some, correct the url.'
    return [warn('schema', `${name} has no tables of Heed.`, remedy)]
  }
  if (schema.codeFrom > known) {
    return [fail('schema', `${name} has schema ${schema.version}, and this Heed knows ${known}.`, 'Run the newer Heed that wrote it.')]
  }
  if (schema.version >= known) return []
  const remedy = 'The next process that opens it migrates it: make a backup first.'
  return [warn('schema', `${name} has schema ${schema.version} of ${known}.`, remedy)]
}

function server(facts: PostgresFacts): Finding[] {
  const found: Finding[] = []
  const skew = facts.skewMs
  if (Math.abs(skew) > skewMs) {
    found.push(warn(
      'server-clock', `The clock of the server is ${Math.abs(skew)} ms ${skew > 0 ? 'ahead of' : 'behind'} that of this machine.`,
      'Run a time service on both: schedules are sent by the clock of the machine.',
    ))
  }
  if (facts.oldestTransaction > longTransaction) {
    found.push(warn(
      'transactions', `A transaction is open for ${facts.oldestTransaction} s: meanwhile no dead row is removed.`,
      'Find it in pg_stat_activity, and set idle_in_transaction_session_timeout for its role.',
    ))
  }
  if (facts.synchronousCommit === 'off' || facts.fsync === 'off') {
    const setting = facts.fsync === 'off' ? 'fsync' : 'synchronous_commit'
    found.push(warn('durability', `${setting} is off: a crash of the server loses messages that were accepted.`, `Set ${setting} = on.`))
  }
  if (facts.queue > 0.5) {
    found.push(warn(
      'notifications', `The queue of notifications is ${Math.round(facts.queue * 100)} % full: at 100 % commits fail.`,
      'A listener stays in a transaction: find it in pg_stat_activity.',
    ))
  }
  found.push(facts.delivers ? ok('notifications', 'Notifications are delivered.') : warn(
    'notifications', 'Notifications are not delivered: this is a pooler that shares connections.',
    'Connect to the server or to a pooler in session mode, or pass a bus: new Heed({ bus: new RedisBus({ url }) })',
  ))
  return found
}

function connections({ connections: { most, used } }: PostgresFacts, perProcess: number): Finding[] {
  const free = most - used
  const about = `${used} of ${most} connections are in use, and a process of Heed takes up to ${perProcess}.`
  if (free >= perProcess) return [ok('connections', about)]
  return [warn('connections', about, 'Raise max_connections, or lower `max` of the store: calls wait for a connection, then fail.')]
}
