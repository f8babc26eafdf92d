import type { DatabaseSync } from 'node:sqlite'
import { HeedError } from '../../base/errors.ts'

/**
 * The schema of a file of vectors as steps, forward only. Version n is the state after the first n of them, and `user_version` of the
 * file says which it has.
 */
const steps: readonly string[] = [
  // Files of before versions were counted have these already.
  `CREATE TABLE IF NOT EXISTS indexes (key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL, metric TEXT NOT NULL) STRICT;
   CREATE TABLE IF NOT EXISTS vectors (
     place INTEGER NOT NULL, id TEXT NOT NULL, vector BLOB NOT NULL, metadata TEXT NOT NULL, PRIMARY KEY (place, id)
   ) STRICT;`,
  // The key of an index that is gone is never that of another: what somebody wrote for the one could be found in the other.
  `ALTER TABLE indexes RENAME TO former;
   CREATE TABLE indexes (key INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL, metric TEXT NOT NULL) STRICT;
   INSERT INTO indexes SELECT key, name, dimension, metric FROM former ORDER BY key;
   DROP TABLE former;
   DELETE FROM vectors WHERE place NOT IN (SELECT key FROM indexes);`,
]

/** Brings a file to the newest version: all steps or none, whoever else opens it. */
export function prepareVectors(database: DatabaseSync): void {
  if (versionOf(database) === steps.length) return
  database.exec('BEGIN IMMEDIATE')
  try {
    // Another process may have been faster.
    const version = versionOf(database)
    if (version > steps.length) {
      throw new HeedError('store_newer', `The file of vectors has version ${version}; this Heed knows ${steps.length}. Update Heed, or name another file.`, { details: { version, known: steps.length } })
    }
    for (const step of steps.slice(version)) database.exec(step)
    database.exec(`PRAGMA user_version = ${steps.length}; COMMIT`)
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

function versionOf(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.user_version)
}
