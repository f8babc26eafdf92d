import { DatabaseSync } from 'node:sqlite'
import { PreparedStatements, type Statements } from '../../store/sql/statements.ts'
import { useWriteAheadLog } from '../../store/sqlite/write-ahead.ts'
import { FullTextWords, type Words } from './words.ts'
import { indexSchema, indexVersion, placesSchema } from './schema.ts'

/** The database of messages, which is only read here, and the index. */
export interface Databases {
  messages: Statements
  index: Statements
  /** The terms of all passages, in the index. */
  words: Words
  /** The index is in the database of the messages: the transaction that indexes changes removes their records. */
  together: boolean
  /** Runs `work` in one transaction on the index. */
  write<Result>(work: () => Result): Result
  close(): void
}

/** How long a write waits for another process. It blocks the worker thread only. */
const busyTimeoutMs = 5_000

export function openDatabases(path: string): Databases {
  const messages = new DatabaseSync(path, { readOnly: true, timeout: busyTimeoutMs })
  return createDatabases(messages, openIndex(`${path}-recall`), true)
}

/** For a database in memory, which no worker thread can read; the index is in memory too. */
export function besideMessages(messages: DatabaseSync): Databases {
  return createDatabases(messages, openIndex(':memory:'), false)
}

function createDatabases(messages: DatabaseSync, index: DatabaseSync, owned: boolean): Databases {
  const statements = new PreparedStatements(index)
  return {
    messages: new PreparedStatements(messages),
    index: statements,
    words: new FullTextWords(statements),
    together: false,
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
  const index = new DatabaseSync(path, { enableForeignKeyConstraints: false, timeout: busyTimeoutMs })
  // FULL: a commit must be on the disk before the change records that it covers are deleted from the other database.
  useWriteAheadLog(index, busyTimeoutMs)
  index.exec('PRAGMA synchronous = FULL; PRAGMA cache_size = -32000; PRAGMA temp_store = MEMORY')
  index.exec('BEGIN IMMEDIATE')
  const version = Number(index.prepare('PRAGMA user_version').get()?.user_version)
  if (version !== indexVersion) {
    if (version !== 7) createTables(index)
    index.exec(placesSchema)
    index.exec(`PRAGMA user_version = ${indexVersion}`)
  }
  index.exec('COMMIT')
  return index
}

/** Creates the tables, in place of those of another version. */
function createTables(index: DatabaseSync): void {
  const tables = index
    .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND (name IN ('counts', 'words') OR sql LIKE '%STRICT%')`)
    .all()
  for (const { name } of tables.toSorted((a, b) => Number(b.name === 'counts') - Number(a.name === 'counts')))
    index.exec(`DROP TABLE IF EXISTS ${String(name)}`)
  index.exec(indexSchema)
}
