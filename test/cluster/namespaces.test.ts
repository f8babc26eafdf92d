import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { LocalBus } from '../../src/bus/local.ts'
import { Agent, Heed, InMemoryStore, Memory, silentLogger, type Storage } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { isType, readUntil, types } from '../thread/said.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-namespaces-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
const newFile = () => join(folder, `${files++}.db`)

const main = { resourceId: 'user-1', threadId: 'main' }

function tenant(id: string, storage: Storage, text: string) {
  return new Agent({ id, model: scriptedModel([text], { loop: true }), memory: new Memory({ storage }) })
}

const kinds: Array<{ name: string; storage: () => Storage }> = [
  { name: 'in memory', storage: () => new InMemoryStore() },
  { name: 'in a file', storage: () => new LibSQLStore({ url: `file:${newFile()}` }) },
]

describe.each(kinds)('one bus for a storage per tenant, $name', ({ storage }) => {
  it.each(['user-1', 'user-2'])('[B1.8] shows a subscriber nothing of the same thread id of %s in another storage', async (resourceId) => {
    const [ofA, ofB] = [storage(), storage()]
    const [a, b, peer] = [tenant('a', ofA, 'Secret of A.'), tenant('b', ofB, 'Answer of B.'), tenant('a', ofA, '')]
    const bus = new LocalBus()
    const heeds = [new Heed({ agents: { a, b }, bus, logger: silentLogger }), new Heed({ agents: { peer }, bus, logger: silentLogger })]
    try {
      const [near, far] = [await peer.subscribeToThread({ ...main, resourceId }), await b.subscribeToThread(main)]
      a.sendMessage('Go.', { ...main, resourceId })
      // The bus has delivered the whole run to a peer on the same storage.
      expect(JSON.stringify(await readUntil(near.stream, isType('finish')))).toContain('Secret of A.')
      await new Promise((resolve) => setImmediate(resolve))
      b.sendMessage('Go.', main)
      const seen = await readUntil(far.stream, isType('finish'))
      expect(types(seen).filter((type) => type === 'start')).toHaveLength(1)
      expect(JSON.stringify(seen)).toContain('Answer of B.')
      expect(JSON.stringify(seen)).not.toContain('Secret of A.')
    } finally {
      await Promise.all(heeds.map((heed) => heed.close()))
    }
  })
})

describe('one bus for two processes on one storage', () => {
  it('[B1.8] connects them, however each names the storage', async () => {
    const file = newFile()
    const bus = new LocalBus()
    const open = (storage: Storage) => {
      const agent = new Agent({ id: 'guide', model: scriptedModel(['Said.'], { loop: true }) })
      return { agent, heed: new Heed({ agents: { agent }, storage, bus, logger: silentLogger }) }
    }
    const a = open(new LibSQLStore({ url: `file:${file}` }))
    const b = open(new LibSQLStore({ url: `file:${join(folder, '.', file.slice(folder.length + 1))}`, retention: { messages: '365d' } }))
    try {
      const watcher = await b.agent.subscribeToThread(main)
      a.agent.sendMessage('Go.', main)
      expect(types(await readUntil(watcher.stream, isType('finish')))).toContain('text-delta')
    } finally {
      await Promise.all([a.heed.close(), b.heed.close()])
    }
  })

  it('[G1.31] brings the bigint of a validated answer to watchers in another process as a text', async () => {
    const file = newFile()
    const bus = new LocalBus()
    const schema = z.object({ amount: z.string().transform(BigInt) })
    const open = () => {
      const agent = new Agent({ id: 'teller', model: scriptedModel(['{"amount":"12"}'], { loop: true }) })
      return { agent, heed: new Heed({ agents: { agent }, storage: new LibSQLStore({ url: `file:${file}` }), bus, logger: silentLogger }) }
    }
    const [a, b] = [open(), open()]
    try {
      const watcher = await b.agent.subscribeToThread(main)
      const { object } = await a.agent.generate('How much?', { memory: { thread: main.threadId, resource: main.resourceId }, structuredOutput: { schema } })
      expect(object).toEqual({ amount: 12n })
      const seen = await readUntil(watcher.stream, isType('finish'))
      expect(seen).toContainEqual(expect.objectContaining({ type: 'object-result', payload: { object: { amount: '12' } } }))
    } finally {
      await Promise.all([a.heed.close(), b.heed.close()])
    }
  })

  it('[B1.8] names a database by its place, without credentials, or by its option', async () => {
    const named = (url: string, namespace?: string) => new LibSQLStore({ url, ...(namespace === undefined ? {} : { namespace }) }).namespace
    expect(named('libsql://user:pass@DB.example.com/?authToken=secret')).toBe('libsql:db.example.com:443')
    expect(named('https://db.example.com')).toBe('libsql:db.example.com:443')
    expect(named('ws://localhost:8080/tenant-1')).toBe('libsql:localhost:8080/tenant-1')
    expect(named('http://localhost:8080/tenant-2')).toBe('libsql:localhost:8080/tenant-2')
    expect(named('file:./one.db')).not.toBe(named('file:./two.db'))
    expect(named(':memory:')).not.toBe(named(':memory:'))
    expect(named(':memory:', 'mine')).toBe('mine')
    expect(new InMemoryStore().namespace).not.toBe(new InMemoryStore().namespace)
  })
})
