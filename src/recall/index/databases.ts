import { DatabaseSync } from 'node:sqlite'
import { Statements } from '../../store/sql/statements.ts'
import { indexSchema, indexVersion } from './schema.ts'

/** The messages, which are only read here, and the index of them. */
export interface Databases {
  messages: Statements
  index: Statements
  /** One transaction on the index. */
  write<Result>(work: () => Result): Result
  close(): void
}

/** For how long the index waits for another process that writes to it. Nobody else waits for this thread. */
const patience = 5_000

export function openDatabases(path: string): Databases {
  const messages = new DatabaseSync(path, { readOnly: true, timeout: patience })
  return opened(messages, openIndex(`${path}-recall`), true)
}

/** For a database in memory, which only its own thread can read. */
export function besideMessages(messages: DatabaseSync): Databases {
  return opened(messages, openIndex(':memory:'), false)
}

function opened(messages: DatabaseSync, index: DatabaseSync, owned: boolean): Databases {
  return {
    messages: new Statements(messages),
    index: new Statements(index),
    write(work) {
      index.exec('BEGIN IMMEDIATE')
      try {
        const result = work()
        index.exec('COMMIT')
        return result
      } catch (error) {
        if (index.isTransaction) index.exec('ROLLBACK')
        throw error
      }
    },
    close() {
      if (owned) messages.close()
      index.close()
    },
  }
}

function openIndex(path: string): DatabaseSync {
  const index = new DatabaseSync(path, { enableForeignKeyConstraints: false, timeout: patience })
  // A commit here is on the disk before the changes that it covers are forgotten there.
  index.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -32000; PRAGMA temp_store = MEMORY')
  index.exec('BEGIN IMMEDIATE')
  if (Number(index.prepare('PRAGMA user_version').get()?.user_version) !== indexVersion) {
    const tables = index.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN ('counts', 'words') OR type = 'table' AND sql LIKE '%STRICT%'`).all()
    for (const { name } of tables.toSorted((a, b) => Number(b.name === 'counts') - Number(a.name === 'counts'))) index.exec(`DROP TABLE IF EXISTS ${String(name)}`)
    index.exec(indexSchema)
    index.exec(`PRAGMA user_version = ${indexVersion}`)
  }
  index.exec('COMMIT')
  return index
}
