import { hash } from 'node:crypto'
import type { MessageContent } from '../../message/message.ts'
import { maxPassages, searchableText, splitPassages } from '../text/passages.ts'
import { formOf, type Form } from '../text/form.ts'
import { extractTerms } from '../text/terms.ts'
import type { CollectionCache } from './collection-cache.ts'
import type { Databases } from './databases.ts'
import { firstPassageKey, messageKey, roles } from './schema.ts'

/** The messages that one transaction indexes. */
export const indexedAtOnce = 100

interface Progress {
  generation: string
  number: number
  done: number | null
  until: number | null
  fresh: number
}

interface MessageRecord {
  key: number
  role: string
  createdAt: number
  thread: number
  resourceId: string
  content: string
}

interface IndexedMessage {
  key: number
  /** Absent when the message was deleted, or has no searchable text. */
  content?: {
    resourceId: string
    thread: number
    role: number
    createdAt: number
    passages: Array<{ terms: string[]; form: Form; hash: string }>
  }
}

interface PassageRecord {
  key: number
  resource: number
  hash: string
}

export interface IndexingResult {
  /** False when the index is up to date. */
  more: boolean
  /** Committed messages are not in the index yet, so that a search would not find them. */
  missing: boolean
  indexed: number
  /** Changes up to this number are indexed and may be deleted. */
  number: number
}

const messageSql = `
  SELECT m.key, m.role, m.created_at AS createdAt, m.thread, t.resource_id AS resourceId, m.content
  FROM heed_messages m JOIN heed_threads t ON t.key = m.thread WHERE m.key = ?`

/** Brings the index up to date with the messages, a batch per step. Idempotent: indexing a message again changes nothing. */
export class Indexer {
  readonly #databases: Databases
  readonly #collections: CollectionCache

  constructor(databases: Databases, collections: CollectionCache) {
    this.#databases = databases
    this.#collections = collections
  }

  /** Indexes one batch: changed messages first, then the next messages of a rebuild. */
  step(): IndexingResult {
    const { messages, index, write } = this.#databases
    const generation = messages.one<{ generation: string }>('SELECT generation FROM heed_recall')?.generation
    if (generation === undefined) return { more: false, missing: false, indexed: 0, number: 0 }
    const progress = this.#progress()
    if (progress?.generation !== generation) {
      this.#startOver(generation)
      return { more: true, missing: true, indexed: 0, number: 0 }
    }
    const { keys, number } = this.#nextChanges(progress)
    const rebuilt = keys.length < indexedAtOnce ? this.#nextOfRebuild(progress, indexedAtOnce - keys.length) : undefined
    const all = [...new Set([...keys, ...(rebuilt?.keys ?? [])])]
    if (all.length === 0 && number === progress.number && rebuilt?.done === progress.done) {
      return { more: false, missing: false, indexed: 0, number }
    }
    const prepared = all.map((key) => this.#prepare(key))
    const current = write(() => {
      // Another process indexed this batch first: discard it.
      const now = this.#progress()
      if (now?.generation !== generation || now.number !== progress.number || now.done !== progress.done) return false
      const touched = new Map<number, Set<number>>()
      for (const one of prepared) this.#put(one, touched)
      this.#collections.logChanges(touched)
      const done = rebuilt ? rebuilt.done : progress.done
      const isDone = done === null
      index.run(
        'UPDATE progress SET number = ?, done = ?, until = ?, fresh = ?',
        number,
        done,
        isDone ? null : progress.until,
        isDone ? 0 : progress.fresh,
      )
      return true
    })
    const behind = !current || keys.length >= indexedAtOnce
    const rebuilds = rebuilt !== undefined && rebuilt.done !== null
    return {
      more: behind || rebuilds,
      missing: behind || (rebuilds && progress.fresh === 1),
      indexed: current ? all.length : 0,
      number: current ? number : progress.number,
    }
  }

  /**
   * Marks all messages to be indexed again, and the passages of deleted messages to be removed. Searches use the present index meanwhile.
   * Pending changes stay: only they name the messages that were deleted.
   */
  rebuild(): void {
    const { index, write } = this.#databases
    write(() => {
      const { until } = this.#newest()
      const last = index.one<{ key: number }>('SELECT coalesce(max(key), 0) AS key FROM passages')?.key ?? 0
      index.run('UPDATE progress SET done = 0, until = ?', Math.max(until, messageKey(last)))
    })
  }

  /** Indexes these messages now, ahead of the pending changes. */
  refresh(keys: readonly number[]): void {
    const { index, write } = this.#databases
    // Reads within the transaction, so that a later transaction cannot have read an older state.
    write(() => {
      const touched = new Map<number, Set<number>>()
      for (const key of keys) {
        this.#put(this.#prepare(key), touched)
        index.run(
          `DELETE FROM unembedded WHERE embedder IN (SELECT key FROM embedders) AND passage >= ? AND passage < ?
           AND passage NOT IN (SELECT key FROM passages)`,
          firstPassageKey(key),
          firstPassageKey(key + 1),
        )
      }
      this.#collections.logChanges(touched)
    })
  }

  /** The number of pending changes, and the progress of a rebuild. */
  status(): { pending: number; rebuilding?: { done: number; total: number } } {
    const { messages } = this.#databases
    const count = (most: number) =>
      messages.one<{ count: number }>('SELECT count(*) AS count FROM heed_messages WHERE key <= ?', most)?.count ?? 0
    const progress = this.#progress()
    const generation = messages.one<{ generation: string }>('SELECT generation FROM heed_recall')?.generation
    if (progress?.generation !== generation) return { pending: 0, rebuilding: { done: 0, total: count(Number.MAX_SAFE_INTEGER) } }
    const pending =
      messages.one<{ count: number }>(
        'SELECT count(*) AS count FROM (SELECT 1 FROM heed_recall_changes WHERE number > ? LIMIT 100000)',
        progress?.number ?? 0,
      )?.count ?? 0
    if (!progress || progress.done === null) return { pending }
    return { pending, rebuilding: { done: count(progress.done), total: count(progress.until ?? 0) } }
  }

  /** Whether a message has a pending change, so that its passages may be outdated. */
  isStale(message: number): boolean {
    const number = this.#progress()?.number ?? 0
    return (
      this.#databases.messages.one(
        'SELECT 1 AS found FROM heed_recall_changes WHERE message = ? AND number > ? LIMIT 1',
        message,
        number,
      ) !== undefined
    )
  }

  #progress(): Progress | undefined {
    return this.#databases.index.one<Progress>('SELECT generation, number, done, until, fresh FROM progress')
  }

  /** The newest change, and the newest message. */
  #newest(): { number: number; until: number } {
    const { messages } = this.#databases
    const number = messages.one<{ number: number }>('SELECT coalesce(max(number), 0) AS number FROM heed_recall_changes')?.number ?? 0
    const until = messages.one<{ until: number }>('SELECT coalesce(max(key), 0) AS until FROM heed_messages')?.until ?? 0
    return { number, until }
  }

  #startOver(generation: string): void {
    const { index, write } = this.#databases
    write(() => {
      // Changes first, then messages: a message that arrives in between is in both.
      const { number, until } = this.#newest()
      for (const table of ['passages', 'resources', 'touched', 'vectors', 'unembedded', 'progress']) index.run(`DELETE FROM ${table}`)
      index.run(`INSERT INTO words (words) VALUES ('delete-all')`)
      index.run('INSERT INTO progress (one, generation, number, done, until, fresh) VALUES (1, ?, ?, 0, ?, 1)', generation, number, until)
    })
  }

  #nextChanges({ number }: Progress): { keys: number[]; number: number } {
    const rows = this.#databases.messages.all<{ number: number; message: number }>(
      'SELECT number, message FROM heed_recall_changes WHERE number > ? ORDER BY number LIMIT ?', number, indexedAtOnce,
    )
    return { keys: rows.map(({ message }) => message), number: rows.at(-1)?.number ?? number }
  }

  #nextOfRebuild({ done, until }: Progress, limit: number): { keys: number[]; done: number | null } | undefined {
    if (done === null || until === null) return undefined
    const { messages, index } = this.#databases
    const stored = messages
      .all<{ key: number }>('SELECT key FROM heed_messages WHERE key > ? AND key <= ? ORDER BY key LIMIT ?', done, until, limit)
      .map(({ key }) => key)
    // The messages of these passages may have been deleted without a change record.
    const indexed = index
      .all<{ key: number }>(
        'SELECT key FROM passages WHERE key >= ? AND key < ? ORDER BY key LIMIT ?',
        firstPassageKey(done + 1),
        firstPassageKey(until + 1),
        limit,
      )
      .map(({ key }) => messageKey(key))
    const reached = Math.min(...[stored, indexed].map((keys) => (keys.length < limit ? until : (keys.at(-1) ?? until))))
    return { keys: [...new Set([...stored, ...indexed])].filter((key) => key <= reached), done: reached === until ? null : reached }
  }

  #prepare(key: number): IndexedMessage {
    const row = this.#databases.messages.one<MessageRecord>(messageSql, key)
    const role = row ? roles.indexOf(row.role) : -1
    if (!row || role < 0) return { key }
    const passages = splitPassages(searchableText(JSON.parse(row.content) as MessageContent))
    if (passages.length === 0) return { key }
    return {
      key,
      content: {
        resourceId: row.resourceId, thread: row.thread, role, createdAt: row.createdAt,
        passages: passages.map((text) => ({ terms: extractTerms(text), form: formOf(text), hash: passageHash(text) })),
      },
    }
  }

  /** Replaces the passages of a message. Adds it, and the message after it when that changes too, to `touched`, by resource. */
  #put({ key, content }: IndexedMessage, touched: Map<number, Set<number>>): void {
    const { index } = this.#databases
    const first = firstPassageKey(key)
    const before = index.all<PassageRecord>(
      'SELECT key, resource, hash FROM passages WHERE key >= ? AND key < ?',
      first,
      first + maxPassages,
    )
    const resource = content && this.#resourceKey(content.resourceId)
    const same = new Set(
      before.filter((old) => old.resource === resource && content?.passages[old.key - first]?.hash === old.hash).map((old) => old.key),
    )
    for (const old of before) {
      index.run('DELETE FROM passages WHERE key = ?', old.key)
      index.run('DELETE FROM words WHERE rowid = ?', old.key)
      touch(touched, old.resource, key)
      if (same.has(old.key)) continue
      index.run('DELETE FROM vectors WHERE resource = ? AND passage = ? AND embedder IN (SELECT key FROM embedders)', old.resource, old.key)
      index.run('DELETE FROM unembedded WHERE passage = ? AND embedder IN (SELECT key FROM embedders)', old.key)
    }
    for (const [n, { terms, form, hash: hashed }] of (content?.passages ?? []).entries()) {
      if (!content || resource === undefined) break
      const passage = first + n
      index.run(
        'INSERT INTO passages (key, resource, thread, words, form, role, created_at, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
        passage, resource, content.thread, Math.min(terms.length, 65_535), form, content.role, content.createdAt, hashed,
      )
      index.run(
        'INSERT INTO words (rowid, text) VALUES (?, ?)',
        passage,
        [...new Set(terms)].map((term) => indexToken(resource, term)).join(' '),
      )
      if (!same.has(passage)) this.#enqueue(passage)
      touch(touched, resource, key)
    }
  }

  /** Enqueues the passage for every embedder. The new revision makes vectors that are being made of its old text be discarded. */
  #enqueue(passage: number): void {
    this.#databases.index.run(
      `INSERT INTO unembedded (embedder, passage) SELECT key, ? FROM embedders WHERE true
       ON CONFLICT DO UPDATE SET revision = excluded.revision, attempts = 0, due_at = 0`,
      passage,
    )
  }

  #resourceKey(id: string): number {
    const { index } = this.#databases
    return (
      index.one<{ key: number }>('SELECT key FROM resources WHERE id = ?', id)?.key ??
      index.insert('INSERT INTO resources (id) VALUES (?)', id)
    )
  }
}

/** The term of a resource in the full-text index. The `x` ends the number, so that no two pairs have the same token. */
export function indexToken(resource: number, term: string): string {
  return `r${resource}x${term}`
}

export function touch(touched: Map<number, Set<number>>, resource: number, message: number): void {
  const messages = touched.get(resource)
  if (messages) messages.add(message)
  else touched.set(resource, new Set([message]))
}

export function passageHash(text: string): string {
  return hash('md5', text, 'base64')
}
