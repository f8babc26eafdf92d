import { rowColumns, threadColumns } from './sql.ts'

const columns = 'id, message_id, role, type, run_id, step, created_at, content'

/** The same of a copy, whose ids end with `mark`: what rows say of themselves and of each other goes along. */
const copied = (mark: string) => `id || ${mark}, message_id || ${mark}, role, type, run_id, step, created_at, CASE
    WHEN role = 'signal' THEN json_replace(content, '$.metadata.signal.id', id || ${mark})
    WHEN role = 'context' AND json_type(content, '$.metadata.sources') = 'array' THEN
      json_replace(content, '$.metadata.sources', json((SELECT json_group_array(source.value || ${mark}) FROM json_each(content, '$.metadata.sources') source)))
    ELSE content END`

/** As `startsMessage` has it. */
export const startsMessage = `(counted > 0 OR role IN ('signal', 'system'))`

const messageKeys = `key IN (
    SELECT key FROM heed_messages WHERE thread = ?1 AND id = ?2 AND message_id = ?2
    UNION ALL SELECT key FROM heed_messages WHERE thread = ?1 AND message_id = ?2 AND message_id <> id)`

/** What is done to whole messages and whole threads. No message passes through the program. */
export const copySql = {
  messageRows: `SELECT ${rowColumns} FROM heed_messages WHERE ${messageKeys} AND role <> 'context'`,
  removeRow: `DELETE FROM heed_messages WHERE thread = ? AND id = ?`,
  transferThread: `UPDATE heed_threads SET resource_id = ? WHERE key = ?`,
  // What was shown to one resource is not another's to see.
  removeContext: `DELETE FROM heed_messages WHERE thread = ? AND role = 'context'`,
  transferRuns: `UPDATE heed_runs SET resource_id = ? WHERE thread = ?`,
  copyAll: `
    INSERT INTO heed_messages (thread, seq, ordinal, turn, counted, ${columns})
    SELECT ?2, seq, ordinal, turn, counted, ${copied('?5')} FROM heed_messages
    WHERE thread = ?1 AND seq > ?3 ORDER BY seq LIMIT ?4`,
  copyTold: `
    INSERT INTO heed_messages (thread, seq, ordinal, turn, counted, ${columns})
    SELECT ?2, seq, ordinal, turn, counted, ${copied('?5')} FROM heed_messages
    WHERE thread = ?1 AND seq > ?3 AND role <> 'context' ORDER BY seq LIMIT ?4`,
  lastSeq: `SELECT max(seq) AS seq FROM heed_messages WHERE thread = ?`,
  copySome: `
    WITH chosen AS (
      SELECT message_id FROM heed_messages
      WHERE thread = ?1 AND ${startsMessage} AND (?3 IS NULL OR created_at >= ?3) AND (?4 IS NULL OR created_at <= ?4)
        AND (?5 IS NULL OR message_id IN (SELECT value FROM json_each(?5)))
      ORDER BY seq DESC LIMIT ?6),
    numbered AS (
      SELECT seq, ${columns}, min(counted, 1) AS counts, counted > 0 AND turn = ordinal AS asks,
        row_number() OVER (ORDER BY seq) AS place, sum(counted > 0) OVER (ORDER BY seq) AS nth
      FROM heed_messages WHERE thread = ?1 AND role <> 'context' AND message_id IN chosen)
    INSERT INTO heed_messages (thread, seq, ordinal, turn, counted, ${columns})
    SELECT ?2, place, nth, coalesce(max(iif(asks, nth, NULL)) OVER (ORDER BY seq), 0), counts, ${copied('?7')} FROM numbered ORDER BY seq`,

  threadsAfter: `SELECT ${threadColumns} FROM heed_threads WHERE key > ? ORDER BY key LIMIT ?`,
  firstStarts: `
    SELECT message_id AS messageId, created_at AS createdAt, role, counted FROM heed_messages
    WHERE thread = ? AND ${startsMessage} ORDER BY seq LIMIT ?`,
  lastStarts: `
    SELECT message_id AS messageId, created_at AS createdAt, role, counted FROM heed_messages
    WHERE thread = ? AND ${startsMessage} ORDER BY seq DESC LIMIT ?`,
  removeSettled: `
    DELETE FROM heed_mailbox WHERE thread = ?1 AND ord IN (
      SELECT ord FROM heed_mailbox WHERE thread = ?1 AND open IS NULL AND accepted_at < ?2 LIMIT ?3)`,
  removeRuns: `
    DELETE FROM heed_runs WHERE key IN (
      SELECT key FROM heed_runs WHERE thread = ? AND status NOT IN ('running', 'suspended') AND started_at < ? LIMIT ?)`,
} as const
