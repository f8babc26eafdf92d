/** Schedules. `next_at` is the occurrence that comes next; `due_at` is when to see to it, which a claim moves on. */
export const scheduleSchema = `
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
