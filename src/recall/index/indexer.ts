import { hash } from 'node:crypto'
import type { MessageContent } from '../../message/message.ts'
import { searchableText, splitPassages } from '../text/passages.ts'
import { formOf, type Form } from '../text/form.ts'
import { extractTerms } from '../text/terms.ts'
import type { Collections } from './collection-cache.ts'
import type { Databases } from './databases.ts'
import { firstPassageKey, messageKey, roles } from './schema.ts'

/** The messages that one transaction indexes. */
const indexedAtOnce = 100

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
  readonly #collections: Collections

  constructor(databases: Databases, collections: Collections) {
    this.#databases = databases
    this.#collections = collections
  }

  /** Indexes one batch: changed messages first, then the next messages of a rebuild. */
  step(): IndexingResult {
    const { together, write } = this.#databases
    const generation = this.#generation()
    const progress = this.#progress()
    // Asked before the others are answered: a server answers all in one round trip.
    const first = together ? this.#nextChanges(0) : undefined
    if (generation === undefined) return { more: false, missing: false, indexed: 0, number: 0 }
    if (progress?.generation !== generation) {
      this.#startOver(generation)
      return { more: true, missing: true, indexed: 0, number: 0 }
    }
    const { keys, numbers } = first ?? this.#nextChanges(progress.number)
    const number = together ? 0 : (numbers.at(-1) ?? progress.number)
    const rebuilt = keys.length < indexedAtOnce ? this.#nextOfRebuild(progress, indexedAtOnce - keys.length) : undefined
    const all = [...new Set([...keys, ...(rebuilt?.keys ?? [])])]
    if (all.length === 0 && number === progress.number && rebuilt?.done === progress.done) {
      return { more: false, missing: false, indexed: 0, number }
    }
    const prepared = all.map((key) => this.#prepare(key))
    const current = write(() => {
      if (!together && !this.#isAt(progress)) return false
      this.#putAll(prepared)
      this.#recordProgress(progress, { numbers, number, done: rebuilt ? rebuilt.done : progress.done })
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

  /** Whether every committed message is indexed, and no rebuild is under way. */
  isCurrent(): boolean {
    const { together } = this.#databases
    const generation = this.#generation()
    const progress = this.#progress()
    const { keys } = this.#nextChanges(together ? 0 : (progress?.number ?? 0), 1)
    return generation === undefined || (progress?.generation === generation && progress.done === null && keys.length === 0)
  }

  /** False when another process indexed the batch first. */
  #isAt({ generation, number, done }: Progress): boolean {
    const now = this.#progress()
    return now?.generation === generation && now.number === number && now.done === done
  }

  #recordProgress(before: Progress, { numbers, number, done }: { numbers: readonly number[]; number: number; done: number | null }): void {
    const { messages, index, together } = this.#databases
    if (together && numbers.length > 0) {
      messages.execute(
        'DELETE FROM heed_recall_changes WHERE number IN (SELECT CAST(value AS BIGINT) FROM json_each(?))', JSON.stringify(numbers),
      )
    }
    if (together && done === before.done) return
    const [until, fresh] = done === null ? [null, 0] : [before.until, before.fresh]
    index.execute('UPDATE progress SET number = ?, done = ?, until = ?, fresh = ?', number, done, until, fresh)
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
      index.execute('UPDATE progress SET done = 0, until = ?', Math.max(until, messageKey(last)))
    })
  }

  /** Indexes these messages now, ahead of the pending changes. */
  refresh(keys: readonly number[]): void {
    const { index, write } = this.#databases
    // Reads within the transaction, so that a later transaction cannot have read an older state.
    write(() => {
      this.#putAll(keys.map((key) => this.#prepare(key)))
      for (const key of keys) {
        index.execute(
          `DELETE FROM unembedded WHERE embedder IN (SELECT key FROM embedders) AND passage >= ? AND passage < ?
           AND passage NOT IN (SELECT key FROM passages)`,
          firstPassageKey(key),
          firstPassageKey(key + 1),
        )
      }
    })
  }

  /** The number of pending changes, and the progress of a rebuild. */
  status(): { pending: number; rebuilding?: { done: number; total: number } } {
    const { messages } = this.#databases
    const count = (most: number) =>
      messages.one<{ count: number }>('SELECT count(*) AS count FROM heed_messages WHERE key <= ?', most)?.count ?? 0
    const progress = this.#progress()
    const generation = this.#generation()
    if (progress?.generation !== generation) return { pending: 0, rebuilding: { done: 0, total: count(Number.MAX_SAFE_INTEGER) } }
    const pending =
      messages.one<{ count: number }>(
        'SELECT count(*) AS count FROM (SELECT 1 FROM heed_recall_changes WHERE number > ? LIMIT 100000) AS pending',
        progress?.number ?? 0,
      )?.count ?? 0
    if (!progress || progress.done === null) return { pending }
    return { pending, rebuilding: { done: count(progress.done), total: count(progress.until ?? 0) } }
  }

  /** Messages with a change record above this number may have outdated passages. */
  indexedUpTo(): number {
    return this.#databases.together ? 0 : (this.#progress()?.number ?? 0)
  }

  #generation(): string | undefined {
    return this.#databases.messages.one<{ generation: string }>('SELECT generation FROM heed_recall')?.generation
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
    const { index, words, together, write } = this.#databases
    write(() => {
      // Changes first, then messages: a message that arrives in between is in both.
      const { number, until } = this.#newest()
      for (const table of ['passages', 'resources', 'touched', 'vectors', 'unembedded', 'progress']) index.execute(`DELETE FROM ${table}`)
      words.clear()
      index.execute(
        'INSERT INTO progress (one, generation, number, done, until, fresh) VALUES (1, ?, ?, 0, ?, 1)',
        generation, together ? 0 : number, until,
      )
    })
  }

  #nextChanges(after: number, limit = indexedAtOnce): { keys: number[]; numbers: number[] } {
    const rows = this.#databases.messages.all<{ number: number; message: number }>(
      'SELECT number, message FROM heed_recall_changes WHERE number > ? ORDER BY number LIMIT ?', after, limit,
    )
    return { keys: rows.map(({ message }) => message), numbers: rows.map(({ number }) => number) }
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

  /** Replaces the passages of messages. All reads come before the first write. */
  #putAll(messages: readonly IndexedMessage[]): void {
    const { index } = this.#databases
    const before = messages.map(({ key }) => index.all<PassageRecord>(
      'SELECT key, resource, hash FROM passages WHERE key >= ? AND key < ?', firstPassageKey(key), firstPassageKey(key + 1),
    ))
    const resources = this.#resourceKeys(messages.flatMap(({ content }) => content?.resourceId ?? []))
    const touched = new Map<number, Set<number>>()
    for (const [at, message] of messages.entries()) this.#put(message, before[at] ?? [], resources, touched)
    this.#collections.logChanges(touched)
  }

  /** Replaces the passages of a message. Adds it, and the message after it when that changes too, to `touched`, by resource. */
  #put(
    { key, content }: IndexedMessage, before: readonly PassageRecord[], resources: ReadonlyMap<string, number>,
    touched: Map<number, Set<number>>,
  ): void {
    const { index, words } = this.#databases
    const first = firstPassageKey(key)
    const resource = content && resources.get(content.resourceId)
    const same = new Set(
      before.filter((old) => old.resource === resource && content?.passages[old.key - first]?.hash === old.hash).map((old) => old.key),
    )
    for (const old of before) {
      index.execute('DELETE FROM passages WHERE key = ?', old.key)
      words.remove(old.key)
      touch(touched, old.resource, key)
      if (same.has(old.key)) continue
      index.execute(
        'DELETE FROM vectors WHERE resource = ? AND passage = ? AND embedder IN (SELECT key FROM embedders)', old.resource, old.key,
      )
      index.execute('DELETE FROM unembedded WHERE passage = ? AND embedder IN (SELECT key FROM embedders)', old.key)
    }
    for (const [n, { terms, form, hash: hashed }] of (content?.passages ?? []).entries()) {
      if (!content || resource === undefined) break
      const passage = first + n
      index.execute(
        'INSERT INTO passages (key, resource, thread, words, form, role, created_at, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
        passage, resource, content.thread, Math.min(terms.length, 65_535), form, content.role, content.createdAt, hashed,
      )
      words.add(passage, [...new Set(terms)].map((term) => indexToken(resource, term)))
      if (!same.has(passage)) this.#enqueue(passage)
      touch(touched, resource, key)
    }
  }

  /** Enqueues the passage for every embedder. The new revision makes vectors that are being made of its old text be discarded. */
  #enqueue(passage: number): void {
    this.#databases.index.execute(
      `INSERT INTO unembedded (embedder, passage) SELECT key, CAST(? AS BIGINT) FROM embedders WHERE true
       ON CONFLICT (embedder, passage) DO UPDATE SET revision = excluded.revision, attempts = 0, due_at = 0`,
      passage,
    )
  }

  /** The keys of resources, which are created where they are missing. */
  #resourceKeys(ids: readonly string[]): Map<string, number> {
    const { index } = this.#databases
    const read = (id: string) => [id, index.one<{ key: number }>('SELECT key FROM resources WHERE id = ?', id)?.key] as const
    const found = [...new Set(ids)].map(read)
    const missing = found.flatMap(([id, key]) => (key === undefined ? id : []))
    for (const id of missing) index.execute('INSERT INTO resources (id) VALUES (?) ON CONFLICT DO NOTHING', id)
    return new Map([...found, ...missing.map(read)].flatMap(([id, key]) => (key === undefined ? [] : [[id, key] as const])))
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
