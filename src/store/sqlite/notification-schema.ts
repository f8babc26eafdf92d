/**
 * Notifications and the summaries that count them. `due_at` is the one timer of a record or a batch, whatever it is due for; a claim
 * moves it on, so that what a dead process had taken falls due again.
 *
 * A slot holds a key while its record may take in others of that key: `dedupe_slot` as long as the record waits or is remembered,
 * `coalesce_slot` until its words are on their way.
 */
export const notificationSchema = `
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
    payload TEXT
  ) STRICT;
  CREATE UNIQUE INDEX heed_notifications_id ON heed_notifications (thread_id, id);
  CREATE INDEX heed_notifications_thread ON heed_notifications (thread_id, key);
  CREATE INDEX heed_notifications_status ON heed_notifications (thread_id, status, key);
  CREATE UNIQUE INDEX heed_notifications_dedupe ON heed_notifications (dedupe_slot) WHERE dedupe_slot IS NOT NULL;
  CREATE UNIQUE INDEX heed_notifications_coalesce ON heed_notifications (coalesce_slot) WHERE coalesce_slot IS NOT NULL;
  CREATE INDEX heed_notifications_due ON heed_notifications (agent_id, due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX heed_notifications_idle ON heed_notifications (thread_id) WHERE when_idle = 1;
  CREATE INDEX heed_notifications_batch ON heed_notifications (batch) WHERE batch IS NOT NULL;

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
  CREATE UNIQUE INDEX heed_notification_batches_window ON heed_notification_batches (thread_id, agent_id) WHERE open = 1 AND form = 'window';
  CREATE INDEX heed_notification_batches_timed ON heed_notification_batches (thread_id, agent_id, due_at) WHERE open = 1 AND form = 'timed';
  CREATE INDEX heed_notification_batches_due ON heed_notification_batches (agent_id, due_at) WHERE due_at IS NOT NULL;
`

/**
 * `action` is what was decided, so that whoever takes a record over does the same. `changed` is the number of a
 * record's last change, counted apart, so that a number is never given twice: what is beyond a cursor changed after it.
 */
export const notificationChangeSchema = `
  ALTER TABLE heed_notifications ADD COLUMN action TEXT;
  ALTER TABLE heed_notifications ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
  CREATE TABLE heed_notification_changes (one INTEGER PRIMARY KEY, last INTEGER NOT NULL) STRICT;
  INSERT INTO heed_notification_changes (one, last) VALUES (1, 0);
  CREATE INDEX heed_notifications_changed ON heed_notifications (resource_id, changed);
`

/**
 * Fewer places to write to. Ids are made one after the other, so that they are neighbours in an index where they come first; and one
 * index both lists and counts what a thread has.
 */
export const notificationIndexSchema = `
  DROP INDEX heed_notifications_id;
  DROP INDEX heed_notifications_thread;
  DROP INDEX heed_notifications_status;
  CREATE UNIQUE INDEX heed_notifications_id ON heed_notifications (id, thread_id);
  CREATE INDEX heed_notifications_thread ON heed_notifications (thread_id, key, status);
`

/**
 * A summary is of one resource. What waits in one of another is to be decided about anew. `remember_ms` is how long a key is
 * remembered once its record no longer waits.
 */
export const notificationOwnerSchema = `
  UPDATE heed_notifications SET batch = NULL, decided = 0, when_idle = NULL, deliver_at = NULL, due_at = 1
  WHERE status = 'pending' AND flight = 0 AND batch IS NOT NULL AND EXISTS (
    SELECT 1 FROM heed_notification_batches b WHERE b.key = batch AND b.resource_id <> heed_notifications.resource_id AND b.signal_id IS NULL);
  DROP INDEX heed_notification_batches_window;
  DROP INDEX heed_notification_batches_timed;
  CREATE UNIQUE INDEX heed_notification_batches_window ON heed_notification_batches (thread_id, resource_id, agent_id) WHERE open = 1 AND form = 'window';
  CREATE INDEX heed_notification_batches_timed ON heed_notification_batches (thread_id, resource_id, agent_id, due_at) WHERE open = 1 AND form = 'timed';
  ALTER TABLE heed_notifications ADD COLUMN remember_ms INTEGER;
`

/** Events that are counted on a record of another id, so that one of them that comes again is known. They go with the record. */
export const notificationMergedSchema = `
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
`

/**
 * What changes is written at the end of the index, whoever's it is, and not at as many places as there are resources: those of a resource
 * are together only within a span of the numbers, and a span is small.
 */
export const notificationSpanSchema = `
  DROP INDEX heed_notifications_changed;
  CREATE INDEX heed_notifications_changed ON heed_notifications (changed >> 10, resource_id, changed);
`

/** A slot begins with its key: keys that come in order, as those of events do, are neighbours in the index, whatever threads they are for. */
export const notificationSlotSchema = `
  DROP INDEX heed_notifications_dedupe;
  DROP INDEX heed_notifications_coalesce;
  DROP INDEX heed_notification_merged_slot;
  UPDATE heed_notifications SET dedupe_slot = ${keyFirst('dedupe_slot')} WHERE dedupe_slot IS NOT NULL;
  UPDATE heed_notifications SET coalesce_slot = ${keyFirst('coalesce_slot')} WHERE coalesce_slot IS NOT NULL;
  UPDATE heed_notification_merged SET dedupe_slot = ${keyFirst('dedupe_slot')} WHERE dedupe_slot IS NOT NULL;
  CREATE UNIQUE INDEX heed_notifications_dedupe ON heed_notifications (dedupe_slot) WHERE dedupe_slot IS NOT NULL;
  CREATE UNIQUE INDEX heed_notifications_coalesce ON heed_notifications (coalesce_slot) WHERE coalesce_slot IS NOT NULL;
  CREATE INDEX heed_notification_merged_slot ON heed_notification_merged (dedupe_slot) WHERE dedupe_slot IS NOT NULL;
`

/**
 * The timer of those that wait for a thread to be idle, one for all of an agent: when to look, should nobody tell. They have none of their own, unless a time was
 * set for them that is yet to come.
 */
export const notificationWaitSchema = `
  CREATE TABLE heed_notification_waits (
    thread_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    since INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    PRIMARY KEY (thread_id, agent_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX heed_notification_waits_due ON heed_notification_waits (agent_id, due_at);
`

/** Before, it was thread, resource, agent, source and key. */
function keyFirst(slot: string): string {
  return `json_array(${[4, 3, 0, 1, 2].map((index) => `${slot} ->> '$[${index}]'`).join(', ')})`
}
