const columns = `
  seq, step, epoch, run_id AS runId, owner, started_at AS startedAt, finished_at AS finishedAt, provider, model_id AS modelId,
  specification, finish, usage, head, window_from AS windowFrom, window_cut AS windowCut, row_count AS rowCount, messages, hash, altered`

/** The statements of steps, heads and takeovers. Each of them is a search by an index; the tests check their plans. */
export const stepSql = {
  add: `
    INSERT INTO heed_steps (thread, seq, step, epoch, run_id, owner, started_at, finished_at, provider, model_id, specification, finish,
      usage, head, window_from, window_cut, row_count, messages, hash, altered)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING`,
  // After a change of the head only: see `heed_threads.head`.
  addUse: `
    INSERT INTO heed_prompt_uses (thread, head, seq) VALUES (?, ?, ?) ON CONFLICT (thread, head) DO UPDATE SET seq = excluded.seq`,
  // An update of a row that others update would wait for their commits: it is left alone if another process refreshed it.
  putHead: `
    INSERT INTO heed_prompt_heads (hash, tools, used_at, content) SELECT ?1, ?2, ?3, ?4
    WHERE NOT EXISTS (SELECT 1 FROM heed_prompt_heads WHERE hash = ?1 AND used_at > ?5)
    ON CONFLICT (hash) DO UPDATE SET used_at = excluded.used_at`,
  putTools: `
    INSERT INTO heed_prompt_tools (hash, used_at, content) SELECT ?1, ?2, ?3
    WHERE NOT EXISTS (SELECT 1 FROM heed_prompt_tools WHERE hash = ?1 AND used_at > ?4)
    ON CONFLICT (hash) DO UPDATE SET used_at = excluded.used_at`,
  addTakeover: `
    INSERT INTO heed_takeovers (thread, epoch, run_id, step, lost, owner, at) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,

  /** Of a thread, from one `seq` on and below another. */
  between: `SELECT ${columns} FROM heed_steps WHERE thread = ? AND seq >= ? AND seq < ? ORDER BY seq, step, epoch`,
  previous: `
    SELECT ${columns} FROM heed_steps WHERE thread = ?1 AND (seq, step, epoch) < (?2, ?3, ?4)
    ORDER BY seq DESC, step DESC, epoch DESC LIMIT 1`,
  head: `
    SELECT h.content AS text, t.content AS tools FROM heed_prompt_heads h JOIN heed_prompt_tools t ON t.hash = h.tools WHERE h.hash = ?`,
  takeovers: `SELECT epoch, run_id AS runId, step, lost, owner, at FROM heed_takeovers WHERE thread = ? AND epoch >= ? ORDER BY epoch`,

  purgeSteps: `
    DELETE FROM heed_steps WHERE thread = ?1 AND (seq, step, epoch) IN (
      SELECT seq, step, epoch FROM heed_steps WHERE thread = ?1 LIMIT ?2)`,
  purgeUses: `DELETE FROM heed_prompt_uses WHERE thread = ?1 AND head IN (SELECT head FROM heed_prompt_uses WHERE thread = ?1 LIMIT ?2)`,
  purgeTakeovers: `DELETE FROM heed_takeovers WHERE thread = ?1 AND epoch IN (SELECT epoch FROM heed_takeovers WHERE thread = ?1 LIMIT ?2)`,
  removeSteps: `
    DELETE FROM heed_steps WHERE thread = ?1 AND (seq, step, epoch) IN (
      SELECT seq, step, epoch FROM heed_steps WHERE thread = ?1 AND started_at < ?2 LIMIT ?3)`,
  removeTakeovers: `
    DELETE FROM heed_takeovers WHERE thread = ?1 AND epoch IN (SELECT epoch FROM heed_takeovers WHERE thread = ?1 AND at < ?2 LIMIT ?3)`,
  headsAfter: `SELECT hash, tools, used_at AS usedAt FROM heed_prompt_heads WHERE hash > ? ORDER BY hash LIMIT ?`,
  removeHead: `
    DELETE FROM heed_prompt_heads WHERE hash = ?1 AND used_at < ?2 AND NOT EXISTS (
      SELECT 1 FROM heed_prompt_uses u WHERE u.head = ?1 AND EXISTS (
        SELECT 1 FROM heed_steps s WHERE s.thread = u.thread AND s.seq >= u.seq AND s.head = ?1))`,
  // A thread whose steps were pruned and that still has the head adds no row when it uses the head again.
  removeUses: `
    DELETE FROM heed_prompt_uses WHERE head = ?1 AND NOT EXISTS (
      SELECT 1 FROM heed_threads t WHERE t.key = heed_prompt_uses.thread AND t.head = ?1)`,
  removeTools: `
    DELETE FROM heed_prompt_tools WHERE hash = ?1 AND used_at < ?2 AND NOT EXISTS (SELECT 1 FROM heed_prompt_heads WHERE tools = ?1)`,

  processes: `
    SELECT owner, until, length, pid, host, version, started_at AS startedAt, closed_at AS closedAt FROM heed_processes ORDER BY owner`,
  threadsOf: `SELECT count(*) AS threads FROM heed_threads WHERE owner = ? AND status <> 'idle'`,
} as const
