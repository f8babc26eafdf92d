/** Version 11: versions of agents, and the releases that say which of them runs get. Rows are only added. */
export const editSchema = `
  CREATE TABLE heed_agent_versions (
    key INTEGER PRIMARY KEY,
    agent_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    base INTEGER NOT NULL,
    overrides TEXT NOT NULL,
    author TEXT NOT NULL,
    why TEXT,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX heed_agent_versions_agent ON heed_agent_versions (agent_id, version);
  CREATE TABLE heed_agent_releases (
    key INTEGER PRIMARY KEY,
    agent_id TEXT NOT NULL,
    release INTEGER NOT NULL,
    version INTEGER NOT NULL,
    rules TEXT,
    restores INTEGER,
    author TEXT NOT NULL,
    why TEXT,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX heed_agent_releases_agent ON heed_agent_releases (agent_id, release);
`
