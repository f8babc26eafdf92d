import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../base/clock.ts'
import type { BusMessage } from '../message.ts'
import { handshakeMs } from '../namespaces.ts'
import { Hub } from './hub.ts'

const root = mkdtempSync(join(tmpdir(), 'heed-hub-'))
afterAll(() => rmSync(root, { recursive: true }))
let count = 0
const opened: Hub[] = []
afterEach(async () => {
  vi.restoreAllMocks()
  for (const hub of opened.splice(0)) await hub.close()
})

async function member(folder: string, id: string) {
  const hub = new Hub(folder)
  opened.push(hub)
  const received: BusMessage[] = []
  let losses = 0
  await hub.add('', id, { onMessage: (message) => void received.push(message), onLoss: () => void losses++, wantsLowLatency: () => true })
  return { hub, received, losses: () => losses, send: (threadId: string) => hub.send('', id, { kind: 'mail', threadId }, undefined) }
}

const newFolder = () => join(root, `${count++}.db-bus`)

describe('a hub beside a file', () => {
  it('waits for another process that creates the queue at the same moment', async () => {
    const folder = newFolder()
    mkdirSync(folder)
    const other = new DatabaseSync(join(folder, 'bus.db'))
    other.exec('BEGIN IMMEDIATE')
    const { exec } = DatabaseSync.prototype
    let refused = 0
    vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (this: DatabaseSync, text) {
      try {
        return exec.call(this, text)
      } catch (error) {
        if (++refused === 1) other.close()
        throw error
      }
    })
    const { hub } = await member(folder, 'a')
    expect([refused, hub.disconnected]).toEqual([1, false])
  })

  it('writes nothing without a peer', async () => {
    const folder = newFolder()
    const a = await member(folder, 'a')
    for (let index = 0; index < 10; index++) a.send(`t${index}`)
    const reader = new DatabaseSync(join(folder, 'bus.db'), { readOnly: true, timeout: 60_000 })
    expect(reader.prepare('SELECT count(*) AS rows FROM messages').get()).toEqual({ rows: 0 })
    reader.close()
  })

  it('[B1.5] reports a loss to the connections, and continues', async () => {
    const folder = newFolder()
    const a = await member(folder, 'a')
    const b = await member(folder, 'b')
    b.send('hello')
    await expect.poll(() => a.received.length, { interval: 1 }).toBe(1)
    // What a slow reader finds: rows were pruned before it read them.
    const other = new DatabaseSync(join(folder, 'bus.db'), { timeout: 60_000 })
    other.exec("BEGIN; INSERT INTO messages (id, process, at, body) VALUES ((SELECT max(id) + 9 FROM messages), 'x', 0, '[]'); COMMIT")
    other.close()
    writeFileSync(join(folder, 'notify'), '.')
    await expect.poll(() => b.losses(), { interval: 1 }).toBe(1)
    expect(a.losses()).toBe(1)
    a.send('after')
    await expect.poll(() => b.received.at(-1), { interval: 1 }).toEqual({ kind: 'mail', threadId: 'after' })
    expect(b.losses()).toBe(1)
  })

  it('keeps few messages, however many are sent', async () => {
    const folder = newFolder()
    const a = await member(folder, 'a')
    const b = await member(folder, 'b')
    b.send('hello')
    await expect.poll(() => a.received.length, { interval: 1 }).toBe(1)
    const now = vi.spyOn(Date, 'now')
    const start = Date.now()
    for (let index = 0; index < 300; index++) {
      now.mockReturnValue(start + index * 100)
      a.send(`t${index}`)
      await expect.poll(() => b.received.length, { interval: 0 }).toBe(index + 1)
    }
    const reader = new DatabaseSync(join(folder, 'bus.db'), { readOnly: true, timeout: 60_000 })
    const { rows } = reader.prepare('SELECT count(*) AS rows FROM messages').get() as { rows: number }
    reader.close()
    expect(rows).toBeLessThan(180)
    expect(b.losses()).toBe(0)
  })

  it('is ready when the processes that were connected before have answered, or after a timeout', async () => {
    const folder = newFolder()
    const [a, b] = [await member(folder, 'a'), await member(folder, 'b')]
    await a.hub.ready('', 'a')
    a.received.length = 0
    let isReady = false
    const { after } = systemClock
    const timers = vi.spyOn(systemClock, 'after').mockImplementation((ms, run, options) => (ms === handshakeMs ? { cancel() {} } : after(ms, run, options)))
    const ready = b.hub.ready('', 'b').then(() => (isReady = true))
    b.hub.send('', 'b', { kind: 'hello' }, undefined)
    await expect.poll(() => a.received, { interval: 1 }).toEqual([{ kind: 'hello' }])
    expect(isReady).toBe(false)
    a.hub.send('', 'a', { kind: 'watch', threadIds: ['t'] }, 'b')
    await ready
    expect(b.received).toEqual([{ kind: 'watch', threadIds: ['t'] }])
    // No process answers this time.
    timers.mockRestore()
    await b.hub.ready('', 'b')
  })

  it('replaces a damaged file', async () => {
    const folder = newFolder()
    const before = await member(folder, 'a')
    await before.hub.close()
    writeFileSync(join(folder, 'bus.db'), 'no database at all, and long enough to be read as a header of one: '.repeat(100))
    const a = await member(folder, 'a')
    const b = await member(folder, 'b')
    b.send('hello')
    await expect.poll(() => a.received.length, { interval: 1 }).toBe(1)
  })
})
