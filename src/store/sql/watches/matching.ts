import { HeedError } from '../../../base/errors.ts'
import { isOwnCategory, MAX_EXPECTED } from '../../../watch/annotation.ts'
import { isInTime, senderShare } from '../../../watch/machine.ts'
import type { InboundSender, WatchCriteria } from '../../contract/watches.ts'
import type { Statements } from '../statements.ts'
import { criteriaOf, inboundColumns, watchColumns, type InboundRow, type WatchRow } from './rows.ts'

const any = '*'

/** The most combinations of categories, channels and contacts of one watch: one row of the index each. */
export const maxCombinations = 256

/** The condition that a message passes the filters of a watch: its channels, its contacts, and when it was registered. */
function passesFilters(channels: string, contacts: string, registeredAt: string): string {
  return `(json_array_length(${channels}) = 0 OR kind IN (SELECT value FROM json_each(${channels}))
      OR kind || '/' || channel_id IN (SELECT value FROM json_each(${channels})))
    AND (json_array_length(${contacts}) = 0
      OR contact_id IN (SELECT value FROM json_each(${contacts})) AND contact_since <= ${registeredAt})`
}

export const matchingSql = {
  addKey: 'INSERT INTO heed_watch_keys (resource_id, key, watch) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
  removeKeys: 'DELETE FROM heed_watch_keys WHERE watch = ?',
  addCategory: `
    INSERT INTO heed_watch_categories (resource_id, category, watches) VALUES (?1, ?2, 1)
    ON CONFLICT (resource_id, category) DO UPDATE SET watches = heed_watch_categories.watches + 1`,
  removeCategory: 'UPDATE heed_watch_categories SET watches = watches - 1 WHERE resource_id = ? AND category = ?',
  dropCategory: 'DELETE FROM heed_watch_categories WHERE resource_id = ? AND category = ? AND watches <= 0',
  categories: 'SELECT category FROM heed_watch_categories WHERE resource_id = ? AND watches > 0 ORDER BY category',
  category: 'SELECT 1 AS found FROM heed_watch_categories WHERE resource_id = ? AND category = ? AND watches > 0',
  countCategories: 'SELECT count(*) AS count FROM heed_watch_categories WHERE resource_id = ?',
  fitting: `
    SELECT ${watchColumns} FROM heed_watches WHERE ord IN (SELECT watch FROM heed_watch_keys WHERE resource_id = ?1 AND key = ?2)
    AND state = 'open' ORDER BY ord`,
  // What was not evaluated uses no share.
  ofSender: `
    SELECT count(*) AS count FROM (
      SELECT 1 FROM heed_watch_candidates
      WHERE watch = ? AND sender_key = ? AND state IN ('pending', 'claimed', 'matched', 'rejected') LIMIT ?) AS few`,
  pending: `
    SELECT count(*) AS count FROM (
      SELECT 1 FROM heed_watch_candidates WHERE watch = ? AND state IN ('pending', 'claimed') LIMIT ?) AS few`,
  consumedHere: `
    SELECT 1 AS found FROM heed_watch_candidates c JOIN heed_watches w ON w.ord = c.watch
    WHERE c.seq = ? AND c.state = 'matched' AND w.thread_id = ? AND c.watch < ? AND w.mode = 'once' LIMIT 1`,
  isLater: 'SELECT 1 AS found FROM heed_watches WHERE id = ? AND ord > ?',
  add: `
    INSERT INTO heed_watch_candidates (watch, seq, state, sender_key, categories) VALUES (?, ?, 'pending', ?, ?)
    ON CONFLICT DO NOTHING`,
  // A watch with a claimed candidate is due when that is settled.
  wake: `
    UPDATE heed_watches SET due_at = CASE WHEN due_at < ?2 THEN due_at ELSE ?2 END WHERE ord = ?1 AND due_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM heed_watch_candidates WHERE watch = ?1 AND state = 'claimed')`,
  skip: 'UPDATE heed_watches SET skipped = skipped + ? WHERE ord = ?',
  candidate: 'SELECT 1 AS found FROM heed_watch_candidates WHERE watch = ? AND seq = ?',
  // Of each sender as many as its share, the first ones: `senderKey` in SQL. Of all together as many as may be judged.
  earlier: `
    SELECT * FROM (
      SELECT ${inboundColumns}, count(*) OVER () AS total, row_number() OVER (PARTITION BY CASE
        WHEN contact_id IS NOT NULL THEN json_array('contact', contact_id)
        WHEN sender ->> '$.verified' THEN json_array('address', channel_id, sender ->> '$.address')
        ELSE json_array('unverified', channel_id) END ORDER BY seq) AS nth
      FROM heed_inbounds AS i
      WHERE resource_id = ?1 AND received_at BETWEEN ?2 AND ?3 AND ${passesFilters('?4', '?5', '?6')}
      AND (json_array_length(?7) = 0 OR EXISTS (
        SELECT 1 FROM json_each(i.categories) AS given WHERE given.value IN (SELECT value FROM json_each(?7))))
      AND consumed_by IS NULL AND NOT EXISTS (SELECT 1 FROM heed_inbound_holds AS h WHERE h.seq = i.seq)
      AND NOT EXISTS (
        SELECT 1 FROM heed_watch_candidates AS c JOIN heed_watches AS w ON w.ord = c.watch
        WHERE c.seq = i.seq AND c.state = 'matched' AND w.thread_id = ?8 AND w.mode = 'once')) AS early
    WHERE nth <= ?9 ORDER BY seq LIMIT ?10`,
  // The newest that are annotated, are no candidates, and whose annotator could not choose one of these categories.
  annotateAgain: `
    UPDATE heed_inbounds SET due_at = ?10, lost = 0, failures = 0 WHERE seq IN (
      SELECT seq FROM heed_inbounds AS i
      WHERE resource_id = ?1 AND received_at BETWEEN ?2 AND ?3 AND ${passesFilters('?4', '?5', '?6')}
      AND categories IS NOT NULL AND due_at IS NULL
      AND EXISTS (
        SELECT 1 FROM json_each(?7) AS own WHERE own.value NOT IN (SELECT value FROM json_each(coalesce(i.offered, '[]'))))
      AND coalesce(i.offered, '') NOT IN ('"all"', '"rules"')
      AND NOT EXISTS (SELECT 1 FROM heed_watch_candidates AS c WHERE c.watch = ?8 AND c.seq = i.seq)
      ORDER BY seq DESC LIMIT ?9)`,
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
  refuseTooMany(statements, resourceId, criteria.categories)
  for (const key of keysOf(criteria)) statements.execute(matchingSql.addKey, resourceId, key, ord)
  for (const category of criteria.categories) statements.execute(matchingSql.addCategory, resourceId, category)
}

/** An annotator is asked about every category that is expected. */
function refuseTooMany(statements: Statements, resourceId: string, categories: readonly string[]): void {
  const added = categories.filter((category) => !statements.one(matchingSql.category, resourceId, category))
  if (!added.some(isOwnCategory)) return
  const count = statements.one<{ count: number }>(matchingSql.countCategories, resourceId)?.count ?? 0
  if (count + added.length <= MAX_EXPECTED) return
  const why = `Open watches of resource '${resourceId}' may expect at most ${MAX_EXPECTED} categories together.`
  throw new HeedError('too_many_categories', `${why} Use those that exist, or cancel watches.`, { details: { limit: MAX_EXPECTED } })
}

/** The categories that open watches of a resource expect. */
export function expectedCategories(statements: Statements, resourceId: string): string[] {
  return statements.all<{ category: string }>(matchingSql.categories, resourceId).map(({ category }) => category)
}

export function unindexWatch(statements: Statements, watch: WatchRow): void {
  statements.execute(matchingSql.removeKeys, watch.ord)
  for (const category of criteriaOf(watch).categories) {
    statements.execute(matchingSql.removeCategory, watch.resourceId, category)
    statements.execute(matchingSql.dropCategory, watch.resourceId, category)
  }
}

/**
 * Inserts a candidate for each open watch that the message fits. Watches without categories are found when the message is stored, the
 * others when it is annotated: `categories`.
 */
export function findWatches(statements: Statements, inbound: InboundRow, categories: readonly string[] | undefined, now: number): void {
  for (const watch of watchesOf(statements, inbound, categories ?? [any])) addCandidate(statements, watch, inbound, now)
}

/** The open watches that consider the message and expect one of these categories, the oldest first. */
function watchesOf(statements: Statements, inbound: InboundRow, categories: readonly string[]): WatchRow[] {
  const channels = [any, inbound.kind, `${inbound.kind}/${inbound.channelId}`]
  const contacts = inbound.contactId === null ? [any] : [any, inbound.contactId]
  const fitting = new Map<number, WatchRow>()
  for (const category of categories) {
    for (const channel of channels) {
      for (const contact of contacts) {
        const found = statements.all<WatchRow>(matchingSql.fitting, inbound.resourceId, keyOf(category, channel, contact))
        for (const watch of found) fitting.set(watch.ord, watch)
      }
    }
  }
  const isContact = (watch: WatchRow) => criteriaOf(watch).contacts.length === 0 || inbound.contactSince <= watch.createdAt
  const found = [...fitting.values()].filter((watch) => isContact(watch) && considers(watch, inbound))
  return found.toSorted((one, other) => one.ord - other.ord)
}

/**
 * Whether a watch considers a message: one that was stored after the registration by its number, since the clock may have been set back;
 * or one that its look-back covers.
 */
function considers(watch: WatchRow, { seq, receivedAt }: InboundRow): boolean {
  return (seq > watch.registeredSeq || receivedAt >= watch.since) && isInTime(receivedAt, watch.expiresAt)
}

/**
 * Inserts a candidate for each message that was stored before the registration and that the watch fits: those which `findWatches` would
 * have found, had the watch been there. The database selects them, so that no number of other messages leaves one out; what the shares of
 * senders leave out is counted.
 */
export function lookBack(statements: Statements, watch: WatchRow, now: number): void {
  const { categories, channels, contacts } = criteriaOf(watch)
  const found = statements.all<InboundRow & { total: number }>(
    matchingSql.earlier, watch.resourceId, watch.since, watch.expiresAt, JSON.stringify(channels), JSON.stringify(contacts),
    watch.createdAt, JSON.stringify(categories), watch.threadId, shareOf(watch), watch.maxEvaluations,
  )
  for (const inbound of found) addCandidate(statements, watch, inbound, now)
  const left = (found[0]?.total ?? 0) - found.length
  if (left > 0) statements.execute(matchingSql.skip, left, watch.ord)
  const own = categories.filter(isOwnCategory)
  if (own.length === 0) return
  statements.execute(
    matchingSql.annotateAgain, watch.resourceId, watch.since, watch.expiresAt, JSON.stringify(channels), JSON.stringify(contacts),
    watch.createdAt, JSON.stringify(own), watch.ord, watch.maxEvaluations, now,
  )
}

/** Whether an open watch considers the message and expects categories that its annotator was not offered. */
export function isAwaited(statements: Statements, inbound: InboundRow, offered: readonly string[]): boolean {
  const missing = expectedCategories(statements, inbound.resourceId).filter((label) => isOwnCategory(label) && !offered.includes(label))
  return missing.length > 0 && watchesOf(statements, inbound, missing).length > 0
}

function shareOf(watch: WatchRow): number {
  return criteriaOf(watch).contacts.length > 0 ? watch.maxEvaluations : senderShare(watch.maxEvaluations)
}

/**
 * Whether a watch that was registered before this one has the message: an exclusive one; or a `once` watch of the thread, where the message
 * was stored before the registration, so that an old answer is not taken for a new one. Depends on nothing but what has matched.
 */
export function isTaken(statements: Statements, { ord, threadId, registeredSeq }: WatchRow, { seq, consumedBy }: InboundRow): boolean {
  if (consumedBy !== null && !statements.one(matchingSql.isLater, consumedBy, ord)) return true
  return seq <= registeredSeq && statements.one(matchingSql.consumedHere, seq, threadId, ord) !== undefined
}

function addCandidate(statements: Statements, watch: WatchRow, inbound: InboundRow, now: number): void {
  if (isTaken(statements, watch, inbound)) return
  if (statements.one(matchingSql.candidate, watch.ord, inbound.seq)) return
  const sender = senderKey(inbound)
  const isOver = (sql: string, limit: number, ...values: Array<string | number>) =>
    (statements.one<{ count: number }>(sql, ...values, limit)?.count ?? 0) >= limit
  if (isOver(matchingSql.ofSender, shareOf(watch), watch.ord, sender) || isOver(matchingSql.pending, watch.maxEvaluations, watch.ord)) {
    statements.execute(matchingSql.skip, 1, watch.ord)
    return
  }
  const found = inbound.categories === null ? [] : (JSON.parse(inbound.categories) as string[])
  const expected = found.filter((category) => criteriaOf(watch).categories.includes(category))
  if (statements.run(matchingSql.add, watch.ord, inbound.seq, sender, JSON.stringify(expected)) === 1)
    statements.execute(matchingSql.wake, watch.ord, now)
}

function senderKey({ channelId, contactId, sender }: InboundRow): string {
  if (contactId !== null) return JSON.stringify(['contact', contactId])
  const { address, verified } = JSON.parse(sender) as InboundSender
  return JSON.stringify(verified ? ['address', channelId, address] : ['unverified', channelId])
}
