import { HeedError } from '../../../base/errors.ts'
import type { WatchEnd } from '../../../watch/machine.ts'
import type { DueClaim } from '../../contract/notifications.ts'
import type { ClaimedReply, ReplyQuery, ReplyRecord, ReplyScope, ReplySettlement } from '../../contract/replies.ts'
import type {
  AddedInbound, CandidateClaim, CandidateRecord, CandidateRelease, CandidateSettlement, ClaimedCandidate, ConsideredInbound,
  InboundAnnotation, InboundClaim, InboundDeferral, InboundRecord, NewInbound, NewWatch,
  UndeliveredRecord, WatchDelivery, WatchQuery, WatchRecord, WatchScope, WatchStore,
} from '../../contract/watches.ts'
import type { ThreadStore } from '../../contract/threads.ts'
import { findThread } from '../../core/lease.ts'
import { byteLength } from '../../core/records.ts'
import { createThread } from '../../core/threads.ts'
import { checkNotCompleted, completedId } from '../completed-id.ts'
import { SqlDomain } from '../domain.ts'
import type { ConnectionOwner } from '../driver.ts'
import type { SqlValue, Statements } from '../statements.ts'
import type { SqlTables } from '../tables.ts'
import { checkUsage } from '../usage.ts'
import {
  claimCandidates, endWatch, expireWatches, hasExpired, nextWatchDue, releaseCandidate, settleCandidate, watchById, watchByOrd,
  watchOfResource,
} from './candidates.ts'
import { claimDeliveries, confirmDelivery, deferDelivery, listUndelivered, nextDeliveryDue, removeDeliveries } from './deliveries.ts'
import { addInbound, annotateInbound, claimInbounds, deferInbound, nextInboundDue } from './inbounds.ts'
import { combinations, expectedCategories, indexWatch, lookBack, maxCombinations } from './matching.ts'
import {
  claimReplies, forgetReplies, getReply, listReplies, nextReplyDue, removeReply, retryReply, settleReply, transferReplies, wakeReplies,
} from './replies.ts'
import {
  candidateColumns, candidateOf, consideredColumns, consideredOf, lastSeq, watchColumns, watchOf, type CandidateOfInboundRow,
  type ConsideredRow, type WatchRow,
} from './rows.ts'

export const watchSql = {
  add: `
    INSERT INTO heed_watches (ord, id, resource_id, thread_id, thread_created_at, agent_id, state, mode, exclusive, may_end, expires_at,
      max_evaluations, since, created_at, due_at, description, criteria, result_schema, run_id, registered_seq)
    VALUES (?, ?, ?, ?, ?, ?, 'open', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (${lastSeq}))`,
  openCount: `SELECT count(*) AS count FROM (SELECT 1 FROM heed_watches WHERE resource_id = ? AND state = 'open' LIMIT ?) AS few`,
  candidates: `
    SELECT ${candidateColumns}, i.id AS inboundId, i.channel_id AS channelId, i.kind AS kind, i.contact_id AS contactId,
      i.received_at AS receivedAt
    FROM heed_watch_candidates c JOIN heed_inbounds i ON i.seq = c.seq WHERE c.watch = ? AND c.seq > ? ORDER BY c.seq LIMIT ?`,
  // From the look-back, or from the registration by their numbers, to the end.
  considered: `
    SELECT ${consideredColumns},
      i.consumed_by IS NOT NULL AND i.consumed_by <> ?2
      AND NOT EXISTS (SELECT 1 FROM heed_watches w WHERE w.id = i.consumed_by AND w.ord > ?1)
      OR i.seq <= ?7 AND EXISTS (
        SELECT 1 FROM heed_watch_candidates o JOIN heed_watches w ON w.ord = o.watch
        WHERE o.seq = i.seq AND o.watch < ?1 AND o.state = 'matched' AND w.thread_id = ?3 AND w.mode = 'once') AS taken
    FROM heed_inbounds i LEFT JOIN heed_watch_candidates c ON c.watch = ?1 AND c.seq = i.seq
    WHERE i.resource_id = ?4 AND i.seq > ?5 AND i.seq <= ?6 AND (i.seq > ?7 OR i.received_at >= ?8) ORDER BY i.seq LIMIT ?9`,
  firstEarlier: `
    SELECT coalesce(min(seq), ?4 + 1) AS seq FROM heed_inbounds WHERE resource_id = ?1 AND received_at BETWEEN ?2 AND ?3 AND seq <= ?4`,
  endedBefore: `
    SELECT ${watchColumns} FROM heed_watches w WHERE ended_at < ? AND NOT EXISTS (
      SELECT 1 FROM heed_watch_deliveries d WHERE d.watch = w.ord AND d.state IN ('queued', 'due')) ORDER BY ended_at LIMIT ?`,
  storedBefore: `
    SELECT seq FROM heed_inbounds i WHERE received_at < ? AND due_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM heed_watch_candidates c WHERE c.seq = i.seq)
    AND NOT EXISTS (SELECT 1 FROM heed_watches w WHERE w.resource_id = i.resource_id AND w.state = 'open' AND w.since <= i.received_at)
    AND NOT EXISTS (
      SELECT 1 FROM heed_watches w WHERE w.resource_id = i.resource_id AND w.state = 'open' AND w.registered_seq < i.seq)
    AND NOT EXISTS (SELECT 1 FROM heed_replies r WHERE r.seq = i.seq AND (r.settled_at IS NULL OR EXISTS (
      SELECT 1 FROM heed_watches w WHERE w.thread_id = r.thread_id AND w.state = 'open')))
    ORDER BY received_at LIMIT ?`,
  ofInbound: 'SELECT resource_id AS resourceId FROM heed_inbounds WHERE seq = ?',
  ofWatch: 'SELECT resource_id AS resourceId FROM heed_watches WHERE id = ?',
  removeInbound: 'DELETE FROM heed_inbounds WHERE seq = ?',
  ofThread: `SELECT ${watchColumns} FROM heed_watches WHERE thread_id = ?1 AND (?2 IS NULL OR resource_id = ?2)`,
  removeCandidates: 'DELETE FROM heed_watch_candidates WHERE watch = ?',
  remove: 'DELETE FROM heed_watches WHERE ord = ?',
  transfer: 'UPDATE heed_watches SET resource_id = ? WHERE ord = ?',
}

/** Inbound messages and watches, in the database of the threads or in another one. */
export class SqlWatches extends SqlDomain implements WatchStore {
  readonly threads?: ThreadStore

  /** `threads`: the store of the threads in the same database. */
  constructor(owner: ConnectionOwner, { threads, ...options }: { owned?: boolean; threads?: ThreadStore } = {}) {
    super(owner, options)
    if (threads) this.threads = threads
  }

  /**
   * Locks all watches, or those of these resources: a message concerns the watches of many threads, and a verdict those that wait for
   * another, all of one resource.
   */
  protected override write<Result>(
    work: (statements: Statements, tables: SqlTables) => Result, resourceIds?: readonly string[],
  ): Promise<Result> {
    return super.write((statements, tables) => {
      statements.lockDomain?.('watches', resourceIds)
      return work(statements, tables)
    })
  }

  /**
   * The same for the resource of a message or a watch, which this text selects. A message stays that of its resource, and a watch does as
   * long as it is open.
   */
  #writeTo<Result>(text: string, value: SqlValue, work: (statements: Statements) => Result): Promise<Result> {
    return super.write((statements) => {
      if (statements.lockDomain) {
        const found = statements.one<{ resourceId: string }>(text, value)
        if (found) statements.lockDomain('watches', [found.resourceId])
      }
      return work(statements)
    })
  }

  addInbounds(inbounds: readonly NewInbound[]): Promise<AddedInbound[]> {
    const resourceIds = [...new Set(inbounds.map(({ resourceId }) => resourceId))]
    return this.write((statements) => inbounds.flatMap((inbound) => addInbound(statements, inbound) ?? []), resourceIds)
  }

  claimInbounds(claim: InboundClaim): Promise<InboundRecord[]> {
    return this.write((statements) => claimInbounds(statements, claim))
  }

  annotateInbound(annotation: InboundAnnotation): Promise<boolean> {
    return this.#writeTo(watchSql.ofInbound, annotation.seq, (statements) => annotateInbound(statements, annotation))
  }

  deferInbound(failure: InboundDeferral): Promise<void> {
    return this.#writeTo(watchSql.ofInbound, failure.seq, (statements) => deferInbound(statements, failure))
  }

  expectedCategories(resourceId: string): Promise<string[]> {
    return this.read((statements) => expectedCategories(statements, resourceId))
  }

  registerWatch(watch: NewWatch): Promise<{ watch: WatchRecord; added: boolean }> {
    return super.write((statements, tables) => {
      if (watch.threadCreatedAt === undefined) tables.lock?.([watch.threadId])
      statements.lockDomain?.('watches', [watch.resourceId])
      return registerWatch(statements, tables, watch)
    })
  }

  getWatch(scope: WatchScope): Promise<WatchRecord | null> {
    return this.read((statements) => {
      const row = scoped(statements, scope)
      return row ? watchOf(row) : null
    })
  }

  listWatches({ limit, after, ...filter }: WatchQuery): Promise<{ watches: WatchRecord[]; more: boolean }> {
    return this.read((statements) => {
      const { resourceId, threadId, agentId, state } = filter
      const wanted = Object.entries({
        'resource_id = ?': resourceId, 'thread_id = ?': threadId, 'agent_id = ?': agentId, 'state = ?': state, 'id > ?': after,
      }).filter((entry): entry is [string, string] => entry[1] !== undefined)
      const where = wanted.length === 0 ? '' : `WHERE ${wanted.map(([condition]) => condition).join(' AND ')}`
      const values: SqlValue[] = wanted.map(([, value]) => value)
      const rows = statements.all<WatchRow>(`SELECT ${watchColumns} FROM heed_watches ${where} ORDER BY id LIMIT ?`, ...values, limit + 1)
      return { watches: rows.slice(0, limit).map(watchOf), more: rows.length > limit }
    })
  }

  listCandidates(query: { watchId: string; limit: number; after?: number }): Promise<{ candidates: CandidateRecord[]; more: boolean }> {
    return this.read((statements) => {
      const watch = watchById(statements, query.watchId)
      if (!watch) return { candidates: [], more: false }
      const rows = statements.all<CandidateOfInboundRow>(watchSql.candidates, watch.ord, query.after ?? 0, query.limit + 1)
      return { candidates: rows.slice(0, query.limit).map((row) => candidateOf(watch.id, row)), more: rows.length > query.limit }
    })
  }

  listConsidered(query: { watchId: string; limit: number; after?: number }): Promise<{ considered: ConsideredInbound[]; more: boolean }> {
    return this.read((statements) => {
      const watch = watchById(statements, query.watchId)
      if (!watch) return { considered: [], more: false }
      const { ord, id, threadId, resourceId, since, registeredSeq, endedSeq, createdAt } = watch
      const first = statements.one<{ seq: number }>(watchSql.firstEarlier, resourceId, since, createdAt, registeredSeq)?.seq ?? 0
      const rows = statements.all<ConsideredRow>(
        watchSql.considered, ord, id, threadId, resourceId, Math.max(query.after ?? 0, first - 1), endedSeq ?? Number.MAX_SAFE_INTEGER,
        registeredSeq, since, query.limit + 1,
      )
      return { considered: rows.slice(0, query.limit).map((row) => consideredOf(watch, row)), more: rows.length > query.limit }
    })
  }

  endWatch(scope: WatchScope, end: { reason: WatchEnd; now: number }): Promise<WatchRecord | null> {
    return this.write((statements) => {
      const row = scoped(statements, scope)
      if (row?.state === 'open') endWatch(statements, row, end)
      const ended = row && watchById(statements, row.id)
      return ended ? watchOf(ended) : null
    })
  }

  claimCandidates(claim: CandidateClaim): Promise<ClaimedCandidate[]> {
    return this.write((statements) => claimCandidates(statements, claim))
  }

  async expireWatches(expiry: { now: number; until: number; limit: number }): Promise<number> {
    const isOver = await this.read((statements) => hasExpired(statements, expiry.now))
    return isOver ? this.write((statements) => expireWatches(statements, expiry)) : 0
  }

  settleCandidate(settlement: CandidateSettlement): Promise<boolean> {
    return this.#writeTo(watchSql.ofWatch, settlement.watchId, (statements) => settleCandidate(statements, settlement))
  }

  releaseCandidate(release: CandidateRelease): Promise<boolean> {
    return this.#writeTo(watchSql.ofWatch, release.watchId, (statements) => releaseCandidate(statements, release))
  }

  claimDeliveries(claim: DueClaim): Promise<WatchDelivery[]> {
    return this.write((statements) => claimDeliveries(statements, claim))
  }

  confirmDelivery(delivery: { id: string; now: number }): Promise<void> {
    return this.write((statements) => confirmDelivery(statements, delivery))
  }

  deferDelivery(failure: { id: string; error: string; retryAt?: number; now: number }): Promise<void> {
    return this.write((statements) => deferDelivery(statements, failure))
  }

  listUndelivered({ watchId, limit }: { watchId: string; limit: number }): Promise<UndeliveredRecord[]> {
    return this.read((statements) => {
      const watch = watchById(statements, watchId)
      return watch ? listUndelivered(statements, watch, limit) : []
    })
  }

  forgetWatch({ id, now }: { id: string; now: number }): Promise<void> {
    return this.write((statements) => {
      const watch = watchById(statements, id)
      if (watch) removeWatch(statements, watch, now)
    })
  }

  pruneWatches({ before, limit }: { before: number; limit: number }): Promise<number> {
    return this.write((statements) => {
      const ended = statements.all<WatchRow>(watchSql.endedBefore, before, limit)
      for (const watch of ended) removeWatch(statements, watch, before)
      const stored = statements.all<{ seq: number }>(watchSql.storedBefore, before, limit)
      for (const { seq } of stored) {
        removeReply(statements, seq)
        statements.execute(watchSql.removeInbound, seq)
      }
      return ended.length + stored.length
    })
  }

  claimReplies(claim: InboundClaim): Promise<ClaimedReply[]> {
    return this.write((statements) => claimReplies(statements, claim))
  }

  settleReply(settlement: ReplySettlement): Promise<boolean> {
    return this.write((statements) => settleReply(statements, settlement))
  }

  wakeReplies(wake: { threadId: string; now: number }): Promise<void> {
    return this.write((statements) => wakeReplies(statements, wake))
  }

  getReply(scope: ReplyScope): Promise<ReplyRecord | null> {
    return this.read((statements) => getReply(statements, scope))
  }

  listReplies(query: ReplyQuery): Promise<{ replies: ReplyRecord[]; more: boolean }> {
    return this.read((statements) => listReplies(statements, query))
  }

  retryReply(scope: ReplyScope, { now }: { now: number }): Promise<ReplyRecord | null> {
    return this.write((statements) => retryReply(statements, scope, now))
  }

  nextDue(
    agentIds: readonly string[], channelIds: readonly string[], replyChannelIds: readonly string[] = [],
  ): Promise<number | undefined> {
    return this.read((statements) => {
      const times = [
        nextInboundDue(statements, channelIds),
        nextReplyDue(statements, replyChannelIds),
        ...agentIds.flatMap((agentId) => [nextWatchDue(statements, agentId), nextDeliveryDue(statements, agentId)]),
      ].filter((at) => at !== undefined)
      return times.length === 0 ? undefined : times.reduce((one, other) => Math.min(one, other))
    })
  }

  forgetThreads(threadIds: readonly string[], resourceId?: string): Promise<void> {
    return this.write((statements) => {
      for (const threadId of threadIds) forgetWatches(statements, threadId, resourceId)
    })
  }

  giveThread(threadId: string, resourceId: string): Promise<void> {
    // The transaction may run again.
    const now = this.now()
    return this.write((statements) => transferWatches(statements, threadId, resourceId, now))
  }
}

function registerWatch(statements: Statements, tables: SqlTables, watch: NewWatch): { watch: WatchRecord; added: boolean } {
  const { resourceId, threadId, agentId, criteria, mode, now } = watch
  // First: the thread of another resource is answered for alike, whatever the id of the watch is.
  const isNewThread = watch.threadCreatedAt === undefined && !findThread(tables, { threadId, resourceId })
  const { known, id } = knownWatch(statements, watch)
  if (known) return { watch: watchOf(known), added: false }
  if ((statements.one<{ count: number }>(watchSql.openCount, resourceId, watch.limit)?.count ?? 0) >= watch.limit) {
    throw new HeedError('too_many_watches', `Resource '${resourceId}' has ${watch.limit} open watches. Cancel some, or raise the limit.`, {
      details: { limit: watch.limit },
    })
  }
  if (combinations(criteria) > maxCombinations) {
    const why = `A watch may expect at most ${maxCombinations} combinations of categories, channels and contacts.`
    throw new HeedError('invalid_argument', why)
  }
  const texts = [watch.description, JSON.stringify(criteria), watch.resultSchema === undefined ? null : JSON.stringify(watch.resultSchema)]
  const bytes = texts.reduce((sum, text) => sum + byteLength(text), 0)
  checkUsage(statements, resourceId, watch.quota, {
    watches: 1, ...(isNewThread ? { threads: 1, bytes: bytes + byteLength('{}') } : { bytes }),
  })
  const threadCreatedAt = watch.threadCreatedAt ?? createThread(tables, { id: threadId, resourceId, now }).thread.createdAt.getTime()
  const ord = statements.insert(
    watchSql.add, statements.newKey?.('heed_watches') ?? null, id, resourceId, threadId, threadCreatedAt, agentId, mode,
    watch.exclusive ? 1 : 0, watch.mayEnd ? 1 : 0, watch.expiresAt, watch.maxEvaluations, watch.since, now, watch.expiresAt + 1,
    ...texts, watch.runId ?? null,
  )
  indexWatch(statements, { ord, resourceId }, criteria)
  const row = watchByOrd(statements, ord) as WatchRow
  lookBack(statements, row, now)
  return { watch: watchOf(watchByOrd(statements, ord) as WatchRow), added: true }
}

/** The watch that was registered with this id before, and the id under which a new one is stored. */
function knownWatch(
  statements: Statements, { id, resourceId, threadId, agentId }: NewWatch,
): { known: WatchRow | undefined; id: string } {
  const { own: known, taken } = watchOfResource(statements, id, resourceId)
  const completed = completedId(id, resourceId)
  if (known ? known.threadId !== threadId || known.agentId !== agentId : taken.has(completed))
    throw new HeedError('id_taken', `Watch '${id}' belongs to another thread or agent. Choose another id.`, { details: { id } })
  if (!known) checkNotCompleted(id, resourceId)
  return { known, id: taken.has(id) ? completed : id }
}

/** Removes the watches and the replies of a deleted thread. */
export function forgetWatches(statements: Statements, threadId: string, resourceId?: string): void {
  statements.lockDomain?.('watches')
  forgetReplies(statements, threadId, resourceId)
  for (const watch of statements.all<WatchRow>(watchSql.ofThread, threadId, resourceId ?? null)) {
    removeWatch(statements, watch, watch.createdAt)
  }
}

/** Removes a watch with its candidates and deliveries. Nothing is delivered. */
function removeWatch(statements: Statements, watch: WatchRow, now: number): void {
  if (watch.state === 'open') endWatch(statements, watch, { reason: 'cancelled', now })
  removeDeliveries(statements, watch, now)
  statements.execute(watchSql.removeCandidates, watch.ord)
  statements.execute(watchSql.remove, watch.ord)
}

/** Watches that a thread registered for another resource end: the messages of the new resource are not theirs. So do replies. */
export function transferWatches(statements: Statements, threadId: string, resourceId: string, now: number): void {
  statements.lockDomain?.('watches')
  for (const watch of statements.all<WatchRow>(watchSql.ofThread, threadId, null)) {
    if (watch.resourceId === resourceId) continue
    if (watch.state === 'open') endWatch(statements, watch, { reason: 'cancelled', now })
    statements.execute(watchSql.transfer, resourceId, watch.ord)
  }
  // Last: the end of a watch is answered in the conversation too.
  transferReplies(statements, threadId, resourceId, now)
}

function scoped(statements: Statements, { id, resourceId, threadId, agentId }: WatchScope): WatchRow | undefined {
  const row = resourceId === undefined ? watchById(statements, id) : watchOfResource(statements, id, resourceId).own
  const isInScope = row && (threadId === undefined || row.threadId === threadId) && (agentId === undefined || row.agentId === agentId)
  return isInScope ? row : undefined
}
