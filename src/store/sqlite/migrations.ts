import type { DatabaseSync } from 'node:sqlite'
import { HeedError } from '../../base/errors.ts'
import { schema } from './schema.ts'
import { usageSchema, workflowUsageSchema } from '../sql/usage.ts'
import { editSchema, promptBlockSchema } from '../sql/edits/schema.ts'
import { givenScoreSchema, scoreOriginSchema, scoreSchema } from '../sql/scores/schema.ts'
import { headUseSchema, stepSchema } from '../sql/steps/schema.ts'
import { workflowSchema } from '../sql/workflows/schema.ts'
import { replyNumbersSchema, watchOrderSchema, watchRunSchema, watchSchema } from '../sql/watches/schema.ts'

/**
 * The schema as steps, forward only. Version n is the state after the first n steps. `user_version` of a file, or the table
 * `heed_version` of a server's database, holds its version. A released step never changes; every change of the schema is a new step.
 */
export const migrations: readonly string[] = [
  schema, watchSchema, watchOrderSchema, usageSchema, replyNumbersSchema, watchRunSchema, stepSchema, headUseSchema,
  workflowSchema, scoreSchema, editSchema, workflowUsageSchema, scoreOriginSchema,
  promptBlockSchema, givenScoreSchema,
]

/** 'heed', in the header field where SQLite keeps which program a file belongs to. */
const applicationId = 0x68656564
/** 'Heed': files of development versions before 0.1.0, which counted 26 versions of a schema that is no longer known. */
const unreleasedId = 0x48656564

/** Refuses a database of a newer Heed, of a development version, or of another program, before it is changed. */
export function refuseUnknown(database: DatabaseSync, name: string, steps: readonly string[] = migrations): void {
  const version = versionOf(database)
  const writer = pragma(database, 'application_id')
  if (writer === unreleasedId) throw unreleased(name, version)
  if (writer !== applicationId && (writer !== 0 || version !== 0)) {
    throw new HeedError('store_failed', `The database ${name} belongs to another program. Name another file.`)
  }
  if (version > steps.length) throw newer(name, version, steps.length)
}

/** Whether a Heed wrote it. */
export function isOurs(database: DatabaseSync): boolean {
  return pragma(database, 'application_id') === applicationId
}

let created = 0
let whole: string | undefined

/**
 * The steps that a database of this version lacks. From the second new database of a process on it is one step with the same result, in a
 * third of the time: tests and programs with a database for each tenant create many.
 */
export function stepsFrom(version: number, steps: readonly string[] = migrations): readonly string[] {
  if (version > 0 || steps !== migrations) return steps.slice(version)
  created += 1
  return created === 1 ? steps : [(whole ??= wholeSchema(steps))]
}

/** The tables, rows, indexes and triggers that the steps create. */
export function wholeSchema(steps: readonly string[]): string {
  // Not imported with this module: an older Node lacks it, and has to reach the check of its version (R12.3).
  const { DatabaseSync: Database } = process.getBuiltinModule('node:sqlite')
  const database = new Database(':memory:')
  try {
    for (const step of steps) database.exec(step)
    // SQLite creates its own tables with the first that needs them.
    const sql = `SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid`
    const objects = database.prepare(sql).all() as Array<{ type: string; name: string; sql: string }>
    const tables = objects.filter(({ type }) => type === 'table')
    const rows = tables.flatMap(({ name }) => database.prepare(`SELECT * FROM ${name}`).all().map((row) => (
      `INSERT INTO ${name} (${Object.keys(row).join(', ')}) VALUES (${Object.values(row).map(literal).join(', ')})`
    )))
    const others = objects.filter(({ type }) => type !== 'table')
    return [...tables.map(({ sql }) => sql), ...rows, ...others.map(({ sql }) => sql)].join(';\n')
  } finally {
    database.close()
  }
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value ?? 'NULL')
}

/** Runs the missing steps in one transaction, which holds the write lock. Returns whether there were any. */
export function migrate(database: DatabaseSync, name: string, steps: readonly string[] = migrations): boolean {
  if (versionOf(database) === steps.length) return false
  database.exec('BEGIN IMMEDIATE')
  try {
    // Another process may have migrated it before this one got the lock.
    refuseUnknown(database, name, steps)
    for (const step of stepsFrom(versionOf(database), steps)) database.exec(step)
    database.exec(`PRAGMA user_version = ${steps.length}; PRAGMA application_id = ${applicationId}; COMMIT`)
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
  return true
}

export function versionOf(database: DatabaseSync): number {
  return pragma(database, 'user_version')
}

export function newer(name: string, version: number, known: number): HeedError {
  return new HeedError(
    'store_newer',
    `The database ${name} has schema version ${version}; this Heed knows ${known}. Update Heed, or name another database.`,
    {
      details: { version, known },
    },
  )
}

export function unreleased(name: string, version: number): HeedError {
  const why = `The database ${name} was written by a development version of Heed before 0.1.0 (schema ${version}), which no release reads.`
  return new HeedError('store_failed', `${why} Name another database, or delete this one.`, { details: { unreleased: version } })
}

function pragma(database: DatabaseSync, name: 'user_version' | 'application_id'): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name])
}
