import type { DatabaseSync } from 'node:sqlite'
import { HeedError } from '../../base/errors.ts'
import { migrations, versionOf } from './migrations.ts'

/** Tables whose rows are of this moment and not of that of the backup. */
const ofTheMoment: ReadonlySet<string> = new Set(['heed_processes'])

/**
 * Puts everything back as it was in a backup, in one transaction: other connections go on and see the one or the other. Runs of the
 * present are fenced off; runs that were active in the backup are taken up by whoever looks for them.
 */
export function restore(database: DatabaseSync, from: string): void {
  database.prepare('ATTACH ? AS backup').run(from)
  const version = Number(database.prepare('PRAGMA backup.user_version').get()?.user_version)
  if (version !== versionOf(database)) {
    throw new HeedError('store_failed', `The backup ${from} has schema version ${version}, and this database ${migrations.length}. Open the backup once with this Heed, then restore it.`)
  }
  const tables = database.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'heed\\_%' ESCAPE '\\'`).all().map(({ name }) => String(name))
  const triggers = database.prepare(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'heed\\_%' ESCAPE '\\'`).all()
  database.exec('BEGIN IMMEDIATE')
  try {
    const { epoch } = database.prepare('SELECT coalesce(max(epoch), 0) AS epoch FROM heed_threads').get() ?? {}
    const { key } = database.prepare(`SELECT coalesce(max(seq), 0) AS key FROM sqlite_sequence WHERE name = 'heed_threads'`).get() ?? {}
    const recalled = database.prepare('SELECT 1 AS found FROM heed_recall').get() !== undefined
    for (const { name } of triggers) database.exec(`DROP TRIGGER ${String(name)}`)
    for (const table of tables.filter((name) => !ofTheMoment.has(name))) database.exec(`DELETE FROM main.${table}; INSERT INTO main.${table} SELECT * FROM backup.${table}`)
    for (const { sql } of triggers) database.exec(String(sql))
    // Epochs and keys only grow: no lease and no cursor of the present may fit.
    database.prepare(`UPDATE heed_threads SET epoch = epoch + ? + 1, owner = NULL, due_at = iif(status = 'running', 0, due_at)`).run(Number(epoch))
    database.prepare(`UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'heed_threads'`).run(Number(key))
    // What was indexed of the present is not what is there now. The backup may be from before anybody wanted to know of changes.
    database.exec('UPDATE heed_recall SET generation = hex(randomblob(8))')
    if (recalled) database.exec('INSERT INTO heed_recall (one, generation) VALUES (1, hex(randomblob(8))) ON CONFLICT DO NOTHING')
    database.exec('COMMIT')
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}
