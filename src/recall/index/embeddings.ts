import type { MessageContent } from '../../message/message.ts'
import { maxPassages, searchableText, splitPassages } from '../text/passages.ts'
import { quantize, quantizedNumbers } from '../rank/quantized-vectors.ts'
import { isoTime } from '../../signals/conversions.ts'
import type { EmbedderStatus, RecallProgress } from '../../store/contract/recall.ts'
import type { Collections } from './collection-cache.ts'
import type { Databases } from './databases.ts'
import { passageHash, touch } from './indexer.ts'
import type { PlacedVectors } from './placed-vectors.ts'
import { messageKey } from './schema.ts'

/** A passage without a vector. `known`: its quantized vector, where another passage has one of the same text. */
export interface Unembedded {
  passage: number
  revision: number
  text: string
  hash: string
  known?: Uint8Array
  /** What a vector store gets with the vector. */
  metadata?: PassageMetadata
}

/** A type, not an interface: vector stores take any record. */
export type PassageMetadata = {
  /** The scope of its embedder. */
  heed_index: string
  resource_id: string
  thread_id: string
  message_id: string
  role: string
  created_at: string
}

/** The vector of a passage, quantized where it was known before. */
export interface Embedded {
  passage: number
  revision: number
  hash: string
  vector: Float32Array | Uint8Array
}

export interface DuePassages {
  passages: Unembedded[]
  /** Messages that changed or were deleted since they were indexed: their passages have no text to embed. */
  outdated: number[]
  /** The embedder is not registered: it expired, or the index was created again. */
  unknown?: true
  nextAt?: number
  dimension?: number
  /** Where the vectors are in a vector store. `cleared`: what a lost index left there is deleted. */
  placed?: { scope: string; cleared: boolean }
}

export interface EmbedderRow {
  key: number
  dimension: number | null
  complete: number
  anew: number
  /** The embedder of the same vectors that are not in a vector store. */
  model: string | null
  place: string | null
  scope: string | null
  cleared: number
}

/** An embedder that was not used for so long is removed, with its vectors, once another one is complete. */
const expiryMs = 7 * 86_400_000
const maxDelayMs = 60_000

const metadataSql = `
  SELECT m.message_id AS messageId, m.role, m.created_at AS createdAt, t.id AS threadId, t.resource_id AS resourceId
  FROM heed_messages m JOIN heed_threads t ON t.key = m.thread WHERE m.key = ?`

/** Which passages have vectors of which embedder, and the queue of those that lack them. */
export class Embeddings {
  readonly #databases: Databases
  readonly #collections: Collections
  readonly #placed: PlacedVectors

  constructor(databases: Databases, collections: Collections, placed: PlacedVectors) {
    this.#databases = databases
    this.#collections = collections
    this.#placed = placed
  }

  /** Registers an embedder, with all passages in its queue, and removes expired ones. */
  register(id: string, now: number, placed?: { place: string; model: string }): void {
    const { index, write } = this.#databases
    write(() => {
      const known = this.find(id)
      const expired = index.all<{ key: number }>(
        'SELECT key FROM embedders WHERE used_at < ? AND id <> ? AND EXISTS (SELECT 1 FROM embedders e WHERE e.id = ?2 AND e.complete = 1)',
        now - expiryMs,
        id,
      )
      if (known) index.execute('UPDATE embedders SET used_at = ? WHERE id = ?', now, id)
      else {
        index.execute(
          'INSERT INTO embedders (id, used_at, model, place, scope) VALUES (?, ?, ?, ?, ?)',
          id, now, placed?.model ?? null, placed?.place ?? null, placed ? this.#placed.scopeOf(id) : null,
        )
        index.execute(
          'INSERT INTO unembedded (embedder, passage) SELECT e.key, p.key FROM embedders e JOIN passages p ON true WHERE e.id = ?', id,
        )
      }
      for (const { key } of expired) {
        for (const table of ['vectors', 'unembedded']) index.execute(`DELETE FROM ${table} WHERE embedder = ?`, key)
        index.execute('DELETE FROM embedders WHERE key = ?', key)
      }
    })
  }

  find(id: string): EmbedderRow | undefined {
    // `complete` may be outdated: the last passages of the queue may have been deleted.
    return this.#databases.index.one<EmbedderRow>(
      `SELECT key, dimension, CASE WHEN complete = 1 OR NOT EXISTS (SELECT 1 FROM unembedded WHERE embedder = e.key) THEN 1 ELSE 0 END
         AS complete, anew, model, place, scope, cleared FROM embedders e WHERE id = ?`,
      id,
    )
  }

  /** What a lost index left in the vector store of an embedder is deleted. */
  cleared(id: string): void {
    const { index, write } = this.#databases
    write(() => index.execute('UPDATE embedders SET cleared = 1 WHERE id = ?', id))
  }

  /** Passages that are due, with the dimension that their vectors must have; without any, the time when the next one is due. */
  readDue(id: string, limit: number, now: number): DuePassages {
    const { index } = this.#databases
    const embedder = this.find(id)
    if (!embedder) return { passages: [], outdated: [], unknown: true }
    const due = index.all<{ passage: number; revision: number }>(
      'SELECT passage, revision FROM unembedded WHERE embedder = ? AND due_at <= ? ORDER BY due_at, passage LIMIT ?',
      embedder.key,
      now,
      limit,
    )
    const texts = this.#texts(due.map(({ passage }) => passage))
    const outdated = new Set<number>()
    const { scope } = embedder
    const placed = scope === null ? undefined : { scope, cleared: embedder.cleared === 1 }
    const metadata = scope === null ? [] : due.map(({ passage }) => this.#metadata(passage, scope))
    const known = texts.map((text) => (text === undefined ? undefined : this.#known(embedder.model ?? id, text)))
    const passages = due.flatMap(({ passage, revision }, at): Unembedded[] => {
      const text = texts[at]
      const of = metadata[at]
      const vector = known[at]
      if (text !== undefined && vector) return [{ passage, revision, text, ...vector, ...(of && { metadata: of }) }]
      outdated.add(messageKey(passage))
      return []
    })
    if (passages.length > 0) {
      const { dimension, anew } = embedder
      return { passages, outdated: [...outdated], ...(dimension !== null && anew === 0 && { dimension }), ...(placed && { placed }) }
    }
    const next = index.one<{ at: number }>(
      'SELECT due_at AS at FROM unembedded WHERE embedder = ? AND due_at > ? ORDER BY due_at LIMIT 1',
      embedder.key,
      now,
    )
    return { passages, outdated: [...outdated], ...(next && { nextAt: next.at }) }
  }

  /** Stores vectors of passages whose revision is unchanged. */
  storeVectors(id: string, embedded: readonly Embedded[]): void {
    const { index, write } = this.#databases
    const [first] = embedded
    if (!first) return
    const dimension = dimensionOf(first.vector)
    const stored = embedded.map((one) => ({ ...one, vector: one.vector instanceof Uint8Array ? one.vector : quantize(one.vector) }))
    write(() => {
      const embedder = this.find(id)
      const states = stored.map(({ passage }) => this.#queued(id, passage))
      if (!embedder) return
      if (embedder.dimension !== null && embedder.dimension !== dimension) {
        // Another process stored vectors of another dimension meanwhile: the passages stay in the queue.
        if (embedder.anew === 0) return
        this.#dropVectors(embedder.key)
      }
      const touched = new Map<number, Set<number>>()
      for (const [at, { passage, revision, hash, vector }] of stored.entries()) {
        const isCurrent = states[at]?.revision === revision
        const resource = states[at]?.resource ?? undefined
        if (isCurrent) index.execute('DELETE FROM unembedded WHERE embedder = ? AND passage = ?', embedder.key, passage)
        if (!isCurrent || resource === undefined) {
          this.#placed.recordRemoval(embedder.key, passage, revision)
          continue
        }
        index.execute(
          `INSERT INTO vectors (embedder, resource, passage, vector, hash, revision) VALUES (?, ?, ?, ?, ?, ?)
           ON CONFLICT (embedder, resource, passage)
           DO UPDATE SET vector = excluded.vector, hash = excluded.hash, revision = excluded.revision`,
          embedder.key,
          resource,
          passage,
          vector,
          hash,
          embedder.place === null ? null : revision,
        )
        touch(touched, resource, messageKey(passage))
      }
      this.#collections.logChanges(touched)
      index.execute(
        `UPDATE embedders SET dimension = ?, anew = 0, complete = CASE WHEN complete = 1
           OR NOT EXISTS (SELECT 1 FROM unembedded WHERE embedder = ?2) THEN 1 ELSE 0 END WHERE key = ?2`,
        dimension,
        embedder.key,
      )
    })
  }

  /** The revision of a passage in the queue of an embedder, and its resource. */
  #queued(id: string, passage: number): { revision: number; resource: number | null } | undefined {
    return this.#databases.index.one<{ revision: number; resource: number | null }>(
      `SELECT u.revision, p.resource FROM embedders e JOIN unembedded u ON u.embedder = e.key LEFT JOIN passages p ON p.key = u.passage
       WHERE e.id = ? AND u.passage = ?`, id, passage,
    )
  }

  /** Deletes vectors of another dimension and enqueues all passages; those that are in the queue keep their revision. */
  #dropVectors(embedder: number): void {
    const { index } = this.#databases
    index.execute('DELETE FROM vectors WHERE embedder = ?', embedder)
    index.execute(
      'INSERT INTO unembedded (embedder, passage) SELECT CAST(? AS BIGINT), key FROM passages WHERE true ON CONFLICT DO NOTHING', embedder,
    )
    index.execute('UPDATE embedders SET complete = 0 WHERE key = ?', embedder)
    // Not logged in `touched`, which is too short for that: caches read their collections again.
    index.execute('UPDATE resources SET version = version + 1')
  }

  /** Delays passages that the embedder rejected. Only a passage that was rejected alone is delayed longer each time. */
  postpone(id: string, passages: ReadonlyArray<Pick<Unembedded, 'passage' | 'revision'>>, now: number): void {
    const { index, write } = this.#databases
    const embedder = this.find(id)
    if (!embedder) return
    write(() => {
      for (const { passage, revision } of passages) {
        index.execute(
          `UPDATE unembedded SET attempts = attempts + ?,
             due_at = CAST(? AS BIGINT) + CASE WHEN attempts > 6 THEN ${maxDelayMs} ELSE 500 << CAST(attempts AS INTEGER) END
           WHERE embedder = ? AND passage = ? AND revision = ?`,
          passages.length === 1 ? 1 : 0,
          now,
          embedder.key,
          passage,
          revision,
        )
      }
    })
  }

  /** Enqueues all passages again, except for these embedders. Searches use the present vectors until then. */
  enqueueAll(except: readonly string[]): void {
    const { index, write } = this.#databases
    const ids = JSON.stringify(except)
    const isIncluded = 'id NOT IN (SELECT value FROM json_each(?))'
    write(() => {
      index.execute(`UPDATE embedders SET anew = 1 WHERE ${isIncluded}`, ids)
      // Without their hashes, the present vectors serve searches and are not reused for new ones.
      const ofIncluded = `embedder IN (SELECT key FROM embedders WHERE ${isIncluded})`
      index.execute(`UPDATE vectors SET hash = NULL WHERE ${ofIncluded}`, ids)
      index.execute(
        `INSERT INTO unembedded (embedder, passage) SELECT e.key, p.key FROM embedders e JOIN passages p ON true WHERE ${isIncluded}
         ON CONFLICT (embedder, passage) DO UPDATE SET revision = excluded.revision, attempts = 0, due_at = 0`,
        ids,
      )
    })
  }

  /** How many passages have vectors of their present text. */
  progressOf(id: string): RecallProgress {
    const { index } = this.#databases
    const total = index.one<{ count: number }>('SELECT count(*) AS count FROM passages')?.count ?? 0
    const queued =
      index.one<{ count: number }>('SELECT count(*) AS count FROM unembedded WHERE embedder = (SELECT key FROM embedders WHERE id = ?)', id)
        ?.count ?? total
    return { done: Math.max(0, total - queued), total }
  }

  status(): EmbedderStatus[] {
    const { index } = this.#databases
    const count = (text: string, key: number) => index.one<{ count: number }>(`SELECT count(*) AS count FROM ${text}`, key)?.count ?? 0
    return index
      .all<EmbedderRow & { id: string }>('SELECT key, id, dimension, place FROM embedders ORDER BY key')
      .map(({ key, id, dimension, place }) => {
        const pending = count('unembedded WHERE embedder = ?', key)
        return {
          id,
          ...(dimension !== null && { dimension }),
          complete: pending === 0,
          embedded: count('vectors WHERE embedder = ?', key),
          pending,
          failing: count('unembedded WHERE embedder = ? AND attempts > 0', key),
          ...(place !== null && { vectorStore: place, removing: this.#placed.countRemovals(place) }),
        }
      })
  }

  /** The texts of passages; undefined where the message changed since it was indexed. */
  #texts(passages: readonly number[]): Array<string | undefined> {
    const { messages, index } = this.#databases
    const contents = new Map([...new Set(passages.map(messageKey))].map((key) => {
      return [key, messages.one<{ content: string }>('SELECT content FROM heed_messages WHERE key = ?', key)?.content]
    }))
    const hashes = passages.map((passage) => index.one<{ hash: string }>('SELECT hash FROM passages WHERE key = ?', passage)?.hash)
    const split = new Map([...contents].map(([key, content]) => {
      return [key, content === undefined ? [] : splitPassages(searchableText(JSON.parse(content) as MessageContent))]
    }))
    return passages.map((passage, at) => {
      const text = split.get(messageKey(passage))?.[passage % maxPassages]
      return text !== undefined && passageHash(text) === hashes[at] ? text : undefined
    })
  }

  #metadata(passage: number, scope: string): PassageMetadata | undefined {
    const row = this.#databases.messages.one<{ messageId: string; role: string; createdAt: number; threadId: string; resourceId: string }>(
      metadataSql, messageKey(passage),
    )
    return row && {
      heed_index: scope, resource_id: row.resourceId, thread_id: row.threadId, message_id: row.messageId, role: row.role,
      created_at: isoTime(row.createdAt),
    }
  }

  /** The same text has the same vector, in whichever thread and of whichever resource it stands, and in whichever store its vector is. */
  #known(model: string, text: string): { hash: string; known?: Uint8Array } {
    const hash = passageHash(text)
    const row = this.#databases.index.one<{ vector: Uint8Array }>(
      `SELECT v.vector FROM embedders e CROSS JOIN vectors v ON v.embedder = e.key AND v.hash = ?
       WHERE coalesce(e.model, e.id) = ? LIMIT 1`, hash, model,
    )
    return row ? { hash, known: row.vector } : { hash }
  }
}

/** A known vector is quantized: its numbers follow the scale, a float. */
function dimensionOf(vector: Embedded['vector']): number {
  return vector instanceof Uint8Array ? quantizedNumbers(vector).length : vector.length
}
