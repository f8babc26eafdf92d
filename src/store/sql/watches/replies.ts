import { isOpenReply, nextReplyState, type NoReply, type ReplyState } from '../../../watch/replies/machine.ts'
import type {
  ClaimedReply, NewReply, ReplyError, ReplyQuery, ReplyRecord, ReplyScope, ReplySettlement, ReplyStep,
} from '../../contract/replies.ts'
import type { InboundClaim, InboundSender, NewInbound } from '../../contract/watches.ts'
import type { SqlValue, Statements } from '../statements.ts'
import { findWatches } from './matching.ts'
import { inboundOf, inboundColumns, type InboundRow, type WatchRow } from './rows.ts'
import { claimInShares } from './shares.ts'

/** How long a message may be the echo of a reply whose id at the provider is not known. */
const echoMs = 60_000

interface ReplyRow {
  ord: number
  /** That of the message in whose conversation it is sent. */
  seq: number
  id: string
  inboundId: string
  signalId: string
  resourceId: string
  channelId: string
  agentId: string
  threadId: string
  state: ReplyState
  reason: NoReply | null
  policies: string | null
  text: string | null
  truncated: number
  providerId: string | null
  attempts: number
  claims: number
  /** 1 while a process is sending it. */
  sending: number
  error: string | null
  createdAt: number
  dueAt: number | null
  settledAt: number | null
}

const replyColumns = `
  ord, seq, id, inbound_id AS inboundId, signal_id AS signalId, resource_id AS resourceId, channel_id AS channelId, agent_id AS agentId,
  thread_id AS threadId, state,
  reason, policies, text, truncated, provider_id AS providerId, attempts, claims, sending, error, created_at AS createdAt, due_at AS dueAt,
  settled_at AS settledAt`

export const replySql = {
  byId: `SELECT ${replyColumns} FROM heed_replies WHERE id = ?`,
  add: `
    INSERT INTO heed_replies (
      seq, id, inbound_id, signal_id, resource_id, channel_id, agent_id, thread_id, state, reason, created_at, settled_at)
    VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`,
  // To the conversation of the run that registered the watch, else of the last message that the thread was given.
  addForWatch: `
    INSERT INTO heed_replies (seq, id, inbound_id, signal_id, resource_id, channel_id, agent_id, thread_id, state, created_at)
    SELECT seq, ?1, inbound_id, ?2, resource_id, channel_id, agent_id, thread_id, 'received', ?3 FROM heed_replies
    WHERE thread_id = ?4 AND agent_id = ?5 AND resource_id = ?6 AND (
      state IN ('asked', 'pending', 'sent', 'dead') OR reason IN ('empty', 'run_failed', 'run_aborted', 'run_rejected', 'run_lost'))
    ORDER BY CASE WHEN signal_id = ?7 THEN 1 ELSE 0 END DESC, seq DESC LIMIT 1 ON CONFLICT DO NOTHING`,
  delivered: `UPDATE heed_replies SET state = 'asked', due_at = ?2 WHERE signal_id = ?1 AND state = 'received'`,
  undelivered: `UPDATE heed_replies SET state = 'none', reason = ?2, settled_at = ?3 WHERE signal_id = ?1 AND state = 'received'`,
  placeOf: 'SELECT thread_id AS threadId, channel_id AS channelId FROM heed_replies WHERE seq = ? AND signal_id = inbound_id',
  echo: 'SELECT 1 AS found FROM heed_replies WHERE channel_id = ? AND provider_id = ? LIMIT 1',
  echoByText: `
    SELECT 1 AS found FROM heed_replies r JOIN heed_inbounds i ON i.seq = r.seq
    WHERE r.channel_id = ?1 AND r.text = ?2 AND r.echo_until >= ?3 AND r.resource_id = ?4
    AND i.conversation IS NOT DISTINCT FROM ?5 AND (?5 IS NOT NULL OR i.sender ->> '$.address' = ?6) LIMIT 1`,
  // Without conversations also messages of other senders: the echo by id may come from the channel's own address.
  hold: `
    INSERT INTO heed_inbound_holds (seq, reply) SELECT ?3, r.ord FROM heed_replies r JOIN heed_inbounds i ON i.seq = r.seq
    WHERE r.channel_id = ?1 AND r.sending = 1 AND r.resource_id = ?4 AND i.conversation IS NOT DISTINCT FROM ?2`,
  held: `SELECT ${inboundColumns} FROM heed_inbounds WHERE seq IN (SELECT seq FROM heed_inbound_holds WHERE reply = ?) ORDER BY seq`,
  isHeld: 'SELECT 1 AS found FROM heed_inbound_holds WHERE seq = ? LIMIT 1',
  releaseHolds: 'DELETE FROM heed_inbound_holds WHERE reply = ?',
  removeHolds: 'DELETE FROM heed_inbound_holds WHERE seq = ?',
  removeInbound: 'DELETE FROM heed_inbounds WHERE seq = ?',
  annotate: 'UPDATE heed_inbounds SET due_at = received_at WHERE seq = ?',
  settled: 'UPDATE heed_replies SET sending = 0, echo_until = coalesce(?, echo_until) WHERE ord = ?',
  sendingOf: `SELECT ${replyColumns} FROM heed_replies WHERE thread_id = ?1 AND sending = 1 AND (?2 IS NULL OR resource_id = ?2)`,
  due: `SELECT ${replyColumns} FROM heed_replies WHERE channel_id = ? AND due_at <= ? ORDER BY due_at, ord LIMIT ?`,
  inbound: `SELECT ${inboundColumns} FROM heed_inbounds WHERE seq = ?`,
  take: `
    UPDATE heed_replies SET due_at = ?, sending = ?, echo_until = coalesce(?, echo_until),
      attempts = attempts + 1, claims = claims + 1 WHERE ord = ?`,
  nextDue: 'SELECT min(due_at) AS at FROM heed_replies WHERE channel_id = ? AND due_at IS NOT NULL',
  // A message is annotated when it has categories, or no due time for them.
  head: `
    SELECT r.ord AS ord, i.categories IS NULL AND i.due_at IS NOT NULL AS unannotated
    FROM heed_replies r JOIN heed_inbounds i ON i.seq = r.seq
    WHERE r.thread_id = ? AND r.state = 'received' AND r.channel_id = ? AND r.signal_id = r.inbound_id ORDER BY r.ord LIMIT 1`,
  makeDue: 'UPDATE heed_replies SET due_at = ? WHERE ord = ? AND due_at IS NULL',
  ask: `UPDATE heed_replies SET state = 'asked', attempts = 0, error = NULL, due_at = ? WHERE ord = ?`,
  answer: `
    UPDATE heed_replies SET state = 'pending', attempts = 0, error = NULL, text = ?, truncated = ?, due_at = ? WHERE ord = ?`,
  sent: `
    UPDATE heed_replies SET state = 'sent', error = NULL, provider_id = ?, settled_at = ?, due_at = NULL WHERE ord = ?`,
  giveUp: `UPDATE heed_replies SET state = 'dead', error = ?, settled_at = ?, due_at = NULL WHERE ord = ?`,
  end: `UPDATE heed_replies SET state = 'none', reason = ?, policies = ?, settled_at = ?, due_at = NULL WHERE ord = ?`,
  defer: 'UPDATE heed_replies SET due_at = ?1, error = ?2, attempts = CASE WHEN attempts > ?3 THEN attempts - ?3 ELSE 0 END WHERE ord = ?4',
  // A claim that read the run before its end is fenced: it would make the reply due later.
  wake: `UPDATE heed_replies SET due_at = ?2, claims = claims + 1 WHERE thread_id = ?1 AND state = 'asked'`,
  retry: `
    UPDATE heed_replies SET state = 'pending', attempts = 0, error = NULL, settled_at = NULL, due_at = ? WHERE ord = ?`,
  remove: 'DELETE FROM heed_replies WHERE seq = ?',
  forget: 'DELETE FROM heed_replies WHERE thread_id = ?1 AND (?2 IS NULL OR resource_id = ?2)',
  give: `
    UPDATE heed_replies SET state = 'none', reason = 'thread_forbidden', settled_at = ?3, due_at = NULL
    WHERE thread_id = ?1 AND resource_id <> ?2 AND state IN ('received', 'asked')`,
}

/**
 * Whether the channel sent this message itself: by the provider's id of a reply, or by the text of one to the same conversation, else the
 * same address, whose id is not known.
 */
export function isEcho(statements: Statements, inbound: NewInbound): boolean {
  const { channelId, resourceId, providerId, conversation, sender, content, now } = inbound
  const place = [resourceId, conversation ?? null, sender.address]
  return statements.one(replySql.echo, channelId, providerId) !== undefined
    || statements.one(replySql.echoByText, channelId, content.text, now, ...place) !== undefined
}

/**
 * Holds a message that arrived while replies of its conversation are being sent: whether it is the echo of one is known when the provider
 * has answered. Returns whether it is held.
 */
export function holdBehindSends(statements: Statements, { seq, channelId, resourceId, conversation }: InboundRow): boolean {
  return statements.run(replySql.hold, channelId, conversation, seq, resourceId) > 0
}

/** The reply is sent, or the attempt failed: messages that waited for it are worked on, except for its echo, which is removed. */
function releaseHeld(statements: Statements, reply: ReplyRow, step: ReplyStep): void {
  const held = statements.all<InboundRow>(replySql.held, reply.ord)
  statements.execute(replySql.releaseHolds, reply.ord)
  for (const inbound of held) {
    if (isEchoOf(statements, inbound, reply, step)) removeInbound(statements, inbound)
    else if (!statements.one(replySql.isHeld, inbound.seq)) {
      statements.execute(replySql.annotate, inbound.seq)
      findWatches(statements, inbound, undefined, inbound.receivedAt)
    }
  }
}

/**
 * A message with the text of the reply that arrived while it was sent is its echo, whichever id the provider gave it: in its conversation,
 * or from its recipient where there are no conversations.
 */
function isEchoOf(statements: Statements, inbound: InboundRow, reply: ReplyRow, step: ReplyStep): boolean {
  if (step.type === 'send' && step.providerId === inbound.providerId) return true
  const { text } = JSON.parse(inbound.content) as { text: string }
  const isUnsent = step.type !== 'send' && !isMaybeSent(step)
  if (isUnsent || text !== reply.text) return false
  const answered = statements.one<InboundRow>(replySql.inbound, reply.seq)
  if (answered?.conversation !== inbound.conversation) return false
  return inbound.conversation !== null || addressOf(inbound) === addressOf(answered)
}

function addressOf({ sender }: InboundRow): string {
  return (JSON.parse(sender) as InboundSender).address
}

/** Whether the provider may have the reply, though the attempt has failed. */
function isMaybeSent(step: ReplyStep): boolean {
  return (step.type === 'defer' || step.type === 'give_up') && step.error?.maybeSent !== false
}

function removeInbound(statements: Statements, { seq, receivedAt }: InboundRow): void {
  const place = statements.one<Pick<ReplyRow, 'threadId' | 'channelId'>>(replySql.placeOf, seq)
  for (const sql of [replySql.removeHolds, replySql.remove, replySql.removeInbound]) statements.execute(sql, seq)
  if (place) wakeNext(statements, place, receivedAt)
}

/** Inserts the reply of a message that was just stored. It is due when the message is annotated and those before it are asked. */
export function addReply(statements: Statements, inbound: InboundRow, { agentId, threadId, automatic }: NewReply, now: number): void {
  const { seq, id, resourceId, channelId } = inbound
  statements.execute(
    replySql.add, seq, `reply:${id}`, id, resourceId, channelId, agentId, threadId, automatic ? 'none' : 'received',
    automatic ? 'automatic' : null, now, automatic ? now : null,
  )
}

/**
 * Where a watch wakes a thread of a channel, what the thread answers is a reply too: it is sent where the conversation is. It is due when
 * the thread has the delivery. Other threads have no reply.
 */
export function addWatchReply(
  statements: Statements, { threadId, agentId, resourceId, runId }: Pick<WatchRow, 'threadId' | 'agentId' | 'resourceId' | 'runId'>,
  { id, now }: { id: string; now: number },
): void {
  statements.execute(replySql.addForWatch, `reply:${id}`, id, now, threadId, agentId, resourceId, runId)
}

/** The thread has the delivery: its run is looked for. */
export function wakeWatchReply(statements: Statements, deliveryId: string, now: number): void {
  statements.execute(replySql.delivered, deliveryId, now)
}

/** The thread never gets the delivery. */
export function endWatchReply(statements: Statements, deliveryId: string, reason: NoReply, now: number): void {
  statements.execute(replySql.undelivered, deliveryId, reason, now)
}

/** The message is annotated. */
export function wakeReplyOf(statements: Statements, seq: number, now: number): void {
  const reply = statements.one<Pick<ReplyRow, 'threadId' | 'channelId'>>(replySql.placeOf, seq)
  if (reply) wakeNext(statements, reply, now)
}

/**
 * Of the messages of a channel that their thread does not have yet, the first is due, once it is annotated. Another channel may be in
 * another process, or in none: its messages are not waited for.
 */
function wakeNext(statements: Statements, { threadId, channelId }: Pick<ReplyRow, 'threadId' | 'channelId'>, now: number): void {
  const head = statements.one<{ ord: number; unannotated: number }>(replySql.head, threadId, channelId)
  if (head?.unannotated === 0) statements.execute(replySql.makeDue, now, head.ord)
}

export function claimReplies(statements: Statements, { channelIds, now, until, limit, most }: InboundClaim): ClaimedReply[] {
  return claimInShares(channelIds, { now, limit, most }, (channelId) => nextDueOf(statements, channelId), (channelId, free) =>
    statements.all<ReplyRow>(replySql.due, channelId, now, free).flatMap((row) => claimReply(statements, row, now, until) ?? []))
}

function claimReply(statements: Statements, row: ReplyRow, now: number, until: number): ClaimedReply | undefined {
  const inbound = statements.one<InboundRow>(replySql.inbound, row.seq)
  // A reply that was being sent: its process ended, and the provider's id of it is not known.
  const echoUntil = row.sending === 1 ? now + echoMs : null
  statements.execute(replySql.take, inbound ? until : null, row.state === 'pending' ? 1 : 0, echoUntil, row.ord)
  if (!inbound) return undefined
  const [attempts, claim] = [row.attempts + 1, row.claims + 1]
  return { reply: replyOf({ ...row, attempts, dueAt: until }), inbound: inboundOf(inbound), claim }
}

export function settleReply(statements: Statements, { id, claim, step, now }: ReplySettlement): boolean {
  const row = statements.one<ReplyRow>(replySql.byId, id)
  if (!row || row.claims !== claim || !isPossible(row.state, step)) return false
  settle(statements, row.ord, step, now)
  if (row.sending === 1) endSend(statements, row, step, now)
  if (row.state === 'received' && step.type !== 'defer') wakeNext(statements, row, now)
  return true
}

/** Where the provider's id of what was sent is not known, a message with its text is its echo for some time. */
function endSend(statements: Statements, row: ReplyRow, step: ReplyStep, now: number): void {
  const isUnknown = step.type === 'send' ? step.providerId === undefined : isMaybeSent(step)
  statements.execute(replySql.settled, isUnknown ? now + echoMs : null, row.ord)
  releaseHeld(statements, row, step)
}

function isPossible(state: ReplyState, { type }: ReplyStep): boolean {
  return type === 'defer' ? isOpenReply(state) : nextReplyState(state, type) !== undefined
}

function settle(statements: Statements, ord: number, step: ReplyStep, now: number): void {
  switch (step.type) {
    case 'ask':
      return statements.execute(replySql.ask, step.checkAt, ord)
    case 'answer':
      return statements.execute(replySql.answer, step.text, step.truncated ? 1 : 0, now, ord)
    case 'send':
      return statements.execute(replySql.sent, step.providerId ?? null, now, ord)
    case 'give_up':
      return statements.execute(replySql.giveUp, JSON.stringify(step.error), now, ord)
    case 'end':
      return statements.execute(replySql.end, step.reason, step.policies ?? null, now, ord)
    case 'defer':
      return statements.execute(replySql.defer, step.dueAt, step.error ? JSON.stringify(step.error) : null, step.uncounted ? 1 : 0, ord)
  }
}

export function wakeReplies(statements: Statements, { threadId, now }: { threadId: string; now: number }): void {
  statements.execute(replySql.wake, threadId, now)
}

export function nextReplyDue(statements: Statements, channelIds: readonly string[]): number | undefined {
  const times = channelIds.flatMap((channelId) => nextDueOf(statements, channelId) ?? [])
  return times.length === 0 ? undefined : Math.min(...times)
}

function nextDueOf(statements: Statements, channelId: string): number | undefined {
  return statements.one<{ at: number | null }>(replySql.nextDue, channelId)?.at ?? undefined
}

export function getReply(statements: Statements, scope: ReplyScope): ReplyRecord | null {
  const row = scoped(statements, scope)
  return row ? replyOf(row) : null
}

export function listReplies(statements: Statements, { limit, ...query }: ReplyQuery): { replies: ReplyRecord[]; more: boolean } {
  const { resourceId, channelId, threadId, state, after } = query
  const wanted = Object.entries({
    'state = ?': state, 'thread_id = ?': threadId, 'channel_id = ?': channelId, 'resource_id = ?': resourceId, 'ord > ?': after,
  }).filter((entry): entry is [string, string | number] => entry[1] !== undefined)
  const where = wanted.length === 0 ? '' : `WHERE ${wanted.map(([condition]) => condition).join(' AND ')}`
  const values: SqlValue[] = wanted.map(([, value]) => value)
  const rows = statements.all<ReplyRow>(`SELECT ${replyColumns} FROM heed_replies ${where} ORDER BY ord LIMIT ?`, ...values, limit + 1)
  return { replies: rows.slice(0, limit).map(replyOf), more: rows.length > limit }
}

export function retryReply(statements: Statements, scope: ReplyScope, now: number): ReplyRecord | null {
  const row = scoped(statements, scope)
  if (row && nextReplyState(row.state, 'retry')) statements.execute(replySql.retry, now, row.ord)
  return getReply(statements, scope)
}

/** Removes the reply of a message that is removed. */
export function removeReply(statements: Statements, seq: number): void {
  statements.execute(replySql.remove, seq)
}

/** Removes the replies of a deleted thread, also those that are to be sent. */
export function forgetReplies(statements: Statements, threadId: string, resourceId?: string): void {
  for (const row of statements.all<ReplyRow>(replySql.sendingOf, threadId, resourceId ?? null)) {
    releaseHeld(statements, row, { type: 'give_up', error: { code: 'thread_deleted' } })
  }
  statements.execute(replySql.forget, threadId, resourceId ?? null)
}

/** The thread belongs to another resource: no run of it answers messages of the former one. */
export function transferReplies(statements: Statements, threadId: string, resourceId: string, now: number): void {
  statements.execute(replySql.give, threadId, resourceId, now)
}

function scoped(statements: Statements, { id, resourceId }: ReplyScope): ReplyRow | undefined {
  const row = statements.one<ReplyRow>(replySql.byId, id)
  return row && (resourceId === undefined || row.resourceId === resourceId) ? row : undefined
}

function replyOf(row: ReplyRow): ReplyRecord {
  const { id, inboundId, signalId, ord: seq, resourceId, channelId, agentId, threadId, state, attempts } = row
  return {
    id, inboundId, signalId, seq, resourceId, channelId, agentId, threadId, state, attempts,
    createdAt: new Date(row.createdAt),
    ...(row.reason === null ? {} : { reason: row.reason }),
    ...(row.policies === null ? {} : { policies: row.policies }),
    ...(row.text === null ? {} : { text: row.text }),
    ...(row.truncated === 1 ? { truncated: true as const } : {}),
    ...(row.providerId === null ? {} : { providerId: row.providerId }),
    ...(row.error === null ? {} : { error: JSON.parse(row.error) as ReplyError }),
    ...(row.dueAt === null ? {} : { dueAt: new Date(row.dueAt) }),
    ...(row.settledAt === null ? {} : { settledAt: new Date(row.settledAt) }),
  }
}
