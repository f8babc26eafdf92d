import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { Dialect } from '../../src/store/postgres/dialect.ts'
import { connectClient } from '../../src/store/postgres/sessions.ts'
import { indexSchema, placesSchema } from '../../src/recall/index/schema.ts'
import { migrations } from '../../src/store/sqlite/migrations.ts'
import { texts } from '../../src/store/sql/texts.ts'
import { sharedServer, noPostgres, whyNoPostgres } from './server.ts'
import { inDatabase, newPlace } from './stores.ts'

/** The tables of a database in a file after these steps. */
function tablesOf(steps: readonly string[]): Array<Record<string, unknown>> {
  using database = new DatabaseSync(':memory:')
  for (const step of steps) database.exec(step)
  return database.prepare(`
    SELECT m.name, (SELECT group_concat(c.name, ' ') FROM (SELECT name FROM pragma_table_info(m.name) ORDER BY name) c) AS columns
    FROM sqlite_schema m WHERE m.type = 'table' AND m.sql LIKE '%STRICT%'`).all()
}

describe.skipIf(noPostgres)(`the statements of all SQL stores${whyNoPostgres}`, () => {
  it('[Q1.2] are prepared by PostgreSQL, each of them', async () => {
    const place = await newPlace()
    await place.open().open()
    const dialect = new Dialect(place.schema)
    const client = (await connectClient({ connectionString: await sharedServer() })) as unknown as { query(text: string): Promise<unknown>; end(): Promise<void> }
    const all = Object.entries(texts).flatMap(([domain, named]) => Object.entries(named).map(([name, text]) => ({ name: `${domain}.${name}`, text })))
    const refused: string[] = []
    let prepared = 0
    const prepare = async (name: string, text: string) => {
      await client.query(`PREPARE p${prepared++} AS ${text}`).catch((error: Error) => refused.push(`${name}: ${error.message}`))
    }
    for (const { name, text } of all) await prepare(name, dialect.translate(text))
    expect(prepared).toBeGreaterThan(250)
    // After a failover, epochs have a floor.
    const before = new Set(all.map(({ text }) => dialect.translate(text)))
    dialect.raiseEpochs(2 ** 32)
    const floored = all.map(({ name, text }) => ({ name, text: dialect.translate(text) })).filter(({ text }) => !before.has(text))
    expect(floored.map(({ name }) => name)).toEqual(expect.arrayContaining(['threads.thread', 'threads.children', 'threads.epochFloor', 'threads.life', 'threads.dueThreads']))
    for (const { name, text } of floored) await prepare(name, text)
    await client.end()
    expect(refused).toEqual([])
  })

  it('[Q1.3] work on tables that have the same names and columns as those in a file', async () => {
    const place = await newPlace()
    await place.open().open()
    const { rows } = await inDatabase((query) => query(`
      SELECT table_name AS name, string_agg(column_name, ' ' ORDER BY column_name) AS columns FROM information_schema.columns
      WHERE table_schema = '${place.schema}' GROUP BY table_name`))
    const here = Object.fromEntries(rows.map(({ name, columns }) => [name, columns]))
    const there = Object.fromEntries([
      ...tablesOf(migrations).filter(({ name }) => String(name).startsWith('heed_')).map(({ name, columns }) => [name, columns]),
      ...tablesOf([indexSchema, placesSchema]).map(({ name, columns }) => [`heed_recall_${String(name)}`, columns]),
    ])
    // The counters, the outcomes of transactions, the timelines, the version and the index of words are PostgreSQL's own.
    const { heed_usage_changes, heed_outcomes, heed_timelines, heed_schema, heed_notification_changes, heed_recall_words, ...same } = here
    const { heed_notification_changes: _, ...wanted } = there
    expect(same).toEqual(wanted)
    expect([heed_usage_changes, heed_outcomes, heed_timelines, heed_schema, heed_notification_changes, heed_recall_words].every(Boolean)).toBe(true)
  })
})
