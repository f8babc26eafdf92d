import { expect, it } from 'vitest'
import { gathered, sideBySide, type Write } from './writes.ts'

const mail = `INSERT INTO "s".heed_mailbox (thread, id)\n    VALUES ($1, $2)`
const message = `INSERT INTO "s".heed_messages (thread, id) VALUES ($1, $2)`
const thread = `INSERT INTO "s".heed_threads (key) VALUES ($1)`
const use = `INSERT INTO "s".heed_uses (thread, head, seq) VALUES ($1, $2, $3) ON CONFLICT (thread, head) DO UPDATE SET seq = excluded.seq`
const update = `UPDATE "s".heed_runs SET status = $1, attempts = $2 WHERE run_id = $3 AND thread = $4`
const move = `UPDATE "s".heed_runs SET thread = $1 WHERE thread = $2 AND status = 'open'`
const types = new Map([
  [mail, [20, 25]], [message, [20, 25]], [thread, [20]], [use, [20, 25, 20]], [update, [25, 20, 25, 20]], [move, [20, 20]],
])

const write = (text: string, ...values: Write['values']): Write => ({ text, values, asserted: false })

it('inserts of one table that no other statement parts are one statement, with their rows in order', () => {
  const writes = Array.from({ length: 3 }, (_, nth) => [write(mail, 1, `m${nth}`), write(message, 1, `r"${nth}\\`)]).flat()
  expect(gathered(writes, types)).toEqual([
    {
      text: `INSERT INTO "s".heed_mailbox (thread, id) SELECT given.p1, given.p2 FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS given (p1, p2, nth)`,
      values: ['{1,1,1}', '{"m0","m1","m2"}'],
    },
    {
      text: `INSERT INTO "s".heed_messages (thread, id) SELECT given.p1, given.p2 FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS given (p1, p2, nth)`,
      values: ['{1,1,1}', String.raw`{"r\"0\\","r\"1\\","r\"2\\"}`],
    },
  ])
})

it('a row is not inserted before a statement that it may need', () => {
  const writes = [write(mail, 1, 'a'), write(thread, 2), write(mail, 2, 'b'), write(thread, 3)]
  expect(gathered(writes, types)).toEqual(writes.map(({ text, values }) => ({ text, values })))
})

it('statements whose types the server has not told are sent one by one', () => {
  const writes = [write(mail, 1, 'a'), write(mail, 1, 'b')]
  expect(gathered(writes, new Map())).toEqual(writes.map(({ text, values }) => ({ text, values })))
})

it('updates of different rows are one statement, and those that may change the same row are not', () => {
  const [apart] = gathered([write(update, 'done', 1, 'a', 1), write(update, 'done', null, 'a', 2)], types)
  expect(apart).toEqual({
    text: `UPDATE "s".heed_runs SET status = given.p1, attempts = given.p2 FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[]) `
      + 'WITH ORDINALITY AS given (p1, p2, p3, p4, nth) WHERE run_id = given.p3 AND thread = given.p4',
    values: ['{"done","done"}', '{1,NULL}', '{"a","a"}', '{1,2}'],
  })
  const same = [write(update, 'open', 1, 'a', 1), write(update, 'done', 2, 'a', 1)]
  expect(gathered(same, types)).toHaveLength(2)
  // What the first moves, the second would find.
  expect(gathered([write(move, 2, 1), write(move, 3, 2)], types)).toHaveLength(2)
  expect(gathered([write(use, 1, 'a', 1), write(use, 1, 'b', 2)], types)).toHaveLength(1)
  expect(gathered([write(use, 1, 'a', 1), write(use, 1, 'a', 2)], types)).toHaveLength(2)
})

it('an asserted statement of several rows fails unless each of them changes one', () => {
  const [inserted] = gathered([{ ...write(thread, 1), asserted: true }, { ...write(thread, 2), asserted: true }], types)
  expect(inserted?.text).toBe(`INSERT INTO "s".heed_threads (key) SELECT given.p1 FROM unnest($1::bigint[]) WITH ORDINALITY AS given (p1, nth)`)
  const [updated] = gathered([{ ...write(update, 'done', 1, 'a', 1), asserted: true }, { ...write(update, 'done', 1, 'a', 2), asserted: true }], types)
  expect(updated?.text).toMatch(/^WITH changed AS \(UPDATE [^;]+ RETURNING given\.nth\) SELECT 1 \/ CASE WHEN count\(\*\) = \(SELECT cardinality\(\$1\)\) AND count\(DISTINCT nth\)/)
})

it('parts keep the order of their statements, and the same statements of several parts are neighbors', () => {
  const parts = [[write(mail, 1, 'a'), write(thread, 1)], [write(mail, 2, 'b'), write(thread, 2)]]
  expect(sideBySide(parts).map(({ text }) => text)).toEqual([mail, mail, thread, thread])
})
