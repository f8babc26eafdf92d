/** Threads by the one above them: they go, and change hands, with it. */
export const belowSchema = `
  CREATE INDEX heed_threads_parent ON heed_threads (parent_id, created_at, id) WHERE parent_id IS NOT NULL;
`
