import { HeedError } from '../../errors.ts'
import type { NewSubscription, SubscriptionQuery, SubscriptionRecord, SubscriptionScope, SubscriptionStore } from '../subscriptions.ts'
import { forgetSubscriptions, giveSubscriptions } from './belongings.ts'
import { LibSQLDomain } from './domain.ts'
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

/** Longer than a signature counts, either way. */
const rememberedSeconds = 3_600

const columns = 'source_id AS sourceId, external_id AS externalId, thread_id AS threadId, resource_id AS resourceId, agent_id AS agentId, metadata, subscribed_at AS subscribedAt'

/** What subscriptions say to the database. */
export const subscriptionSql = {
  one: `SELECT ${columns} FROM heed_subscriptions WHERE source_id = ? AND external_id = ? AND thread_id = ?`,
  put: `
    INSERT INTO heed_subscriptions (source_id, external_id, thread_id, resource_id, agent_id, metadata, subscribed_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT DO UPDATE SET agent_id = ?5, metadata = json_patch(metadata, ?6)`,
  ofThread: `SELECT ${columns} FROM heed_subscriptions WHERE thread_id = ? AND source_id = ?`,
  remove: `DELETE FROM heed_subscriptions WHERE source_id = ? AND external_id = ? AND thread_id = ?`,
  delivery: `SELECT signed_at AS signedAt FROM heed_deliveries WHERE source_id = ? AND id = ?`,
  deliver: `INSERT INTO heed_deliveries (source_id, id, signed_at) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET signed_at = max(signed_at, ?3)`,
  forget: `DELETE FROM heed_deliveries WHERE signed_at < ?`,
  claim: `INSERT INTO heed_polls (source_id, until) VALUES (?1, ?3) ON CONFLICT DO UPDATE SET until = ?3 WHERE until <= ?2`,
}

/** Subscriptions in a database: that of the threads, or one of its own. */
export class LibSQLSubscriptions extends LibSQLDomain implements SubscriptionStore {
  putSubscription({ sourceId, externalId, threadId, resourceId, agentId, metadata, now }: NewSubscription): Promise<SubscriptionRecord> {
    return this.write((statements) => {
      const found = statements.one<Row>(subscriptionSql.one, sourceId, externalId, threadId)
      if (found && found.resourceId !== resourceId) throw new HeedError('thread_forbidden', `Thread ${threadId} belongs to another resource.`, { details: { threadId } })
      statements.run(subscriptionSql.put, sourceId, externalId, threadId, resourceId, agentId, JSON.stringify(metadata), now)
      return recordOf(statements.one<Row>(subscriptionSql.one, sourceId, externalId, threadId) as Row)
    })
  }

  deleteSubscriptions({ sourceId, threadId, resourceId, externalId }: SubscriptionScope & { externalId?: string }): Promise<number> {
    return this.write((statements) => {
      const rows = statements.all<Row>(subscriptionSql.ofThread, threadId, sourceId)
      const own = rows.filter((row) => (resourceId === undefined || row.resourceId === resourceId) && (externalId === undefined || row.externalId === externalId))
      for (const row of own) statements.run(subscriptionSql.remove, sourceId, row.externalId, threadId)
      return own.length
    })
  }

  listSubscriptions({ sourceId, externalId, threadId, resourceId, after, limit }: SubscriptionQuery): Promise<{ subscriptions: SubscriptionRecord[]; more: boolean }> {
    return this.read((statements) => {
      const wanted = Object.entries({ 'external_id = ?': externalId, 'thread_id = ?': threadId, 'resource_id = ?': resourceId }).filter((entry): entry is [string, string] => entry[1] !== undefined)
      const where = ['source_id = ?', ...wanted.map(([condition]) => condition), ...(after ? ['(external_id, thread_id) > (?, ?)'] : [])]
      const values: SqlValue[] = [sourceId, ...wanted.map(([, value]) => value), ...(after ? [after.externalId, after.threadId] : [])]
      const rows = statements.all<Row>(`SELECT ${columns} FROM heed_subscriptions WHERE ${where.join(' AND ')} ORDER BY external_id, thread_id LIMIT ?`, ...values, limit + 1)
      return { subscriptions: rows.slice(0, limit).map(recordOf), more: rows.length > limit }
    })
  }

  forgetThreads(threadIds: readonly string[], resourceId?: string): Promise<void> {
    return this.write((statements) => {
      for (const threadId of threadIds) forgetSubscriptions(statements, threadId, resourceId)
    })
  }

  giveThread(threadId: string, resourceId: string): Promise<void> {
    return this.write((statements) => giveSubscriptions(statements, threadId, resourceId))
  }

  claimPoll(sourceId: string, now: number, until: number): Promise<boolean> {
    return this.write((statements) => statements.run(subscriptionSql.claim, sourceId, now, until) === 1)
  }

  takeDelivery({ sourceId, id, timestamp, now }: { sourceId: string; id: string; timestamp: number; now: number }): Promise<'new' | 'retried' | 'replayed'> {
    return this.write((statements) => {
      statements.run(subscriptionSql.forget, Math.floor(now / 1_000) - rememberedSeconds)
      const known = statements.one<{ signedAt: number }>(subscriptionSql.delivery, sourceId, id)
      statements.run(subscriptionSql.deliver, sourceId, id, timestamp)
      if (!known) return 'new'
      return timestamp > known.signedAt ? 'retried' : 'replayed'
    })
  }
}

function recordOf({ metadata, subscribedAt, ...row }: Row): SubscriptionRecord {
  return { ...row, metadata: JSON.parse(metadata) as SubscriptionRecord['metadata'], subscribedAt: new Date(subscribedAt) }
}
