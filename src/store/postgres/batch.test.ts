import { expect, it } from 'vitest'
import { gathered } from './batch.ts'

const mail = `INSERT INTO "s".heed_mailbox (thread, id)\n    VALUES ($1, $2)`
const message = `INSERT INTO "s".heed_messages (thread, id) VALUES ($1, $2)`
const thread = `INSERT INTO "s".heed_threads (key) VALUES ($1)`

it('inserts of one table that no other statement parts are one statement, with their rows in order', () => {
  const writes = Array.from({ length: 3 }, (_, nth) => [{ text: mail, values: [1, `m${nth}`] }, { text: message, values: [1, `r${nth}`] }]).flat()
  expect(gathered(writes)).toEqual([
    { text: `INSERT INTO "s".heed_mailbox (thread, id)\n    VALUES ($1, $2), ($3, $4)`, values: [1, 'm0', 1, 'm1'] },
    { text: mail, values: [1, 'm2'] },
    { text: `INSERT INTO "s".heed_messages (thread, id) VALUES ($1, $2), ($3, $4)`, values: [1, 'r0', 1, 'r1'] },
    { text: message, values: [1, 'r2'] },
  ])
})

it('a row is not inserted before a statement that it may need', () => {
  const writes = [{ text: mail, values: [1, 'a'] }, { text: thread, values: [2] }, { text: mail, values: [2, 'b'] }, { text: thread, values: [3] }]
  expect(gathered(writes)).toEqual(writes)
})
