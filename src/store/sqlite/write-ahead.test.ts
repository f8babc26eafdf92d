import { DatabaseSync } from 'node:sqlite'
import { expect, it, onTestFinished } from 'vitest'
import { newFile } from '../../../test/new-file.ts'
import { useWriteAheadLog } from './write-ahead.ts'

function twoUsers(): [DatabaseSync, DatabaseSync] {
  const path = newFile()
  const users = [0, 1].map(() => new DatabaseSync(path, { timeout: 5_000 })) as [DatabaseSync, DatabaseSync]
  onTestFinished(() => users.forEach((database) => database.close()))
  return users
}

it('[K4.3] waits for a process that is creating the file', () => {
  const [other, own] = twoUsers()
  other.exec('BEGIN IMMEDIATE')
  let attempts = 0
  const database = { exec: (sql: string) => {
    if (++attempts === 3) other.exec('ROLLBACK')
    own.exec(sql)
  } }
  useWriteAheadLog(database as DatabaseSync, 60_000)
  expect(attempts).toBe(3)
  expect(own.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' })
})

it('[K4.3] gives up after its timeout', () => {
  const [other, own] = twoUsers()
  other.exec('BEGIN IMMEDIATE')
  expect(() => useWriteAheadLog(own, 20)).toThrow('locked')
})
