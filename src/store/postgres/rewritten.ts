import { notificationSql } from '../sql/notifications/sql.ts'
import type { texts } from '../sql/texts.ts'

type Rewritten = { readonly [Domain in keyof typeof texts]?: { readonly [Name in keyof (typeof texts)[Domain]]?: string } }

/** The time of the statement, not of the start of its transaction, which may have waited for a lock. */
const serverTime = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`

const copied = (suffix: string) =>
  `id || ${suffix}, message_id || ${suffix}, role, type, run_id, step, created_at, heed_copied(content, role, id, ${suffix})`
const columns = 'id, message_id, role, type, run_id, step, created_at, content'
const startsMessage = `(counted > 0 OR role IN ('signal', 'system'))`

const copy = (where: string) => `
  INSERT INTO heed_messages (thread, seq, ordinal, turn, counted, ${columns})
  SELECT $2, seq, ordinal, turn, counted, ${copied('$5::text')} FROM heed_messages
  WHERE thread = $1 AND seq > $3${where} ORDER BY seq LIMIT $4`

const inLine = `EXISTS (SELECT 1 FROM heed_watch_deliveries WHERE thread_id = $3 AND agent_id = $4 AND state IN ('queued', 'due'))`

const passesFilters = `($4::text = '[]' OR kind IN (SELECT heed_each($4)) OR kind || '/' || channel_id IN (SELECT heed_each($4)))
    AND ($5::text = '[]' OR contact_id IN (SELECT heed_each($5)) AND contact_since <= $6)`

const inboundColumns = `
  seq, id, resource_id AS "resourceId", channel_id AS "channelId", kind, provider_id AS "providerId", sender, contact_id AS "contactId",
  contact_since AS "contactSince", conversation, content, categories, received_at AS "receivedAt", due_at AS "dueAt", attempts, lost,
  failures, error, consumed_by AS "consumedBy", offered`

/** The columns of a record, as `notificationSql.byKey` selects them. */
const notificationColumns = (/SELECT([\s\S]*?)FROM heed_notifications n/.exec(notificationSql.byKey)?.[1] ?? '')
  .replaceAll(/\bAS ([a-z]+[A-Z]\w*)/g, 'AS "$1"')

/**
 * The statements whose text differs from that of `store/sql`, by domain and name; `$1` is their first value. All others are translated
 * word by word. A test prepares every statement on a server.
 */
export const rewritten: Rewritten = {
  threads: {
    processByServer: `SELECT until, length, ${serverTime} AS now FROM heed_processes WHERE owner = $1 AND closed_at IS NULL`,
    putProcessByServer: `
      INSERT INTO heed_processes (owner, until, length, pid, host, version, started_at) VALUES ($1, ${serverTime} + $2, $3, $4, $5, $6, $7)
      ON CONFLICT (owner) DO UPDATE SET until = excluded.until, length = excluded.length, closed_at = NULL`,
    closeProcessByServer: `UPDATE heed_processes SET closed_at = ${serverTime} WHERE owner = $1`,
    forgetProcessesByServer: `DELETE FROM heed_processes WHERE until < ${serverTime} + $1`,
    removeQuotes: `
      DELETE FROM heed_messages WHERE thread = $1 AND role = 'context' AND heed_quotes_any(content, $2)`,
    copyAll: copy(''),
    copyVisible: copy(` AND role <> 'context'`),
    copySome: `
      WITH chosen AS (
        SELECT message_id FROM heed_messages
        WHERE thread = $1 AND ${startsMessage} AND ($3::bigint IS NULL OR created_at >= $3) AND ($4::bigint IS NULL OR created_at <= $4)
          AND ($5::text IS NULL OR message_id IN (SELECT heed_each($5)))
        ORDER BY seq DESC LIMIT $6),
      numbered AS (
        SELECT seq, ${columns}, CASE WHEN counted > 0 THEN 1 ELSE 0 END AS counts, counted > 0 AND turn = ordinal AS asks,
          row_number() OVER (ORDER BY seq) AS place, count(*) FILTER (WHERE counted > 0) OVER (ORDER BY seq) AS nth
        FROM heed_messages WHERE thread = $1 AND role <> 'context' AND message_id IN (SELECT message_id FROM chosen))
      INSERT INTO heed_messages (thread, seq, ordinal, turn, counted, ${columns})
      SELECT $2, place, nth, coalesce(max(CASE WHEN asks THEN nth END) OVER (ORDER BY seq), 0), counts, ${copied('$7::text')}
      FROM numbered ORDER BY seq`,
  },
  dependents: {
    // Records whose keys another record has, or an earlier one gets, are left to the next statement.
    transferNotifications: `
      UPDATE heed_notifications n SET resource_id = $1, dedupe_slot = heed_slot(n.dedupe_slot, $1),
        coalesce_slot = heed_slot(n.coalesce_slot, $1), changed = heed_change($1)
      WHERE n.thread_id = $2 AND n.resource_id <> $1 AND NOT EXISTS (
        SELECT 1 FROM heed_notifications o WHERE o.dedupe_slot = heed_slot(n.dedupe_slot, $1)
          OR o.thread_id = n.thread_id AND o.key < n.key AND heed_slot(o.dedupe_slot, $1) = heed_slot(n.dedupe_slot, $1))
      AND NOT EXISTS (
        SELECT 1 FROM heed_notifications o WHERE o.coalesce_slot = heed_slot(n.coalesce_slot, $1)
          OR o.thread_id = n.thread_id AND o.key < n.key AND heed_slot(o.coalesce_slot, $1) = heed_slot(n.coalesce_slot, $1))`,
    transferKeyless: `
      UPDATE heed_notifications SET resource_id = $1, dedupe_slot = NULL, coalesce_slot = NULL, changed = heed_change($1)
      WHERE thread_id = $2 AND resource_id <> $1`,
    transferMerged: `
      UPDATE heed_notification_merged SET dedupe_slot = heed_slot(dedupe_slot, $1)
      WHERE record IN (SELECT key FROM heed_notifications WHERE thread_id = $2) AND dedupe_slot IS NOT NULL`,
  },
  usage: {
    // What was counted before, and the changes since.
    usage: `
      SELECT coalesce(sum(threads), 0) AS threads, coalesce(sum(bytes), 0) AS bytes FROM (
        SELECT threads, bytes FROM heed_usage WHERE resource_id = $1
        UNION ALL SELECT threads, bytes FROM heed_usage_changes WHERE resource_id = $1
        UNION ALL SELECT threads, bytes FROM heed_usage_changes WHERE $1 = '') AS parts`,
  },
  notifications: {
    countChange: 'SELECT 1',
    lastChange: 'SELECT last FROM heed_notification_changes WHERE resource_id = $1',
    changes: `
      SELECT ${notificationColumns} FROM heed_notifications n LEFT JOIN heed_notification_batches b ON b.key = n.batch
      WHERE n.changed >= $1::bigint * 1024 AND n.changed < ($2::bigint + 1) * 1024 AND n.resource_id = $3 AND (n.changed, n.key) > ($4, $5)
        AND ($6::text IS NULL OR n.thread_id = $6)
      ORDER BY n.changed, n.key LIMIT $7`,
  },
  subscriptions: {
    put: `
      INSERT INTO heed_subscriptions (source_id, external_id, thread_id, resource_id, agent_id, metadata, subscribed_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7)
      ON CONFLICT (source_id, external_id, thread_id) DO UPDATE SET agent_id = $5,
        metadata = heed_json_patch(heed_subscriptions.metadata, $6)`,
  },
  deliveries: {
    add: `
      INSERT INTO heed_watch_deliveries (id, watch, thread_id, agent_id, reason, value, seq, created_at, state, due_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8::bigint, CASE WHEN ${inLine} THEN 'queued' ELSE 'due' END,
        CASE WHEN ${inLine} THEN NULL ELSE $8::bigint END)
      ON CONFLICT DO NOTHING`,
  },
  matching: {
    earlier: `
      SELECT * FROM (
        SELECT ${inboundColumns}, count(*) OVER () AS total, row_number() OVER (PARTITION BY CASE
          WHEN contact_id IS NOT NULL THEN jsonb_build_array('contact', contact_id)
          WHEN sender::json ->> 'verified' = 'true' THEN jsonb_build_array('address', channel_id, sender::json ->> 'address')
          ELSE jsonb_build_array('unverified', channel_id) END ORDER BY seq) AS nth
        FROM heed_inbounds AS i
        WHERE resource_id = $1 AND received_at BETWEEN $2 AND $3 AND ${passesFilters}
        AND ($7::text = '[]' OR EXISTS (
          SELECT 1 FROM heed_each(i.categories) AS given WHERE given IN (SELECT heed_each($7))))
        AND consumed_by IS NULL AND NOT EXISTS (SELECT 1 FROM heed_inbound_holds AS h WHERE h.seq = i.seq)
        AND NOT EXISTS (
          SELECT 1 FROM heed_watch_candidates AS c JOIN heed_watches AS w ON w.ord = c.watch
          WHERE c.seq = i.seq AND c.state = 'matched' AND w.thread_id = $8 AND w.mode = 'once')) AS early
      WHERE nth <= $9 ORDER BY seq LIMIT $10`,
    annotateAgain: `
      UPDATE heed_inbounds SET due_at = $10, lost = 0, failures = 0 WHERE seq IN (
        SELECT seq FROM heed_inbounds AS i
        WHERE resource_id = $1 AND received_at BETWEEN $2 AND $3 AND ${passesFilters}
        AND categories IS NOT NULL AND due_at IS NULL
        AND coalesce(i.offered, '') NOT IN ('"all"', '"rules"')
        AND EXISTS (SELECT 1 FROM heed_each($7) AS own WHERE own NOT IN (
          SELECT heed_each(CASE WHEN i.offered LIKE '[%' THEN i.offered ELSE '[]' END)))
        AND NOT EXISTS (SELECT 1 FROM heed_watch_candidates AS c WHERE c.watch = $8 AND c.seq = i.seq)
        ORDER BY seq DESC LIMIT $9)`,
  },
  replies: {
    echoByText: `
      SELECT 1 AS found FROM heed_replies r JOIN heed_inbounds i ON i.seq = r.seq
      WHERE r.channel_id = $1 AND r.text = $2 AND r.echo_until >= $3 AND r.resource_id = $4
      AND i.conversation IS NOT DISTINCT FROM $5 AND ($5 IS NOT NULL OR i.sender::json ->> 'address' = $6) LIMIT 1`,
    hold: `
      INSERT INTO heed_inbound_holds (seq, reply) SELECT $3::bigint, r.ord FROM heed_replies r JOIN heed_inbounds i ON i.seq = r.seq
      WHERE r.channel_id = $1 AND r.sending = 1 AND r.resource_id = $4 AND i.conversation IS NOT DISTINCT FROM $2`,
  },
}
