import type { MessageContent } from '../../message/message.ts'
import { mostPassages, passagesOf, withContext } from '../text/passages.ts'
import { quantised } from '../rank/quantised.ts'
import { searchableText } from '../text/searchable.ts'
import type { EmbedderStatus, RecallProgress } from '../../store/contract/recall.ts'
import type { Collections } from './collections.ts'
import type { Databases } from './databases.ts'
import { hashOf, touch } from './indexing.ts'

/** A passage that waits for its vectors. */
export interface Unembedded {
  passage: number
  revision: number
  own: string
  pair: string
}

export interface Embedded {
  passage: number
  revision: number
  own: Float32Array
  pair: Float32Array
}

export interface Taken {
  passages: Unembedded[]
  /** Messages that say something else by now than what is indexed, or are gone: what waits for them has no text. */
  outdated: number[]
  /** It was forgotten, or the index is another one. */
  unknown?: true
  nextAt?: number
  dimension?: number
}

interface EmbedderRow {
  key: number
  dimension: number | null
  complete: number
  anew: number
}

/** An embedder that nobody named for so long is forgotten, with its vectors, once another is through. */
const forgotten = 7 * 86_400_000
const longestPause = 60_000

/** Which passages have vectors of which embedder, and which are to have them. */
export class Embeddings {
  readonly #databases: Databases
  readonly #collections: Collections

  constructor(databases: Databases, collections: Collections) {
    this.#databases = databases
    this.#collections = collections
  }

  /** Makes an embedder known: all passages wait for it. */
  register(id: string, now: number): void {
    const { index, write } = this.#databases
    write(() => {
      if (this.find(id)) index.run('UPDATE embedders SET used_at = ? WHERE id = ?', now, id)
      else {
        const key = index.insert('INSERT INTO embedders (id, used_at) VALUES (?, ?)', id, now)
        index.run('INSERT INTO unembedded (embedder, passage) SELECT ?, key FROM passages', key)
      }
      const gone = index.all<{ key: number }>('SELECT key FROM embedders WHERE used_at < ? AND id <> ? AND EXISTS (SELECT 1 FROM embedders e WHERE e.id = ?2 AND e.complete = 1)', now - forgotten, id)
      for (const { key } of gone) for (const table of ['vectors', 'unembedded']) index.run(`DELETE FROM ${table} WHERE embedder = ?`, key)
      for (const { key } of gone) index.run('DELETE FROM embedders WHERE key = ?', key)
    })
  }

  find(id: string): EmbedderRow | undefined {
    // What it had not seen may have gone by itself.
    return this.#databases.index.one<EmbedderRow>('SELECT key, dimension, max(complete, NOT EXISTS (SELECT 1 FROM unembedded WHERE embedder = e.key)) AS complete, anew FROM embedders e WHERE id = ?', id)
  }

  /** Passages whose time has come, with the dimension that their vectors must have, and when the next one's time does. */
  take(id: string, limit: number, now: number): Taken {
    const { index } = this.#databases
    const embedder = this.find(id)
    if (!embedder) return { passages: [], outdated: [], unknown: true }
    const due = index.all<{ passage: number; revision: number }>('SELECT passage, revision FROM unembedded WHERE embedder = ? AND due_at <= ? ORDER BY due_at, passage LIMIT ?', embedder.key, now, limit)
    const texts = new Map<number, string[]>()
    const lost = new Set<number>()
    const passages = due.flatMap(({ passage, revision }) => {
      const own = this.#text(passage, texts)
      const before = this.#before(passage)
      const context = before === undefined ? undefined : this.#text(before, texts)
      if (own === undefined) lost.add(Math.floor(passage / mostPassages))
      if (before !== undefined && context === undefined) lost.add(Math.floor(before / mostPassages))
      if (own === undefined || (before !== undefined && context === undefined)) return []
      return { passage, revision, own, pair: withContext(context, own) }
    })
    const outdated = [...lost]
    if (passages.length > 0) return { passages, outdated, ...(embedder.dimension !== null && embedder.anew === 0 && { dimension: embedder.dimension }) }
    const next = index.one<{ at: number }>('SELECT due_at AS at FROM unembedded WHERE embedder = ? AND due_at > ? ORDER BY due_at LIMIT 1', embedder.key, now)
    return { passages, outdated, ...(next && { nextAt: next.at }) }
  }

  /** Stores vectors of passages that are still what they were. */
  put(id: string, embedded: readonly Embedded[]): void {
    const { index, write } = this.#databases
    const dimension = embedded[0]?.own.length
    if (dimension === undefined) return
    const stored = embedded.map(({ passage, revision, own, pair }) => ({ passage, revision, own: quantised(own), pair: quantised(pair) }))
    write(() => {
      const embedder = this.find(id)
      if (!embedder) return
      if (embedder.dimension !== null && embedder.dimension !== dimension) {
        // Another process made others of these meanwhile: they stay where they wait.
        if (embedder.anew === 0) return
        this.#drop(embedder.key)
      }
      const touched = new Map<number, Set<number>>()
      for (const { passage, revision, own, pair } of stored) {
        if (index.run('DELETE FROM unembedded WHERE embedder = ? AND passage = ? AND revision = ?', embedder.key, passage, revision) === 0) continue
        const resource = index.one<{ resource: number }>('SELECT resource FROM passages WHERE key = ?', passage)?.resource
        if (resource === undefined) continue
        index.run('INSERT INTO vectors (embedder, resource, passage, own, pair) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET own = excluded.own, pair = excluded.pair', embedder.key, resource, passage, own, pair)
        touch(touched, resource, Math.floor(passage / mostPassages))
      }
      this.#collections.changed(touched)
      index.run('UPDATE embedders SET dimension = ?, anew = 0, complete = max(complete, NOT EXISTS (SELECT 1 FROM unembedded WHERE embedder = ?2)) WHERE key = ?2', dimension, embedder.key)
    })
  }

  /** Its vectors can't be compared with those that it makes now: all passages wait for new ones, those that do with the revision they have. */
  #drop(embedder: number): void {
    const { index } = this.#databases
    index.run('DELETE FROM vectors WHERE embedder = ?', embedder)
    index.run('INSERT INTO unembedded (embedder, passage) SELECT ?, key FROM passages WHERE true ON CONFLICT DO NOTHING', embedder)
    index.run('UPDATE embedders SET complete = 0 WHERE key = ?', embedder)
    // Nobody notes that many messages: who has them at hand reads them again.
    index.run('UPDATE resources SET version = version + 1')
  }

  /** These could not be embedded: again later, and what could not by itself after a longer pause each time. */
  postpone(id: string, passages: ReadonlyArray<Pick<Unembedded, 'passage' | 'revision'>>, now: number): void {
    const { index, write } = this.#databases
    const embedder = this.find(id)
    if (!embedder) return
    write(() => {
      for (const { passage, revision } of passages) {
        index.run(
          `UPDATE unembedded SET attempts = attempts + ?, due_at = ? + min(${longestPause}, 500 << min(attempts, 10)) WHERE embedder = ? AND passage = ? AND revision = ?`,
          passages.length === 1 ? 1 : 0, now, embedder.key, passage, revision,
        )
      }
    })
  }

  /** All of them once more, also those that are on their way; the vectors that are there serve until then. Those of embedders that only serve meanwhile stay. */
  again(except: readonly string[]): void {
    const { index, write } = this.#databases
    const ids = JSON.stringify(except)
    const isMeant = 'id NOT IN (SELECT value FROM json_each(?))'
    write(() => {
      index.run(`UPDATE embedders SET anew = 1 WHERE ${isMeant}`, ids)
      index.run(
        `INSERT INTO unembedded (embedder, passage) SELECT e.key, p.key FROM embedders e, passages p WHERE ${isMeant} ON CONFLICT DO UPDATE SET revision = excluded.revision, attempts = 0, due_at = 0`, ids,
      )
    })
  }

  /** How many passages it has seen as they are now. */
  progressOf(id: string): RecallProgress {
    const { index } = this.#databases
    const total = index.one<{ count: number }>('SELECT count(*) AS count FROM passages')?.count ?? 0
    const waiting = index.one<{ count: number }>('SELECT count(*) AS count FROM unembedded WHERE embedder = (SELECT key FROM embedders WHERE id = ?)', id)?.count ?? total
    return { done: Math.max(0, total - waiting), total }
  }

  status(): EmbedderStatus[] {
    const { index } = this.#databases
    const count = (text: string, key: number) => index.one<{ count: number }>(`SELECT count(*) AS count FROM ${text}`, key)?.count ?? 0
    return index.all<EmbedderRow & { id: string }>('SELECT key, id, dimension, complete FROM embedders ORDER BY key').map(({ key, id, dimension }) => {
      const pending = count('unembedded WHERE embedder = ?', key)
      return {
        id,
        ...(dimension !== null && { dimension }),
        complete: pending === 0,
        embedded: count('vectors WHERE embedder = ?', key),
        pending,
        failing: count('unembedded WHERE embedder = ? AND attempts > 0', key),
      }
    })
  }

  /** What is indexed of a passage, as long as its message still says so. `texts`: of messages that were read. */
  #text(passage: number, texts: Map<number, string[]>): string | undefined {
    const message = Math.floor(passage / mostPassages)
    let passages = texts.get(message)
    if (!passages) {
      const row = this.#databases.messages.one<{ content: string }>('SELECT content FROM heed_messages WHERE key = ?', message)
      passages = row ? passagesOf(searchableText(JSON.parse(row.content) as MessageContent)) : []
      texts.set(message, passages)
    }
    const text = passages[passage % mostPassages]
    const indexed = this.#databases.index.one<{ hash: string }>('SELECT hash FROM passages WHERE key = ?', passage)?.hash
    return text !== undefined && hashOf(text) === indexed ? text : undefined
  }

  #before(passage: number): number | undefined {
    return this.#databases.index.one<{ key: number }>(
      'SELECT key FROM passages WHERE thread = (SELECT thread FROM passages WHERE key = ?1) AND key < ?1 ORDER BY key DESC LIMIT 1', passage,
    )?.key
  }
}
