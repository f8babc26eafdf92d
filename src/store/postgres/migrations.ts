import { sleep, systemClock } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'
import type { WireStatement } from './batch.ts'
import type { Dialect } from './dialect.ts'
import { sqlState } from './errors.ts'
import { steps } from './schema.ts'
import type { Session } from './sessions.ts'

/** The advisory lock of migrations: 'heed'. With the hash of the schema as its second number. */
const lockClass = 0x68656564

const plain = (text: string, ...values: string[]): WireStatement => ({ name: '', text, values })

interface Version {
  version: number
  /** The oldest version of Heed's schema whose code may use this one. */
  codeFrom: number
}

/**
 * Brings the tables to the version that this Heed knows, under a lock that is asked for and not waited for: a statement that waits keeps a
 * snapshot, and an index that is built meanwhile would wait for it. A newer version is used if it says that this code may.
 */
export async function migrate(session: Session, dialect: Dialect, name: string, known: readonly string[] = steps): Promise<void> {
  const found = await versionOf(session, dialect)
  if (found) refuseNewer(found, name, known.length)
  if (found && found.version >= known.length) return
  await locked(session, dialect, async () => {
    const before = await versionOf(session, dialect)
    if (before) refuseNewer(before, name, known.length)
    if (before && before.version >= known.length) return
    await session.batch([plain(`CREATE SCHEMA IF NOT EXISTS ${dialect.schema}`)]).catch(async (error: unknown) => {
      // A role that may not create schemas may still own this one.
      const [answer] = await session.batch([plain('SELECT to_regnamespace($1) IS NOT NULL AS found', dialect.schema)])
      if (sqlState(error) !== '42501' || answer?.rows[0]?.found !== 1) throw error
    })
    for (let version = before?.version ?? 0; version < known.length; version += 1) {
      const statements = splitStatements(dialect.place(known[version] ?? ''))
      await session.batch([
        plain('BEGIN'), plain(`SET LOCAL lock_timeout = '5s'`),
        plain(`CREATE TABLE IF NOT EXISTS ${dialect.schema}.heed_schema (version bigint PRIMARY KEY, code_from bigint NOT NULL)`),
        ...statements.map((text) => plain(text)),
        plain(`INSERT INTO ${dialect.schema}.heed_schema (version, code_from) VALUES ($1, $2)`, String(version + 1), '1'),
        plain('COMMIT'),
      ]).catch(async (error: unknown) => {
        await session.batch([plain('ROLLBACK')]).catch(() => {})
        throw error
      })
    }
  })
}

async function versionOf(session: Session, dialect: Dialect): Promise<Version | undefined> {
  const exists = plain('SELECT to_regclass($1) IS NOT NULL AS found', `${dialect.schema}.heed_schema`)
  const [answer] = await session.batch([exists])
  if (answer?.rows[0]?.found !== 1) return undefined
  const text = `SELECT version, code_from AS "codeFrom" FROM ${dialect.schema}.heed_schema ORDER BY version DESC LIMIT 1`
  const [{ rows } = { rows: [] }] = await session.batch([plain(text)])
  return rows[0] as unknown as Version | undefined
}

function refuseNewer({ version, codeFrom }: Version, name: string, known: number): void {
  if (codeFrom <= known) return
  const why = `The database ${name} has schema version ${version}, for Heed from schema version ${codeFrom} on; this Heed knows ${known}.`
  throw new HeedError('store_newer', `${why} Update Heed, or name another database.`, { details: { version, known } })
}

/** Holds the lock of migrations while `work` runs. */
async function locked(session: Session, dialect: Dialect, work: () => Promise<void>): Promise<void> {
  const args = [String(lockClass), dialect.schema]
  const ask = plain('SELECT pg_try_advisory_lock($1::int, hashtext($2)) AS got', ...args)
  for (let pause = 10; ; pause = Math.min(500, pause * 2)) {
    const [answer] = await session.batch([ask])
    if (answer?.rows[0]?.got === 1) break
    await sleep(systemClock, pause)
  }
  try {
    await work()
  } finally {
    await session.batch([plain('SELECT pg_advisory_unlock($1::int, hashtext($2))', ...args)]).catch(() => {})
  }
}

/** The statements of a step. Bodies of functions are between dollar signs. */
function splitStatements(text: string): string[] {
  const parts = text.split('$$')
  const ended = parts.map((part, index) => (index % 2 === 0 ? part.replaceAll(/--[^\n]*/g, '').replaceAll(';', '\0') : part))
  return ended.join('$$').split('\0').map((statement) => statement.trim()).filter((statement) => statement !== '')
}
