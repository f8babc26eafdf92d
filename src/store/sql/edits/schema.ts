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

/** Version 14: prompt blocks, versions whose contents were removed, and the blocks that the versions of a release refer to. */
export const promptBlockSchema = `
  CREATE TABLE heed_block_versions (
    key INTEGER PRIMARY KEY,
    block_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    base INTEGER NOT NULL,
    contents TEXT NOT NULL,
    author TEXT NOT NULL,
    why TEXT,
    created_at INTEGER NOT NULL,
    deleted TEXT
  ) STRICT;
  CREATE UNIQUE INDEX heed_block_versions_block ON heed_block_versions (block_id, version);
  CREATE TABLE heed_block_releases (
    key INTEGER PRIMARY KEY,
    block_id TEXT NOT NULL,
    release INTEGER NOT NULL,
    version INTEGER NOT NULL,
    restores INTEGER,
    author TEXT NOT NULL,
    why TEXT,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX heed_block_releases_block ON heed_block_releases (block_id, release);
  ALTER TABLE heed_agent_versions ADD COLUMN deleted TEXT;
  ALTER TABLE heed_agent_releases ADD COLUMN blocks TEXT;
  CREATE INDEX heed_agent_releases_blocks ON heed_agent_releases (agent_id, release) WHERE blocks IS NOT NULL;
`
