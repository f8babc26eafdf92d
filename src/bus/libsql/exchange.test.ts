import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import type { BusMessage } from '../message.ts'
import { Exchange } from './exchange.ts'

const root = mkdtempSync(join(tmpdir(), 'heed-exchange-'))
afterAll(() => rmSync(root, { recursive: true }))
let count = 0
const opened: Exchange[] = []
afterEach(async () => {
  vi.restoreAllMocks()
  for (const exchange of opened.splice(0)) await exchange.close()
})

async function member(folder: string, name: string) {
  const exchange = new Exchange(folder)
  opened.push(exchange)
  const heard: BusMessage[] = []
  let lost = 0
  await exchange.add(name, { hear: (message) => void heard.push(message), lost: () => void lost++, attentive: () => true })
  return { exchange, heard, lost: () => lost, say: (threadId: string) => exchange.say(name, { kind: 'mail', threadId }, undefined) }
}

const newFolder = () => join(root, `${count++}.db-bus`)

describe('an exchange beside a file', () => {
  it('writes nothing while nobody else is there', async () => {
    const folder = newFolder()
    const a = await member(folder, 'a')
    for (let index = 0; index < 10; index++) a.say(`t${index}`)
    const reader = new DatabaseSync(join(folder, 'bus.db'), { readOnly: true })
    expect(reader.prepare('SELECT count(*) AS rows FROM said').get()).toEqual({ rows: 0 })
    reader.close()
  })

  it('[B1.5] tells a member that lost something, and goes on', async () => {
    const folder = newFolder()
    const a = await member(folder, 'a')
    const b = await member(folder, 'b')
    b.say('hello')
    await expect.poll(() => a.heard.length, { interval: 1 }).toBe(1)
    // What a slow reader finds: rows went before it came to read them.
    const other = new DatabaseSync(join(folder, 'bus.db'))
    other.exec("BEGIN; INSERT INTO said (id, process, at, body) VALUES ((SELECT max(id) + 9 FROM said), 'x', 0, '[]'); COMMIT")
    other.close()
    writeFileSync(join(folder, 'bell'), '.')
    await expect.poll(() => b.lost(), { interval: 1 }).toBe(1)
    expect(a.lost()).toBe(1)
    a.say('after')
    await expect.poll(() => b.heard.at(-1), { interval: 1 }).toEqual({ kind: 'mail', threadId: 'after' })
    expect(b.lost()).toBe(1)
  })

  it('keeps little, however much is said', async () => {
    const folder = newFolder()
    const a = await member(folder, 'a')
    const b = await member(folder, 'b')
    b.say('hello')
    await expect.poll(() => a.heard.length, { interval: 1 }).toBe(1)
    const now = vi.spyOn(Date, 'now')
    const start = Date.now()
    for (let index = 0; index < 300; index++) {
      now.mockReturnValue(start + index * 100)
      a.say(`t${index}`)
      await expect.poll(() => b.heard.length, { interval: 0 }).toBe(index + 1)
    }
    const reader = new DatabaseSync(join(folder, 'bus.db'), { readOnly: true })
    const { rows } = reader.prepare('SELECT count(*) AS rows FROM said').get() as { rows: number }
    reader.close()
    expect(rows).toBeLessThan(180)
    expect(b.lost()).toBe(0)
  })

  it('lets whoever is new wait until those who were there have answered, and not for those who never do', async () => {
    const folder = newFolder()
    const [a, b] = [await member(folder, 'a'), await member(folder, 'b')]
    await a.exchange.met('a')
    a.heard.length = 0
    let met = false
    const meeting = b.exchange.met('b').then(() => (met = true))
    b.exchange.say('b', { kind: 'hello' }, undefined)
    await expect.poll(() => a.heard, { interval: 1 }).toEqual([{ kind: 'hello' }])
    expect(met).toBe(false)
    a.exchange.say('a', { kind: 'watch', threadIds: ['t'] }, 'b')
    await meeting
    expect(b.heard).toEqual([{ kind: 'watch', threadIds: ['t'] }])
    // Nobody answers: it is over all the same.
    await b.exchange.met('b')
  })

  it('begins anew over a damaged file', async () => {
    const folder = newFolder()
    const before = await member(folder, 'a')
    await before.exchange.close()
    writeFileSync(join(folder, 'bus.db'), 'no database at all, and long enough to be read as a header of one: '.repeat(100))
    const a = await member(folder, 'a')
    const b = await member(folder, 'b')
    b.say('hello')
    await expect.poll(() => a.heard.length, { interval: 1 }).toBe(1)
  })
})
