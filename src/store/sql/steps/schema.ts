/**
 * Version 7 of the schema: what was done with signals, runs and notifications, and by which process, for people who look at it. A step
 * has `seq` of the first row after its prompt, so that the steps of a thread are neighbors in their order.
 */
export const stepSchema = `
  CREATE TABLE heed_steps (
    thread INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    step INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    provider TEXT,
    model_id TEXT,
    specification TEXT,
    finish TEXT,
    usage TEXT,
    head TEXT NOT NULL,
    window_from INTEGER NOT NULL,
    window_cut INTEGER NOT NULL,
    row_count INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    hash TEXT NOT NULL,
    altered TEXT,
    PRIMARY KEY (thread, seq, step, epoch)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX heed_steps_head ON heed_steps (head);
  -- By their hashes. used_at is refreshed once an hour at most; a head that was not used for a day and that no step has is removed.
  CREATE TABLE heed_prompt_heads (
    hash TEXT PRIMARY KEY,
    tools TEXT NOT NULL,
    used_at INTEGER NOT NULL,
    content TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX heed_prompt_heads_tools ON heed_prompt_heads (tools);
  CREATE TABLE heed_prompt_tools (
    hash TEXT PRIMARY KEY,
    used_at INTEGER NOT NULL,
    content TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE heed_takeovers (
    thread INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    step INTEGER NOT NULL,
    lost TEXT,
    owner TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (thread, epoch)
  ) STRICT, WITHOUT ROWID;

  ALTER TABLE heed_mailbox ADD COLUMN drained_at INTEGER;
  ALTER TABLE heed_mailbox ADD COLUMN drained_by TEXT;
  ALTER TABLE heed_mailbox ADD COLUMN epoch INTEGER;
  ALTER TABLE heed_mailbox ADD COLUMN settled_at INTEGER;

  ALTER TABLE heed_runs ADD COLUMN decisions TEXT;

  ALTER TABLE heed_processes ADD COLUMN pid INTEGER;
  ALTER TABLE heed_processes ADD COLUMN host TEXT;
  ALTER TABLE heed_processes ADD COLUMN version TEXT;
  ALTER TABLE heed_processes ADD COLUMN started_at INTEGER;
  ALTER TABLE heed_processes ADD COLUMN closed_at INTEGER;
  CREATE INDEX heed_processes_until ON heed_processes (until);

  ALTER TABLE heed_notifications ADD COLUMN rule TEXT;
  CREATE INDEX heed_notifications_resource ON heed_notifications (resource_id, key);
`

/**
 * Version 8: which threads have steps with which head. An index of steps by their heads costs each step another page; a thread seldom
 * changes its head, so the head of its last step is a column of its row, and a change of it adds a row here. `seq` is that of the step that
 * changed to this head last.
 */
export const headUseSchema = `
  DROP INDEX heed_steps_head;
  CREATE TABLE heed_prompt_uses (
    thread INTEGER NOT NULL,
    head TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (thread, head)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO heed_prompt_uses (thread, head, seq) SELECT thread, head, min(seq) FROM heed_steps GROUP BY thread, head;
  CREATE INDEX heed_prompt_uses_head ON heed_prompt_uses (head);
  ALTER TABLE heed_threads ADD COLUMN head TEXT;
`
