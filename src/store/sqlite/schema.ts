import { quotesSchema, recallChangesSchema } from '../../recall/index/schema.ts'

/**
 * The tables of a database, by domain. Every table of threads refers to `heed_threads.key`: ids of messages, signals and runs are unique
 * only within their thread. A change of this schema is a new step in `migrations.ts`; this text is version 1 and does not change once it
 * is released.
 */

const threads = `
  -- AUTOINCREMENT: the key of a deleted thread is never used again, so rows that are still to be purged belong to no other thread.
  CREATE TABLE heed_threads (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    resource_id TEXT NOT NULL,
    parent_id TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'idle',
    epoch INTEGER NOT NULL,
    -- The epoch when the thread was created or restored. All cursors and fences of an earlier thread with this id are below it.
    life INTEGER NOT NULL,
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
  CREATE INDEX heed_threads_created ON heed_threads (resource_id, created_at, key);
  CREATE INDEX heed_threads_updated ON heed_threads (resource_id, updated_at, key);
  CREATE INDEX heed_threads_all_created ON heed_threads (created_at, key);
  CREATE INDEX heed_threads_all_updated ON heed_threads (updated_at, key);
  CREATE INDEX heed_threads_active ON heed_threads (owner) WHERE status <> 'idle';
  CREATE INDEX heed_threads_due ON heed_threads (due_at) WHERE due_at IS NOT NULL;
  -- A thread is deleted and transferred with its parent.
  CREATE INDEX heed_threads_parent ON heed_threads (parent_id, created_at, key) WHERE parent_id IS NOT NULL;
  CREATE INDEX heed_threads_clones ON heed_threads (json_extract(metadata, '$.clone.sourceThreadId'), created_at, key)
    WHERE json_extract(metadata, '$.clone.sourceThreadId') IS NOT NULL;

  -- The short values of the threads' metadata, with their type: lists of threads filter by them. The code that writes
  -- heed_threads.updated_at writes of_updated too: a trigger would double the cost of every change of a thread.
  CREATE TABLE heed_thread_metadata (
    thread INTEGER NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    of_resource TEXT NOT NULL,
    of_time INTEGER NOT NULL,
    of_updated INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (thread, name)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX heed_thread_metadata_value ON heed_thread_metadata (name, value, of_resource, of_time, thread);
  CREATE INDEX heed_thread_metadata_updated ON heed_thread_metadata (name, value, of_resource, of_updated, thread);
  CREATE TRIGGER heed_threads_added AFTER INSERT ON heed_threads WHEN new.metadata <> '{}' BEGIN
    INSERT OR IGNORE INTO heed_thread_metadata (thread, name, value, of_resource, of_time, of_updated)
    SELECT new.key, key, type || ':' || atom, new.resource_id, new.created_at, new.updated_at FROM json_each(new.metadata)
    WHERE type IN ('text', 'integer', 'real', 'true', 'false') AND length(atom) <= 256;
  END;
  CREATE TRIGGER heed_threads_changed AFTER UPDATE OF metadata, resource_id ON heed_threads
  WHEN old.metadata <> new.metadata OR old.resource_id <> new.resource_id BEGIN
    DELETE FROM heed_thread_metadata WHERE thread = old.key;
    INSERT OR IGNORE INTO heed_thread_metadata (thread, name, value, of_resource, of_time, of_updated)
    SELECT new.key, key, type || ':' || atom, new.resource_id, new.created_at, new.updated_at FROM json_each(new.metadata)
    WHERE type IN ('text', 'integer', 'real', 'true', 'false') AND length(atom) <= 256;
  END;
  CREATE TRIGGER heed_threads_removed AFTER DELETE ON heed_threads BEGIN
    DELETE FROM heed_thread_metadata WHERE thread = old.key;
  END;

  -- Deleted threads whose rows are not all removed yet.
  CREATE TABLE heed_purges (thread INTEGER PRIMARY KEY) STRICT;

  -- The last thread that pruning looked at, and when it looks again. One row.
  CREATE TABLE heed_pruning (id INTEGER PRIMARY KEY CHECK (id = 1), after INTEGER NOT NULL, due_at INTEGER NOT NULL) STRICT;

  -- The first epoch of new threads, above the epoch of every thread that was deleted or replaced by a restore. One row.
  CREATE TABLE heed_epochs (id INTEGER PRIMARY KEY CHECK (id = 1), floor INTEGER NOT NULL) STRICT;
  INSERT INTO heed_epochs VALUES (1, 0);

  -- The heartbeats of processes: when each expires, and the time between the heartbeat and that.
  CREATE TABLE heed_processes (owner TEXT PRIMARY KEY, until INTEGER NOT NULL, length INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`

const messages = `
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
  -- The id comes first: a message is found by its id in any thread.
  CREATE UNIQUE INDEX heed_messages_id ON heed_messages (id, thread);
  -- Most messages are one row, whose id is the message's id; only the others need this index.
  CREATE INDEX heed_messages_part ON heed_messages (message_id, thread) WHERE message_id <> id;
  CREATE INDEX heed_messages_counted ON heed_messages (thread, ordinal, seq, turn) WHERE counted = 1;
  CREATE INDEX heed_messages_context ON heed_messages (thread) WHERE role = 'context';
`

const mailbox = `
  -- A rowid table: signals that arrive together are neighbors, whatever their threads, so that one batch writes few pages.
  -- open is 1 while a signal is pending and null otherwise, so that settled signals are in no partial index. The signals that a run
  -- has drained are listed in heed_runs.taken.
  CREATE TABLE heed_mailbox (
    key INTEGER PRIMARY KEY,
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
    rows TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX heed_mailbox_ord ON heed_mailbox (thread, ord);
  CREATE UNIQUE INDEX heed_mailbox_id ON heed_mailbox (id, thread);
  CREATE INDEX heed_mailbox_open ON heed_mailbox (thread, ord) WHERE open = 1;
  CREATE INDEX heed_mailbox_bound ON heed_mailbox (bound_to) WHERE open = 1 AND bound_to IS NOT NULL;
  -- Pending calls by thread: no other send may use the ids of their messages.
  CREATE INDEX heed_mailbox_calls ON heed_mailbox (thread, ord) WHERE open = 1 AND bound_to IS NOT NULL;
`

const runs = `
  -- taken: the ord ranges of the signals that the run has drained and that are not settled yet.
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
    options TEXT NOT NULL,
    staged TEXT,
    lost TEXT,
    taken TEXT
  ) STRICT;
  CREATE UNIQUE INDEX heed_runs_id ON heed_runs (run_id, thread);
  CREATE INDEX heed_runs_thread ON heed_runs (thread);
  CREATE INDEX heed_runs_resource ON heed_runs (resource_id);
  CREATE INDEX heed_runs_suspended ON heed_runs (resource_id) WHERE status = 'suspended';
  CREATE INDEX heed_runs_waiting ON heed_runs (agent_id, resource_id, suspended_at) WHERE status = 'suspended';
`

const lanes = `
  CREATE TABLE heed_lanes (
    thread INTEGER NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    cache_key TEXT NOT NULL,
    mode TEXT NOT NULL,
    last_signal_id TEXT NOT NULL,
    last_snapshot_id TEXT,
    issued INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (thread, id)
  ) STRICT, WITHOUT ROWID;
  -- Every signal of a lane, by version. Its contents are in heed_messages, or in heed_mailbox while it is pending.
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
`

const workingMemory = `
  -- owner is 'r:' and a resource id, or 't:' and the key of a thread. The highest version is the current value.
  CREATE TABLE heed_working_memory (
    owner TEXT NOT NULL,
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    change_id TEXT,
    value TEXT NOT NULL,
    PRIMARY KEY (owner, version)
  ) STRICT, WITHOUT ROWID;
`

const titles = `
  -- Threads whose title is still to be generated.
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
`

const notifications = `
  -- due_at is the one timer of a record or a batch. A claim moves it on, so that a record claimed by a dead process is due again.
  --
  -- A slot holds a key while its record may merge others of that key: dedupe_slot while the record is pending or remembered,
  -- coalesce_slot until the record is sent. A slot begins with the key: consecutive keys are neighbors in the index, whatever their
  -- threads. remember_ms is for how long a key is remembered once its record is no longer pending.
  --
  -- action is the decision, so that a process that takes a record over does the same. changed is the number of the record's last change,
  -- from heed_notification_changes: no number is used twice, and every record with a number above a cursor changed after it.
  CREATE TABLE heed_notifications (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_id TEXT NOT NULL,
    id TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    status TEXT NOT NULL,
    priority TEXT NOT NULL,
    batch INTEGER,
    due_at INTEGER,
    decided INTEGER NOT NULL DEFAULT 0,
    flight INTEGER NOT NULL DEFAULT 0,
    when_idle INTEGER,
    dedupe_slot TEXT,
    coalesce_slot TEXT,
    remember_until INTEGER,
    coalesced_count INTEGER NOT NULL DEFAULT 1,
    attempts INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deliver_at INTEGER,
    attempted_at INTEGER,
    delivered_at INTEGER,
    seen_at INTEGER,
    dismissed_at INTEGER,
    archived_at INTEGER,
    discarded_at INTEGER,
    delivered_signal_id TEXT,
    reason TEXT,
    error TEXT,
    dedupe_key TEXT,
    coalesce_key TEXT,
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    summary TEXT NOT NULL,
    attributes TEXT,
    metadata TEXT,
    payload TEXT,
    action TEXT,
    changed INTEGER NOT NULL DEFAULT 0,
    remember_ms INTEGER
  ) STRICT;
  -- Ids are generated in order: with the id first, new rows are neighbors in the index.
  CREATE UNIQUE INDEX heed_notifications_id ON heed_notifications (id, thread_id);
  CREATE INDEX heed_notifications_thread ON heed_notifications (thread_id, key, status);
  CREATE UNIQUE INDEX heed_notifications_dedupe ON heed_notifications (dedupe_slot) WHERE dedupe_slot IS NOT NULL;
  CREATE UNIQUE INDEX heed_notifications_coalesce ON heed_notifications (coalesce_slot) WHERE coalesce_slot IS NOT NULL;
  CREATE INDEX heed_notifications_due ON heed_notifications (agent_id, due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX heed_notifications_idle ON heed_notifications (thread_id) WHERE when_idle = 1;
  CREATE INDEX heed_notifications_batch ON heed_notifications (batch) WHERE batch IS NOT NULL;
  -- In spans of 1,024 changes, and by resource within a span: new changes are written at the end of the index.
  CREATE INDEX heed_notifications_changed ON heed_notifications (changed >> 10, resource_id, changed);
  CREATE TABLE heed_notification_changes (one INTEGER PRIMARY KEY, last INTEGER NOT NULL) STRICT;
  INSERT INTO heed_notification_changes (one, last) VALUES (1, 0);

  -- Events that were merged into a record of another id, so that a repetition of one of them is detected.
  CREATE TABLE heed_notification_merged (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    record INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    id TEXT NOT NULL,
    dedupe_slot TEXT
  ) STRICT;
  CREATE UNIQUE INDEX heed_notification_merged_id ON heed_notification_merged (id, thread_id);
  CREATE INDEX heed_notification_merged_record ON heed_notification_merged (record);
  CREATE INDEX heed_notification_merged_slot ON heed_notification_merged (dedupe_slot) WHERE dedupe_slot IS NOT NULL;
  CREATE TRIGGER heed_notifications_removed AFTER DELETE ON heed_notifications BEGIN
    DELETE FROM heed_notification_merged WHERE record = old.key;
  END;

  -- Summaries. A summary counts records of one resource.
  CREATE TABLE heed_notification_batches (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    thread_id TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    form TEXT NOT NULL,
    open INTEGER,
    first_at INTEGER NOT NULL,
    due_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    signal_id TEXT
  ) STRICT;
  CREATE UNIQUE INDEX heed_notification_batches_window ON heed_notification_batches (thread_id, resource_id, agent_id)
    WHERE open = 1 AND form = 'window';
  CREATE INDEX heed_notification_batches_timed ON heed_notification_batches (thread_id, resource_id, agent_id, due_at)
    WHERE open = 1 AND form = 'timed';
  CREATE INDEX heed_notification_batches_due ON heed_notification_batches (agent_id, due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX heed_notification_batches_thread ON heed_notification_batches (thread_id);

  -- One timer for all records of an agent that wait until a thread is idle: when to look, should no process report that it is. These
  -- records have no due_at of their own, unless a future time was set for them.
  CREATE TABLE heed_notification_waits (
    thread_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    since INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    PRIMARY KEY (thread_id, agent_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX heed_notification_waits_due ON heed_notification_waits (agent_id, due_at);
`

const schedules = `
  -- next_at is the next occurrence; due_at is when a process looks at it, which a claim moves on.
  CREATE TABLE heed_schedules (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    status TEXT NOT NULL,
    next_at INTEGER,
    due_at INTEGER,
    last_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    overlap TEXT NOT NULL,
    missed TEXT NOT NULL,
    last_signal_id TEXT,
    error TEXT,
    timing TEXT NOT NULL,
    signal TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX heed_schedules_due ON heed_schedules (agent_id, due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX heed_schedules_resource ON heed_schedules (resource_id, id);
  CREATE INDEX heed_schedules_thread ON heed_schedules (thread_id, id);
`

const subscriptions = `
  CREATE TABLE heed_subscriptions (
    source_id TEXT NOT NULL,
    external_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    metadata TEXT NOT NULL,
    subscribed_at INTEGER NOT NULL,
    PRIMARY KEY (source_id, external_id, thread_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX heed_subscriptions_thread ON heed_subscriptions (thread_id, source_id);
  -- Which process polls a source, until when, and the cursor of the last poll.
  CREATE TABLE heed_polls (
    source_id TEXT PRIMARY KEY,
    until INTEGER NOT NULL,
    holder TEXT,
    cursor TEXT
  ) STRICT, WITHOUT ROWID;
  -- Webhook deliveries that were accepted. The same id with another signing time is another delivery.
  CREATE TABLE heed_deliveries (
    source_id TEXT NOT NULL,
    id TEXT NOT NULL,
    signed_at INTEGER NOT NULL,
    PRIMARY KEY (source_id, id, signed_at)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX heed_deliveries_signed ON heed_deliveries (signed_at);
`

export const schema: string = [
  threads, messages, mailbox, runs, lanes, workingMemory, titles, notifications, schedules, subscriptions,
  recallChangesSchema, quotesSchema,
].join('')
