import type { SqlValue } from '../sql/statements.ts'

/** The part of a connection of `pg` that a batch writes to. */
export interface WireConnection {
  readonly stream: { cork?(): void; uncork?(): void; destroy(error?: Error): unknown }
  parse(query: { name: string; text: string; types: number[] }): void
  bind(config: { portal: string; statement: string; values: Array<string | null> }): void
  describe(message: { type: 'P'; name: string }): void
  execute(config: { portal: string; rows: number }): void
  close(message: { type: 'S'; name: string }): void
  sync(): void
}

export interface WireStatement {
  /** Names the prepared statement. Without a name it is parsed each time. */
  name: string
  text: string
  values: readonly SqlValue[]
}

/** The result of one statement. */
export interface WireAnswer {
  rows: Array<Record<string, unknown>>
  changes: number
  /** The command tag, such as `COMMIT`. */
  tag: string
}

/** The names that were parsed on a connection; false where that is not known. */
export type ParsedNames = Map<string, boolean>

interface Field {
  name: string
  dataTypeID: number
}

/** int2, int4, int8, oid, float4, float8, numeric: all numbers of Heed are below 2^53. */
const numeric: ReadonlySet<number> = new Set([20, 21, 23, 26, 700, 701, 1700])
const boolean = 16
const bytes = 17

/**
 * Many statements and one Sync, in one write: the server executes them as one transaction unless they begin one themselves, and skips all
 * that follow one that fails. `client.query` of `pg` accepts it, as it does cursors. It is done when the server is ready again: the answer
 * to the last statement comes before the commit.
 */
export class Batch {
  readonly done: Promise<WireAnswer[]>
  readonly #statements: readonly WireStatement[]
  readonly #parsed: ParsedNames
  readonly #added: string[] = []
  readonly #answers: WireAnswer[] = []
  #fields: readonly Field[] = []
  #rows: Array<Record<string, unknown>> = []
  #settle: { resolve(answers: WireAnswer[]): void; reject(error: unknown): void } = { resolve() {}, reject() {} }

  constructor(statements: readonly WireStatement[], parsed: ParsedNames) {
    this.#statements = statements
    this.#parsed = parsed
    this.done = new Promise((resolve, reject) => (this.#settle = { resolve, reject }))
  }

  submit(connection: WireConnection): Error | undefined {
    try {
      connection.stream.cork?.()
      for (const { name, text, values } of this.#statements) {
        if (name === '') connection.parse({ name, text, types: [] })
        else if (this.#parsed.get(name) !== true) {
          if (this.#parsed.has(name)) connection.close({ type: 'S', name })
          connection.parse({ name, text, types: [] })
          this.#parsed.set(name, true)
          this.#added.push(name)
        }
        connection.bind({ portal: '', statement: name, values: values.map(encode) })
        connection.describe({ type: 'P', name: '' })
        connection.execute({ portal: '', rows: 0 })
      }
      connection.sync()
      return undefined
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error))
    } finally {
      connection.stream.uncork?.()
    }
  }

  handleRowDescription({ fields }: { fields: readonly Field[] }): void {
    this.#fields = fields
  }

  handleDataRow({ fields: values }: { fields: ReadonlyArray<string | null> }): void {
    const row: Record<string, unknown> = {}
    for (const [index, { name, dataTypeID }] of this.#fields.entries()) row[name] = decode(values[index] ?? null, dataTypeID)
    this.#rows.push(row)
  }

  handleCommandComplete({ text }: { text: string }): void {
    this.#answered(text)
  }

  handleEmptyQuery(): void {
    this.#answered('')
  }

  #answered(tag: string): void {
    const changes = /^(?:INSERT \d+|UPDATE|DELETE|MERGE) (\d+)$/.exec(tag)?.[1]
    this.#answers.push({ rows: this.#rows, changes: Number(changes ?? 0), tag })
    this.#rows = []
    this.#fields = []
  }

  /** One of the server's, or of the connection. Those of the new names that come before the failed statement are parsed, the others not. */
  handleError(error: unknown): void {
    for (const name of this.#added) this.#parsed.set(name, false)
    this.#settle.reject(error)
  }

  handleReadyForQuery(): void {
    this.#settle.resolve(this.#answers)
  }

  handlePortalSuspended(): void {}
  handleCopyInResponse(): void {}
  handleCopyData(): void {}
}

function encode(value: SqlValue): string | null {
  if (value === null || typeof value === 'string') return value
  return value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : String(value)
}

function decode(value: string | null, type: number): unknown {
  if (value === null) return null
  if (numeric.has(type)) return Number(value)
  if (type === bytes) return new Uint8Array(Buffer.from(value.slice(2), 'hex'))
  return type === boolean ? Number(value === 't') : value
}

/** A list as the text of a PostgreSQL array. */
export function arrayOf(values: ReadonlyArray<string | bigint>): string {
  return `{${values.map((value) => `"${String(value).replaceAll(/["\\]/g, '\\$&')}"`).join(',')}}`
}

/** A statement in PostgreSQL's dialect. */
export interface PlacedStatement {
  text: string
  values: readonly SqlValue[]
}

/** Statements of parts that do not depend on each other, in the order of each part: the same statements of several parts are neighbors. */
export function sideBySide(parts: ReadonlyArray<readonly PlacedStatement[]>): PlacedStatement[] {
  const [only] = parts
  if (only && parts.length === 1) return [...only]
  const all: PlacedStatement[] = []
  const left = parts.map((part) => ({ part, at: 0 })).filter(({ part }) => part.length > 0)
  for (let open = left; open.length > 0; open = open.filter(({ part, at }) => at < part.length)) {
    const text = open[0]?.part[open[0].at]?.text
    for (const one of open) {
      for (let next = one.part[one.at]; next?.text === text && next; next = one.part[++one.at]) all.push(next)
    }
  }
  return all
}

/** Inserts of one row of plain values, into tables whose rows may be inserted in any order before other statements. */
const plainInsert = /^(\s*INSERT INTO \S+\.heed_(?:mailbox|messages) \([^()]+\)\s+VALUES )(\([$\d, ]+\))\s*$/

/** The most rows of one statement. Fewer are a power of two: each number of rows is a statement of its own to prepare. */
const maxRows = 32

/**
 * The same writes in fewer statements: neighboring inserts into one table are one statement with several rows. Many signals for one thread
 * then cost the server less than half.
 */
export function gathered(statements: readonly PlacedStatement[]): PlacedStatement[] {
  const groups: Array<{ text: string; rows: Array<readonly SqlValue[]> }> = []
  const open = new Map<string, Array<readonly SqlValue[]>>()
  for (const { text, values } of statements) {
    const same = open.get(text)
    if (same) {
      same.push(values)
      continue
    }
    const rows = [values]
    groups.push({ text, rows })
    if (plainInsert.test(text)) open.set(text, rows)
    // Other statements may read what was inserted, or be needed by what follows.
    else open.clear()
  }
  return groups.flatMap(({ text, rows }) => (rows.length === 1 ? { text, values: rows[0] ?? [] } : [...inParts(text, rows)]))
}

function* inParts(text: string, rows: ReadonlyArray<readonly SqlValue[]>): Generator<PlacedStatement> {
  for (let from = 0; from < rows.length;) {
    const count = Math.min(maxRows, 2 ** Math.floor(Math.log2(rows.length - from)))
    const part = rows.slice(from, from + count)
    yield { text: severalRows(text, count, part[0]?.length ?? 0), values: part.flat() }
    from += count
  }
}

const texts = new Map<string, string>()

function severalRows(text: string, count: number, columns: number): string {
  const name = `${count} ${text}`
  let known = texts.get(name)
  if (known === undefined) {
    const [, into = '', row = ''] = plainInsert.exec(text) ?? []
    const rowsOf = (nth: number) => row.replaceAll(/\$(\d+)/g, (_, number: string) => `$${Number(number) + nth * columns}`)
    texts.set(name, (known = `${into}${Array.from({ length: count }, (_, nth) => rowsOf(nth)).join(', ')}`))
  }
  return known
}
