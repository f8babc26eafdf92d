/** Version 10: scores of runs, and the work to make them. `due_at` is null in a final state. */
export const scoreSchema = `
  CREATE TABLE heed_scores (
    key INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    scorer_id TEXT NOT NULL,
    version TEXT NOT NULL,
    state TEXT NOT NULL,
    due_at INTEGER,
    attempts INTEGER NOT NULL,
    score REAL,
    reason TEXT,
    error TEXT,
    usage TEXT,
    created_at INTEGER NOT NULL,
    settled_at INTEGER
  ) STRICT;
  CREATE UNIQUE INDEX heed_scores_run ON heed_scores (run_id, thread, scorer_id, version);
  CREATE INDEX heed_scores_due ON heed_scores (agent_id, due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX heed_scores_thread ON heed_scores (thread, key);
  CREATE INDEX heed_scores_resource ON heed_scores (resource_id, key);
  CREATE INDEX heed_scores_agent ON heed_scores (agent_id, key);
`

/** Version 13: what a score is about, besides its run: the span of the run, its steps and the version of its agent. */
export const scoreOriginSchema = `
  ALTER TABLE heed_scores ADD COLUMN trace_id TEXT;
  ALTER TABLE heed_scores ADD COLUMN span_id TEXT;
  ALTER TABLE heed_scores ADD COLUMN steps INTEGER;
  ALTER TABLE heed_scores ADD COLUMN agent_version INTEGER;
`

/** Version 15: scores of steps of workflows, scores that people gave, and retries. */
export const givenScoreSchema = `
  ALTER TABLE heed_scores ADD COLUMN step_path TEXT NOT NULL DEFAULT '';
  ALTER TABLE heed_scores ADD COLUMN step_id TEXT;
  ALTER TABLE heed_scores ADD COLUMN given_by TEXT NOT NULL DEFAULT '';
  ALTER TABLE heed_scores ADD COLUMN source TEXT NOT NULL DEFAULT 'live';
  ALTER TABLE heed_scores ADD COLUMN retries INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE heed_scores ADD COLUMN metadata TEXT;
  DROP INDEX heed_scores_run;
  CREATE UNIQUE INDEX heed_scores_one ON heed_scores (run_id, thread, scorer_id, version, step_path, given_by);
`
