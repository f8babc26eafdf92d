import { checkQuota, type Added, type Quota, type Usage } from '../contract/usage.ts'
import type { Statements } from './statements.ts'

const size = (...columns: string[]) => columns.map((column) => `coalesce(length(CAST(${column} AS BLOB)), 0)`).join(' + ')

const sizes = {
  threads: (row: string) => size(`${row}.title`, `${row}.metadata`),
  messages: (row: string) => size(`${row}.content`),
  mailbox: (row: string) => size(`${row}.rows`, `${row}.options`),
  runs: (row: string) => size(`${row}.options`),
  workflow_runs: (row: string) => size(`${row}.head`, `${row}.input`),
  workflow_steps: (row: string) => size(`${row}.content`),
  notifications: (row: string) => size(`${row}.summary`, `${row}.attributes`, `${row}.metadata`, `${row}.payload`),
  schedules: (row: string) => size(`${row}.signal`),
  watches: (row: string) => size(`${row}.description`, `${row}.criteria`, `${row}.result_schema`),
  working_memory: (row: string) => size(`${row}.value`),
}

/** The row of the total: no resource has an empty id. */
const total = ''

const add = (resource: string, change: string) => `
  UPDATE heed_usage SET bytes = bytes + ${change} WHERE resource_id IN (${resource}, '${total}');`

const know = (resource: string) => `
  INSERT INTO heed_usage (resource_id, threads, bytes) VALUES (${resource}, 0, 0) ON CONFLICT DO NOTHING;`

const forget = (resource: string) => `
  DELETE FROM heed_usage WHERE resource_id = ${resource} AND resource_id <> '${total}' AND threads = 0 AND bytes = 0;`

/** Counts the rows of a table that belong to a thread in the bytes of the thread. Rows of a deleted thread are no longer counted. */
function ofThread(table: 'messages' | 'mailbox' | 'runs' | 'workflow_runs' | 'workflow_steps', columns: string): string {
  // Rows of messages are added by code that writes the thread anyway; most others are small.
  const large = table !== 'messages'
  const bytes = sizes[table]
  const when = (row: string) => (large ? ` WHEN ${bytes(row)} > 512` : '')
  const counted = (row: string) => (large ? `iif(${bytes(row)} > 512, ${bytes(row)}, 0)` : bytes(row))
  const added = `
  CREATE TRIGGER heed_${table}_size_added AFTER INSERT ON heed_${table}${when('new')} BEGIN
    UPDATE heed_threads SET bytes = bytes + ${bytes('new')} WHERE key = new.thread;
  END;`
  return `${large ? added : ''}
  CREATE TRIGGER heed_${table}_size_changed AFTER UPDATE OF ${columns} ON heed_${table}
  WHEN ${counted('new')} <> ${counted('old')} BEGIN
    UPDATE heed_threads SET bytes = bytes + ${counted('new')} - (${counted('old')}) WHERE key = new.thread;
  END;
  CREATE TRIGGER heed_${table}_size_removed AFTER DELETE ON heed_${table}${when('old')} BEGIN
    UPDATE heed_threads SET bytes = bytes - (${bytes('old')}) WHERE key = old.thread;
  END;`
}

/** Counts the rows of a table that name their resource. */
function ofResource(table: 'notifications' | 'schedules' | 'watches', columns: string): string {
  const bytes = sizes[table]
  return `
  CREATE TRIGGER heed_${table}_size_added AFTER INSERT ON heed_${table} BEGIN
    ${know('new.resource_id')}
    ${add('new.resource_id', bytes('new'))}
  END;
  CREATE TRIGGER heed_${table}_size_changed AFTER UPDATE OF ${columns}, resource_id ON heed_${table}
  WHEN new.resource_id <> old.resource_id OR ${bytes('new')} <> ${bytes('old')} BEGIN
    ${know('new.resource_id')}
    ${add('old.resource_id', `-(${bytes('old')})`)}
    ${add('new.resource_id', bytes('new'))}
    ${forget('old.resource_id')}
  END;
  CREATE TRIGGER heed_${table}_size_removed AFTER DELETE ON heed_${table} BEGIN
    ${add('old.resource_id', `-(${bytes('old')})`)}
    ${forget('old.resource_id')}
  END;`
}

const memoryThread = (row: string) => `CAST(substr(${row}.owner, 3) AS INTEGER)`
const memoryResource = (row: string) => `substr(${row}.owner, 3)`

/**
 * What is stored of each resource, counted by triggers, in the transaction of the write, whichever process makes it. Version 3 of the
 * schema. The code that adds messages writes their bytes to the thread itself: a trigger for each would cost more. Rows of the mailbox and
 * of runs count if they are larger than 512 bytes: most of them only name messages.
 */
export const usageSchema = `
  CREATE TABLE heed_usage (
    -- Empty for the total.
    resource_id TEXT PRIMARY KEY,
    threads INTEGER NOT NULL,
    bytes INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  -- Of the thread and of its rows in other tables.
  ALTER TABLE heed_threads ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX heed_schedules_open ON heed_schedules (resource_id) WHERE status <> 'done';

  UPDATE heed_threads SET bytes = ${sizes.threads('heed_threads')}
    + coalesce((SELECT sum(${sizes.messages('m')}) FROM heed_messages m WHERE m.thread = heed_threads.key), 0)
    + coalesce((SELECT sum(${sizes.mailbox('m')}) FROM heed_mailbox m WHERE m.thread = heed_threads.key AND ${sizes.mailbox('m')} > 512), 0)
    + coalesce((SELECT sum(${sizes.runs('r')}) FROM heed_runs r WHERE r.thread = heed_threads.key AND ${sizes.runs('r')} > 512), 0)
    + coalesce((SELECT sum(${sizes.working_memory('w')}) FROM heed_working_memory w WHERE w.owner = 't:' || heed_threads.key), 0);
  INSERT INTO heed_usage (resource_id, threads, bytes)
    SELECT resource_id, sum(threads), sum(bytes) FROM (
      SELECT resource_id, 1 AS threads, bytes FROM heed_threads
      UNION ALL SELECT resource_id, 0, ${sizes.notifications('n')} FROM heed_notifications n
      UNION ALL SELECT resource_id, 0, ${sizes.schedules('s')} FROM heed_schedules s
      UNION ALL SELECT resource_id, 0, ${sizes.watches('w')} FROM heed_watches w
      UNION ALL SELECT ${memoryResource('w')}, 0, ${sizes.working_memory('w')} FROM heed_working_memory w WHERE w.owner LIKE 'r:%'
    ) GROUP BY resource_id;
  INSERT INTO heed_usage (resource_id, threads, bytes)
    SELECT '${total}', coalesce(sum(threads), 0), coalesce(sum(bytes), 0) FROM heed_usage;

  CREATE TRIGGER heed_threads_size_added AFTER INSERT ON heed_threads BEGIN
    ${know('new.resource_id')}
    UPDATE heed_usage SET threads = threads + 1 WHERE resource_id IN (new.resource_id, '${total}');
    UPDATE heed_threads SET bytes = ${sizes.threads('new')} WHERE key = new.key;
  END;
  CREATE TRIGGER heed_threads_size_described AFTER UPDATE OF title, metadata ON heed_threads
  WHEN ${sizes.threads('new')} <> ${sizes.threads('old')} BEGIN
    UPDATE heed_threads SET bytes = bytes + ${sizes.threads('new')} - (${sizes.threads('old')}) WHERE key = new.key;
  END;
  CREATE TRIGGER heed_threads_size_changed AFTER UPDATE OF bytes ON heed_threads WHEN old.bytes <> new.bytes BEGIN
    ${add('new.resource_id', 'new.bytes - old.bytes')}
  END;
  CREATE TRIGGER heed_threads_size_given AFTER UPDATE OF resource_id ON heed_threads WHEN old.resource_id <> new.resource_id BEGIN
    ${know('new.resource_id')}
    UPDATE heed_usage SET threads = threads - 1, bytes = bytes - old.bytes WHERE resource_id = old.resource_id;
    UPDATE heed_usage SET threads = threads + 1, bytes = bytes + old.bytes WHERE resource_id = new.resource_id;
    ${forget('old.resource_id')}
  END;
  CREATE TRIGGER heed_threads_size_removed AFTER DELETE ON heed_threads BEGIN
    UPDATE heed_usage SET threads = threads - 1, bytes = bytes - old.bytes WHERE resource_id IN (old.resource_id, '${total}');
    ${forget('old.resource_id')}
  END;
  ${ofThread('messages', 'content')}
  ${ofThread('mailbox', 'rows, options')}
  ${ofThread('runs', 'options')}
  ${ofResource('notifications', 'summary, attributes, metadata, payload')}
  ${ofResource('schedules', 'signal')}
  ${ofResource('watches', 'description, criteria, result_schema')}

  CREATE TRIGGER heed_working_memory_size_added AFTER INSERT ON heed_working_memory WHEN new.owner LIKE 't:%' BEGIN
    UPDATE heed_threads SET bytes = bytes + ${sizes.working_memory('new')} WHERE key = ${memoryThread('new')};
  END;
  CREATE TRIGGER heed_working_memory_size_removed AFTER DELETE ON heed_working_memory WHEN old.owner LIKE 't:%' BEGIN
    UPDATE heed_threads SET bytes = bytes - (${sizes.working_memory('old')}) WHERE key = ${memoryThread('old')};
  END;
  CREATE TRIGGER heed_working_memory_size_kept AFTER INSERT ON heed_working_memory WHEN new.owner LIKE 'r:%' BEGIN
    ${know(memoryResource('new'))}
    ${add(memoryResource('new'), sizes.working_memory('new'))}
  END;
  CREATE TRIGGER heed_working_memory_size_dropped AFTER DELETE ON heed_working_memory WHEN old.owner LIKE 'r:%' BEGIN
    ${add(memoryResource('old'), `-(${sizes.working_memory('old')})`)}
    ${forget(memoryResource('old'))}
  END;
`

const counted = (table: 'workflow_runs' | 'workflow_steps') => `
  (SELECT coalesce(sum(${sizes[table]('r')}), 0) FROM heed_${table} r WHERE r.thread = heed_threads.key AND ${sizes[table]('r')} > 512)`

/** Version 12: what runs of workflows have stored counts too, rows above 512 bytes. */
export const workflowUsageSchema = `
  UPDATE heed_threads SET bytes = bytes + ${counted('workflow_runs')} + ${counted('workflow_steps')}
    WHERE key IN (SELECT thread FROM heed_workflow_runs);
  ${ofThread('workflow_runs', 'head, input')}
  ${ofThread('workflow_steps', 'content')}
`

/** The statements of usage. */
export const usageSql = {
  usage: `SELECT threads, bytes FROM heed_usage WHERE resource_id = ?`,
  schedules: `SELECT count(*) AS count FROM heed_schedules INDEXED BY heed_schedules_open WHERE resource_id = ? AND status <> 'done'`,
  allSchedules: `SELECT count(*) AS count FROM heed_schedules INDEXED BY heed_schedules_open WHERE status <> 'done'`,
  watches: `SELECT count(*) AS count FROM heed_watches INDEXED BY heed_watches_open WHERE resource_id = ? AND state = 'open'`,
  allWatches: `SELECT count(*) AS count FROM heed_watches INDEXED BY heed_watches_open WHERE state = 'open'`,
}

const moved = (table: 'notifications' | 'schedules' | 'watches', open: string) => `
  SELECT ${sizes[table]('r')} AS bytes, ${open} AS open FROM heed_${table} r WHERE r.thread_id = ?1 AND r.resource_id = ?2`

export const movedSql = `
  SELECT coalesce(sum(bytes), 0) AS bytes, coalesce(sum(open), 0) AS schedules FROM (
    ${moved('notifications', '0')} UNION ALL ${moved('schedules', "CASE WHEN r.status <> 'done' THEN 1 ELSE 0 END")}
    UNION ALL ${moved('watches', '0')}) AS moved`

/** What moves to another resource with a thread, besides its own bytes. */
export function movedWithThread(
  statements: Statements, { id, resourceId }: { id: string; resourceId: string },
): { bytes: number; schedules: number } {
  return statements.one<{ bytes: number; schedules: number }>(movedSql, id, resourceId) ?? { bytes: 0, schedules: 0 }
}

/** What is stored of a resource; without a resource, of all. */
export function usageOf(statements: Statements, resourceId: string = total): Usage {
  return statements.one<Usage>(usageSql.usage, resourceId) ?? { threads: 0, bytes: 0 }
}

/** Rejects a write that would exceed the quota. Call it before the first write of the transaction. */
export function checkUsage(statements: Statements, resourceId: string, quota: Quota | undefined, added: Added): void {
  if (!quota) return
  statements.lockDomain?.('usage', quota.all ? undefined : [resourceId])
  const counted = (name: 'schedules' | 'watches', text: string, ...values: string[]) =>
    added[name] === undefined ? {} : { [name]: statements.one<{ count: number }>(text, ...values)?.count ?? 0 }
  const { resource, all } = quota
  const ofResource = () => ({
    ...usageOf(statements, resourceId),
    ...counted('schedules', usageSql.schedules, resourceId), ...counted('watches', usageSql.watches, resourceId),
  })
  const ofAll = () => ({
    ...usageOf(statements), ...counted('schedules', usageSql.allSchedules), ...counted('watches', usageSql.allWatches),
  })
  if (resource) checkQuota('resource', resource, ofResource(), added)
  if (all) checkQuota('all', all, ofAll(), added)
}
