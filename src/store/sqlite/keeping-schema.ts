/**
 * How far pruning got, and metadata in the order of the last change. `of_updated` follows its thread; threads without
 * metadata pay nothing for it.
 */
export const keepingSchema = `
  CREATE INDEX heed_notification_batches_thread ON heed_notification_batches (thread_id);

  -- How far the threads were looked at for what is kept no longer, and when to look next. One row.
  CREATE TABLE heed_pruning (id INTEGER PRIMARY KEY CHECK (id = 1), after INTEGER NOT NULL, due_at INTEGER NOT NULL) STRICT;

  ALTER TABLE heed_thread_metadata ADD COLUMN of_updated INTEGER NOT NULL DEFAULT 0;
  UPDATE heed_thread_metadata SET of_updated = (SELECT updated_at FROM heed_threads WHERE heed_threads.key = thread);
  CREATE INDEX heed_thread_metadata_updated ON heed_thread_metadata (name, value, of_resource, of_updated, of_id);
  DROP TRIGGER heed_threads_added;
  CREATE TRIGGER heed_threads_added AFTER INSERT ON heed_threads WHEN new.metadata <> '{}' BEGIN
    INSERT OR IGNORE INTO heed_thread_metadata (thread, name, value, of_resource, of_time, of_id, of_updated)
    SELECT new.key, key, type || ':' || atom, new.resource_id, new.created_at, new.id, new.updated_at FROM json_each(new.metadata)
    WHERE type IN ('text', 'integer', 'real', 'true', 'false') AND length(atom) <= 256;
  END;
  DROP TRIGGER heed_threads_changed;
  CREATE TRIGGER heed_threads_changed AFTER UPDATE OF metadata, resource_id ON heed_threads
  WHEN old.metadata <> new.metadata OR old.resource_id <> new.resource_id BEGIN
    DELETE FROM heed_thread_metadata WHERE thread = old.key;
    INSERT OR IGNORE INTO heed_thread_metadata (thread, name, value, of_resource, of_time, of_id, of_updated)
    SELECT new.key, key, type || ':' || atom, new.resource_id, new.created_at, new.id, new.updated_at FROM json_each(new.metadata)
    WHERE type IN ('text', 'integer', 'real', 'true', 'false') AND length(atom) <= 256;
  END;
  CREATE TRIGGER heed_threads_touched AFTER UPDATE OF updated_at ON heed_threads
  WHEN new.metadata <> '{}' AND old.updated_at <> new.updated_at BEGIN
    UPDATE heed_thread_metadata SET of_updated = new.updated_at WHERE thread = new.key;
  END;
`

/** A trigger costs every change of a thread as much as the change itself, and most threads have no metadata: whoever writes `updated_at` sees to it. */
export const touchedSchema = `
  DROP TRIGGER heed_threads_touched;
`
