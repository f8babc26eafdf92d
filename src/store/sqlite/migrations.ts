import type { DatabaseSync } from 'node:sqlite'
import { HeedError } from '../../base/errors.ts'
import { belowSchema } from './below-schema.ts'
import { callsSchema } from './calls-schema.ts'
import { keepingSchema, touchedSchema } from './keeping-schema.ts'
import { mailboxSchema } from './mailbox-schema.ts'
import { notificationChangeSchema, notificationIndexSchema, notificationMergedSchema, notificationOwnerSchema, notificationSchema, notificationSlotSchema, notificationSpanSchema, notificationWaitSchema } from './notification-schema.ts'
import { quotesSchema, recallChangesSchema } from '../../recall/index/schema.ts'
import { scheduleSchema } from './schedule-schema.ts'
import { subscriptionSchema, subscriptionTurnSchema } from './subscription-schema.ts'
import { takenSchema } from './taken-schema.ts'
import { waitingSchema } from './waiting-schema.ts'

/**
 * The schema as steps, forward only. Version n is the state after the first n of them, and `user_version` of a file says which it
 * has. A step that was released never changes; what has to be different is a new step.
 *
 * Every table of threads hangs on the thread's `key`: ids of messages, signals and runs mean nothing outside of their thread.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE heed_threads (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    resource_id TEXT NOT NULL,
    parent_id TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'idle',
    epoch INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    run_id TEXT,
    agent_id TEXT,
    begun INTEGER NOT NULL DEFAULT 0,
    next_seq INTEGER NOT NULL DEFAULT 1,
    next_ord INTEGER NOT NULL DEFAULT 1,
    ordinal INTEGER NOT NULL DEFAULT 0,
    turn INTEGER NOT NULL DEFAULT 0,
    tail INTEGER NOT NULL DEFAULT 0,
    tail_ordinal INTEGER NOT NULL DEFAULT 0,
    tail_turn INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER,
    title TEXT NOT NULL,
    metadata TEXT NOT NULL
  ) STRICT;
  CREATE INDEX heed_threads_created ON heed_threads (resource_id, created_at, id);
  CREATE INDEX heed_threads_updated ON heed_threads (resource_id, updated_at, id);
  CREATE INDEX heed_threads_all_created ON heed_threads (created_at, id);
  CREATE INDEX heed_threads_all_updated ON heed_threads (updated_at, id);
  CREATE INDEX heed_threads_active ON heed_threads (owner) WHERE status <> 'idle';
  CREATE INDEX heed_threads_due ON heed_threads (due_at) WHERE due_at IS NOT NULL;

  CREATE TABLE heed_messages (
    key INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    role TEXT NOT NULL,
    type TEXT,
    run_id TEXT,
    step INTEGER,
    created_at INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    counted INTEGER NOT NULL,
    content TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX heed_messages_seq ON heed_messages (thread, seq);
  CREATE UNIQUE INDEX heed_messages_id ON heed_messages (thread, id);
  -- Most messages are one row, which has the message's id; only the others need to be found by it.
  CREATE INDEX heed_messages_part ON heed_messages (thread, message_id) WHERE message_id <> id;
  CREATE INDEX heed_messages_counted ON heed_messages (thread, ordinal, seq, turn) WHERE counted = 1;
  CREATE INDEX heed_messages_context ON heed_messages (thread) WHERE role = 'context';

  -- \`open\` is 1 while a signal waits or is taken, so that what was settled costs no lookup anything.
  CREATE TABLE heed_mailbox (
    thread INTEGER NOT NULL,
    ord INTEGER NOT NULL,
    id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    route TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    open INTEGER,
    run_id TEXT,
    start_run_id TEXT NOT NULL,
    step INTEGER,
    bound_to TEXT,
    reason TEXT,
    accepted_at INTEGER NOT NULL,
    options TEXT,
    rows TEXT NOT NULL,
    PRIMARY KEY (thread, ord)
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX heed_mailbox_id ON heed_mailbox (thread, id);
  CREATE INDEX heed_mailbox_open ON heed_mailbox (thread, ord) WHERE open = 1;
  CREATE INDEX heed_mailbox_bound ON heed_mailbox (bound_to) WHERE open = 1 AND bound_to IS NOT NULL;

  CREATE TABLE heed_runs (
    key INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL,
    resource_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    status TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    step INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    seal_seq INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    suspended_at INTEGER,
    started TEXT NOT NULL,
    suspended TEXT NOT NULL,
    error TEXT,
    usage TEXT,
    options TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX heed_runs_id ON heed_runs (run_id, thread);
  CREATE INDEX heed_runs_thread ON heed_runs (thread);
  CREATE INDEX heed_runs_resource ON heed_runs (resource_id);
  CREATE INDEX heed_runs_suspended ON heed_runs (resource_id) WHERE status = 'suspended';

  CREATE TABLE heed_lanes (
    thread INTEGER NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    cache_key TEXT NOT NULL,
    mode TEXT NOT NULL,
    last_signal_id TEXT NOT NULL,
    last_snapshot_id TEXT,
    PRIMARY KEY (thread, id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE heed_processes (owner TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;

  -- Threads that were deleted and have rows left. A key is never given twice, so these can't show up anywhere.
  CREATE TABLE heed_purges (thread INTEGER PRIMARY KEY) STRICT;
  `,
  `
  -- \`owner\` is 'r:' and a resource, or 't:' and the key of a thread. The newest version is the present.
  CREATE TABLE heed_working_memory (
    owner TEXT NOT NULL,
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    change_id TEXT,
    value TEXT NOT NULL,
    PRIMARY KEY (owner, version)
  ) STRICT, WITHOUT ROWID;
  ALTER TABLE heed_runs ADD COLUMN staged TEXT;
  `,
  `
  -- By its own id a message is found in whatever thread it is.
  DROP INDEX heed_messages_id;
  CREATE UNIQUE INDEX heed_messages_id ON heed_messages (id, thread);
  DROP INDEX heed_messages_part;
  CREATE INDEX heed_messages_part ON heed_messages (message_id, thread) WHERE message_id <> id;

  CREATE INDEX heed_threads_clones ON heed_threads (json_extract(metadata, '$.clone.sourceThreadId'), created_at, id)
    WHERE json_extract(metadata, '$.clone.sourceThreadId') IS NOT NULL;

  -- What threads are looked for by: the short values of their metadata, with their type.
  CREATE TABLE heed_thread_metadata (
    thread INTEGER NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    of_resource TEXT NOT NULL,
    of_time INTEGER NOT NULL,
    of_id TEXT NOT NULL,
    PRIMARY KEY (thread, name)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX heed_thread_metadata_value ON heed_thread_metadata (name, value, of_resource, of_time, of_id);
  CREATE TRIGGER heed_threads_added AFTER INSERT ON heed_threads WHEN new.metadata <> '{}' BEGIN
    INSERT OR IGNORE INTO heed_thread_metadata
    SELECT new.key, key, type || ':' || atom, new.resource_id, new.created_at, new.id FROM json_each(new.metadata)
    WHERE type IN ('text', 'integer', 'real', 'true', 'false') AND length(atom) <= 256;
  END;
  CREATE TRIGGER heed_threads_changed AFTER UPDATE OF metadata, resource_id ON heed_threads
  WHEN old.metadata <> new.metadata OR old.resource_id <> new.resource_id BEGIN
    DELETE FROM heed_thread_metadata WHERE thread = old.key;
    INSERT OR IGNORE INTO heed_thread_metadata
    SELECT new.key, key, type || ':' || atom, new.resource_id, new.created_at, new.id FROM json_each(new.metadata)
    WHERE type IN ('text', 'integer', 'real', 'true', 'false') AND length(atom) <= 256;
  END;
  CREATE TRIGGER heed_threads_removed AFTER DELETE ON heed_threads BEGIN
    DELETE FROM heed_thread_metadata WHERE thread = old.key;
  END;
  INSERT OR IGNORE INTO heed_thread_metadata
  SELECT t.key, e.key, e.type || ':' || e.atom, t.resource_id, t.created_at, t.id FROM heed_threads t, json_each(t.metadata) e
  WHERE e.type IN ('text', 'integer', 'real', 'true', 'false') AND length(e.atom) <= 256;
  `,
  `
  ALTER TABLE heed_lanes ADD COLUMN issued INTEGER NOT NULL DEFAULT 0;
  UPDATE heed_lanes SET issued = version;

  -- Every signal of a lane, in its order. What it says is in its row, or waits in the mailbox.
  CREATE TABLE heed_lane_signals (
    thread INTEGER NOT NULL,
    lane TEXT NOT NULL,
    version INTEGER NOT NULL,
    signal_id TEXT NOT NULL,
    cache_key TEXT NOT NULL,
    mode TEXT NOT NULL,
    PRIMARY KEY (thread, lane, version)
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX heed_lane_signals_id ON heed_lane_signals (thread, signal_id);
  INSERT OR IGNORE INTO heed_lane_signals
    SELECT l.thread, l.id, m.content ->> '$.metadata.signal.metadata.state.version', m.id, m.content ->> '$.metadata.signal.metadata.state.cacheKey',
      m.content ->> '$.metadata.signal.metadata.state.mode'
    FROM heed_lanes l JOIN heed_messages m ON m.thread = l.thread
    WHERE m.role = 'signal' AND m.content ->> '$.metadata.signal.metadata.state.id' = l.id;
  `,
  `
  ALTER TABLE heed_runs ADD COLUMN lost TEXT;
  CREATE INDEX heed_runs_waiting ON heed_runs (agent_id, resource_id, started_at) WHERE status = 'suspended';
  `,
  `
  -- Threads that are to have a title and have none yet.
  CREATE TABLE heed_titles (
    thread INTEGER PRIMARY KEY,
    thread_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    owner TEXT,
    due_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX heed_titles_due ON heed_titles (agent_id, due_at);
  CREATE INDEX heed_titles_owner ON heed_titles (owner) WHERE owner IS NOT NULL;
  `,
  notificationSchema,
  scheduleSchema,
  recallChangesSchema,
  keepingSchema,
  quotesSchema,
  notificationChangeSchema,
  subscriptionSchema,
  notificationIndexSchema,
  belowSchema,
  notificationOwnerSchema,
  subscriptionTurnSchema,
  notificationMergedSchema,
  notificationSpanSchema,
  mailboxSchema,
  notificationSlotSchema,
  touchedSchema,
  callsSchema,
  waitingSchema,
  takenSchema,
  notificationWaitSchema,
]

/** 'Heed', where SQLite keeps the name of the program that a file belongs to. */
const applicationId = 0x48656564

/** Refuses a file that a newer Heed wrote, or another program that counts its versions, before anything of it is touched. */
export function refuseUnknown(database: DatabaseSync, name: string): void {
  const version = versionOf(database)
  const writer = pragma(database, 'application_id')
  if (writer !== applicationId && (writer !== 0 || version !== 0)) {
    throw new HeedError('store_failed', `The database ${name} belongs to another program. Name another file.`)
  }
  if (version <= migrations.length) return
  throw new HeedError(
    'store_newer',
    `The database ${name} has schema version ${version}; this Heed knows ${migrations.length}. Update Heed, or name another file.`,
    { details: { version, known: migrations.length } },
  )
}

/** Whether a Heed wrote it. */
export function isOurs(database: DatabaseSync): boolean {
  return pragma(database, 'application_id') === applicationId
}

/** Brings the file to the newest version; all steps or none. Answers whether there was anything to do. */
export function migrate(database: DatabaseSync, name: string, to = migrations.length): boolean {
  if (versionOf(database) === to) return false
  database.exec('BEGIN IMMEDIATE')
  try {
    // Another process may have been faster.
    refuseUnknown(database, name)
    for (const step of migrations.slice(versionOf(database), to)) database.exec(step)
    database.exec(`PRAGMA user_version = ${to}; PRAGMA application_id = ${applicationId}; COMMIT`)
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
  return true
}

export function versionOf(database: DatabaseSync): number {
  return pragma(database, 'user_version')
}

function pragma(database: DatabaseSync, name: 'user_version' | 'application_id'): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name])
}
