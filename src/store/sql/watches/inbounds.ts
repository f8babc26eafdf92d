import { isOwnCategory, uniteCategories } from '../../../watch/annotation.ts'
import { lastAnnotatorFailure, lostClaim, maxAnnotationLosses, maxAnnotatorFailures } from '../../../watch/machine.ts'
import type {
  AddedInbound, InboundAnnotation, InboundClaim, InboundDeferral, InboundRecord, NewInbound,
} from '../../contract/watches.ts'
import type { Statements } from '../statements.ts'
import { findWatches, isAwaited } from './matching.ts'
import { addReply, holdBehindSends, isEcho, wakeReplyOf } from './replies.ts'
import { inboundColumns, inboundOf, unanswered, type InboundRow } from './rows.ts'
import { claimInShares } from './shares.ts'

/** When the annotation of a message is due that is held until a reply is sent. */
const never = Number.MAX_SAFE_INTEGER

export const inboundSql = {
  bySeq: `SELECT ${inboundColumns} FROM heed_inbounds WHERE seq = ?`,
  byProvider: `SELECT ${inboundColumns} FROM heed_inbounds WHERE channel_id = ? AND provider_id = ?`,
  add: `
    INSERT INTO heed_inbounds (seq, id, resource_id, channel_id, kind, provider_id, sender, contact_id, contact_since,
      conversation, content, received_at, due_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12)`,
  due: `SELECT ${inboundColumns} FROM heed_inbounds WHERE channel_id = ? AND due_at <= ? ORDER BY due_at, seq LIMIT ?`,
  // A claim counts as lost until it is reported.
  take: 'UPDATE heed_inbounds SET due_at = ?, attempts = attempts + 1, lost = lost + 1 WHERE seq = ?',
  fail: 'UPDATE heed_inbounds SET due_at = NULL, error = ? WHERE seq = ?',
  annotate: 'UPDATE heed_inbounds SET categories = ?, offered = ?, due_at = ?, error = NULL, lost = 0, failures = 0 WHERE seq = ?',
  defer: 'UPDATE heed_inbounds SET due_at = ?, error = ?, failures = ?, lost = CASE WHEN lost > 0 THEN lost - 1 ELSE 0 END WHERE seq = ?',
  label: `
    UPDATE heed_inbounds SET categories = ?, offered = CASE WHEN categories IS NULL THEN '${unanswered}' ELSE offered END WHERE seq = ?`,
  endWaits: 'UPDATE heed_watch_candidates SET waiting = 0 WHERE seq = ? AND waiting = 1',
  wakeCandidates: `
    UPDATE heed_watches SET due_at = CASE WHEN due_at < ?2 THEN due_at ELSE ?2 END WHERE due_at IS NOT NULL AND ord IN (
      SELECT watch FROM heed_watch_candidates WHERE seq = ?1 AND state = 'pending')
    AND NOT EXISTS (SELECT 1 FROM heed_watch_candidates o WHERE o.watch = heed_watches.ord AND o.state = 'claimed')`,
  hold: `UPDATE heed_inbounds SET due_at = ${never} WHERE seq = ?`,
  nextDue: `SELECT min(due_at) AS at FROM heed_inbounds WHERE channel_id = ? AND due_at < ${never}`,
}

export function inboundBySeq(statements: Statements, seq: number): InboundRow | undefined {
  return statements.one<InboundRow>(inboundSql.bySeq, seq)
}

/** Undefined for an echo of a reply. */
export function addInbound(statements: Statements, inbound: NewInbound): AddedInbound | undefined {
  const { id, resourceId, channelId, kind, providerId, sender, contactId, contactSince, conversation, content, reply, now } = inbound
  const known = statements.one<InboundRow>(inboundSql.byProvider, channelId, providerId)
  if (known) return { inbound: inboundOf(known), repeated: true }
  if (reply && isEcho(statements, inbound)) return undefined
  const stored = {
    id, resourceId, channelId, kind, providerId, sender: JSON.stringify(sender), contactId: contactId ?? null,
    contactSince: contactSince ?? 0, conversation: conversation ?? null, content: JSON.stringify(content), receivedAt: now,
  }
  const seq = statements.insert(inboundSql.add, statements.newKey?.('heed_inbounds') ?? null, ...Object.values(stored))
  const row: InboundRow = {
    ...stored, seq, categories: null, dueAt: now, attempts: 0, lost: 0, failures: 0, error: null, consumedBy: null, offered: null,
  }
  if (reply && holdBehindSends(statements, row)) statements.execute(inboundSql.hold, seq)
  else findWatches(statements, row, undefined, now)
  if (reply) addReply(statements, row, reply, now)
  return { inbound: inboundOf(row), repeated: false }
}

export function claimInbounds(statements: Statements, { channelIds, now, until, limit, most }: InboundClaim): InboundRecord[] {
  return claimInShares(channelIds, { now, limit, most }, (channelId) => nextDueOf(statements, channelId), (channelId, free) =>
    statements.all<InboundRow>(inboundSql.due, channelId, now, free).flatMap((row) => claimInbound(statements, row, now, until) ?? []),
  ).map(inboundOf)
}

/** Undefined for a message that was to be annotated again and stays as it is. */
function claimInbound(statements: Statements, row: InboundRow, now: number, until: number): InboundRow | undefined {
  if (row.lost >= maxAnnotationLosses) {
    statements.execute(inboundSql.fail, lostClaim, row.seq)
    wakeWaiting(statements, row.seq, now)
    return row.categories === null ? { ...row, dueAt: null, error: lostClaim } : undefined
  }
  statements.execute(inboundSql.take, until, row.seq)
  return { ...row, attempts: row.attempts + 1 }
}

export function annotateInbound(statements: Statements, { seq, categories, offered = [], now }: InboundAnnotation): boolean {
  const row = inboundBySeq(statements, seq)
  if (!row || row.dueAt === null) return false
  const known = listOf(row.categories)
  const all = uniteCategories(known, categories)
  const own = typeof offered === 'string'
    ? (hasAnswered(row) ? 'all' : offered)
    : [...new Set([...knownOffer(row), ...[...offered, ...categories].filter(isOwnCategory)])]
  const dueAt = typeof own !== 'string' && isAwaited(statements, row, own) ? now : null
  const annotated = { ...row, categories: JSON.stringify(all), dueAt }
  statements.execute(inboundSql.annotate, annotated.categories, own.length === 0 ? null : JSON.stringify(own), dueAt, seq)
  findWatches(statements, annotated, all.filter((category) => !known.includes(category)), now)
  wakeWaiting(statements, seq, now)
  return true
}

/** The reply of a message, and its candidates, are due when it is annotated: policies may ask for its categories. */
function wakeWaiting(statements: Statements, seq: number, now: number): void {
  statements.execute(inboundSql.endWaits, seq)
  statements.execute(inboundSql.wakeCandidates, seq, now)
  wakeReplyOf(statements, seq, now)
}

/** Whether an annotator has chosen its categories, or none was to choose. */
export function hasAnswered({ categories, offered }: InboundRow): boolean {
  return categories !== null && offered !== unanswered
}

function knownOffer({ offered }: InboundRow): string[] {
  const known: unknown = offered === null ? [] : JSON.parse(offered)
  return Array.isArray(known) ? known : []
}

function listOf(json: string | null): string[] {
  return json === null ? [] : (JSON.parse(json) as string[])
}

export function deferInbound(statements: Statements, { seq, error, retryAt, now, rules }: InboundDeferral): void {
  const row = inboundBySeq(statements, seq)
  if (!row || row.dueAt === null) return
  const failures = row.failures + (rules === undefined ? 0 : 1)
  statements.execute(inboundSql.defer, failures >= lastAnnotatorFailure ? null : retryAt, error, failures, seq)
  if (rules === undefined) return
  const known = listOf(row.categories)
  const categories = JSON.stringify(uniteCategories(known, rules))
  // Watches need not wait for what is certain. Policies and replies wait for all categories, but not for ever.
  findWatches(statements, { ...row, categories }, rules.filter((category) => !known.includes(category)), now)
  if (failures < maxAnnotatorFailures) return
  statements.execute(inboundSql.label, categories, seq)
  wakeWaiting(statements, seq, now)
}

export function nextInboundDue(statements: Statements, channelIds: readonly string[]): number | undefined {
  const times = channelIds.flatMap((channelId) => nextDueOf(statements, channelId) ?? [])
  return times.length === 0 ? undefined : Math.min(...times)
}

function nextDueOf(statements: Statements, channelId: string): number | undefined {
  return statements.one<{ at: number | null }>(inboundSql.nextDue, channelId)?.at ?? undefined
}
