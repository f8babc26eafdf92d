/** Version 9 of the schema: runs of workflows, each beside its thread, and one row for each of their steps, by its path. */
export const workflowSchema = `
  CREATE TABLE heed_workflow_runs (
    thread INTEGER NOT NULL,
    workflow_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    head TEXT NOT NULL,
    input TEXT,
    PRIMARY KEY (thread)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX heed_workflow_runs_list ON heed_workflow_runs (workflow_id, created_at, thread);
  CREATE TABLE heed_workflow_steps (
    thread INTEGER NOT NULL,
    path TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (thread, path)
  ) STRICT, WITHOUT ROWID;
`
