import { HeedError } from '../../base/errors.ts'
import type { JSONValue } from '../../base/json.ts'
import type {
  NewSubscription, PollClaim, PollTurn, SignedDelivery, SubscriptionQuery, SubscriptionRecord, SubscriptionScope, SubscriptionStore,
} from '../contract/subscriptions.ts'
import { forgetSubscriptions, transferSubscriptions } from './thread-dependents.ts'
import { SqlDomain } from './domain.ts'
import type { SqlValue } from './statements.ts'

interface Row {
  sourceId: string
  externalId: string
  threadId: string
  resourceId: string
  agentId: string
  metadata: string
  subscribedAt: number
}

/** Longer than a signature is valid before and after its time. */
const rememberedSeconds = 3_600

const columns = `
  source_id AS sourceId, external_id AS externalId, thread_id AS threadId, resource_id AS resourceId, agent_id AS agentId, metadata,
  subscribed_at AS subscribedAt`

/** The statements of subscriptions. */
export const subscriptionSql = {
  one: `SELECT ${columns} FROM heed_subscriptions WHERE source_id = ? AND external_id = ? AND thread_id = ?`,
  put: `
    INSERT INTO heed_subscriptions (source_id, external_id, thread_id, resource_id, agent_id, metadata, subscribed_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT (source_id, external_id, thread_id) DO UPDATE SET agent_id = ?5,
      metadata = json_patch(heed_subscriptions.metadata, ?6)`,
  ofThread: `SELECT ${columns} FROM heed_subscriptions WHERE thread_id = ? AND source_id = ?`,
  remove: `DELETE FROM heed_subscriptions WHERE source_id = ? AND external_id = ? AND thread_id = ?`,
  delivery: `SELECT 1 AS found FROM heed_deliveries WHERE source_id = ? AND id = ? AND signed_at = ?`,
  deliver: `INSERT INTO heed_deliveries (source_id, id, signed_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
  forget: `DELETE FROM heed_deliveries WHERE signed_at < ?`,
  claim: `
    INSERT INTO heed_polls (source_id, until, holder) VALUES (?1, ?2, ?3)
    ON CONFLICT (source_id) DO UPDATE SET until = ?2, holder = ?3 WHERE heed_polls.until <= ?4 OR heed_polls.holder = ?3`,
  cursor: `SELECT cursor FROM heed_polls WHERE source_id = ?`,
  end: `UPDATE heed_polls SET until = ?, holder = NULL, cursor = coalesce(?, cursor) WHERE source_id = ? AND holder = ?`,
}

/** Subscriptions, in the database of the threads or in another one. */
export class SqlSubscriptions extends SqlDomain implements SubscriptionStore {
  putSubscription({ sourceId, externalId, threadId, resourceId, agentId, metadata, now }: NewSubscription): Promise<SubscriptionRecord> {
    return this.write((statements) => {
      statements.lockDomain?.('subscriptions', [JSON.stringify([sourceId, externalId, threadId])])
      const found = statements.one<Row>(subscriptionSql.one, sourceId, externalId, threadId)
      if (found && found.resourceId !== resourceId)
        throw new HeedError('thread_forbidden', `Thread ${threadId} belongs to another resource.`, { details: { threadId } })
      statements.execute(subscriptionSql.put, sourceId, externalId, threadId, resourceId, agentId, JSON.stringify(metadata), now)
      return recordOf(statements.one<Row>(subscriptionSql.one, sourceId, externalId, threadId) as Row)
    })
  }

  deleteSubscriptions({ sourceId, threadId, resourceId, externalId }: SubscriptionScope & { externalId?: string }): Promise<number> {
    return this.write((statements) => {
      const rows = statements.all<Row>(subscriptionSql.ofThread, threadId, sourceId)
      const own = rows.filter(
        (row) => (resourceId === undefined || row.resourceId === resourceId) && (externalId === undefined || row.externalId === externalId),
      )
      for (const row of own) statements.execute(subscriptionSql.remove, sourceId, row.externalId, threadId)
      return own.length
    })
  }

  listSubscriptions(
    { sourceId, externalId, threadId, resourceId, after, limit }: SubscriptionQuery,
  ): Promise<{ subscriptions: SubscriptionRecord[]; more: boolean }> {
    return this.read((statements) => {
      const wanted = Object.entries({ 'external_id = ?': externalId, 'thread_id = ?': threadId, 'resource_id = ?': resourceId }).filter(
        (entry): entry is [string, string] => entry[1] !== undefined,
      )
      const where = ['source_id = ?', ...wanted.map(([condition]) => condition), ...(after ? ['(external_id, thread_id) > (?, ?)'] : [])]
      const values: SqlValue[] = [sourceId, ...wanted.map(([, value]) => value), ...(after ? [after.externalId, after.threadId] : [])]
      const rows = statements.all<Row>(
        `SELECT ${columns} FROM heed_subscriptions WHERE ${where.join(' AND ')} ORDER BY external_id, thread_id LIMIT ?`,
        ...values, limit + 1,
      )
      return { subscriptions: rows.slice(0, limit).map(recordOf), more: rows.length > limit }
    })
  }

  forgetThreads(threadIds: readonly string[], resourceId?: string): Promise<void> {
    return this.write((statements) => {
      for (const threadId of threadIds) forgetSubscriptions(statements, threadId, resourceId)
    })
  }

  giveThread(threadId: string, resourceId: string): Promise<void> {
    return this.write((statements) => transferSubscriptions(statements, threadId, resourceId))
  }

  claimPoll({ sourceId, holder, now, until }: PollClaim): Promise<PollTurn | null> {
    return this.write((statements) => {
      if (statements.run(subscriptionSql.claim, sourceId, until, holder, now) === 0) return null
      const cursor = statements.one<{ cursor: string | null }>(subscriptionSql.cursor, sourceId)?.cursor
      return cursor ? { cursor: JSON.parse(cursor) as JSONValue } : {}
    })
  }

  endPoll(
    { sourceId, holder, nextAt, cursor }: { sourceId: string; holder: string; nextAt: number; cursor?: JSONValue },
  ): Promise<boolean> {
    const text = cursor === undefined ? null : JSON.stringify(cursor)
    return this.write((statements) => statements.run(subscriptionSql.end, nextAt, text, sourceId, holder) === 1)
  }

  isDelivered({ sourceId, id, timestamp }: SignedDelivery): Promise<boolean> {
    return this.read((statements) => statements.one(subscriptionSql.delivery, sourceId, id, timestamp) !== undefined)
  }

  recordDelivery({ sourceId, id, timestamp, now }: SignedDelivery & { now: number }): Promise<void> {
    return this.write((statements) => {
      statements.execute(subscriptionSql.forget, Math.floor(now / 1_000) - rememberedSeconds)
      statements.execute(subscriptionSql.deliver, sourceId, id, timestamp)
    })
  }
}

function recordOf({ metadata, subscribedAt, ...row }: Row): SubscriptionRecord {
  return { ...row, metadata: JSON.parse(metadata) as SubscriptionRecord['metadata'], subscribedAt: new Date(subscribedAt) }
}
