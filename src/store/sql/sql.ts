import { TAIL_SEQ } from '../contract/thread-row.ts'

/** A limit that no result reaches. */
export const noLimit = Number.MAX_SAFE_INTEGER

/** The columns, named as the fields of the records; so are the other lists of columns below. */
export const threadColumns = `
  key, id, resource_id AS resourceId, title, metadata, parent_id AS parentId, created_at AS createdAt, updated_at AS updatedAt,
  status, epoch, owner, run_id AS runId, agent_id AS agentId, begun, next_seq AS nextSeq, next_ord AS nextOrd, ordinal, turn,
  tail, tail_ordinal AS tailOrdinal, tail_turn AS tailTurn, due_at AS dueAt, head,
  EXISTS (SELECT 1 FROM heed_lanes WHERE heed_lanes.thread = heed_threads.key) AS laned`

export const rowColumns = `
  seq, id, message_id AS messageId, role, type, run_id AS runId, step, content, created_at AS createdAt, ordinal, turn, counted`

export const mailColumns = `
  ord, id, agent_id AS agentId, route, kind, state, run_id AS runId, start_run_id AS startRunId, step, rows, options,
  bound_to AS boundTo, reason, accepted_at AS acceptedAt, drained_at AS drainedAt, drained_by AS drainedBy, epoch,
  settled_at AS settledAt`

export const runColumns = `
  r.run_id AS runId, r.agent_id AS agentId, r.status, r.epoch, r.step, r.attempts, r.options, r.started, r.suspended,
  r.started_at AS startedAt, r.ended_at AS endedAt, r.suspended_at AS suspendedAt, r.error, r.usage, r.first_seq AS firstSeq,
  r.seal_seq AS sealSeq, r.staged, r.lost, r.ordinal, r.taken, r.decisions`

const workingMemoryColumns = `version, value, at, change_id AS changeId, tainted_by AS taintedBy`

const laneColumns = `
  id, version, cache_key AS cacheKey, mode, last_signal_id AS lastSignalId, last_snapshot_id AS lastSnapshotId, issued`

const laneSignalColumns = `lane, version, signal_id AS signalId, cache_key AS cacheKey, mode`

/** The time of the statement, in milliseconds since 1970, also in versions of SQLite without fractions of a second elsewhere. */
const serverTime = `CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)`

const columns = 'id, message_id, role, type, run_id, step, created_at, content'

/** These columns of a copy. Its ids, and the ids that its content refers to, end with `suffix`. */
const copied = (suffix: string) => `id || ${suffix}, message_id || ${suffix}, role, type, run_id, step, created_at, CASE
    WHEN role = 'signal' THEN json_replace(content, '$.metadata.signal.id', id || ${suffix})
    WHEN role = 'context' AND json_type(content, '$.metadata.sources') = 'array' THEN
      json_replace(content, '$.metadata.sources', json((
        SELECT json_group_array(source.value || ${suffix}) FROM json_each(content, '$.metadata.sources') source)))
    ELSE content END`

/** The condition of `startsMessage` in `store/core`. */
export const startsMessage = `(counted > 0 OR role IN ('signal', 'system'))`

const messageKeys = `key IN (
    SELECT key FROM heed_messages WHERE thread = ?1 AND id = ?2 AND message_id = ?2
    UNION ALL SELECT key FROM heed_messages WHERE thread = ?1 AND message_id = ?2 AND message_id <> id)`

/** The statements of transactions. Each of them is a search by an index; the tests check their plans. */
export const sql = {
  thread: `SELECT ${threadColumns} FROM heed_threads WHERE id = ?`,
  children: `SELECT ${threadColumns} FROM heed_threads WHERE parent_id = ?`,
  addThread: `
    INSERT INTO heed_threads (key, id, resource_id, title, metadata, parent_id, created_at, updated_at, epoch, life)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?8)`,
  epochFloor: `SELECT floor FROM heed_epochs WHERE id = 1`,
  raiseEpochFloor: `UPDATE heed_epochs SET floor = ?1 WHERE id = 1 AND floor < ?1`,
  life: `SELECT coalesce((SELECT life FROM heed_threads WHERE id = ?), (SELECT floor FROM heed_epochs WHERE id = 1)) AS life`,
  // An update writes every index of a column that it sets, changed or not. Within a run, indexed columns do not change.
  countThread: `
    UPDATE heed_threads SET epoch = ?, run_id = ?, agent_id = ?, begun = ?, next_seq = ?, next_ord = ?, ordinal = ?, turn = ?, tail = ?,
      tail_ordinal = ?, tail_turn = ?, bytes = bytes + ?, head = ?
    WHERE key = ?`,
  putThread: `
    UPDATE heed_threads SET epoch = ?, run_id = ?, agent_id = ?, begun = ?, next_seq = ?, next_ord = ?, ordinal = ?, turn = ?, tail = ?,
      tail_ordinal = ?, tail_turn = ?, bytes = bytes + ?, head = ?, updated_at = ?, status = ?, owner = ?, due_at = ?
    WHERE key = ?`,
  describeThread: `UPDATE heed_threads SET title = ?, metadata = ? WHERE key = ?`,
  touchMetadata: `UPDATE heed_thread_metadata SET of_updated = ? WHERE thread = ?`,
  removeThread: `DELETE FROM heed_threads WHERE key = ?`,
  threadBytes: `SELECT bytes FROM heed_threads WHERE key = ?`,
  countCopied: `
    UPDATE heed_threads SET bytes = bytes + (
      SELECT coalesce(sum(length(CAST(content AS BLOB))), 0) FROM heed_messages WHERE thread = ?1)
    WHERE key = ?1`,

  mail: `SELECT ${mailColumns} FROM heed_mailbox WHERE thread = ? AND id = ?`,
  // The index is named because the planner would scan all signals of the thread otherwise.
  pending: `
    SELECT ${mailColumns} FROM heed_mailbox INDEXED BY heed_mailbox_open
    WHERE thread = ? AND open = 1 AND state = 'pending' ORDER BY ord`,
  boundMail: `
    SELECT ${mailColumns} FROM heed_mailbox INDEXED BY heed_mailbox_calls
    WHERE thread = ? AND open = 1 AND bound_to IS NOT NULL AND state = 'pending' ORDER BY ord`,
  addMail: `
    INSERT INTO heed_mailbox (thread, ord, id, agent_id, route, kind, state, open, run_id, start_run_id, step, rows, options,
      bound_to, reason, accepted_at, drained_at, drained_by, epoch, settled_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  changeMail: `UPDATE heed_mailbox SET route = ?, state = ?, run_id = ?, step = ?, rows = ?, reason = ? WHERE thread = ? AND ord = ?`,
  closeMail: `
    UPDATE heed_mailbox SET route = ?, state = ?, run_id = ?, step = ?, rows = ?, reason = ?, drained_at = ?, drained_by = ?, epoch = ?,
      settled_at = ?, open = NULL
    WHERE thread = ? AND ord = ?`,
  // Positions are unique, so the new ones are negative at first.
  moveMail: `UPDATE heed_mailbox SET ord = ? WHERE thread = ? AND id = ?`,
  settleOrder: `UPDATE heed_mailbox SET ord = -ord WHERE thread = ? AND ord < 0`,
  finishTaken: `
    UPDATE heed_mailbox INDEXED BY heed_mailbox_ord SET state = ?, reason = ?, settled_at = ?
    WHERE thread = ? AND ord BETWEEN ? AND ? AND state = 'taken'`,
  cancelBound: `
    UPDATE heed_mailbox SET state = 'cancelled', open = NULL, reason = ?, settled_at = ?
    WHERE bound_to = ? AND open = 1 AND state = 'pending'`,

  run: `SELECT ${runColumns} FROM heed_runs r WHERE r.run_id = ? AND r.thread = ?`,
  activeRun: `
    SELECT ${runColumns} FROM heed_runs r WHERE r.thread = ?1 AND r.run_id = (SELECT t.run_id FROM heed_threads t WHERE t.key = ?1)`,
  addRun: `
    INSERT INTO heed_runs (thread, resource_id, run_id, agent_id, status, epoch, step, attempts, options, started, suspended,
      started_at, ended_at, suspended_at, error, usage, first_seq, seal_seq, ordinal, taken)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (run_id, thread) DO NOTHING`,
  putRun: `
    UPDATE heed_runs SET status = ?, epoch = ?, step = ?, attempts = ?, started = ?, suspended = ?, ended_at = ?, suspended_at = ?,
      error = ?, usage = ?, seal_seq = ?, staged = ?, lost = ?, taken = ?, decisions = ?
    WHERE run_id = ? AND thread = ?`,

  row: `SELECT ${rowColumns} FROM heed_messages WHERE thread = ? AND id = ?`,
  hasMessage: `
    SELECT EXISTS (SELECT 1 FROM heed_messages WHERE thread = ?1 AND id = ?2 AND message_id = ?2)
      OR EXISTS (SELECT 1 FROM heed_messages WHERE thread = ?1 AND message_id = ?2 AND message_id <> id) AS found`,
  addRow: `
    INSERT INTO heed_messages (thread, seq, id, message_id, role, type, run_id, step, content, created_at, ordinal, turn, counted)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (thread, id) DO NOTHING`,
  reviseRow: `
    UPDATE heed_messages SET message_id = ?, role = ?, type = ?, run_id = ?, step = ?, content = ?, created_at = ?
    WHERE thread = ? AND id = ?`,
  mergeTail: `
    UPDATE heed_messages SET
      seq = seq - ${TAIL_SEQ} + ?1, ordinal = ordinal + ?2, turn = CASE WHEN turn = 0 THEN ?3 ELSE turn + ?2 END,
      counted = CASE WHEN counted > 1 THEN 1 ELSE counted END
    WHERE thread = ?4 AND seq >= ${TAIL_SEQ}`,
  rowsFrom: `SELECT ${rowColumns} FROM heed_messages WHERE thread = ? AND seq >= ? AND seq < ${TAIL_SEQ} ORDER BY seq`,
  // From the message that so many follow, or from the first.
  lastRows: `
    SELECT ${rowColumns} FROM heed_messages WHERE thread = ?1 AND seq < ${TAIL_SEQ} AND seq >= coalesce((
      SELECT c.seq FROM heed_messages c WHERE c.thread = ?1 AND c.counted = 1 ORDER BY c.ordinal DESC LIMIT 1 OFFSET ?2), 0)
    ORDER BY seq`,
  removeRowsFrom: `DELETE FROM heed_messages WHERE thread = ? AND seq >= ? AND seq < ${TAIL_SEQ}`,
  lastRow: `SELECT ${rowColumns} FROM heed_messages WHERE thread = ? AND seq < ${TAIL_SEQ} ORDER BY seq DESC LIMIT 1`,
  countedFrom: `SELECT seq, ordinal, turn FROM heed_messages WHERE thread = ? AND counted = 1 AND ordinal >= ? ORDER BY ordinal LIMIT 1`,
  countedBack: `
    SELECT seq, ordinal, turn FROM heed_messages WHERE thread = ? AND counted = 1 AND ordinal <= ? ORDER BY ordinal DESC LIMIT 1 OFFSET ?`,
  removeMessage: `DELETE FROM heed_messages WHERE thread = ?1 AND id = ?2 AND message_id = ?2 AND role <> 'context'`,
  removeParts: `DELETE FROM heed_messages WHERE thread = ?1 AND message_id = ?2 AND message_id <> id AND role <> 'context'`,
  removeQuotes: `
    DELETE FROM heed_messages WHERE thread = ?1 AND role = 'context' AND EXISTS (
      SELECT 1 FROM json_each(content, '$.metadata.sources') quoted WHERE quoted.value IN (SELECT value FROM json_each(?2)))`,
  removeQuotesElsewhere: `
    DELETE FROM heed_messages WHERE key IN (
      SELECT quoted_by FROM heed_quotes WHERE thread = ?1 AND message_id IN (SELECT value FROM json_each(?2)))`,
  countMessages: `SELECT count(DISTINCT message_id) AS count FROM heed_messages WHERE thread = ? AND role <> 'context'`,
  removeAllRows: `DELETE FROM heed_messages WHERE thread = ?`,

  lane: `SELECT ${laneColumns} FROM heed_lanes WHERE thread = ? AND id = ?`,
  lanes: `SELECT ${laneColumns} FROM heed_lanes WHERE thread = ? AND id > ? ORDER BY id LIMIT ?`,
  putLane: `
    INSERT INTO heed_lanes (thread, id, version, cache_key, mode, last_signal_id, last_snapshot_id, issued) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (thread, id) DO UPDATE SET version = excluded.version, cache_key = excluded.cache_key, mode = excluded.mode,
      last_signal_id = excluded.last_signal_id, last_snapshot_id = excluded.last_snapshot_id, issued = excluded.issued`,
  addLaneSignal: `INSERT INTO heed_lane_signals (thread, lane, version, signal_id, cache_key, mode) VALUES (?, ?, ?, ?, ?, ?)`,
  laneSignal: `SELECT ${laneSignalColumns} FROM heed_lane_signals WHERE thread = ? AND signal_id = ?`,
  removeLaneSignal: `DELETE FROM heed_lane_signals WHERE thread = ? AND lane = ? AND version = ?`,
  laneSignals: `
    SELECT ${laneSignalColumns} FROM heed_lane_signals
    WHERE thread = ? AND lane = ? AND version < ? ORDER BY version DESC LIMIT ?`,

  workingMemory: `SELECT ${workingMemoryColumns} FROM heed_working_memory WHERE owner = ? ORDER BY version DESC LIMIT 1`,
  workingMemoryAt: `SELECT ${workingMemoryColumns} FROM heed_working_memory WHERE owner = ? AND version = ?`,
  workingMemories: `SELECT ${workingMemoryColumns} FROM heed_working_memory WHERE owner = ? AND version < ? ORDER BY version DESC LIMIT ?`,
  workingMemoryChange: `SELECT 1 AS found FROM heed_working_memory WHERE owner = ? AND change_id = ? LIMIT 1`,
  addWorkingMemory: `INSERT INTO heed_working_memory (owner, version, value, at, change_id, tainted_by) VALUES (?, ?, ?, ?, ?, ?)`,
  forgetWorkingMemory: `DELETE FROM heed_working_memory WHERE owner = ? AND version <= ?`,

  pruning: `SELECT after, due_at AS dueAt FROM heed_pruning WHERE id = 1`,
  putPruning: `INSERT INTO heed_pruning (id, after, due_at) VALUES (1, ?1, ?2) ON CONFLICT (id) DO UPDATE SET after = ?1, due_at = ?2`,
  title: `SELECT agent_id AS agentId, owner, due_at AS dueAt, attempts FROM heed_titles WHERE thread = ?`,
  putTitle: `
    INSERT INTO heed_titles (thread, thread_id, agent_id, owner, due_at, attempts) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (thread) DO UPDATE SET agent_id = excluded.agent_id, owner = excluded.owner, due_at = excluded.due_at,
      attempts = excluded.attempts`,
  removeTitle: `DELETE FROM heed_titles WHERE thread = ?`,
  dueTitles: `
    SELECT thread_id AS threadId, agent_id AS agentId, owner, due_at AS dueAt, attempts
    FROM heed_titles WHERE agent_id = ? AND due_at <= ? ORDER BY due_at LIMIT ?`,
  handOverTitles: `UPDATE heed_titles SET owner = NULL, due_at = ? WHERE owner = ?`,

  process: `SELECT until, length FROM heed_processes WHERE owner = ? AND closed_at IS NULL`,
  putProcess: `
    INSERT INTO heed_processes (owner, until, length, pid, host, version, started_at) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (owner) DO UPDATE SET until = excluded.until, length = excluded.length, closed_at = NULL`,
  forgetProcesses: `DELETE FROM heed_processes WHERE until < ?`,
  // The same on a server, whose processes need not agree about the time: the statement's own counts.
  processByServer: `SELECT until, length, ${serverTime} AS now FROM heed_processes WHERE owner = ? AND closed_at IS NULL`,
  putProcessByServer: `
    INSERT INTO heed_processes (owner, until, length, pid, host, version, started_at) VALUES (?, ${serverTime} + ?, ?, ?, ?, ?, ?)
    ON CONFLICT (owner) DO UPDATE SET until = excluded.until, length = excluded.length, closed_at = NULL`,
  forgetProcessesByServer: `DELETE FROM heed_processes WHERE until < ${serverTime} + ?`,
  closeProcess: `UPDATE heed_processes SET closed_at = ? WHERE owner = ?`,
  closeProcessByServer: `UPDATE heed_processes SET closed_at = ${serverTime} WHERE owner = ?`,
  // A graceful handover does not count as an attempt.
  handOverRuns: `
    UPDATE heed_runs SET attempts = CASE WHEN attempts > 1 THEN attempts - 1 ELSE 1 END
    WHERE (run_id, thread) IN (SELECT run_id, key FROM heed_threads WHERE owner = ? AND status <> 'idle' AND begun = 1)`,
  handOver: `UPDATE heed_threads SET owner = NULL, due_at = ? WHERE owner = ? AND status <> 'idle'`,
  boundThreads: `SELECT thread FROM heed_mailbox WHERE bound_to = ? AND open = 1 AND state = 'pending'`,
  forgetDue: `
    UPDATE heed_threads SET due_at = NULL WHERE key = ? AND due_at IS NOT NULL AND status = 'idle'
      AND NOT EXISTS (SELECT 1 FROM heed_mailbox m WHERE m.thread = heed_threads.key AND m.open = 1)`,

  // Finds the owners one by one, however many threads each has.
  nextOwner: `SELECT owner FROM heed_threads WHERE owner > ? AND status <> 'idle' ORDER BY owner LIMIT 1`,
  threadsOfOwner: `
    SELECT key, id, agent_id AS agentId
    FROM heed_threads WHERE owner = ? AND status <> 'idle' AND key > ? ORDER BY key LIMIT ?`,
  dueThreads: `SELECT ${threadColumns} FROM heed_threads WHERE due_at IS NOT NULL AND (due_at, key) > (?, ?) ORDER BY due_at, key LIMIT ?`,

  anyPurge: `SELECT thread FROM heed_purges LIMIT 1`,
  addPurge: `INSERT INTO heed_purges (thread) VALUES (?) ON CONFLICT DO NOTHING`,
  removePurge: `DELETE FROM heed_purges WHERE thread = ?`,
  purgeMessages: `DELETE FROM heed_messages WHERE key IN (SELECT key FROM heed_messages WHERE thread = ? LIMIT ?)`,
  purgeMailbox: `DELETE FROM heed_mailbox WHERE thread = ?1 AND ord IN (SELECT ord FROM heed_mailbox WHERE thread = ?1 LIMIT ?2)`,
  purgeRuns: `DELETE FROM heed_runs WHERE key IN (SELECT key FROM heed_runs WHERE thread = ? LIMIT ?)`,
  purgeLaneSignals: `
    DELETE FROM heed_lane_signals WHERE thread = ?1 AND (lane, version) IN (
      SELECT lane, version FROM heed_lane_signals WHERE thread = ?1 LIMIT ?2)`,
  purgeLanes: `DELETE FROM heed_lanes WHERE thread = ?`,

  messageRows: `SELECT ${rowColumns} FROM heed_messages WHERE ${messageKeys} AND role <> 'context'`,
  removeRow: `DELETE FROM heed_messages WHERE thread = ? AND id = ?`,
  transferThread: `UPDATE heed_threads SET resource_id = ? WHERE key = ?`,
  // Context rows may quote other threads of the previous resource.
  removeContext: `DELETE FROM heed_messages WHERE thread = ? AND role = 'context'`,
  transferRuns: `UPDATE heed_runs SET resource_id = ? WHERE thread = ?`,
  // The database copies the messages; this process does not read them.
  copyAll: `
    INSERT INTO heed_messages (thread, seq, ordinal, turn, counted, ${columns})
    SELECT ?2, seq, ordinal, turn, counted, ${copied('?5')} FROM heed_messages
    WHERE thread = ?1 AND seq > ?3 ORDER BY seq LIMIT ?4`,
  copyVisible: `
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
      SELECT seq, ${columns}, CASE WHEN counted > 0 THEN 1 ELSE 0 END AS counts, counted > 0 AND turn = ordinal AS asks,
        row_number() OVER (ORDER BY seq) AS place, count(*) FILTER (WHERE counted > 0) OVER (ORDER BY seq) AS nth
      FROM heed_messages WHERE thread = ?1 AND role <> 'context' AND message_id IN (SELECT message_id FROM chosen))
    INSERT INTO heed_messages (thread, seq, ordinal, turn, counted, ${columns})
    SELECT ?2, place, nth, coalesce(max(CASE WHEN asks THEN nth END) OVER (ORDER BY seq), 0), counts, ${copied('?7')}
    FROM numbered ORDER BY seq`,

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
