import { isInTime, senderShare } from '../../../watch/machine.ts'
import type { InboundSender, WatchCriteria } from '../../contract/watches.ts'
import type { Statements } from '../statements.ts'
import { criteriaOf, watchColumns, type InboundRow, type WatchRow } from './rows.ts'

const any = '*'

/** The most combinations of categories, channels and contacts of one watch: one row of the index each. */
export const maxCombinations = 256

const matchingSql = {
  addKey: 'INSERT OR IGNORE INTO heed_watch_keys (resource_id, key, watch) VALUES (?, ?, ?)',
  removeKeys: 'DELETE FROM heed_watch_keys WHERE watch = ?',
  addCategory: `
    INSERT INTO heed_watch_categories (resource_id, category, watches) VALUES (?1, ?2, 1)
    ON CONFLICT (resource_id, category) DO UPDATE SET watches = watches + 1`,
  removeCategory: 'UPDATE heed_watch_categories SET watches = watches - 1 WHERE resource_id = ? AND category = ?',
  dropCategory: 'DELETE FROM heed_watch_categories WHERE resource_id = ? AND category = ? AND watches <= 0',
  fitting: `
    SELECT ${watchColumns} FROM heed_watches WHERE ord IN (SELECT watch FROM heed_watch_keys WHERE resource_id = ?1 AND key = ?2)
    AND state = 'open' ORDER BY ord`,
  ofSender: 'SELECT count(*) AS count FROM (SELECT 1 FROM heed_watch_candidates WHERE watch = ? AND sender_key = ? LIMIT ?)',
  pending: `
    SELECT count(*) AS count FROM (
      SELECT 1 FROM heed_watch_candidates WHERE watch = ? AND state IN ('pending', 'claimed') LIMIT ?)`,
  consumedHere: `
    SELECT 1 AS found FROM heed_watch_candidates c JOIN heed_watches w ON w.ord = c.watch
    WHERE c.seq = ? AND c.state = 'matched' AND w.thread_id = ? AND w.mode = 'once' LIMIT 1`,
  add: `
    INSERT OR IGNORE INTO heed_watch_candidates (watch, seq, state, sender_key, categories) VALUES (?, ?, 'pending', ?, ?)`,
  // A watch with a claimed candidate is due when that is settled.
  wake: `
    UPDATE heed_watches SET due_at = min(due_at, ?2) WHERE ord = ?1 AND due_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM heed_watch_candidates WHERE watch = ?1 AND state = 'claimed')`,
  skip: 'UPDATE heed_watches SET skipped = skipped + 1 WHERE ord = ?',
}

/** The keys of a watch: each combination of what it expects. */
function keysOf({ categories, channels, contacts }: WatchCriteria): string[] {
  const orAny = (names: readonly string[]) => (names.length === 0 ? [any] : names)
  return orAny(categories).flatMap((category) =>
    orAny(channels).flatMap((channel) => orAny(contacts).map((contact) => keyOf(category, channel, contact))),
  )
}

function keyOf(category: string, channel: string, contact: string): string {
  return JSON.stringify([category, channel, contact])
}

/** How many keys a watch with these criteria has. */
export function combinations({ categories, channels, contacts }: WatchCriteria): number {
  return Math.max(1, categories.length) * Math.max(1, channels.length) * Math.max(1, contacts.length)
}

export function indexWatch(
  statements: Statements, { ord, resourceId }: Pick<WatchRow, 'ord' | 'resourceId'>, criteria: WatchCriteria,
): void {
  for (const key of keysOf(criteria)) statements.run(matchingSql.addKey, resourceId, key, ord)
  for (const category of criteria.categories) statements.run(matchingSql.addCategory, resourceId, category)
}

export function unindexWatch(statements: Statements, watch: WatchRow): void {
  statements.run(matchingSql.removeKeys, watch.ord)
  for (const category of criteriaOf(watch).categories) {
    statements.run(matchingSql.removeCategory, watch.resourceId, category)
    statements.run(matchingSql.dropCategory, watch.resourceId, category)
  }
}

/**
 * Inserts a candidate for each open watch that the message fits. Watches without categories are found when the message is stored, the
 * others when it is annotated: `categories`.
 */
export function findWatches(statements: Statements, inbound: InboundRow, categories: readonly string[] | undefined, now: number): void {
  const channels = [any, inbound.kind, `${inbound.kind}/${inbound.channelId}`]
  const contacts = inbound.contactId === null ? [any] : [any, inbound.contactId]
  const fitting = new Map<number, WatchRow>()
  for (const category of categories ?? [any]) {
    for (const channel of channels) {
      for (const contact of contacts) {
        const found = statements.all<WatchRow>(matchingSql.fitting, inbound.resourceId, keyOf(category, channel, contact))
        for (const watch of found) fitting.set(watch.ord, watch)
      }
    }
  }
  for (const watch of [...fitting.values()].toSorted((one, other) => one.ord - other.ord)) {
    const isContact = criteriaOf(watch).contacts.length === 0 || inbound.contactSince <= watch.createdAt
    if (isContact && isInTime(inbound.receivedAt, watch.expiresAt)) addCandidate(statements, watch, inbound, now)
  }
}

/** Whether a stored message fits a watch: the same rule as the keys, for messages that were stored before the watch. */
export function fits(watch: Pick<WatchRow, 'criteria' | 'createdAt'>, inbound: InboundRow): boolean {
  const { categories, channels, contacts } = criteriaOf(watch)
  const found = inbound.categories === null ? [] : (JSON.parse(inbound.categories) as string[])
  return (
    (categories.length === 0 || categories.some((category) => found.includes(category))) &&
    (channels.length === 0 || channels.some((channel) => channel === inbound.kind || channel === `${inbound.kind}/${inbound.channelId}`)) &&
    (contacts.length === 0
      || (inbound.contactId !== null && inbound.contactSince <= watch.createdAt && contacts.includes(inbound.contactId)))
  )
}

export function addCandidate(statements: Statements, watch: WatchRow, inbound: InboundRow, now: number): void {
  if (inbound.consumedBy !== null || statements.one(matchingSql.consumedHere, inbound.seq, watch.threadId)) return
  const criteria = criteriaOf(watch)
  const sender = senderKey(inbound)
  const share = criteria.contacts.length > 0 ? watch.maxEvaluations : senderShare(watch.maxEvaluations)
  const isOver = (sql: string, limit: number, ...values: Array<string | number>) =>
    (statements.one<{ count: number }>(sql, ...values, limit)?.count ?? 0) >= limit
  if (isOver(matchingSql.ofSender, share, watch.ord, sender) || isOver(matchingSql.pending, watch.maxEvaluations, watch.ord)) {
    statements.run(matchingSql.skip, watch.ord)
    return
  }
  const found = inbound.categories === null ? [] : (JSON.parse(inbound.categories) as string[])
  const expected = found.filter((category) => criteria.categories.includes(category))
  if (statements.run(matchingSql.add, watch.ord, inbound.seq, sender, JSON.stringify(expected)) === 1)
    statements.run(matchingSql.wake, watch.ord, now)
}

function senderKey({ channelId, contactId, sender }: InboundRow): string {
  if (contactId !== null) return JSON.stringify(['contact', contactId])
  const { address, verified } = JSON.parse(sender) as InboundSender
  return JSON.stringify(verified ? ['address', channelId, address] : ['unverified', channelId])
}
