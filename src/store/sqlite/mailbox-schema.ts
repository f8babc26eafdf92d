/**
 * Signals of one moment are neighbours here, of whatever threads they are, in the table as by their ids: many of them are written to few pages.
 * By thread and place only a few bytes of each are kept, which fill a page slowly.
 */
export const mailboxSchema = `
  CREATE TABLE heed_mailbox_by_key (
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
  INSERT INTO heed_mailbox_by_key
    (thread, ord, id, agent_id, route, kind, state, open, run_id, start_run_id, step, bound_to, reason, accepted_at, options, rows)
  SELECT thread, ord, id, agent_id, route, kind, state, open, run_id, start_run_id, step, bound_to, reason, accepted_at, options, rows
  FROM heed_mailbox ORDER BY thread, ord;
  DROP TABLE heed_mailbox;
  ALTER TABLE heed_mailbox_by_key RENAME TO heed_mailbox;
  CREATE UNIQUE INDEX heed_mailbox_ord ON heed_mailbox (thread, ord);
  CREATE UNIQUE INDEX heed_mailbox_id ON heed_mailbox (id, thread);
  CREATE INDEX heed_mailbox_open ON heed_mailbox (thread, ord) WHERE open = 1;
  CREATE INDEX heed_mailbox_bound ON heed_mailbox (bound_to) WHERE open = 1 AND bound_to IS NOT NULL;
`
