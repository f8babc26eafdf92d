import type { PostgresFacts } from '../../store/postgres/facts.ts'
import { fail, ok, reasonOf, warn, type Finding } from './finding.ts'

/** The part of a `PostgresStore` that tells of its server. */
interface OnPostgres {
  facts(): Promise<PostgresFacts>
  /** The connections that a process may have. */
  readonly most: number
}

const oldestVersion = 140_000
const skewMs = 2_000
const longTransaction = 60

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
  const found = [ok('postgres', `PostgreSQL ${facts.version} answers.`)]
  if (facts.isReplica) {
    return [...found, fail('replica', `${name} is a replica, which can not be written.`, 'Use the address of its primary.')]
  }
  if (facts.isReadOnly) {
    const remedy = 'Set default_transaction_read_only = off for the role and the database.'
    return [...found, fail('replica', `${name} accepts no writes.`, remedy)]
  }
  return [...found, ...rights(facts), ...schemaOf(facts, name), ...server(facts), ...connections(facts, store.most)]
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
