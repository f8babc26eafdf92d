import { notificationStatuses, type MarkedStatus } from '../../contract/notifications.ts'

/** Columns under the names of `NotificationRow`. */
const columns = `
  n.key, n.thread_id AS threadId, n.id, n.resource_id AS resourceId, n.agent_id AS agentId, n.status, n.priority, n.batch,
  n.due_at AS dueAt, n.decided, n.flight, n.when_idle AS whenIdle, n.remember_until AS rememberUntil, n.coalesced_count AS coalescedCount,
  n.attempts, n.created_at AS createdAt, n.updated_at AS updatedAt, n.deliver_at AS deliverAt, n.attempted_at AS attemptedAt,
  n.delivered_at AS deliveredAt, n.seen_at AS seenAt, n.dismissed_at AS dismissedAt, n.archived_at AS archivedAt,
  n.discarded_at AS discardedAt, n.delivered_signal_id AS deliveredSignalId, n.reason, n.error, n.dedupe_key AS dedupeKey,
  n.coalesce_key AS coalesceKey, n.source, n.kind, n.summary, n.attributes, n.metadata, n.payload, n.action, n.changed, n.rule,
  b.due_at AS summaryAt, b.signal_id AS summarySignalId, b.key IS NOT NULL AND b.open IS NULL AS summarized`

/** Stores the number of the current change. `countChange` must run earlier in the same transaction. */
export const changeNumber = '(SELECT last FROM heed_notification_changes WHERE one = 1)'
export const touched = `changed = ${changeNumber}`

/** A query of records; the caller adds its conditions. */
export const fromNotifications = `
  SELECT ${columns} FROM heed_notifications n LEFT JOIN heed_notification_batches b ON b.key = n.batch`

const batchColumns = `
  key, id, thread_id AS threadId, resource_id AS resourceId, agent_id AS agentId, open, first_at AS firstAt, due_at AS dueAt, attempts`

/** One column for each status: SQLite reads the index of a thread once and sorts nothing. */
const counted = notificationStatuses.map((status) => `count(*) FILTER (WHERE status = '${status}') AS ${status}`).join(', ')

/** Sets the status that a user chose. The record's `dedupeKey` is remembered as after a delivery. */
function markAs(status: MarkedStatus): string {
  return `
    UPDATE heed_notifications SET status = '${status}', ${status}_at = ?, updated_at = ?1, due_at = NULL, when_idle = NULL,
      coalesce_slot = NULL, dedupe_slot = CASE WHEN coalesce(remember_until, remember_ms) IS NOT NULL THEN dedupe_slot END,
      remember_until = coalesce(remember_until, ?1 + remember_ms), ${touched}
    WHERE key = ?`
}

/** The statements of the inbox. Each of them is a search by an index; the tests check their plans. */
export const notificationSql = {
  byId: `${fromNotifications} WHERE n.thread_id = ? AND n.id = ?`,
  firstOwner: `SELECT resource_id AS resourceId FROM heed_notifications WHERE thread_id = ? ORDER BY key LIMIT 1`,
  byKey: `${fromNotifications} WHERE n.key = ?`,
  byDedupeSlot: `${fromNotifications} WHERE n.dedupe_slot = ?`,
  byCoalesceSlot: `${fromNotifications} WHERE n.coalesce_slot = ?`,
  add: `
    INSERT INTO heed_notifications (thread_id, id, resource_id, agent_id, status, priority, due_at, dedupe_slot, coalesce_slot, created_at,
      updated_at, dedupe_key, coalesce_key, source, kind, summary, attributes, metadata, payload, remember_ms, decided, flight, batch,
      when_idle, deliver_at, reason, discarded_at, action, rule, changed)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
      ${changeNumber})`,
  count: `UPDATE heed_notifications SET coalesced_count = coalesced_count + ?3, updated_at = ?1, ${touched} WHERE key = ?2`,
  merge: `
    UPDATE heed_notifications SET coalesced_count = coalesced_count + 1, updated_at = ?, priority = ?, kind = ?, summary = ?,
      attributes = ?, metadata = ?, payload = ?, remember_ms = coalesce(remember_ms, ?), ${touched}
    WHERE key = ?`,
  // Run for every new notification, and rarely find a row. Separate statements without a join are the cheapest.
  mergedById: `SELECT record FROM heed_notification_merged WHERE id = ? AND thread_id = ?`,
  mergedBySlot: `SELECT record FROM heed_notification_merged WHERE dedupe_slot = ? ORDER BY key DESC LIMIT 1`,
  rememberMerged: `INSERT INTO heed_notification_merged (record, thread_id, id, dedupe_slot) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  // Keeps the newest, because a sender repeats a notification soon or not at all.
  forgetMerged: `
    DELETE FROM heed_notification_merged WHERE record = ?1 AND key <= (
      SELECT key FROM heed_notification_merged WHERE record = ?1 ORDER BY key DESC LIMIT 1 OFFSET ?2)`,
  forgetMergedKey: `UPDATE heed_notification_merged SET dedupe_slot = NULL WHERE dedupe_slot = ?`,
  forgetKey: `UPDATE heed_notifications SET dedupe_slot = NULL, remember_until = NULL WHERE key = ?`,

  send: `
    UPDATE heed_notifications SET decided = 1, flight = 1, coalesce_slot = NULL, batch = NULL, when_idle = NULL, deliver_at = NULL,
      due_at = ?, reason = ?, updated_at = ?, action = ?, rule = ?, ${touched}
    WHERE key = ?`,
  wait: `
    UPDATE heed_notifications SET decided = 1, batch = ?, when_idle = ?, deliver_at = ?, due_at = ?, reason = ?, updated_at = ?,
      action = ?, rule = ?, ${touched}
    WHERE key = ?`,
  discard: `
    UPDATE heed_notifications SET decided = 1, status = 'discarded', batch = NULL, when_idle = NULL, deliver_at = NULL, due_at = NULL,
      dedupe_slot = NULL, coalesce_slot = NULL, reason = ?, discarded_at = ?, updated_at = ?, action = 'discard', rule = ?, ${touched}
    WHERE key = ?`,

  due: `${fromNotifications} WHERE n.agent_id = ? AND n.due_at IS NOT NULL AND n.due_at <= ? ORDER BY n.due_at LIMIT ?`,
  postpone: `UPDATE heed_notifications SET due_at = ? WHERE key = ?`,
  take: `UPDATE heed_notifications SET due_at = ?, flight = 1, when_idle = NULL, coalesce_slot = NULL WHERE key = ?`,
  idle: `
    ${fromNotifications}
    WHERE n.thread_id = ? AND n.when_idle = 1 AND n.agent_id = ? AND (n.deliver_at IS NULL OR n.deliver_at <= ?)
    ORDER BY n.key LIMIT ?`,
  addWait: `INSERT INTO heed_notification_waits (thread_id, agent_id, since, due_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  dueWaits: `
    SELECT thread_id AS threadId, agent_id AS agentId, since, due_at AS dueAt FROM heed_notification_waits
    WHERE agent_id = ? AND due_at <= ? ORDER BY due_at LIMIT ?`,
  nextWaitDue: `SELECT min(due_at) AS at FROM heed_notification_waits WHERE agent_id = ?`,
  moveWait: `UPDATE heed_notification_waits SET due_at = ? WHERE thread_id = ? AND agent_id = ?`,
  // Deletes the timer unless a record of the agent still waits for the idle thread without a time of its own.
  endWait: `
    DELETE FROM heed_notification_waits WHERE thread_id = ?1 AND agent_id = ?2 AND NOT EXISTS (
      SELECT 1 FROM heed_notifications n WHERE n.thread_id = ?1 AND n.when_idle = 1 AND n.agent_id = ?2 AND n.due_at IS NULL)`,
  laterWaits: `SELECT agent_id AS agentId FROM heed_notification_waits WHERE thread_id = ? AND due_at > ?`,
  anyIdle: `SELECT EXISTS (SELECT 1 FROM heed_notifications WHERE thread_id = ? AND when_idle = 1) AS found`,
  nextDue: `SELECT min(due_at) AS at FROM heed_notifications WHERE agent_id = ? AND due_at IS NOT NULL`,
  nextBatchDue: `SELECT min(due_at) AS at FROM heed_notification_batches WHERE agent_id = ? AND due_at IS NOT NULL`,
  delivered: `
    UPDATE heed_notifications SET status = ?1, due_at = ?6, flight = CASE WHEN ?6 IS NULL THEN 0 ELSE 2 END, when_idle = NULL,
      deliver_at = NULL, coalesce_slot = NULL,
      dedupe_slot = CASE WHEN coalesce(?2, remember_until, remember_ms) IS NOT NULL THEN dedupe_slot END,
      remember_until = coalesce(?2, remember_until, ?4 + remember_ms), delivered_signal_id = ?3,
      delivered_at = coalesce(delivered_at, ?4), seen_at = CASE WHEN ?1 = 'seen' THEN coalesce(seen_at, ?4) ELSE seen_at END,
      attempts = CASE WHEN delivered_signal_id IS DISTINCT FROM ?3 THEN attempts + 1 ELSE attempts END,
      attempted_at = ?4, updated_at = ?4, error = NULL, ${touched}
    WHERE key = ?5`,
  confirmed: `UPDATE heed_notifications SET due_at = NULL, flight = 0 WHERE key = ?`,
  retry: `
    UPDATE heed_notifications SET due_at = ?, attempts = attempts + 1, attempted_at = ?, error = ?, updated_at = ?2, ${touched}
    WHERE key = ?`,
  fail: `
    UPDATE heed_notifications SET status = 'failed', due_at = NULL, when_idle = NULL, dedupe_slot = NULL, coalesce_slot = NULL,
      remember_until = NULL, attempts = CASE WHEN status = 'pending' THEN attempts + 1 ELSE attempts END, attempted_at = ?, error = ?,
      updated_at = ?1, ${touched}
    WHERE key = ?`,
  reopen: `
    UPDATE heed_notifications SET status = 'pending',
      decided = CASE WHEN coalesce(action, 'summarize') <> 'summarize' OR deliver_at IS NOT NULL THEN 1 ELSE 0 END,
      flight = CASE WHEN coalesce(action, 'summarize') <> 'summarize' OR deliver_at IS NOT NULL THEN 1 ELSE 0 END,
      attempts = 0, error = NULL, batch = NULL,
      due_at = ?1, updated_at = ?1, dedupe_slot = ?2,
      coalesce_slot = CASE WHEN coalesce(action, 'summarize') <> 'summarize' OR deliver_at IS NOT NULL THEN NULL ELSE ?3 END, ${touched}
    WHERE key = ?4`,
  seen: markAs('seen'),
  dismissed: markAs('dismissed'),
  archived: markAs('archived'),
  counts: `SELECT ${counted} FROM heed_notifications WHERE thread_id = ?`,
  countsOfResource: `SELECT ${counted} FROM heed_notifications WHERE thread_id = ? AND resource_id = ?`,

  countChange: `UPDATE heed_notification_changes SET last = last + 1 WHERE one = 1`,
  lastChange: `SELECT last FROM heed_notification_changes WHERE one = 1 AND ?1 IS NOT NULL`,
  // Reads span by span, so the rows come in the order of their change numbers.
  changes: `
    WITH RECURSIVE span (number) AS (SELECT ?1 UNION ALL SELECT number + 1 FROM span WHERE number < ?2)
    SELECT ${columns} FROM span
    CROSS JOIN heed_notifications n INDEXED BY heed_notifications_changed LEFT JOIN heed_notification_batches b ON b.key = n.batch
    WHERE n.changed >> 10 = span.number AND n.resource_id = ?3 AND (n.changed, n.key) > (?4, ?5) AND (?6 IS NULL OR n.thread_id = ?6)
    LIMIT ?7`,

  window: `
    SELECT ${batchColumns} FROM heed_notification_batches
    WHERE thread_id = ? AND resource_id = ? AND agent_id = ? AND open = 1 AND form = 'window'`,
  timed: `
    SELECT ${batchColumns} FROM heed_notification_batches
    WHERE thread_id = ? AND resource_id = ? AND agent_id = ? AND open = 1 AND form = 'timed'
      AND due_at <= ? AND due_at >= ? AND first_at >= ?5
    ORDER BY due_at LIMIT 1`,
  dueTimed: `
    SELECT ${batchColumns} FROM heed_notification_batches
    WHERE thread_id = ? AND resource_id = ? AND agent_id = ? AND open = 1 AND form = 'timed' AND due_at <= ? ORDER BY due_at`,
  addBatch: `
    INSERT INTO heed_notification_batches (key, id, thread_id, resource_id, agent_id, form, open, first_at, due_at)
    VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?)`,
  moveBatch: `UPDATE heed_notification_batches SET due_at = ? WHERE key = ?`,
  closeBatch: `UPDATE heed_notification_batches SET open = NULL, due_at = ? WHERE key = ?`,
  batch: `SELECT ${batchColumns} FROM heed_notification_batches WHERE id = ?`,
  dueBatches: `
    SELECT ${batchColumns} FROM heed_notification_batches
    WHERE agent_id = ? AND due_at IS NOT NULL AND due_at <= ? ORDER BY due_at LIMIT ?`,
  removeBatch: `DELETE FROM heed_notification_batches WHERE key = ?`,
  holdBatch: `UPDATE heed_notification_batches SET due_at = ? WHERE id = ? AND open IS NULL`,
  joinedBatch: `UPDATE heed_notification_batches SET due_at = NULL WHERE key = ?`,
  emitted: `UPDATE heed_notification_batches SET open = NULL, due_at = NULL, signal_id = ? WHERE id = ?`,
  retryBatch: `UPDATE heed_notification_batches SET due_at = ?, attempts = attempts + 1 WHERE key = ?`,
  failBatch: `UPDATE heed_notification_batches SET due_at = NULL, attempts = attempts + 1 WHERE key = ?`,
  failCounted: `
    UPDATE heed_notifications SET status = 'failed', due_at = NULL, when_idle = NULL, dedupe_slot = NULL, coalesce_slot = NULL,
      remember_until = NULL, attempts = attempts + 1, attempted_at = ?, error = ?, updated_at = ?1, ${touched}
    WHERE batch = ? AND status = 'pending'`,
  moveCounted: `UPDATE heed_notifications SET batch = ? WHERE batch = ? AND status = 'pending'`,
  touchCounted: `UPDATE heed_notifications SET ${touched} WHERE batch = ? AND status = 'pending'`,
  // SQLite sorts the groups, of which a batch has few: one for each source and priority.
  counted: `
    SELECT source, priority, when_idle IS NOT NULL AS whenIdle, count(*) AS count, min(key) AS first FROM heed_notifications
    WHERE batch = ? AND status = 'pending' GROUP BY source, priority, when_idle IS NOT NULL`,
}
