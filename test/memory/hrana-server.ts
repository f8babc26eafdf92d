import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'

type Value = { type: 'null' } | { type: 'integer' | 'text'; value: string } | { type: 'float'; value: number } | { type: 'blob'; base64: string }

interface Statement {
  sql?: string
  sql_id?: number
  args?: Value[]
}

type Condition = { type: 'ok' | 'error'; step: number } | { type: 'not'; cond: Condition } | { type: 'and' | 'or'; conds: Condition[] } | { type: 'is_autocommit' }

type Request =
  | { type: 'execute'; stmt: Statement }
  | { type: 'batch'; batch: { steps: Array<{ condition?: Condition | null; stmt: Statement }> } }
  | { type: 'sequence'; sql?: string; sql_id?: number }
  | { type: 'store_sql'; sql_id: number; sql: string }
  | { type: 'close_sql'; sql_id: number }
  | { type: 'get_autocommit' | 'close' }

type Outcome = { result: unknown } | { error: { message: string; code: string } }

const codes: Readonly<Record<number, string>> = { 5: 'SQLITE_BUSY', 6: 'SQLITE_LOCKED', 11: 'SQLITE_CORRUPT', 19: 'SQLITE_CONSTRAINT' }

/** The connections of a server. A new connection reads the whole schema, so that one is used again when its stream has ended. */
class Connections {
  readonly #path: string
  readonly #all: DatabaseSync[] = []
  readonly #free: DatabaseSync[] = []

  constructor(path: string) {
    this.#path = path
  }

  take(): DatabaseSync {
    const free = this.#free.pop()
    if (free) return free
    const database = new DatabaseSync(this.#path, { enableForeignKeyConstraints: false, timeout: 0 })
    this.#all.push(database)
    return database
  }

  release(database: DatabaseSync): void {
    if (database.isTransaction) database.exec('ROLLBACK')
    this.#free.push(database)
  }

  close(): void {
    for (const database of this.#all) database.close()
  }
}

/** What a client comes back to by its baton: a connection and texts of its own. */
class Stream {
  readonly #connections: Connections
  readonly #database: DatabaseSync
  readonly #texts = new Map<number, string>()

  constructor(connections: Connections) {
    this.#connections = connections
    this.#database = connections.take()
  }

  close(): void {
    this.#connections.release(this.#database)
  }

  answer(request: Request): Outcome {
    return attempt(() => ({ type: request.type, ...this.#do(request) }))
  }

  #do(request: Request): object {
    switch (request.type) {
      case 'execute':
        return { result: this.#execute(request.stmt) }
      case 'batch':
        return { result: this.#batch(request.batch.steps) }
      case 'sequence':
        this.#database.exec(this.#text(request))
        return {}
      case 'store_sql':
        this.#texts.set(request.sql_id, request.sql)
        return {}
      case 'close_sql':
        this.#texts.delete(request.sql_id)
        return {}
      case 'get_autocommit':
        return { is_autocommit: !this.#database.isTransaction }
      case 'close':
        return {}
    }
  }

  #batch(steps: ReadonlyArray<{ condition?: Condition | null; stmt: Statement }>): object {
    const done: Array<Outcome | undefined> = []
    for (const { condition, stmt } of steps) done.push(!condition || this.#holds(condition, done) ? attempt(() => this.#execute(stmt)) : undefined)
    return {
      step_results: done.map((step) => (step && 'result' in step ? step.result : null)),
      step_errors: done.map((step) => (step && 'error' in step ? step.error : null)),
    }
  }

  #holds(condition: Condition, done: ReadonlyArray<Outcome | undefined>): boolean {
    switch (condition.type) {
      case 'ok':
        return 'result' in (done[condition.step] ?? {})
      case 'error':
        return 'error' in (done[condition.step] ?? {})
      case 'not':
        return !this.#holds(condition.cond, done)
      case 'and':
        return condition.conds.every((one) => this.#holds(one, done))
      case 'or':
        return condition.conds.some((one) => this.#holds(one, done))
      case 'is_autocommit':
        return !this.#database.isTransaction
    }
  }

  #execute(stmt: Statement): object {
    const statement = this.#database.prepare(this.#text(stmt))
    const values = (stmt.args ?? []).map(given)
    const columns = statement.columns()
    if (columns.length === 0) {
      const { changes, lastInsertRowid } = statement.run(...values)
      return { cols: [], rows: [], affected_row_count: Number(changes), last_insert_rowid: String(lastInsertRowid) }
    }
    statement.setReturnArrays(true)
    statement.setReadBigInts(true)
    const rows = statement.all(...values) as unknown as unknown[][]
    return { cols: columns.map(({ name }) => ({ name })), rows: rows.map((row) => row.map(told)), affected_row_count: 0, last_insert_rowid: null }
  }

  #text({ sql, sql_id: id }: { sql?: string; sql_id?: number }): string {
    const text = sql ?? (id === undefined ? undefined : this.#texts.get(id))
    if (text === undefined) throw new Error(`There is no SQL ${id}.`)
    return text
  }
}

/** A database server that speaks Hrana 2 over HTTP, or over TLS with a certificate, on a file. It wants a token, and counts what it is asked. */
export async function hranaServer(path: string, token: string, secure?: { key: string; cert: string }): Promise<{ url: string; asked(): number; close(): Promise<void> }> {
  const connections = new Connections(path)
  const streams = new Map<string, Stream>()
  let last = 0
  let asked = 0
  const listen = (request: IncomingMessage, response: ServerResponse) => {
    // Newer versions of the protocol are looked for first; a client then falls back to this one.
    if (request.method !== 'POST' || request.url !== '/v2/pipeline') return void response.writeHead(404).end()
    if (request.headers.authorization !== `Bearer ${token}`) return void response.writeHead(401).end('no')
    void pipeline(request, response)
  }
  const server = secure ? createSecureServer(secure, listen) : createServer(listen)
  async function pipeline(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { baton, requests } = await bodyOf(request)
    asked++
    const stream = baton === null ? new Stream(connections) : streams.get(baton)
    if (!stream) return void response.writeHead(400).end('This stream is gone.')
    if (baton !== null) streams.delete(baton)
    const results = requests.map((one) => {
      const answer = stream.answer(one)
      return 'error' in answer ? { type: 'error', error: answer.error } : { type: 'ok', response: answer.result }
    })
    const over = requests.some(({ type }) => type === 'close')
    const next = over ? null : `baton-${++last}`
    if (next === null) stream.close()
    else streams.set(next, stream)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ baton: next, base_url: null, results }))
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `${secure ? 'https://localhost' : 'http://127.0.0.1'}:${(server.address() as AddressInfo).port}`,
    asked: () => asked,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      connections.close()
    },
  }
}

async function bodyOf(request: IncomingMessage): Promise<{ baton: string | null; requests: Request[] }> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const { baton = null, requests } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { baton?: string | null; requests: Request[] }
  return { baton, requests }
}

function attempt(act: () => unknown): Outcome {
  try {
    return { result: act() }
  } catch (error) {
    const { message, errcode } = error as Error & { errcode?: number }
    return { error: { message, code: codes[(errcode ?? 1) & 0xff] ?? 'SQLITE_ERROR' } }
  }
}

function given(value: Value): SQLInputValue {
  if (value.type === 'null') return null
  if (value.type === 'blob') return Buffer.from(value.base64, 'base64')
  return value.type === 'integer' ? BigInt(value.value) : value.value
}

function told(value: unknown): Value {
  if (value === null || value === undefined) return { type: 'null' }
  if (typeof value === 'bigint') return { type: 'integer', value: String(value) }
  if (typeof value === 'number') return { type: 'float', value }
  if (typeof value === 'string') return { type: 'text', value }
  return { type: 'blob', base64: Buffer.from(value as Uint8Array).toString('base64') }
}
