import { maxPassages } from '../text/passages.ts'

/**
 * The part of recall in the database of threads: triggers record which messages changed, for the indexer. They do nothing while
 * `heed_recall` is empty. Its `generation` changes when messages are replaced without triggers, as by restoring a backup.
 */
export const recallChangesSchema = `
  CREATE TABLE heed_recall (one INTEGER PRIMARY KEY CHECK (one = 1), generation TEXT NOT NULL) STRICT;
  -- The newest is never removed: numbers only grow.
  CREATE TABLE heed_recall_changes (number INTEGER PRIMARY KEY, message INTEGER NOT NULL) STRICT;
  CREATE INDEX heed_recall_changes_message ON heed_recall_changes (message);
  CREATE TRIGGER heed_messages_added AFTER INSERT ON heed_messages
  WHEN new.role <> 'context' AND EXISTS (SELECT 1 FROM heed_recall) BEGIN
    INSERT INTO heed_recall_changes (message) VALUES (new.key);
  END;
  CREATE TRIGGER heed_messages_changed AFTER UPDATE OF content, role, message_id ON heed_messages
  WHEN new.role <> 'context' AND EXISTS (SELECT 1 FROM heed_recall) BEGIN
    INSERT INTO heed_recall_changes (message) VALUES (new.key);
  END;
  CREATE TRIGGER heed_messages_removed AFTER DELETE ON heed_messages
  WHEN old.role <> 'context' AND EXISTS (SELECT 1 FROM heed_recall) BEGIN
    INSERT INTO heed_recall_changes (message) VALUES (old.key);
  END;
  CREATE TRIGGER heed_threads_given AFTER UPDATE OF resource_id ON heed_threads
  WHEN old.resource_id <> new.resource_id AND EXISTS (SELECT 1 FROM heed_recall) BEGIN
    INSERT INTO heed_recall_changes (message) SELECT key FROM heed_messages WHERE thread = new.key AND role <> 'context';
  END;
`

/**
 * Which context rows quote messages of other threads (`metadata.quotes`). Triggers delete such a row with the quoted message, and when
 * either thread is transferred to another resource.
 */
export const quotesSchema = `
  CREATE TABLE heed_quotes (
    thread INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    quoted_by INTEGER NOT NULL,
    PRIMARY KEY (thread, message_id, quoted_by)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX heed_quotes_by ON heed_quotes (quoted_by);
  CREATE TRIGGER heed_quotes_added AFTER INSERT ON heed_messages
  WHEN new.role = 'context' AND json_type(new.content, '$.metadata.quotes') = 'array' BEGIN
    INSERT OR IGNORE INTO heed_quotes
    SELECT t.key, q.value ->> '$.messageId', new.key
    FROM json_each(new.content, '$.metadata.quotes') q JOIN heed_threads t ON t.id = q.value ->> '$.threadId';
  END;
  CREATE TRIGGER heed_quotes_removed AFTER DELETE ON heed_messages WHEN old.role = 'context' BEGIN
    DELETE FROM heed_quotes WHERE quoted_by = old.key;
  END;
  CREATE TRIGGER heed_quoted_removed AFTER DELETE ON heed_messages WHEN old.role <> 'context' BEGIN
    DELETE FROM heed_messages WHERE key IN (SELECT quoted_by FROM heed_quotes WHERE thread = old.thread AND message_id = old.message_id);
  END;
  CREATE TRIGGER heed_quoted_given AFTER UPDATE OF resource_id ON heed_threads WHEN old.resource_id <> new.resource_id BEGIN
    DELETE FROM heed_messages WHERE key IN (SELECT quoted_by FROM heed_quotes WHERE thread = new.key);
    DELETE FROM heed_messages WHERE thread = new.key AND role = 'context' AND key IN (SELECT quoted_by FROM heed_quotes);
  END;
`

/** The roles whose messages are indexed; the index stores their position in this list. */
export const roles: readonly string[] = ['user', 'assistant', 'tool', 'signal']

/** An index with another version is created again, except for one of version 7: that one lacks `placesSchema`. */
export const indexVersion = 8

/**
 * The index, in a file beside the database: it can be made again from the messages, its writes don't block those of messages, and a backup
 * can leave it out.
 *
 * A passage's key is its message's key times `maxPassages`, plus its position in the message. Tokens of the full-text index begin with the
 * number of their resource: a search reads only tokens of its own resource, however many others there are.
 */
export const indexSchema = `
  CREATE TABLE progress (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    generation TEXT NOT NULL,
    -- The newest change record that is indexed.
    number INTEGER NOT NULL,
    -- During a rebuild: messages up to \`done\` are indexed again, those up to \`until\` are pending. Null without a rebuild.
    done INTEGER,
    until INTEGER,
    -- 1 while a rebuild fills an empty index: the messages that it has not read yet cannot be found.
    fresh INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  -- The version grows with each change. It starts at random, so that a cache cannot mistake it for the version of a former index.
  CREATE TABLE resources (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, version INTEGER NOT NULL DEFAULT (abs(random() >> 20))) STRICT;
  -- A log of the latest changes: messages whose passages or vectors changed with a version.
  CREATE TABLE touched (number INTEGER PRIMARY KEY, resource INTEGER NOT NULL, version INTEGER NOT NULL, message INTEGER NOT NULL) STRICT;
  CREATE INDEX touched_resource ON touched (resource, version, message);
  CREATE TABLE passages (
    key INTEGER PRIMARY KEY,
    resource INTEGER NOT NULL,
    thread INTEGER NOT NULL,
    words INTEGER NOT NULL,
    form INTEGER NOT NULL,
    role INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    -- The hash of its text.
    hash TEXT NOT NULL
  ) STRICT;
  CREATE INDEX passages_resource ON passages (resource, key, thread, words, form, role, created_at);
  CREATE INDEX passages_thread ON passages (thread, key);
  CREATE VIRTUAL TABLE words USING fts5 (text, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');
  CREATE VIRTUAL TABLE counts USING fts5vocab (words, row);

  CREATE TABLE embedders (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    dimension INTEGER,
    complete INTEGER NOT NULL DEFAULT 0,
    -- 1 from the start of a rebuild until its first vectors are stored, which may have another dimension.
    anew INTEGER NOT NULL DEFAULT 0,
    used_at INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE vectors (
    embedder INTEGER NOT NULL,
    resource INTEGER NOT NULL,
    passage INTEGER NOT NULL,
    vector BLOB NOT NULL,
    -- The hash of the text: passages with the same text share the work of an embedder. Null when the vector is to be made again.
    hash TEXT,
    PRIMARY KEY (embedder, resource, passage)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX vectors_hash ON vectors (embedder, hash) WHERE hash IS NOT NULL;
  -- The queue of passages that lack a vector of their present text. A revision is unique: late vectors of a former text do not match it.
  CREATE TABLE unembedded (
    embedder INTEGER NOT NULL,
    passage INTEGER NOT NULL,
    revision INTEGER NOT NULL DEFAULT (random() >> 16),
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (embedder, passage)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX unembedded_due ON unembedded (embedder, due_at, passage);
`

/**
 * Vectors that are in a vector store. The index has a copy of each, so that a clone needs no embedder. Triggers record what is to be
 * deleted there, in the transaction that removes it here; the id of a vector there consists of its scope, passage and revision.
 */
export const placesSchema = `
  -- The name of the vector store; null where the vectors are only here.
  ALTER TABLE embedders ADD COLUMN place TEXT;
  -- The id of the embedder that makes the same vectors and has them only here.
  ALTER TABLE embedders ADD COLUMN model TEXT;
  -- What the vectors of this embedder have in common there.
  ALTER TABLE embedders ADD COLUMN scope TEXT;
  -- 1 when what a lost index left in the store is deleted.
  ALTER TABLE embedders ADD COLUMN cleared INTEGER NOT NULL DEFAULT 0;
  -- Null where the vector is only here.
  ALTER TABLE vectors ADD COLUMN revision INTEGER;
  CREATE INDEX vectors_revision ON vectors (embedder, revision) WHERE revision IS NOT NULL;
  -- Vectors to delete in a vector store. Without a dimension, in each of its indexes.
  CREATE TABLE removals (
    number INTEGER PRIMARY KEY,
    place TEXT NOT NULL,
    scope TEXT NOT NULL,
    dimension INTEGER,
    passage INTEGER NOT NULL,
    revision INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX removals_place ON removals (place, number);
  CREATE INDEX removals_revision ON removals (revision, passage);
  CREATE TRIGGER vectors_added AFTER INSERT ON vectors WHEN new.revision IS NOT NULL BEGIN
    DELETE FROM removals WHERE revision = new.revision AND passage = new.passage;
  END;
  CREATE TRIGGER vectors_replaced AFTER UPDATE OF revision ON vectors WHEN old.revision IS NOT new.revision BEGIN
    DELETE FROM removals WHERE revision = new.revision AND passage = new.passage;
    ${recordRemoval('AND old.revision IS NOT NULL')};
  END;
  CREATE TRIGGER vectors_removed AFTER DELETE ON vectors WHEN old.revision IS NOT NULL BEGIN
    ${recordRemoval()};
  END;
  -- A vector of this revision may be in the store already, or may arrive there.
  CREATE TRIGGER unembedded_replaced AFTER UPDATE OF revision ON unembedded WHEN old.revision <> new.revision BEGIN
    ${recordRemoval()};
  END;
  CREATE TRIGGER unembedded_removed AFTER DELETE ON unembedded BEGIN
    ${recordRemoval()};
  END;
`

function recordRemoval(condition = ''): string {
  return `INSERT INTO removals (place, scope, dimension, passage, revision)
    SELECT place, scope, dimension, old.passage, old.revision FROM embedders WHERE key = old.embedder AND place IS NOT NULL ${condition}`
}

/** The key of the message that a passage belongs to. */
export function messageKey(passage: number): number {
  return Math.floor(passage / maxPassages)
}

/** The key of the first passage of a message; its passages are below the first one of the next key. */
export function firstPassageKey(message: number): number {
  return message * maxPassages
}
