import { lostClaim, maxAnnotationLosses } from '../../../watch/machine.ts'
import type { AddedInbound, InboundClaim, InboundRecord, NewInbound } from '../../contract/watches.ts'
import type { Statements } from '../statements.ts'
import { findWatches } from './matching.ts'
import { addReply, isEcho, wakeReplyOf } from './replies.ts'
import { inboundColumns, inboundOf, type InboundRow } from './rows.ts'

const inboundSql = {
  bySeq: `SELECT ${inboundColumns} FROM heed_inbounds WHERE seq = ?`,
  byProvider: `SELECT ${inboundColumns} FROM heed_inbounds WHERE channel_id = ? AND provider_id = ?`,
  add: `
    INSERT INTO heed_inbounds (id, resource_id, channel_id, kind, provider_id, sender, contact_id, contact_since,
      conversation, content, received_at, due_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11)`,
  due: `SELECT ${inboundColumns} FROM heed_inbounds WHERE channel_id = ? AND due_at <= ? ORDER BY due_at, seq LIMIT ?`,
  // A claim counts as lost until it is reported.
  take: 'UPDATE heed_inbounds SET due_at = ?, attempts = attempts + 1, lost = lost + 1 WHERE seq = ?',
  fail: 'UPDATE heed_inbounds SET due_at = NULL, error = ? WHERE seq = ?',
  annotate: 'UPDATE heed_inbounds SET categories = ?, due_at = NULL, error = NULL WHERE seq = ?',
  defer: 'UPDATE heed_inbounds SET due_at = ?, error = ?, lost = max(0, lost - 1) WHERE seq = ? AND due_at IS NOT NULL',
  nextDue: 'SELECT min(due_at) AS at FROM heed_inbounds WHERE channel_id = ? AND due_at IS NOT NULL',
}

export function inboundBySeq(statements: Statements, seq: number): InboundRow | undefined {
  return statements.one<InboundRow>(inboundSql.bySeq, seq)
}

/** Undefined for an echo of a reply. */
export function addInbound(statements: Statements, inbound: NewInbound): AddedInbound | undefined {
  const { id, resourceId, channelId, kind, providerId, sender, contactId, contactSince, conversation, content, reply, now } = inbound
  const known = statements.one<InboundRow>(inboundSql.byProvider, channelId, providerId)
  if (known) return { inbound: inboundOf(known), repeated: true }
  if (reply && isEcho(statements, channelId, providerId)) return undefined
  const seq = statements.insert(
    inboundSql.add, id, resourceId, channelId, kind, providerId, JSON.stringify(sender), contactId ?? null, contactSince ?? 0,
    conversation ?? null,
    JSON.stringify(content), now,
  )
  const row = inboundBySeq(statements, seq) as InboundRow
  findWatches(statements, row, undefined, now)
  if (reply) addReply(statements, row, reply, now)
  return { inbound: inboundOf(row), repeated: false }
}

export function claimInbounds(statements: Statements, { channelIds, now, until, limit }: InboundClaim): InboundRecord[] {
  const taken: InboundRow[] = []
  for (const channelId of channelIds) {
    const rows = statements.all<InboundRow>(inboundSql.due, channelId, now, limit - taken.length)
    for (const row of rows) taken.push(claimInbound(statements, row, now, until))
  }
  return taken.map(inboundOf)
}

function claimInbound(statements: Statements, row: InboundRow, now: number, until: number): InboundRow {
  if (row.lost >= maxAnnotationLosses) {
    statements.run(inboundSql.fail, lostClaim, row.seq)
    wakeReplyOf(statements, row.seq, now)
    return { ...row, dueAt: null, error: lostClaim }
  }
  statements.run(inboundSql.take, until, row.seq)
  return { ...row, attempts: row.attempts + 1 }
}

export function annotateInbound(
  statements: Statements, { seq, categories, now }: { seq: number; categories: readonly string[]; now: number },
): boolean {
  const row = inboundBySeq(statements, seq)
  if (!row || row.dueAt === null) return false
  const annotated = { ...row, categories: JSON.stringify(categories), dueAt: null }
  statements.run(inboundSql.annotate, annotated.categories, seq)
  findWatches(statements, annotated, categories, now)
  wakeReplyOf(statements, seq, now)
  return true
}

export function deferInbound(statements: Statements, { seq, error, retryAt }: { seq: number; error: string; retryAt: number }): void {
  statements.run(inboundSql.defer, retryAt, error, seq)
}

export function nextInboundDue(statements: Statements, channelIds: readonly string[]): number | undefined {
  const times = channelIds.flatMap((channelId) => statements.one<{ at: number | null }>(inboundSql.nextDue, channelId)?.at ?? [])
  return times.length === 0 ? undefined : Math.min(...times)
}
