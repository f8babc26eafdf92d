import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, it } from 'vitest'
import { NotificationsLibSQL } from '../../sqlite/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-changes-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it.each([1, 3, 100])('[N4.1] changes are listed over the ends of the spans that they are indexed by, %i at a time', async (limit) => {
  const path = join(folder, `${limit}.db`)
  const store = new NotificationsLibSQL({ url: `file:${path}` })
  await store.open()
  const database = new DatabaseSync(path, { timeout: 60_000 })
  const now = 1_700_000_000_000
  const change = (id: string, owner: string) => store.ingest([{ id, threadId: `thread-${owner}`, resourceId: owner, agentId: 'agent', source: 's', kind: 'k', summary: id, now, undecidedUntil: now }])
  // Before the end of the first span, over that of the second, and in the one after which a look ends.
  for (const last of [1_020, 2_045, 2_046, 255 * 1_024 + 1_020]) {
    database.exec(`UPDATE heed_notification_changes SET last = ${last}`)
    for (let index = 0; index < 8; index++) await change(`${last}-${index}`, index % 2 === 0 ? 'mine' : 'theirs')
  }
  database.close()
  const seen: string[] = []
  for (let after = '0.0', more = true; more;) {
    const page = await store.listChanges({ resourceId: 'mine', after, limit })
    seen.push(...page.changes.map(({ record }) => record.id))
    expect(page.changes.length).toBeLessThanOrEqual(limit)
    after = page.cursor
    more = page.more
  }
  await store.close()
  const expected = [1_020, 2_045, 2_046, 255 * 1_024 + 1_020].flatMap((last) => [0, 2, 4, 6].map((index) => ({ id: `${last}-${index}`, at: last + index })))
  expect(seen.toSorted()).toEqual(expected.map(({ id }) => id).toSorted())
  expect(new Set(seen).size).toBe(16)
  const places = new Map(expected.map(({ id, at }) => [id, at]))
  const order = seen.map((id) => places.get(id) ?? 0)
  expect(order).toEqual(order.toSorted((one, other) => one - other))
})
