/** What threads want to hear of, and whose turn it is to ask a source. */
export const subscriptionSchema = `
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
  CREATE TABLE heed_polls (
    source_id TEXT PRIMARY KEY,
    until INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE heed_deliveries (
    source_id TEXT NOT NULL,
    id TEXT NOT NULL,
    signed_at INTEGER NOT NULL,
    PRIMARY KEY (source_id, id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX heed_deliveries_signed ON heed_deliveries (signed_at);
`

/** Who asks a source now, and where the last one ended; each signing of a delivery is one of its own. */
export const subscriptionTurnSchema = `
  ALTER TABLE heed_polls ADD COLUMN holder TEXT;
  ALTER TABLE heed_polls ADD COLUMN cursor TEXT;
  CREATE TABLE heed_signed_deliveries (
    source_id TEXT NOT NULL,
    id TEXT NOT NULL,
    signed_at INTEGER NOT NULL,
    PRIMARY KEY (source_id, id, signed_at)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO heed_signed_deliveries SELECT source_id, id, signed_at FROM heed_deliveries;
  DROP TABLE heed_deliveries;
  ALTER TABLE heed_signed_deliveries RENAME TO heed_deliveries;
  CREATE INDEX heed_deliveries_signed ON heed_deliveries (signed_at);
`
