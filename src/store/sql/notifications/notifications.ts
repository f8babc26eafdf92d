import { HeedError } from '../../../base/errors.ts'
import { canBecome, validateId, validateIds, validateInboxScope, validateMark, validateQuery } from '../../contract/notifications.ts'
import type {
  ChangeQuery, Delivery, DeliveryFailure, Due, DueClaim, InboxChanges, InboxQuery, InboxScope, Ingested, MarkedStatus, NewNotification,
  NotificationQuery, NotificationRecord, NotificationStatus, NotificationStore, Settled, Settlement, SummaryBatch,
} from '../../contract/notifications.ts'
import { forgetNotifications, transferNotifications } from '../thread-dependents.ts'
import { SqlDomain } from '../domain.ts'
import { batchFailed, claimDue, claimIdle, confirm, delivered, failed, nextDue, summarized } from './dispatch.ts'
import { holdBatches, ingestAll, joinBatches, settleAll } from './ingress.ts'
import { retryRecord } from './keys.ts'
import { notificationOf, type NotificationRow } from './row.ts'
import { fromNotifications, notificationSql as sql } from './sql.ts'
import type { SqlValue, Statements } from '../statements.ts'

/** The inbox, in the database of the threads or in another one. */
export class SqlInbox extends SqlDomain implements NotificationStore {
  readonly #listeners = new Set<(resourceIds: readonly string[], due: boolean) => void>()

  ingest(items: readonly NewNotification[]): Promise<Ingested[]> {
    return this.#change((statements, touch, newId) => {
      lockThreads(statements, items, resourceOf(items))
      for (const item of items) touch(item)
      return ingestAll(statements, items, newId)
    })
  }

  settle(settlements: readonly Settlement[]): Promise<Settled[]> {
    return this.#change((statements, touch, newId) => {
      lockThreads(statements, settlements)
      const all = settleAll(statements, settlements, newId)
      for (const { record } of all) touch(record)
      return all
    })
  }

  claimDue(claim: DueClaim): Promise<Due> {
    return this.write((statements) => {
      lockAll(statements)
      return claimDue(statements, claim)
    })
  }

  claimIdle(threadId: string, claim: DueClaim): Promise<NotificationRecord[]> {
    return this.write((statements) => {
      lockThreads(statements, [{ threadId }])
      return claimIdle(statements, threadId, claim)
    })
  }

  /** Called after every run. */
  awaitsIdle(threadId: string): Promise<boolean> {
    return this.peek((statements) => statements.one<{ found: number }>(sql.anyIdle, threadId)?.found === 1)
  }

  nextDue(agentIds: readonly string[]): Promise<number | undefined> {
    return this.read((statements) => nextDue(statements, agentIds))
  }

  delivered(deliveries: readonly Delivery[]): Promise<void> {
    return this.#change((statements, touch) => {
      lockThreads(statements, deliveries, resourceOf(deliveries))
      for (const delivery of deliveries) touch(delivered(statements, delivery))
    })
  }

  holdBatches(batchIds: readonly string[], until: number): Promise<void> {
    return this.write((statements) => {
      lockAll(statements)
      holdBatches(statements, batchIds, until)
    })
  }

  joinBatches(batchId: string, earlier: readonly string[]): Promise<SummaryBatch | null> {
    return this.write((statements) => {
      lockAll(statements)
      return joinBatches(statements, batchId, earlier)
    })
  }

  summarised(batchId: string, signalId: string | undefined): Promise<void> {
    return this.#change((statements, touch) => {
      lockAll(statements)
      touch(summarized(statements, batchId, signalId))
    })
  }

  failed(failure: DeliveryFailure): Promise<void> {
    return this.#change((statements, touch) => {
      lockThreads(statements, [failure])
      touch(failed(statements, failure))
    })
  }

  batchFailed(failure: { batchId: string; error: string; retryAt?: number; now: number }): Promise<void> {
    return this.#change((statements, touch) => {
      lockAll(statements)
      touch(batchFailed(statements, failure))
    })
  }

  confirm(records: ReadonlyArray<{ threadId: string; id: string }>): Promise<void> {
    return this.write((statements) => {
      lockThreads(statements, records)
      for (const record of records) confirm(statements, record)
    })
  }

  getNotification({ id, ...scope }: InboxScope & { id: string }): Promise<NotificationRecord | null> {
    return this.read((statements) => {
      validateInboxScope(scope)
      const row = scoped(statements, scope, validateId(id))
      return row ? notificationOf(row) : null
    })
  }

  listNotifications(query: NotificationQuery): Promise<{ notifications: NotificationRecord[]; more: boolean }> {
    return this.read((statements) => {
      const limit = validateQuery(query)
      const { text, values } = listQuery(query, query.after === undefined ? undefined : keyOf(statements, query, query.after))
      const found = statements.all<NotificationRow>(text, ...values, limit + 1)
      return { notifications: found.slice(0, limit).map(notificationOf), more: found.length > limit }
    })
  }

  listInbox(query: InboxQuery): Promise<{ notifications: NotificationRecord[]; more: boolean; next?: string }> {
    return this.read((statements) => {
      const limit = validateQuery(query, 'all')
      const { text, values } = listQuery(query, query.after === undefined ? undefined : parseKey(query.after))
      const found = statements.all<NotificationRow>(text, ...values, limit + 1)
      const page = found.slice(0, limit)
      const last = found.length > limit ? page.at(-1) : undefined
      return { notifications: page.map(notificationOf), more: last !== undefined, ...(last && { next: String(last.key) }) }
    })
  }

  countNotifications(scope: InboxScope): Promise<Partial<Record<NotificationStatus, number>>> {
    return this.read((statements) => {
      validateInboxScope(scope)
      const { threadId, resourceId } = scope
      const [text, values] =
        resourceId === undefined ? ([sql.counts, [threadId]] as const) : ([sql.countsOfResource, [threadId, resourceId]] as const)
      const counts = statements.one<Record<NotificationStatus, number | null>>(text, ...values) ?? {}
      return Object.fromEntries(Object.entries(counts).filter(([, count]) => count))
    })
  }

  markNotifications(scope: InboxScope, ids: readonly string[], status: MarkedStatus, now = this.now()): Promise<NotificationRecord[]> {
    return this.#change((statements, touch) => {
      validateInboxScope(scope)
      lockThreads(statements, [scope])
      return validateMark(ids, status).flatMap((id) => {
        const row = scoped(statements, scope, id)
        if (!row || !canBecome(row.status, status)) return []
        touch(row)
        statements.execute(sql[status], now, row.key)
        const marked = scoped(statements, scope, id)
        return marked ? [notificationOf(marked)] : []
      })
    })
  }

  retryNotifications(scope: InboxScope, ids: readonly string[], now = this.now()): Promise<number> {
    return this.#change((statements, touch) => {
      validateInboxScope(scope)
      lockThreads(statements, [scope])
      return validateIds(ids).filter((id) => {
        const row = scoped(statements, scope, id)
        if (!row || !canBecome(row.status, 'pending')) return false
        touch(row)
        return retryRecord(statements, row, now)
      }).length
    }, true)
  }

  forgetThreads(threadIds: readonly string[], resourceId?: string): Promise<void> {
    return this.write((statements) => {
      for (const threadId of threadIds) forgetNotifications(statements, threadId, resourceId)
    })
  }

  giveThread(threadId: string, resourceId: string): Promise<void> {
    return this.#change((statements, touch) => {
      transferNotifications(statements, threadId, resourceId)
      touch({ resourceId })
    })
  }

  listChanges(query: ChangeQuery): Promise<InboxChanges> {
    return this.read((statements) => changesAfter(statements, query))
  }

  onChange(listener: (resourceIds: readonly string[], due: boolean) => void): () => void {
    // A new function for each call: a listener that is added twice is removed twice.
    const entry = (resourceIds: readonly string[], due: boolean) => listener(resourceIds, due)
    this.#listeners.add(entry)
    return () => void this.#listeners.delete(entry)
  }

  /** A write that reports the touched resources to the listeners after its commit. */
  async #change<Result>(
    work: (statements: Statements, touch: (row: { resourceId: string } | undefined) => void, newId: () => string) => Result,
    due = false,
  ): Promise<Result> {
    let touched = new Set<string>()
    const result = await this.write((statements, { newId }) => {
      // The transaction may run again.
      touched = new Set()
      if (!statements.lockDomain) statements.execute(sql.countChange)
      return work(statements, (row) => row && touched.add(row.resourceId), newId)
    })
    if (touched.size > 0) for (const notify of this.#listeners) notify([...touched], due)
    return result
  }
}

/** Locks the records and summaries of one thread; for several threads, the whole domain, so that no two wait for each other. */
function lockThreads(statements: Statements, records: ReadonlyArray<{ threadId: string }>, inbox?: string): void {
  if (!statements.lockDomain) return
  const threadIds = new Set(records.map(({ threadId }) => threadId))
  if (threadIds.size > 0) statements.lockDomain('notifications', threadIds.size === 1 ? [...threadIds] : undefined, inbox)
}

/** The resource of all items, if it is one. */
function resourceOf(items: ReadonlyArray<{ resourceId?: string }>): string | undefined {
  const resourceIds = new Set(items.map(({ resourceId }) => resourceId))
  const [resourceId] = resourceIds
  return resourceIds.size === 1 ? resourceId : undefined
}

/** Locks the whole domain: which threads a dispatcher writes to is known only when it has read. */
function lockAll(statements: Statements): void {
  statements.lockDomain?.('notifications')
}

/** The record, unless it belongs to another resource. */
function scoped(statements: Statements, { threadId, resourceId }: InboxScope, id: string): NotificationRow | undefined {
  const row = statements.one<NotificationRow>(sql.byId, threadId, id)
  return row && (resourceId === undefined || row.resourceId === resourceId) ? row : undefined
}

/** The key after which a page begins: that of the last record of the previous page. */
function keyOf(statements: Statements, scope: InboxScope, after: string): number {
  const row = scoped(statements, scope, after)
  if (row) return row.key
  throw new HeedError('invalid_argument', `The thread has no notification '${after}' to go on after.`, { details: { field: 'after' } })
}

function parseKey(after: string): number {
  if (/^\d{1,15}$/.test(after)) return Number(after)
  const message = `'${after}' is no place in a list of notifications. Use its next.`
  throw new HeedError('invalid_argument', message, { details: { field: 'after' } })
}

function listQuery(
  { threadId, resourceId, status, priority, source, kind, search }: InboxQuery,
  before: number | undefined,
): { text: string; values: SqlValue[] } {
  const conditions: string[] = []
  const values: SqlValue[] = []
  const add = (condition: string, ...given: SqlValue[]) => {
    conditions.push(condition)
    values.push(...given)
  }
  if (threadId !== undefined) add('n.thread_id = ?', threadId)
  if (resourceId !== undefined) add('n.resource_id = ?', resourceId)
  if (status) add('n.status IN (SELECT value FROM json_each(?))', JSON.stringify(status))
  if (priority) add('n.priority IN (SELECT value FROM json_each(?))', JSON.stringify(priority))
  if (source !== undefined) add('n.source = ?', source)
  if (kind !== undefined) add('n.kind = ?', kind)
  if (search !== undefined) {
    const pattern = searchPattern(search)
    add('(n.summary GLOB ? OR n.source GLOB ? OR n.kind GLOB ?)', pattern, pattern, pattern)
  }
  if (before !== undefined) add('n.key < ?', before)
  // The index has the order; without its name the planner would sort all records of a status.
  const byResource = resourceId === undefined ? '' : ' INDEXED BY heed_notifications_resource'
  const index = threadId === undefined ? byResource : ' INDEXED BY heed_notifications_thread'
  const from = fromNotifications.replace('heed_notifications n', `heed_notifications n${index}`)
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  return { text: `${from} ${where} ORDER BY n.key DESC LIMIT ?`, values }
}

/**
 * A pattern for GLOB that finds a text anywhere, in any case. LIKE ignores the case of ASCII letters only, and a case-folded copy of each
 * text would cost a write.
 */
function searchPattern(search: string): string {
  return `*${Array.from(search, (character) => anyCase(character)).join('')}*`
}

function anyCase(character: string): string {
  const lower = character.toLowerCase()
  const upper = character.toUpperCase()
  const forms = new Set([character, ...[lower, upper, upper.toLowerCase(), lower.toUpperCase()].filter(isOneCharacter)])
  // The form of sigma at the end of a word.
  if (forms.has('Σ')) forms.add('ς')
  return forms.size > 1 || '*?['.includes(character) ? `[${[...forms].join('')}]` : character
}

function isOneCharacter(form: string): boolean {
  return Array.from(form).length === 1
}

/** Above every key: a cursor with it is after all records of its change number. */
const lastKey = Number.MAX_SAFE_INTEGER

/** Change numbers in one span; must equal that of the index of changes. */
const span = 1024
/** The spans that one call reads; a cursor that is further behind needs several calls. */
const mostSpans = 256

/** The records that changed after a cursor. It reads one snapshot, so a page that is not full is complete up to its cursor. */
function changesAfter(statements: Statements, { resourceId, threadId, after, limit }: ChangeQuery): InboxChanges {
  const newest = statements.one<{ last: number }>(sql.lastChange, resourceId)?.last ?? 0
  const end = cursorOf(newest, lastKey)
  if (after === undefined) return { changes: [], cursor: end, more: false }
  const { changed, key } = parseCursor(after)
  const from = Math.floor(changed / span)
  const until = Math.min(from + mostSpans - 1, Math.floor(newest / span))
  const rows =
    until < from ? [] : statements.all<NotificationRow>(sql.changes, from, until, resourceId, changed, key, threadId ?? null, limit + 1)
  const changes = rows.slice(0, limit).map((row) => ({ record: notificationOf(row), cursor: cursorOf(row.changed, row.key) }))
  if (rows.length > limit) return { changes, cursor: changes.at(-1)?.cursor ?? after, more: true }
  const reached = (until + 1) * span - 1
  return reached < newest ? { changes, cursor: cursorOf(reached, lastKey), more: true } : { changes, cursor: end, more: false }
}

function cursorOf(changed: number, key: number): string {
  return `${changed}.${key}`
}

function parseCursor(cursor: string): { changed: number; key: number } {
  const [, changed, key] = /^(\d{1,15})\.(\d{1,16})$/.exec(cursor) ?? []
  if (changed !== undefined && key !== undefined) return { changed: Number(changed), key: Number(key) }
  throw new HeedError('invalid_argument', `'${cursor}' is no cursor of an inbox. Use the one of a change that was seen.`, {
    details: { field: 'after' },
  })
}
