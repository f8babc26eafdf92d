import { onTestFinished } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import { PostgresStore, type PostgresStoreOptions } from '../../src/store/postgres/index.ts'
import { connectClient } from '../../src/store/postgres/sessions.ts'
import { newSchema, sharedServer } from './server.ts'

/** Schemas of tests that are over. Emptying one takes a hundredth of the time of making one. */
const free: string[] = []

interface QueryClient {
  query(text: string): Promise<{ rows: Array<Record<string, unknown>> }>
  end(): Promise<void>
}

/** Executes statements as the user who may do everything. */
export async function inDatabase<Result>(act: (query: QueryClient['query']) => Promise<Result>): Promise<Result> {
  const client = (await connectClient({ connectionString: await sharedServer() })) as unknown as QueryClient
  try {
    return await act((text) => client.query(text))
  } finally {
    await client.end()
  }
}

async function empty(schema: string): Promise<void> {
  await inDatabase(async (query) => {
    const { rows } = await query(`SELECT tablename AS name FROM pg_tables WHERE schemaname = '${schema}' AND tablename <> 'heed_schema'`)
    const tables = rows.map(({ name }) => `DELETE FROM "${schema}"."${String(name)}";`).join('\n')
    await query(`SET session_replication_role = replica; ${tables}
      INSERT INTO "${schema}".heed_epochs VALUES (1, 0); INSERT INTO "${schema}".heed_usage VALUES ('', 0, 0)`)
  })
}

/** A database of its own for a test: stores that open it are closed after the test, and it is emptied for the next one. */
export async function newPlace(): Promise<{ schema: string; open(options?: Partial<PostgresStoreOptions>): PostgresStore }> {
  const connectionString = await sharedServer()
  const schema = free.pop() ?? newSchema()
  const opened: PostgresStore[] = []
  onTestFinished(async () => {
    await Promise.all(opened.map((store) => store.close()))
    await empty(schema).then(() => free.push(schema), () => {})
  })
  return {
    schema,
    open(options = {}) {
      const store = new PostgresStore({ connectionString, schemaName: schema, max: 4, ...options })
      opened.push(store)
      return store
    },
  }
}

/** A store that asks for its database when it is first used. */
export function lazily(options: { clock?: Clock } = {}): { store(): PostgresStore } {
  const schema = free.pop() ?? newSchema()
  const opened: PostgresStore[] = []
  onTestFinished(async () => {
    await Promise.all(opened.map((store) => store.close()))
    await empty(schema).then(() => free.push(schema), () => {})
  })
  return {
    store() {
      const store = new PostgresStore({ connectionString: sharedURL(), schemaName: schema, max: 4, ...options })
      opened.push(store)
      return store
    },
  }
}

let url: string | undefined

/** The address of the shared server, once `await sharedServer()` was called. */
export function sharedURL(): string {
  if (url === undefined) throw new Error('Call useSharedServer() before the tests.')
  return url
}

export async function useSharedServer(): Promise<void> {
  url = await sharedServer()
}
