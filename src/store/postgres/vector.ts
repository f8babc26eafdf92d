import { checkNames, checkText, checkWhole } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { VectorTables, type ScoredRow, type VectorDriver, type VectorRow, type VectorTable } from '../../recall/stores/vector-tables.ts'
import type { VectorIndexSettings, VectorMetric } from '../../recall/vector-store.ts'
import { arrayOf } from './bulk/arrays.ts'
import { quoteName } from './dialect.ts'
import { postgresFailure } from './errors.ts'
import { Queries, type Query, type QueryClient, type QueryPool, type Row } from './queries.ts'

/** The options of `PgVector`. */
export interface PgVectorOptions {
  /** Defaults to `pg-vector`. Another id gets all vectors of recall anew. */
  id?: string
  /** `postgresql://user:password@host:5432/database`. Or the parts of it below. */
  connectionString?: string
  host?: string
  /** Defaults to 5432. */
  port?: number
  user?: string
  password?: string
  database?: string
  /** Encrypts the connection; an object is passed to `tls.connect`. */
  ssl?: boolean | object
  /** The schema of the tables, which is created if it is missing. Defaults to `public`. */
  schemaName?: string
  /** A `Pool` of the package `pg`. The store does not end it. */
  pool?: QueryPool
  /** A connected `Client` of `pg`, or a PGlite. The store does not end it. */
  client?: QueryClient
}

const names = ['id', 'connectionString', 'host', 'port', 'user', 'password', 'database', 'ssl', 'schemaName', 'pool', 'client']

/**
 * A vector store in PostgreSQL, with pgvector: an `hnsw` index (the default), `ivfflat` or `flat`. Without the extension every vector is
 * compared here, which takes seconds from some 20,000 on.
 *
 * @example new Memory({ embedder: 'openai/text-embedding-3-small', vector: new PgVector({ connectionString: process.env.DATABASE_URL }) })
 */
export class PgVector extends VectorTables {
  constructor(options: PgVectorOptions) {
    checkNames('PgVector', options, names)
    const { id = 'pg-vector', schemaName = 'public', pool, client, ...given } = options
    const texts = { id, schemaName, ...given, ssl: undefined, port: undefined }
    for (const [name, value] of Object.entries(texts)) if (value !== undefined) checkText(name, value)
    if (given.port !== undefined) checkWhole('port', given.port)
    const { connectionString, host, database } = given
    const ways = [connectionString, pool, client, host ?? database].filter((value) => value !== undefined)
    if (ways.length !== 1) {
      const why = 'Name the database once: connectionString, or host and database, or a pool or client of pg.'
      throw new HeedError('invalid_argument', why, { details: { field: 'connectionString' } })
    }
    const from = pool ? { pool } : client ? { client } : { config: { ...given, application_name: 'heed' } }
    super(id, () => openDatabase(new Queries(from), schemaName), ['flat', 'hnsw', 'ivfflat'])
  }
}

/** How the extension is installed. */
interface Extension {
  /** Quoted. */
  schema: string
  /** Whether a scan of an index continues until enough rows pass a filter: from version 0.8 on. */
  iterates: boolean
}

interface StoredTable extends VectorTable {
  /** `exact`: without the extension. */
  kind: 'flat' | 'hnsw' | 'ivfflat' | 'exact'
  lists: number
  built: boolean
}

/** With fewer rows that pass the filter, all of them are compared: that is as fast as an index, and complete. */
const fewRows = 20_000
/** The most rows that are compared without the extension. */
const mostExact = 200_000
const readAtOnce = 2_000
/** The dimensions that an index of pgvector takes. */
const maxIndexed = 2_000
/** An `ivfflat` index chooses its lists from the rows that it is built from: it is built from so many a list. */
const rowsPerList = 30

async function openDatabase(queries: Queries, schemaName: string): Promise<VectorDriver> {
  const schema = quoteName(schemaName)
  try {
    await queries.all(`CREATE SCHEMA IF NOT EXISTS ${schema}`)
    await queries.all(`CREATE TABLE IF NOT EXISTS ${schema}.heed_vector_indexes (
      name text PRIMARY KEY, dimension int NOT NULL, metric text NOT NULL, kind text NOT NULL, lists int NOT NULL, built boolean NOT NULL)`)
    return new PgVectorDriver(queries, schema, await findExtension(queries))
  } catch (error) {
    await queries.close()
    throw postgresFailure(error, 'of PgVector')
  }
}

/** Installs the extension if the server has it and the role may. */
async function findExtension(queries: Queries): Promise<Extension | undefined> {
  const text = `SELECT n.nspname AS schema, e.extversion AS version FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector'`
  let [found] = await queries.all(text)
  if (!found) {
    await queries.all('CREATE EXTENSION IF NOT EXISTS vector').catch(() => {})
    ;[found] = await queries.all(text)
  }
  if (!found) return undefined
  const [major = 0, minor = 0] = String(found.version).split('.').map(Number)
  return { schema: quoteName(String(found.schema)), iterates: major > 0 || minor >= 8 }
}

const operators: Readonly<Record<VectorMetric, { distance: string; operators: string; score(distance: number): number }>> = {
  cosine: { distance: '<=>', operators: 'vector_cosine_ops', score: (distance) => 1 - distance },
  dotproduct: { distance: '<#>', operators: 'vector_ip_ops', score: (distance) => -distance },
  euclidean: { distance: '<->', operators: 'vector_l2_ops', score: (distance) => 1 / (1 + distance) },
}

class PgVectorDriver implements VectorDriver {
  readonly #queries: Queries
  readonly #schema: string
  readonly #extension: Extension | undefined

  constructor(queries: Queries, schema: string, extension: Extension | undefined) {
    this.#queries = queries
    this.#schema = schema
    this.#extension = extension
  }

  async tables(): Promise<StoredTable[]> {
    const rows = await this.#queries.all(`SELECT name, dimension, metric, kind, lists, built FROM ${this.#schema}.heed_vector_indexes`)
    return rows as unknown as StoredTable[]
  }

  async create({ name, dimension, metric, index = {} }: VectorTable): Promise<void> {
    const kind = this.#kindOf(dimension, index)
    const { lists = 100 } = index.ivf ?? {}
    const column = kind === 'exact' ? 'bytea' : `${this.#extension?.schema}.vector(${dimension})`
    await this.#queries.transaction(async (query) => {
      // Two processes that create it at once: the second finds it.
      await query(`SELECT pg_advisory_xact_lock(hashtext($1::text))`, `heed ${this.#schema} ${name}`)
      const known = await query(`SELECT 1 FROM ${this.#schema}.heed_vector_indexes WHERE name = $1::text`, name)
      if (known.length > 0) return
      await query(`CREATE TABLE ${this.#table(name)} (
        id text COLLATE "C" PRIMARY KEY, vector ${column} NOT NULL, metadata text NOT NULL, tags text[] NOT NULL)`)
      await query(`CREATE INDEX ON ${this.#table(name)} USING gin (tags)`)
      if (kind === 'hnsw') {
        const { m = 16, efConstruction = 64 } = index.hnsw ?? {}
        await this.#build(query, { name, metric }, `hnsw`, `m = ${m}, ef_construction = ${efConstruction}`)
      }
      await query(
        `INSERT INTO ${this.#schema}.heed_vector_indexes (name, dimension, metric, kind, lists, built)
         VALUES ($1::text, $2::int, $3::text, $4::text, $5::int, $6::boolean)`, name, dimension, metric, kind, lists, kind !== 'ivfflat',
      )
    })
  }

  #kindOf(dimension: number, { type, hnsw, ivf }: VectorIndexSettings): StoredTable['kind'] {
    const kind = (type ?? (hnsw ? 'hnsw' : ivf ? 'ivfflat' : undefined)) as 'flat' | 'hnsw' | 'ivfflat' | undefined
    const refuse = (why: string): never => {
      throw new HeedError('unsupported_option', why, { details: { option: 'indexConfig.type' } })
    }
    if (!this.#extension) {
      return kind === undefined || kind === 'flat'
        ? 'exact'
        : refuse(`An index of type '${kind}' needs pgvector: CREATE EXTENSION vector. Without it, leave indexConfig.type out.`)
    }
    if (dimension <= maxIndexed) return kind ?? 'hnsw'
    if (kind === undefined || kind === 'flat') return 'flat'
    return refuse(`pgvector indexes at most ${maxIndexed} dimensions, not ${dimension}. Use indexConfig.type 'flat', or a shorter vector.`)
  }

  async #build(query: Query, { name, metric }: Pick<VectorTable, 'name' | 'metric'>, method: string, settings: string): Promise<void> {
    const operatorClass = `${this.#extension?.schema}.${operators[metric].operators}`
    await query(`CREATE INDEX ON ${this.#table(name)} USING ${method} (vector ${operatorClass}) WITH (${settings})`)
  }

  async drop({ name }: VectorTable): Promise<void> {
    await this.#queries.transaction(async (query) => {
      await query(`DROP TABLE ${this.#table(name)}`)
      await query(`DELETE FROM ${this.#schema}.heed_vector_indexes WHERE name = $1::text`, name)
    })
  }

  async count({ name }: VectorTable): Promise<number> {
    return Number((await this.#queries.all(`SELECT count(*) AS count FROM ${this.#table(name)}`))[0]?.count)
  }

  async put(table: VectorTable, rows: readonly VectorRow[]): Promise<void> {
    const { name, kind, built, lists, metric } = table as StoredTable
    const value = kind === 'exact' ? `decode($2::text, 'base64')` : `$2::text::${this.#extension?.schema}.vector`
    await this.#queries.transaction(async (query) => {
      for (const { id, vector, metadata, tags } of rows) {
        await query(
          `INSERT INTO ${this.#table(name)} (id, vector, metadata, tags) VALUES ($1::text, ${value}, $3::text, $4::text::text[])
           ON CONFLICT (id) DO UPDATE SET vector = excluded.vector, metadata = excluded.metadata, tags = excluded.tags`,
          id, kind === 'exact' ? Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64') : textOf(vector),
          metadata, arrayOf(tags),
        )
      }
      if (kind !== 'ivfflat' || built) return
      const [counted] = await query(`SELECT count(*) AS count FROM ${this.#table(name)}`)
      if (Number(counted?.count) < lists * rowsPerList) return
      await this.#build(query, { name, metric }, 'ivfflat', `lists = ${lists}`)
      await query(`UPDATE ${this.#schema}.heed_vector_indexes SET built = true WHERE name = $1::text`, name)
    })
  }

  async nearest(table: VectorTable, vector: Float32Array, tags: readonly string[], limit: number): Promise<ScoredRow[]> {
    const stored = table as StoredTable
    if (stored.kind === 'exact') return this.#compared(stored, vector, tags, limit)
    if (stored.kind === 'flat' || !stored.built || (await this.#hasFew(stored, tags))) return this.#scan(stored, vector, tags, limit, false)
    const found = await this.#scan(stored, vector, tags, limit, true)
    // A scan of an index ends after a number of rows, whether or not enough of them pass the filter.
    return found.length < limit ? this.#scan(stored, vector, tags, limit, false) : found
  }

  async #hasFew({ name }: StoredTable, tags: readonly string[]): Promise<boolean> {
    const [counted] = await this.#queries.all(
      `SELECT count(*) AS count FROM (SELECT 1 FROM ${this.#table(name)} WHERE tags @> $1::text::text[] LIMIT ${fewRows + 1}) AS rows`,
      arrayOf(tags),
    )
    return Number(counted?.count) <= fewRows
  }

  async #scan(table: StoredTable, vector: Float32Array, tags: readonly string[], limit: number, indexed: boolean): Promise<ScoredRow[]> {
    const { distance, score } = operators[table.metric]
    const schema = this.#extension?.schema
    const far = `vector OPERATOR(${schema}.${distance}) $1::text::${schema}.vector`
    return this.#queries.transaction(async (query) => {
      if (indexed) for (const setting of this.#settings(table, limit)) await query(`SET LOCAL ${setting}`)
      // The sum keeps the server from taking the index, which may leave rows out.
      const rows = await query(
        `SELECT id, metadata, vector::text AS vector, ${far} AS distance FROM ${this.#table(table.name)}
         WHERE tags @> $2::text::text[] ORDER BY ${indexed ? far : `(${far}) + 0, id`} LIMIT $3::int`,
        textOf(vector), arrayOf(tags), limit,
      )
      return rows.map((row) => {
        const value = score(Number(row.distance))
        // A vector of zeros has no direction.
        return { ...rowOf(row), score: Number.isNaN(value) ? 0 : value }
      })
    })
  }

  #settings({ kind, lists }: StoredTable, limit: number): string[] {
    const iterates = this.#extension?.iterates === true
    return kind === 'hnsw'
      ? [`hnsw.ef_search = ${Math.min(1_000, Math.max(40, 2 * limit))}`, ...(iterates ? ['hnsw.iterative_scan = strict_order'] : [])]
      : [
        `ivfflat.probes = ${Math.max(1, Math.ceil(Math.sqrt(lists)))}`,
        ...(iterates ? [`ivfflat.max_probes = ${lists}`, 'ivfflat.iterative_scan = relaxed_order'] : []),
      ]
  }

  /** Compares all rows with these tags here. */
  async #compared(table: StoredTable, vector: Float32Array, tags: readonly string[], limit: number): Promise<ScoredRow[]> {
    const { name, metric } = table
    let best: Array<{ id: string; score: number }> = []
    let read = 0
    for (let after = '', more = true; more;) {
      const rows = await this.#queries.all(
        `SELECT id, encode(vector, 'base64') AS vector FROM ${this.#table(name)}
         WHERE id > $1::text AND tags @> $2::text::text[] ORDER BY id LIMIT ${readAtOnce}`, after, arrayOf(tags),
      )
      read += rows.length
      if (read > mostExact) {
        const why = `Without pgvector, at most ${mostExact} vectors are compared. Run CREATE EXTENSION vector, and create the index again.`
        throw new HeedError('unsupported_option', why, { details: { option: 'vector' } })
      }
      for (const row of rows) best.push({ id: String(row.id), score: similarity(metric, vector, numbersOf(row.vector)) })
      best = best.toSorted((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1)).slice(0, limit)
      after = String(rows.at(-1)?.id ?? after)
      more = rows.length === readAtOnce
    }
    const rows = await this.find(table, best.map(({ id }) => id))
    const found = new Map(rows.map((row) => [row.id, row]))
    return best.flatMap(({ id, score }) => {
      const row = found.get(id)
      return row ? { ...row, score } : []
    })
  }

  async list(table: VectorTable, tags: readonly string[], after: string, limit: number): Promise<Array<Omit<ScoredRow, 'score'>>> {
    const rows = await this.#queries.all(
      `SELECT ${columnsOf(table)} FROM ${this.#table(table.name)}
       WHERE id > $1::text AND tags @> $2::text::text[] ORDER BY id LIMIT $3::int`,
      after, arrayOf(tags), limit,
    )
    return rows.map(rowOf)
  }

  async find(table: VectorTable, ids: readonly string[]): Promise<Array<Omit<ScoredRow, 'score'>>> {
    if (ids.length === 0) return []
    const text = `SELECT ${columnsOf(table)} FROM ${this.#table(table.name)} WHERE id = ANY ($1::text::text[])`
    return (await this.#queries.all(text, arrayOf(ids))).map(rowOf)
  }

  async remove({ name }: VectorTable, ids: readonly string[]): Promise<void> {
    await this.#queries.all(`DELETE FROM ${this.#table(name)} WHERE id = ANY ($1::text::text[])`, arrayOf(ids))
  }

  close(): Promise<void> {
    return this.#queries.close()
  }

  /** The names of indexes have at most 61 characters, and no quotes. */
  #table(name: string): string {
    return `${this.#schema}."v:${name}"`
  }
}

function columnsOf(table: VectorTable): string {
  return `id, metadata, ${(table as StoredTable).kind === 'exact' ? `encode(vector, 'base64')` : 'vector::text'} AS vector`
}

function rowOf(row: Row): Omit<ScoredRow, 'score'> {
  return { id: String(row.id), metadata: String(row.metadata), vector: numbersOf(row.vector) }
}

function textOf(vector: Float32Array): string {
  return `[${vector.join(',')}]`
}

/** The numbers of a `vector` as text, or of their bytes in base64. */
function numbersOf(value: unknown): ArrayLike<number> {
  const text = String(value)
  if (text.startsWith('[')) return JSON.parse(text) as number[]
  const bytes = Uint8Array.from(Buffer.from(text, 'base64'))
  return new Float32Array(bytes.buffer)
}

/** Higher is nearer. */
function similarity(metric: VectorMetric, a: ArrayLike<number>, b: ArrayLike<number>): number {
  let [dot, ofA, ofB, apart] = [0, 0, 0, 0]
  for (let at = 0; at < a.length; at += 1) {
    const [x, y] = [a[at] ?? 0, b[at] ?? 0]
    dot += x * y
    ofA += x * x
    ofB += y * y
    apart += (x - y) ** 2
  }
  if (metric === 'dotproduct') return dot
  return metric === 'euclidean' ? 1 / (1 + Math.sqrt(apart)) : dot / Math.sqrt(ofA * ofB) || 0
}
