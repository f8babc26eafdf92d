import { hash } from 'node:crypto'
import type { MessageContent } from '../../message/message.ts'
import { isQuestion, mostPassages, passagesOf } from '../text/passages.ts'
import { searchableText } from '../text/searchable.ts'
import { wordsOf } from '../text/words.ts'
import type { Collections } from './collections.ts'
import type { Databases } from './databases.ts'
import { roles } from './schema.ts'

/** Messages that are indexed in one transaction. */
export const indexedAtOnce = 100

interface Progress {
  generation: string
  number: number
  done: number | null
  until: number | null
}

interface SaidMessage {
  key: number
  role: string
  createdAt: number
  thread: number
  resourceId: string
  content: string
}

interface Prepared {
  key: number
  /** Absent: the message is gone, or has nothing that it could be found by. */
  said?: { resourceId: string; thread: number; role: number; createdAt: number; passages: Array<{ words: string[]; question: boolean; hash: string }> }
}

interface Indexed {
  key: number
  resource: number
  thread: number
  hash: string
}

export interface IndexingResult {
  /** There is more to do. */
  more: boolean
  /** There are changes that are not indexed yet. */
  behind: boolean
  indexed: number
  /** Changes up to this one need not be kept. */
  number: number
}

const messageSql = `
  SELECT m.key, m.role, m.created_at AS createdAt, m.thread, t.resource_id AS resourceId, m.content
  FROM heed_messages m JOIN heed_threads t ON t.key = m.thread WHERE m.key = ?`

/** Brings the index up to what messages are now, some at a time. Doing the same again changes nothing. */
export class Indexing {
  readonly #databases: Databases
  readonly #collections: Collections

  constructor(databases: Databases, collections: Collections) {
    this.#databases = databases
    this.#collections = collections
  }

  /** One step of it. */
  step(): IndexingResult {
    const { messages, index, write } = this.#databases
    const generation = messages.one<{ generation: string }>('SELECT generation FROM heed_recall')?.generation
    if (generation === undefined) return { more: false, behind: false, indexed: 0, number: 0 }
    const progress = this.#progress()
    if (progress?.generation !== generation) {
      this.#startOver(generation)
      return { more: true, behind: false, indexed: 0, number: 0 }
    }
    const { keys, number } = this.#changed(progress)
    const rebuilt = keys.length < indexedAtOnce ? this.#next(progress, indexedAtOnce - keys.length) : undefined
    const all = [...new Set([...keys, ...(rebuilt?.keys ?? [])])]
    if (all.length === 0 && number === progress.number && rebuilt?.done === progress.done) return { more: false, behind: false, indexed: 0, number }
    const prepared = all.map((key) => this.#prepare(key))
    const current = write(() => {
      // Another process may have been faster: then this was for nothing.
      const now = this.#progress()
      if (now?.generation !== generation || now.number !== progress.number || now.done !== progress.done) return false
      const touched = new Map<number, Set<number>>()
      for (const one of prepared) this.#put(one, touched)
      this.#collections.changed(touched)
      const done = rebuilt ? rebuilt.done : progress.done
      index.run('UPDATE progress SET number = ?, done = ?, until = ?', number, done, done === null ? null : progress.until)
      return true
    })
    const behind = !current || keys.length >= indexedAtOnce
    return { more: behind || (rebuilt !== undefined && rebuilt.done !== null), behind, indexed: current ? all.length : 0, number: current ? number : progress.number }
  }

  /** All messages are indexed again, and what is left here of any that are gone goes. What is there is found meanwhile. Changes that wait still do: only they know what was removed. */
  rebuild(): void {
    const { index, write } = this.#databases
    write(() => {
      const { until } = this.#present()
      const last = index.one<{ key: number }>('SELECT coalesce(max(key), 0) AS key FROM passages')?.key ?? 0
      index.run('UPDATE progress SET done = 0, until = ?', Math.max(until, Math.floor(last / mostPassages)))
    })
  }

  /** These messages are not what is here of them: they are made so, ahead of their turn. */
  refresh(keys: readonly number[]): void {
    const { index, write } = this.#databases
    // Read within the transaction: whoever comes after has seen no older ones.
    write(() => {
      const touched = new Map<number, Set<number>>()
      for (const key of keys) {
        this.#put(this.#prepare(key), touched)
        index.run(
          'DELETE FROM unembedded WHERE embedder IN (SELECT key FROM embedders) AND passage >= ? AND passage < ? AND passage NOT IN (SELECT key FROM passages)', key * mostPassages, (key + 1) * mostPassages,
        )
      }
      this.#collections.changed(touched)
    })
  }

  /** How many changes wait, and how far an index that is made anew has come. */
  status(): { pending: number; rebuilding?: { done: number; total: number } } {
    const { messages } = this.#databases
    const count = (most: number) => messages.one<{ count: number }>('SELECT count(*) AS count FROM heed_messages WHERE key <= ?', most)?.count ?? 0
    const progress = this.#progress()
    const generation = messages.one<{ generation: string }>('SELECT generation FROM heed_recall')?.generation
    if (progress?.generation !== generation) return { pending: 0, rebuilding: { done: 0, total: count(Number.MAX_SAFE_INTEGER) } }
    const pending = messages.one<{ count: number }>('SELECT count(*) AS count FROM (SELECT 1 FROM heed_recall_changes WHERE number > ? LIMIT 100000)', progress?.number ?? 0)?.count ?? 0
    if (!progress || progress.done === null) return { pending }
    return { pending, rebuilding: { done: count(progress.done), total: count(progress.until ?? 0) } }
  }

  /** Whether what is indexed of a message may no longer be what it says. */
  isStale(message: number): boolean {
    const number = this.#progress()?.number ?? 0
    return this.#databases.messages.one('SELECT 1 AS found FROM heed_recall_changes WHERE message = ? AND number > ? LIMIT 1', message, number) !== undefined
  }

  #progress(): Progress | undefined {
    return this.#databases.index.one<Progress>('SELECT generation, number, done, until FROM progress')
  }

  /** Where messages and changes end now. */
  #present(): { number: number; until: number } {
    const { messages } = this.#databases
    const number = messages.one<{ number: number }>('SELECT coalesce(max(number), 0) AS number FROM heed_recall_changes')?.number ?? 0
    const until = messages.one<{ until: number }>('SELECT coalesce(max(key), 0) AS until FROM heed_messages')?.until ?? 0
    return { number, until }
  }

  #startOver(generation: string): void {
    const { index, write } = this.#databases
    write(() => {
      // Changes first, then messages: what is said in between is in both.
      const { number, until } = this.#present()
      for (const table of ['passages', 'resources', 'touched', 'vectors', 'unembedded', 'progress']) index.run(`DELETE FROM ${table}`)
      index.run(`INSERT INTO words (words) VALUES ('delete-all')`)
      index.run('INSERT INTO progress (one, generation, number, done, until) VALUES (1, ?, ?, 0, ?)', generation, number, until)
    })
  }

  #changed({ number }: Progress): { keys: number[]; number: number } {
    const rows = this.#databases.messages.all<{ number: number; message: number }>(
      'SELECT number, message FROM heed_recall_changes WHERE number > ? ORDER BY number LIMIT ?', number, indexedAtOnce,
    )
    return { keys: rows.map(({ message }) => message), number: rows.at(-1)?.number ?? number }
  }

  #next({ done, until }: Progress, limit: number): { keys: number[]; done: number | null } | undefined {
    if (done === null || until === null) return undefined
    const { messages, index } = this.#databases
    const said = messages.all<{ key: number }>('SELECT key FROM heed_messages WHERE key > ? AND key <= ? ORDER BY key LIMIT ?', done, until, limit).map(({ key }) => key)
    // Some of which may be gone, without a change that says so.
    const indexed = index.all<{ key: number }>('SELECT key FROM passages WHERE key >= ? AND key < ? ORDER BY key LIMIT ?', (done + 1) * mostPassages, (until + 1) * mostPassages, limit)
      .map(({ key }) => Math.floor(key / mostPassages))
    const reached = Math.min(...[said, indexed].map((keys) => (keys.length < limit ? until : (keys.at(-1) ?? until))))
    return { keys: [...new Set([...said, ...indexed])].filter((key) => key <= reached), done: reached === until ? null : reached }
  }

  #prepare(key: number): Prepared {
    const row = this.#databases.messages.one<SaidMessage>(messageSql, key)
    const role = row ? roles.indexOf(row.role) : -1
    if (!row || role < 0) return { key }
    const passages = passagesOf(searchableText(JSON.parse(row.content) as MessageContent))
    if (passages.length === 0) return { key }
    return {
      key,
      said: {
        resourceId: row.resourceId, thread: row.thread, role, createdAt: row.createdAt,
        passages: passages.map((text) => ({ words: wordsOf(text), question: isQuestion(text), hash: hashOf(text) })),
      },
    }
  }

  /** Puts what a message says in the place of what it said. `touched`: messages by resource. */
  #put({ key, said }: Prepared, touched: Map<number, Set<number>>): void {
    const { index } = this.#databases
    const first = key * mostPassages
    const before = index.all<Indexed>('SELECT key, resource, thread, hash FROM passages WHERE key >= ? AND key < ?', first, first + mostPassages)
    const resource = said && this.#resource(said.resourceId)
    const same = new Set(before.filter((old) => old.resource === resource && said?.passages[old.key - first]?.hash === old.hash).map((old) => old.key))
    for (const old of before) {
      index.run('DELETE FROM passages WHERE key = ?', old.key)
      index.run('DELETE FROM words WHERE rowid = ?', old.key)
      touch(touched, old.resource, key)
      if (same.has(old.key)) continue
      index.run('DELETE FROM vectors WHERE resource = ? AND passage = ? AND embedder IN (SELECT key FROM embedders)', old.resource, old.key)
      index.run('DELETE FROM unembedded WHERE passage = ? AND embedder IN (SELECT key FROM embedders)', old.key)
    }
    for (const [place, { words, question, hash: hashed }] of (said?.passages ?? []).entries()) {
      if (!said || resource === undefined) break
      const passage = first + place
      index.run(
        'INSERT INTO passages (key, resource, thread, words, question, role, created_at, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
        passage, resource, said.thread, Math.min(words.length, 65_535), question ? 1 : 0, said.role, said.createdAt, hashed,
      )
      index.run('INSERT INTO words (rowid, text) VALUES (?, ?)', passage, [...new Set(words)].map((word) => tokenOf(resource, word)).join(' '))
      if (!same.has(passage)) this.#embed(passage)
      else if (place > 0 && !same.has(passage - 1)) this.#embedAfter(passage, resource)
      touch(touched, resource, key)
    }
    const thread = said?.thread ?? before[0]?.thread
    const last = said?.passages.length ?? 0
    if (thread === undefined || (before.length === last && same.has(first + last - 1))) return
    const next = index.one<{ key: number; resource: number }>('SELECT key, resource FROM passages WHERE thread = ? AND key >= ? ORDER BY key LIMIT 1', thread, first + mostPassages)
    if (!next) return
    this.#embedAfter(next.key, next.resource)
    touch(touched, next.resource, Math.floor(next.key / mostPassages))
  }

  /** What it follows is another or gone. Until it is understood with what it follows now it stands alone: what the other said is in no vector. */
  #embedAfter(passage: number, resource: number): void {
    this.#databases.index.run('UPDATE vectors SET pair = own WHERE embedder IN (SELECT key FROM embedders) AND resource = ? AND passage = ?', resource, passage)
    this.#embed(passage)
  }

  /** An embedder has to see it. What it makes of it already, if it does, is of what it was. */
  #embed(passage: number): void {
    this.#databases.index.run(
      'INSERT INTO unembedded (embedder, passage) SELECT key, ? FROM embedders WHERE true ON CONFLICT DO UPDATE SET revision = excluded.revision, attempts = 0, due_at = 0', passage,
    )
  }

  #resource(id: string): number {
    const { index } = this.#databases
    return index.one<{ key: number }>('SELECT key FROM resources WHERE id = ?', id)?.key ?? index.insert('INSERT INTO resources (id) VALUES (?)', id)
  }
}

/** A word of a resource. The number ends where the letter begins: no other resource and word are written like it. */
export function tokenOf(resource: number, word: string): string {
  return `r${resource}x${word}`
}

export function touch(touched: Map<number, Set<number>>, resource: number, message: number): void {
  const messages = touched.get(resource)
  if (messages) messages.add(message)
  else touched.set(resource, new Set([message]))
}

export function hashOf(text: string): string {
  return hash('md5', text, 'base64')
}
