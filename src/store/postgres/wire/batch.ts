import type { SqlValue } from '../../sql/statements.ts'
import { Messages } from './messages.ts'

/** The part of a connection of `pg` that a batch uses. */
export interface WireConnection {
  readonly stream: { readonly writable?: boolean; write(bytes: Uint8Array): unknown; destroy(error?: Error): unknown }
  on?(event: 'parameterDescription', listener: (message: { dataTypeIDs: readonly number[] }) => void): unknown
  removeListener?(event: 'parameterDescription', listener: (message: { dataTypeIDs: readonly number[] }) => void): unknown
}

export interface WireStatement {
  /** Names the prepared statement. Without a name it is parsed each time. */
  name: string
  text: string
  values: readonly SqlValue[]
  /** The first column of its rows is a number that is no part of them. */
  numbered?: boolean
}

/** The result of one statement. */
export interface WireAnswer {
  rows: Array<Record<string, unknown>>
  changes: number
  /** The command tag, such as `COMMIT`. */
  tag: string
  /** The numbers of the rows. */
  numbers: number[]
}

interface Field {
  name: string
  dataTypeID: number
}

/** The columns of the statements that a connection has prepared, by name; undefined where it is not known whether it has. */
export type Prepared = Map<string, readonly Field[] | undefined>

/** The types of the values of statements, by text. */
export type StatementTypes = Map<string, readonly number[]>

/** The stores have fewer texts; a limit holds where one depends on the number of its values. */
const mostTypes = 2_000

/** int2, int4, int8, oid, float4, float8, numeric: all numbers of Heed are below 2^53. */
const numeric: ReadonlySet<number> = new Set([20, 21, 23, 26, 700, 701, 1700])
const boolean = 16
const bytes = 17

/**
 * Many statements and one Sync, in one write: the server executes them as one transaction unless they begin one themselves, and skips all
 * that follow one that fails. `client.query` of `pg` accepts it, as it does cursors. It is done when the server is ready again: the answer
 * to the last statement comes before the commit. A prepared statement is described once for each connection: each description has all
 * columns, which costs more than most statements do.
 */
export class Batch {
  readonly done: Promise<WireAnswer[]>
  readonly #statements: readonly WireStatement[]
  readonly #prepared: Prepared
  readonly #types: StatementTypes | undefined
  /** The columns of the statements that this batch prepares, by their names. */
  readonly #new = new Map<string, readonly Field[]>()
  readonly #answers: WireAnswer[] = []
  #fields: readonly Field[] | undefined
  #rows: Array<Record<string, unknown>> = []
  #numbers: number[] = []
  #settle: { resolve(answers: WireAnswer[]): void; reject(error: unknown): void } = { resolve() {}, reject() {} }
  #forget = () => {}

  /** `types`: where the types are kept that the server tells. Drivers need not pass them on. */
  constructor(statements: readonly WireStatement[], prepared: Prepared, types?: StatementTypes) {
    this.#statements = statements
    this.#types = types
    this.#prepared = prepared
    this.done = new Promise((resolve, reject) => (this.#settle = { resolve, reject }))
  }

  submit(connection: WireConnection): Error | undefined {
    try {
      const messages = new Messages()
      for (const { name, text, values } of this.#statements) {
        if (name === '' || (!this.#new.has(name) && !this.#prepared.get(name))) {
          if (this.#prepared.has(name)) messages.close(name)
          messages.parse(name, text)
          messages.describe(name)
          if (name !== '') {
            // Until the server has answered.
            this.#prepared.set(name, undefined)
            this.#new.set(name, [])
          }
        }
        messages.bind(name, values.map(encode))
        messages.execute()
      }
      messages.sync()
      if (this.#types) this.#learn(connection, this.#types)
      if (connection.stream.writable !== false) connection.stream.write(messages.taken())
      return undefined
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error))
    }
  }

  #learn(connection: WireConnection, types: StatementTypes): void {
    const learn = ({ dataTypeIDs }: { dataTypeIDs: readonly number[] }) => {
      const text = this.#statements[this.#answers.length]?.text
      if (text !== undefined && types.size < mostTypes) types.set(text, dataTypeIDs)
    }
    connection.on?.('parameterDescription', learn)
    this.#forget = () => connection.removeListener?.('parameterDescription', learn)
  }

  handleRowDescription({ fields }: { fields: readonly Field[] }): void {
    this.#fields = fields
    const name = this.#statements[this.#answers.length]?.name ?? ''
    if (name !== '') this.#new.set(name, fields)
  }

  handleDataRow({ fields: values }: { fields: ReadonlyArray<string | null> }): void {
    const statement = this.#statements[this.#answers.length]
    const name = statement?.name ?? ''
    const fields = (this.#fields ??= this.#prepared.get(name) ?? this.#new.get(name) ?? [])
    const row: Record<string, unknown> = {}
    const from = statement?.numbered ? 1 : 0
    if (from === 1) this.#numbers.push(Number(values[0]))
    for (let at = from; at < fields.length; at += 1) {
      const { name: column, dataTypeID } = fields[at] as Field
      row[column] = decode(values[at] ?? null, dataTypeID)
    }
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
    this.#answers.push({ rows: this.#rows, changes: Number(changes ?? 0), tag, numbers: this.#numbers })
    this.#rows = []
    this.#numbers = []
    this.#fields = undefined
  }

  /**
   * One of the server's, or of the connection. Those of the new names that come before the failed statement are prepared, the others not:
   * none of them counts as prepared.
   */
  handleError(error: unknown): void {
    this.#forget()
    this.#settle.reject(error)
  }

  handleReadyForQuery(): void {
    this.#forget()
    for (const [name, fields] of this.#new) this.#prepared.set(name, fields)
    this.#settle.resolve(this.#answers)
  }

  handlePortalSuspended(): void {}
  handleCopyInResponse(): void {}
  handleCopyData(): void {}
}

/** A value as the server reads it. */
export function encode(value: SqlValue): string | null {
  if (value === null || typeof value === 'string') return value
  return value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : String(value)
}

function decode(value: string | null, type: number): unknown {
  if (value === null) return null
  if (numeric.has(type)) return Number(value)
  if (type === bytes) return new Uint8Array(Buffer.from(value.slice(2), 'hex'))
  return type === boolean ? Number(value === 't') : value
}
