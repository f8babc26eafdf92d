import { sleep, systemClock } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'
import type { WireStatement } from './wire/batch.ts'
import type { Dialect } from './dialect.ts'
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
 * Brings the tables to the version that this Heed knows, in one transaction and under its lock, which is asked for and not waited for: a
 * statement that waits keeps a snapshot. A pooler may give each transaction another connection, so nothing is a lock of the connection. A
 * newer version is used if it says that this code may.
 */
export async function migrate(session: Session, dialect: Dialect, name: string, known: readonly string[] = steps): Promise<void> {
  const isDone = async () => {
    const found = await versionOf(session, dialect)
    if (found) refuseNewer(found, name, known.length)
    return found !== undefined && found.version >= known.length
  }
  if (await isDone()) return
  await locked(session, dialect, async () => {
    if (await isDone()) return
    const { version: before = 0 } = (await versionOf(session, dialect)) ?? {}
    const [schema] = await session.batch([plain('SELECT to_regnamespace($1) IS NOT NULL AS found', dialect.schema)])
    await session.batch([
      plain(`SET LOCAL lock_timeout = '5s'`),
      // A role that may not create schemas may still own this one.
      ...(schema?.rows[0]?.found === 1 ? [] : [plain(`CREATE SCHEMA ${dialect.schema}`)]),
      plain(`CREATE TABLE IF NOT EXISTS ${dialect.schema}.heed_schema (version bigint PRIMARY KEY, code_from bigint NOT NULL)`),
      ...known.slice(before).flatMap((step, index) => [
        ...splitStatements(dialect.place(step)).map((text) => plain(text)),
        plain(`INSERT INTO ${dialect.schema}.heed_schema (version, code_from) VALUES ($1, $2)`, String(before + index + 1), '1'),
      ]),
    ])
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

/** Does the work in a transaction that holds the lock of migrations. */
async function locked(session: Session, dialect: Dialect, work: () => Promise<void>): Promise<void> {
  const ask = plain('SELECT pg_try_advisory_xact_lock($1::int, hashtext($2)) AS got', String(lockClass), dialect.schema)
  try {
    for (let pause = 10; ; pause = Math.min(500, pause * 2)) {
      const [, answer] = await session.batch([plain('BEGIN'), ask])
      if (answer?.rows[0]?.got === 1) break
      await session.batch([plain('ROLLBACK')])
      await sleep(systemClock, pause)
    }
    await work()
    await session.batch([plain('COMMIT')])
  } catch (error) {
    await session.batch([plain('ROLLBACK')]).catch(() => {})
    throw error
  }
}

/** The statements of a step. Bodies of functions are between dollar signs. */
function splitStatements(text: string): string[] {
  const parts = text.split('$$')
  const ended = parts.map((part, index) => (index % 2 === 0 ? part.replaceAll(/--[^\n]*/g, '').replaceAll(';', '\0') : part))
  return ended.join('$$').split('\0').map((statement) => statement.trim()).filter((statement) => statement !== '')
}
