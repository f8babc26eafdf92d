import { HeedError } from '../../../base/errors.ts'
import { notificationPriorities as priorities, validateTextSize } from '../../contract/notifications.ts'
import type {
  Ingested, NewNotification, Settled, Settlement, SettlementTerms, SummaryBatch, SummaryTime,
} from '../../contract/notifications.ts'
import { countedOn, holdsKey, recordOfSlot, releaseKey, slotOf } from './keys.ts'
import { notificationOf, type BatchRow, type NotificationRow, type UnnumberedRow } from './row.ts'
import { notificationSql as sql } from './sql.ts'
import { byteLength } from '../../core/records.ts'
import { checkUsage } from '../usage.ts'
import type { Statements } from '../statements.ts'

/** Records whose summary is due now, collected until the transaction has settled all of them: one summary counts them together. */
type DueNow = Array<{ settled: Settled; batch: BatchRow; now: number; until: number }>

/** The state of one call that settles records. */
interface Settling {
  dueNow: DueNow
  newId(): string
}

/** Stores each notification, or counts it on the record that has its key. */
export function ingestAll(statements: Statements, items: readonly NewNotification[], newId: () => string): Ingested[] {
  checkItems(statements, items)
  const dueNow: DueNow = []
  const ingested = items.map((item) => ingest(statements, item, { dueNow, newId }))
  takeDueSummaries(statements, dueNow)
  return ingested
}

/** Rejects all of them if together they would exceed their quota: all have one resource. */
function checkItems(statements: Statements, items: readonly NewNotification[]): void {
  const [first] = items
  if (!first?.quota) return
  const bytes = items.reduce((sum, { summary, payload, attributes, metadata }) => {
    return sum + byteLength(JSON.stringify([summary, payload, attributes, metadata]))
  }, 0)
  checkUsage(statements, first.resourceId, first.quota, { bytes })
}

/**
 * Writes decisions about records that are pending and not being sent. All are read before the first is written: a database elsewhere is
 * then asked once, and not again after each write.
 */
export function settleAll(statements: Statements, settlements: readonly Settlement[], newId: () => string): Settled[] {
  const dueNow: DueNow = []
  const rows = settlements.map(({ threadId, id }) => statements.one<NotificationRow>(sql.byId, threadId, id))
  const changed = new Set<number>()
  const settled = settlements.map((settlement, nth) => {
    const row = rows[nth]
    // A decision about the same record, or one that moves its batch, may have changed it.
    const isAsRead = row === undefined || (row.batch === null && !changed.has(row.key))
    if (row) changed.add(row.key)
    const { threadId, id } = settlement
    return settle(statements, isAsRead ? row : statements.one<NotificationRow>(sql.byId, threadId, id), settlement, { dueNow, newId })
  })
  takeDueSummaries(statements, dueNow)
  return settled
}

function takeDueSummaries(statements: Statements, dueNow: DueNow): void {
  for (const [first, ...others] of Map.groupBy(dueNow, ({ batch }) => batch.key).values()) {
    if (!first) continue
    const { batch } = takeBatch(statements, first.batch, first)
    for (const { settled } of [first, ...others]) {
      settled.batch = batch
      if (settled.record) settled.record = read(statements, settled.record)
    }
  }
}

function ingest(statements: Statements, item: NewNotification, settling: Settling): Ingested {
  const { threadId, resourceId, id, now } = item
  if (item.awaitsThread) checkOwner(statements, item)
  const known = statements.one<NotificationRow>(sql.byId, threadId, id) ?? countedOn(statements, sql.mergedById, id, threadId)
  if (known) {
    if (known.resourceId !== resourceId || item.isNew)
      throw new HeedError('id_taken', `Thread ${threadId} has something else under the id ${id}. Take another id for the notification.`, {
        details: { threadId, id },
      })
    return { record: notificationOf(known), outcome: 'counted' }
  }
  const dedupeSlot = slotOf(item, item.dedupeKey)
  const coalesceSlot = slotOf(item, item.coalesceKey)
  const same = dedupeSlot === null ? undefined : recordOfSlot(statements, dedupeSlot)
  if (dedupeSlot !== null && same) {
    if (holdsKey(same, now)) {
      statements.execute(sql.count, now, same.key, 1)
      rememberMerged(statements, same, item, null)
      const record = notificationOf({ ...same, coalescedCount: same.coalescedCount + 1, updatedAt: now })
      return { record, outcome: isOnlySummarized(same) ? 'coalesced' : 'counted' }
    }
    releaseKey(statements, dedupeSlot, same)
  }
  const related = coalesceSlot === null ? undefined : statements.one<NotificationRow>(sql.byCoalesceSlot, coalesceSlot)
  if (related) return merge(statements, related, item, dedupeSlot)
  const row = newRow(item)
  const kept = { dedupeSlot, coalesceSlot, rememberMs: item.dedupeKey === undefined ? null : item.rememberMs || null }
  const created = () => ({ record: notificationOf(row), outcome: 'created' as const })
  if (!item.settlement) {
    add(statements, row, kept)
    return created()
  }
  // Decided before it is stored: one write instead of two, and what is stored need not be read again.
  const decided = decide(statements, row, item.settlement, settling.newId)
  add(statements, decided.row, kept)
  return { ...created(), settled: settledAs(decided, item.settlement, settling.dueNow) }
}

/** A notification as it is stored before a decision. */
function newRow(item: NewNotification): UnnumberedRow {
  const { threadId, id, resourceId, agentId, source, kind, summary, now } = item
  return {
    threadId, id, resourceId, agentId, source, kind, summary, status: 'pending', priority: item.priority ?? 'medium', batch: null,
    dueAt: item.undecidedUntil, decided: 0, flight: 0, whenIdle: null, rememberUntil: null, coalescedCount: 1, attempts: 0, createdAt: now,
    updatedAt: now, deliverAt: null, attemptedAt: null, deliveredAt: null, seenAt: null, dismissedAt: null, archivedAt: null,
    discardedAt: null, deliveredSignalId: null, reason: null, error: null, dedupeKey: item.dedupeKey ?? null,
    coalesceKey: item.coalesceKey ?? null, attributes: json(item.attributes), metadata: json(item.metadata), payload: json(item.payload),
    action: null, rule: null, summaryAt: null, summarySignalId: null, summarized: 0,
  }
}

interface Slots {
  dedupeSlot: string | null
  coalesceSlot: string | null
  rememberMs: number | null
}

/** A record that is sent is not merged into any more, and one that is discarded has no keys. */
function add(statements: Statements, row: UnnumberedRow, { dedupeSlot, coalesceSlot, rememberMs }: Slots): void {
  const isDiscarded = row.status === 'discarded'
  statements.execute(
    sql.add, row.threadId, row.id, row.resourceId, row.agentId, row.status, row.priority, row.dueAt, isDiscarded ? null : dedupeSlot,
    isDiscarded || row.flight === 1 ? null : coalesceSlot, row.createdAt, row.updatedAt, row.dedupeKey, row.coalesceKey, row.source,
    row.kind, row.summary, row.attributes, row.metadata, row.payload, rememberMs, row.decided, row.flight, row.batch, row.whenIdle,
    row.deliverAt, row.reason, row.discardedAt, row.action, row.rule,
  )
}

/**
 * Notifications may precede their thread. Its id then belongs to the resource of the first record: others are rejected whichever id they
 * choose, so they cannot find out which ids exist.
 */
function checkOwner(statements: Statements, { threadId, resourceId }: NewNotification): void {
  const owner = statements.one<{ resourceId: string }>(sql.firstOwner, threadId)
  if (!owner || owner.resourceId === resourceId) return
  throw new HeedError(
    'thread_forbidden',
    `Thread ${threadId} is not there yet, and notifications of another resource wait for it. ` +
      'Send yours without an id, or once the thread is yours.',
    { details: { threadId } },
  )
}

/** How many merged notifications of one record are kept, so that a repetition is recognized. */
const maxMerged = 256
/** The oldest beyond `maxMerged` are deleted once for so many notifications. */
const forgetEvery = 64

/** Stores the id and the key of a notification that has no record of its own, so that a repetition is recognized. */
function rememberMerged(
  statements: Statements,
  { key, coalescedCount }: NotificationRow,
  { threadId, id }: NewNotification,
  dedupeSlot: string | null,
): void {
  statements.execute(sql.rememberMerged, key, threadId, id, dedupeSlot)
  if (coalescedCount > maxMerged && coalescedCount % forgetEvery === 0) statements.execute(sql.forgetMerged, key, maxMerged)
}

/** Whether a summary with the record was emitted and no delivery of its full text is planned: a new decision may plan one. */
function isOnlySummarized({ status, decided, flight, summarySignalId, whenIdle, dueAt }: NotificationRow): boolean {
  return status === 'pending' && decided === 1 && flight === 0 && summarySignalId !== null && whenIdle === null && dueAt === null
}

/** Updates a record with a new notification. Fields that the new one lacks stay, and the higher priority wins. */
function merge(statements: Statements, row: NotificationRow, item: NewNotification, dedupeSlot: string | null): Ingested {
  const before = notificationOf(row)
  const attributes = item.attributes ? { ...before.attributes, ...item.attributes } : before.attributes
  const metadata = item.metadata ? { ...before.metadata, ...item.metadata } : before.metadata
  // What is stored need not be read again.
  const merged = {
    ...row, coalescedCount: row.coalescedCount + 1, updatedAt: item.now, kind: item.kind, summary: item.summary,
    priority: priorities.find((one) => one === row.priority || one === item.priority) ?? row.priority,
    attributes: mergedJson(attributes, 'attributes'), metadata: mergedJson(metadata, 'metadata'),
    payload: item.payload === undefined ? row.payload : json(item.payload),
  }
  statements.execute(
    sql.merge, item.now, merged.priority, merged.kind, merged.summary, merged.attributes, merged.metadata, merged.payload,
    dedupeSlot === null ? null : item.rememberMs || null, row.key,
  )
  rememberMerged(statements, row, item, dedupeSlot)
  return { record: notificationOf(merged), outcome: 'coalesced' }
}

function settle(
  statements: Statements, row: NotificationRow | undefined, settlement: Settlement, { dueNow, newId }: Settling,
): Settled {
  if (!row) return { applied: false }
  if (row.status !== 'pending' || row.flight === 1) return { record: notificationOf(row), applied: false }
  const decided = decide(statements, row, settlement, newId)
  const { status, flight, batch, whenIdle, deliverAt, dueAt, reason, updatedAt, action, rule } = decided.row
  if (flight === 1) statements.execute(sql.send, dueAt, reason, updatedAt, action, rule, row.key)
  else if (status === 'discarded') statements.execute(sql.discard, reason, updatedAt, updatedAt, rule, row.key)
  else statements.execute(sql.wait, batch, whenIdle, deliverAt, dueAt, reason, updatedAt, action, rule, row.key)
  return settledAs(decided, settlement, dueNow)
}

/** What a decision makes of a record, and the batch that the record joins. */
interface Decided {
  row: UnnumberedRow
  batch?: BatchRow | undefined
}

/** Applies a decision to a record that is pending and not being sent. The caller writes the record. */
function decide(statements: Statements, row: UnnumberedRow, terms: SettlementTerms, newId: () => string): Decided {
  const { action, now, summary } = terms
  const decided = { ...row, decided: 1, action, reason: terms.reason ?? null, rule: terms.rule ?? null, updatedAt: now }
  const inNoBatch = { batch: null, summaryAt: null, summarySignalId: null, summarized: 0 }
  if (action === 'deliver' || action === 'queue') {
    return { row: { ...decided, ...inNoBatch, whenIdle: null, deliverAt: null, flight: 1, dueAt: terms.claimUntil } }
  }
  if (action === 'discard') {
    return { row: { ...decided, ...inNoBatch, whenIdle: null, deliverAt: null, dueAt: null, status: 'discarded', discardedAt: now } }
  }
  const keepsBatch = summary !== undefined && (isSummarized(row, summary) || isSummarizedSooner(row, summary, now))
  const batch = action === 'summarize' && summary && !keepsBatch ? joinBatch(statements, row, summary, { now, newId }) : undefined
  const { whenIdle, deliverAt, dueAt } = deliveryTimes(row, terms)
  const recheckAt = terms.whenIdle?.recheckAt ?? now
  if (whenIdle === 1 && dueAt === null) statements.execute(sql.addWait, row.threadId, row.agentId, now, recheckAt)
  const joined = batch ? { ...inNoBatch, batch: batch.key, summaryAt: batch.dueAt } : inNoBatch
  return { row: { ...decided, ...(keepsBatch ? {} : joined), whenIdle, deliverAt, dueAt }, batch }
}

/** The result of a decision. A record whose summary is due now is read again when the summary is taken. */
function settledAs({ row, batch }: Decided, { summary, now, claimUntil }: SettlementTerms, dueNow: DueNow): Settled {
  const settled: Settled = { applied: true, record: notificationOf(row) }
  if (batch && summary?.form === 'now') dueNow.push({ settled, batch, now, until: claimUntil })
  return settled
}

/**
 * A summary counts a record once. A record with a `coalesceKey` may have new text, which a later summary counts, but none that is due now:
 * that would interrupt a run.
 */
function isSummarized({ summarized, coalesceKey }: UnnumberedRow, { form }: SummaryTime): boolean {
  return summarized === 1 && (form === 'now' || coalesceKey === null)
}

/** A repetition does not postpone a record: it stays in the summary that is due sooner. */
function isSummarizedSooner({ batch, summarized, summaryAt }: UnnumberedRow, time: SummaryTime, now: number): boolean {
  if (batch === null || summarized === 1 || summaryAt === null || time.form === 'now') return false
  return summaryAt <= (time.form === 'timed' ? time.at : now + time.quietMs)
}

/** When the full text is delivered. Once that is planned, another decision can only make it earlier; only `persist` cancels it. */
function deliveryTimes(
  row: UnnumberedRow,
  { action, whenIdle, deliverAt, now }: SettlementTerms,
): Pick<NotificationRow, 'whenIdle' | 'deliverAt' | 'dueAt'> {
  const planned = row.decided === 1 && action !== 'persist' && (row.whenIdle === 1 || row.deliverAt !== null)
  const sooner = deliverAt !== undefined && row.deliverAt !== null && deliverAt < row.deliverAt
  if (planned && !sooner) return row
  // Records that wait for an idle thread share the timer of that thread.
  const dueAt = deliverAt === undefined || (whenIdle && deliverAt <= now) ? null : deliverAt
  return { whenIdle: whenIdle ? 1 : null, deliverAt: deliverAt ?? null, dueAt }
}

/** Finds or creates the batch that will count this record, in constant time, however many records it has. */
function joinBatch(
  statements: Statements, row: UnnumberedRow, time: SummaryTime, { now, newId }: { now: number; newId(): string },
): BatchRow {
  const found = time.form === 'timed'
    ? statements.one<BatchRow>(sql.timed, row.threadId, row.resourceId, row.agentId, time.at + time.withinMs, time.at - time.withinMs)
    : statements.one<BatchRow>(sql.window, row.threadId, row.resourceId, row.agentId)
  const firstAt = found?.firstAt ?? (time.form === 'timed' ? time.at : now)
  const dueAt = dueOf(time, firstAt, found?.dueAt ?? 0, now)
  if (found) {
    statements.execute(sql.moveBatch, dueAt, found.key)
    return { ...found, dueAt }
  }
  const id = newId()
  const { threadId, resourceId, agentId } = row
  const key = statements.insert(
    sql.addBatch, statements.newKey?.('heed_notification_batches') ?? null, id, threadId, resourceId, agentId,
    time.form === 'timed' ? 'timed' : 'window', firstAt, dueAt,
  )
  return { key, id, threadId, resourceId, agentId, open: 1, firstAt, dueAt, attempts: 0 }
}

function dueOf(time: SummaryTime, firstAt: number, before: number, now: number): number {
  switch (time.form) {
    case 'now':
      return now
    case 'window':
      return Math.min(firstAt + time.maxWaitMs, now + time.quietMs)
    case 'timed':
      return Math.max(before, time.at)
  }
}

/**
 * Closes a batch, so that no more records join it, and returns its counts. It takes in all other batches of its agent, resource and thread
 * that are due. A batch that was claimed before stays as it was then, because the thread may have its summary already.
 */
export function takeBatch(
  statements: Statements,
  batch: BatchRow,
  { now, until }: { now: number; until: number },
): { batch: SummaryBatch; joined: number[] } {
  const joined = batch.open === null ? [] : dueWith(statements, batch, now)
  for (const key of joined) {
    statements.execute(sql.moveCounted, batch.key, key)
    statements.execute(sql.removeBatch, key)
  }
  statements.execute(sql.closeBatch, until, batch.key)
  return { batch: count(statements, batch), joined }
}

function dueWith(statements: Statements, { key, threadId, resourceId, agentId }: BatchRow, now: number): number[] {
  const window = statements.one<BatchRow>(sql.window, threadId, resourceId, agentId)
  const others = statements.all<BatchRow>(sql.dueTimed, threadId, resourceId, agentId, now)
  if (window && (window.dueAt ?? Infinity) <= now) others.push(window)
  return others.flatMap((other) => (other.key === key ? [] : other.key))
}

/** Makes claimed batches due again at `until`, unless another batch takes them in before. */
export function holdBatches(statements: Statements, ids: readonly string[], until: number): void {
  for (const id of ids) statements.execute(sql.holdBatch, until, id)
}

/** Moves the records of earlier, unread summaries to this one. */
export function joinBatches(statements: Statements, batchId: string, earlier: readonly string[]): SummaryBatch | null {
  const batch = statements.one<BatchRow>(sql.batch, batchId)
  if (!batch) return null
  for (const id of earlier) {
    const other = statements.one<BatchRow>(sql.batch, id)
    const isTheirs = other?.threadId === batch.threadId && other.resourceId === batch.resourceId && other.agentId === batch.agentId
    if (!isTheirs || other.key === batch.key) continue
    statements.execute(sql.moveCounted, batch.key, other.key)
    statements.execute(sql.joinedBatch, other.key)
  }
  return count(statements, batch)
}

function count(statements: Statements, batch: BatchRow): SummaryBatch {
  const counted = statements.all<{
    source: string
    priority: keyof SummaryBatch['priorities']
    whenIdle: number
    count: number
    first: number
  }>(sql.counted, batch.key)
  const sources = new Map<string, number>()
  const priorities: SummaryBatch['priorities'] = {}
  let wakes = false
  for (const { source, priority, whenIdle, count } of counted.toSorted((one, other) => one.first - other.first)) {
    sources.set(source, (sources.get(source) ?? 0) + count)
    priorities[priority] = (priorities[priority] ?? 0) + count
    wakes ||= priority !== 'low' && whenIdle === 0
  }
  const { id, threadId, resourceId, agentId, attempts } = batch
  const counts = [...sources].map(([source, count]) => ({ source, count }))
  return { id, threadId, resourceId, agentId, attempts, sources: counts, priorities, wakes }
}

function read(statements: Statements, { threadId, id }: { threadId: string; id: string }): Ingested['record'] {
  const row = statements.one<NotificationRow>(sql.byId, threadId, id)
  if (!row) throw new Error(`notification ${id} is gone within its own transaction`)
  return notificationOf(row)
}

/** Checks the size again: each value was within the limit, and merged they may exceed it. */
function mergedJson(value: unknown, field: string): string | null {
  const text = json(value)
  return text === null ? null : validateTextSize(text, field)
}

function json(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value)
}
