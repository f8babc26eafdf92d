import { copyFileSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@libsql/client'
import { LibSQLStore } from '../../src/store/sqlite/store.ts'

// The folder is below that of the run, which removes it.
const folder = mkdtempSync(join(tmpdir(), 'heed-empty-'))
const [ofFile, ofClient] = ['file.db', 'client.db'].map((name) => join(folder, name)) as [string, string]

await create(new LibSQLStore({ url: `file:${ofFile}` }))
const client = createClient({ url: `file:${ofClient}` })
// As the databases of a server.
await client.execute('PRAGMA journal_mode = WAL')
await create(new LibSQLStore({ url: `file:${ofClient}`, client }))

async function create(store: LibSQLStore): Promise<void> {
  await store.open()
  await store.close()
}

/** Creates a database with the tables and no rows, as a store on a file creates it. A copy takes a fraction of the time of the schema. */
export function copyEmptyFile(path: string): string {
  copyFileSync(ofFile, path)
  return path
}

/** The same, as a store creates it through a client. */
export function copyEmptyOfClient(path: string): string {
  copyFileSync(ofClient, path)
  return path
}
