import { HeedError } from '../../base/errors.ts'
import type { SqlValue } from '../sql/statements.ts'

/** As much of a client of `@libsql/client` as a store uses. Written out: published types need no package that may not be there. */
export interface LibSQLClient {
  transaction(mode: 'write' | 'read' | 'deferred'): Promise<LibSQLTransaction>
  close(): void
}

export interface LibSQLTransaction {
  execute(statement: { sql: string; args: SqlValue[] }): Promise<LibSQLResult>
  /** All in one round trip. Without it each is sent by itself. */
  batch?(statements: Array<{ sql: string; args: SqlValue[] }>): Promise<LibSQLResult[]>
  executeMultiple(sql: string): Promise<void>
  commit(): Promise<void>
  close(): void
}

export interface LibSQLResult {
  columns: string[]
  rows: ReadonlyArray<ArrayLike<unknown>>
  rowsAffected: number
  lastInsertRowid?: bigint | undefined
}

/** A client for a database elsewhere. The package is loaded when it is first needed. */
export async function remoteClient(url: string, authToken: string | undefined): Promise<LibSQLClient> {
  const name = '@libsql/client'
  let createClient: (config: { url: string; authToken?: string }) => LibSQLClient
  try {
    ;({ createClient } = (await import(name)) as { createClient: typeof createClient })
  } catch (cause) {
    throw new HeedError('provider_not_installed', `${url.slice(0, url.indexOf(':'))}: databases need the package ${name}: npm install ${name}.`, { cause, details: { package: name } })
  }
  try {
    return createClient({ url, ...(authToken !== undefined && { authToken }) })
  } catch (cause) {
    throw new HeedError('invalid_argument', `"${url}" names no database: ${cause instanceof Error ? cause.message : String(cause)}.`, { cause, details: { field: 'url' } })
  }
}
