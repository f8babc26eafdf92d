import type { Statements, SqlValue } from '../../../store/sql/statements.ts'
import { FullTextWords, TextSearchWords } from '../words.ts'
import type { Databases } from '../databases.ts'
import { indexSchema, indexVersion, placesSchema } from '../schema.ts'

/** What the names of the index's tables begin with in a database that also has the messages. */
const prefix = 'heed_recall_'

const names = 'progress|resources|touched|passages|embedders|vectors|unembedded|removals'
const placed = new RegExp(`\\b(FROM|JOIN|INTO|UPDATE)(\\s+)(${names})\\b`, 'g')
const texts = new Map<string, string>()

/** The statement with the names that tables have on a server. */
function onServer(text: string): string {
  let known = texts.get(text)
  if (known === undefined) texts.set(text, (known = text.replaceAll(placed, `$1$2${prefix}$3`)))
  return known
}

/** The databases of an engine, in one transaction of a server. */
export function inTransaction(statements: Statements, kind: 'libsql' | 'postgres'): Databases {
  const index: Statements = {
    messageChanges: 0,
    threadChanges: 0,
    dataVersion: () => -1,
    run: (text: string, ...values: SqlValue[]) => statements.run(onServer(text), ...values),
    execute: (text: string, ...values: SqlValue[]) => statements.execute(onServer(text), ...values),
    insert: (text: string, ...values: SqlValue[]) => statements.insert(onServer(text), ...values),
    one: <Row extends object>(text: string, ...values: SqlValue[]) => statements.one<Row>(onServer(text), ...values),
    all: <Row extends object>(text: string, ...values: SqlValue[]) => statements.all<Row>(onServer(text), ...values),
  }
  return {
    messages: statements,
    index,
    words: kind === 'postgres' ? new TextSearchWords(statements) : new FullTextWords(statements, prefix),
    together: true,
    write: (work) => work(),
    close() {},
  }
}

const defined = new RegExp(`\\b(TABLE|INDEX|TRIGGER|ON|FROM|INTO)(\\s+)((?:${names}|words|counts)(?:_\\w+)?)\\b`, 'g')

/** The statements that create the index on a libSQL server. PostgreSQL has them in its own dialect, in `store/postgres`. */
function libsqlSchema(): string[] {
  return `${indexSchema}\n${placesSchema}`
    .replaceAll(/--[^\n]*/g, '')
    .replaceAll(defined, `$1$2${prefix}$3`)
    .replace('fts5vocab (words', `fts5vocab (${prefix}words`)
    .split(/;\s*(?=CREATE|ALTER|$)/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')
}

/** Creates the index on a libSQL server, in place of one of another version. */
export function createTables(statements: Statements): void {
  const [version] = statements.all<{ name: string }>(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE '${prefix}index_%'`)
  const tables = statements.all<{ name: string }>(
    `SELECT name FROM sqlite_schema WHERE type = 'table' AND (name IN ('${prefix}counts', '${prefix}words') OR sql LIKE '%STRICT%')
     AND name LIKE '${prefix}%' AND name <> '${prefix}changes'`,
  )
  const current = `${prefix}index_${indexVersion}`
  if (version?.name === current) return
  for (const { name } of tables.toSorted((a, b) => Number(b.name === `${prefix}counts`) - Number(a.name === `${prefix}counts`)))
    statements.execute(`DROP TABLE IF EXISTS ${name}`)
  for (const statement of libsqlSchema()) statements.execute(statement)
  statements.execute(`CREATE TABLE ${current} (one INTEGER) STRICT`)
}
