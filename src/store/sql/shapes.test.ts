import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import { migrations } from '../sqlite/migrations.ts'
import { shapeOf } from './statements.ts'
import { mailColumns, rowColumns, runColumns, threadColumns } from './sql.ts'

it.each([
  ['heed_threads', threadColumns], ['heed_messages', rowColumns], ['heed_mailbox', mailColumns], ['heed_runs r', runColumns],
])('the records of %s are object literals with all of its columns', (table, columns) => {
  const database = new DatabaseSync(':memory:')
  for (const step of migrations) database.exec(step)
  const names = database.prepare(`SELECT ${columns} FROM ${table}`).columns().map(({ name }) => name)
  database.close()
  expect(shapeOf(names)).toBe(shapeOf(names))
  const row = names.map((_, index) => index)
  expect(shapeOf(names)(row)).toEqual(Object.fromEntries(names.map((name, index) => [name, index])))
})
