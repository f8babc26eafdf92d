import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, linkSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { Agent, CompositeStore, Heed, InMemoryStore, Memory, silentLogger } from '../../src/index.ts'
import { begin } from '../../src/store/conformance/fixture.ts'
import { LibSQLStore, MemoryLibSQL } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { conversation, ids, sourceIds, kept, memoryOn, said } from './kept.ts'
import { newFile } from '../new-file.ts'

const target = { memory: { thread: 't', resource: 'u' } }
const echo = () => scriptedModel((call) => `${call.prompt.length}`)

describe('where things are kept', () => {
  it('is one storage for all agents of a Heed', async () => {
    const storage = kept(new LibSQLStore({ id: 'app', url: `file:${newFile()}` }))
    const one = new Agent({ id: 'one', model: echo(), memory: new Memory() })
    const two = new Agent({ id: 'two', model: echo(), memory: new Memory({ options: { lastMessages: 10 } }) })
    kept(new Heed({ agents: { one, two }, storage, logger: silentLogger }))
    await one.generate('Hello', target)
    expect((await two.generate('Again', target)).text).toBe('3')
    expect((await (await two.getMemory()).recall({ threadId: 't' })).messages).toHaveLength(4)
    expect(await storage.getStore('memory')).toBe(storage)
  })

  it('may be an agent\'s own', async () => {
    const own = kept(new LibSQLStore({ url: `file:${newFile()}` }))
    const shared = kept(new InMemoryStore())
    const alone = new Agent({ id: 'alone', model: echo(), memory: new Memory({ storage: own, lastMessages: 10 }) })
    const other = new Agent({ id: 'other', model: echo() })
    kept(new Heed({ agents: { alone, other }, storage: shared, logger: silentLogger }))
    await alone.generate('Hello', target)
    expect((await other.generate('Hello', target)).text).toBe('1')
    expect((await own.listRows({ threadId: 't' }, { limit: 10 })).rows).toHaveLength(2)
    expect((await shared.listRows({ threadId: 't' }, { limit: 10 })).rows).toHaveLength(2)
  })

  it('may be put together domain by domain', async () => {
    const file = newFile()
    const storage = new CompositeStore({ id: 'composite', domains: { memory: new MemoryLibSQL({ url: `file:${file}` }) }, default: new InMemoryStore() })
    const agent = new Agent({ id: 'a', model: echo() })
    const heed = new Heed({ agents: { agent }, storage, logger: silentLogger })
    await agent.generate('Hello', target)
    await heed.close()
    await storage.close()
    const again = kept(new LibSQLStore({ url: `file:${file}` }))
    expect((await again.listRows({ threadId: 't' }, { limit: 10 })).rows).toHaveLength(2)
  })

  it('uses the default for domains without a store of their own, and none where it is turned off', async () => {
    const store = new InMemoryStore()
    expect(await new CompositeStore({ default: store }).getStore('memory')).toBe(store)
    expect(await new CompositeStore({ default: new CompositeStore({ default: store }) }).getStore('memory')).toBe(store)
    const off = new CompositeStore({ domains: { memory: false }, default: store })
    expect(await off.getStore('memory')).toBeUndefined()
    const agent = new Agent({ id: 'a', model: echo(), memory: new Memory({ storage: off }) })
    await expect(agent.generate('Hello', target)).rejects.toMatchObject({ code: 'invalid_argument', message: expect.stringContaining("no 'memory' domain") })
  })

  it('is rejected by name when it is invalid', () => {
    expect(() => new CompositeStore({})).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
    expect(() => new CompositeStore({ domains: { workflows: new InMemoryStore() } as never })).toThrow(expect.objectContaining({ code: 'unsupported_option', details: { option: 'domains.workflows' } }))
    expect(() => new CompositeStore({ default: {} as never })).toThrow(expect.objectContaining({ details: { option: 'default' } }))
    expect(() => new CompositeStore({ defaults: new InMemoryStore() } as never)).toThrow(expect.objectContaining({ code: 'unsupported_option' }))
  })

  it('needs no agent when the memory has its own', async () => {
    const memory = new Memory({ storage: kept(new LibSQLStore({ url: ':memory:' })) })
    await memory.createThread({ threadId: 't', resourceId: 'u' })
    expect(await memory.getThreadById({ threadId: 't' })).not.toBeNull()
  })

  it('[M1.15] is the agent\'s for calls on the memory itself, once the agent belongs to a Heed', async () => {
    const ownFile = newFile()
    const model = echo()
    const make: Array<(memory: Memory, storage: LibSQLStore) => Agent> = [
      (memory, storage) => {
        const agent = new Agent({ id: 'a', model, memory })
        kept(new Heed({ agents: { agent }, storage, logger: silentLogger }))
        return agent
      },
      (memory, storage) => new Agent({ id: 'a', model, memory, heed: kept(new Heed({ storage, logger: silentLogger })) }),
    ]
    for (const [index, made] of make.entries()) {
      const storage = kept(new LibSQLStore({ url: `file:${ownFile}${index}` }))
      const memory = new Memory({ workingMemory: { enabled: true } })
      const agent = made(memory, storage)
      await memory.createThread({ threadId: 't', resourceId: 'u', title: 'Trip', metadata: { workingMemory: 'Likes trains.' } })
      expect((await storage.getThread({ threadId: 't' }))?.title).toBe('Trip')
      await agent.generate('Hello', target)
      expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain('Likes trains.')
      expect((await memory.recall({ threadId: 't' })).messages).toHaveLength(2)
      expect(await agent.getMemory()).toBe(memory)
    }
  })

  it('[M1.15] is each agent\'s own for one memory of two Heeds: calls on the memory are rejected until one is closed', async () => {
    const memory = new Memory({ lastMessages: 3 })
    const [left, right] = ['left', 'right'].map((id) => {
      const agent = new Agent({ id, model: echo(), memory })
      return { agent, heed: kept(new Heed({ agents: { agent }, storage: kept(new InMemoryStore()), logger: silentLogger })) }
    })
    if (!left || !right) throw new Error('two were made')
    await expect(memory.createThread({ threadId: 't', resourceId: 'u' })).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'memory' } })
    const [one, two] = [await left.agent.getMemory(), await right.agent.getMemory()]
    await one.createThread({ threadId: 'l', resourceId: 'u' })
    await two.createThread({ threadId: 'r', resourceId: 'u' })
    expect([ids((await one.listThreads()).threads), ids((await two.listThreads()).threads), one.options.lastMessages]).toEqual(['l', 'r', 3])
    await right.heed.close()
    expect(ids((await memory.listThreads()).threads)).toBe('l')
  })

  it('[M1.14] is the default file for a memory that has neither an agent nor a storage', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'heed-default-'))
    const program = `
      import { Memory } from '${new URL('../../src/index.ts', import.meta.url).href}'
      const memory = new Memory()
      await memory.createThread({ threadId: 't', resourceId: 'u' })
      console.log((await new Memory().listThreads()).threads.length)`
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { cwd: folder })
    expect(stdout.trim()).toBe('1')
    expect(existsSync(join(folder, 'heed.db'))).toBe(true)
    rmSync(folder, { recursive: true })
  })
})

describe('keeping for a while', () => {
  it('[M1.8] removes what is older, and reports what was removed', async () => {
    const storage = kept(new LibSQLStore({ url: `file:${newFile()}`, retention: { messages: '30d' } }))
    const memory = memoryOn(storage)
    await memory.createThread({ threadId: 't', resourceId: 'u' })
    const day = 86_400_000
    const now = Date.now()
    await memory.saveMessages({ threadId: 't', messages: Array.from({ length: 500 }, (_, index) => said(`m${index}`, { createdAt: new Date(now - (500 - index) * day) })) })
    const gone: string[] = []
    const pruned = await storage.prune({ now, onPruned: ({ messages }) => void gone.push(...messages.map(({ messageId }) => messageId)) })
    expect(pruned).toEqual({ threads: 0, messages: 470, records: 0 })
    expect(gone).toHaveLength(470)
    expect(ids((await memory.recall({ threadId: 't', perPage: false })).messages).split(' ')).toHaveLength(30)
    expect(await new CompositeStore({ default: storage, retention: { threads: 0 } }).prune({ now: now + day })).toEqual({ threads: 1, messages: 0, records: 0 })
    expect(await memory.getThreadById({ threadId: 't' })).toBeNull()
  })

  it('is rejected when it is invalid, before anything is removed', async () => {
    for (const retention of [{ messages: 'soon' }, { messages: -1 }, { everything: '1d' }] as never[]) {
      expect(() => new LibSQLStore({ url: ':memory:', retention })).toThrow(/retention/)
    }
    await expect(kept(new LibSQLStore({ url: ':memory:' })).prune()).rejects.toMatchObject({ details: { option: 'retention' } })
    const stop = AbortSignal.abort(new Error('stop'))
    await expect(kept(new InMemoryStore()).prune({ retention: { threads: '1w' }, signal: stop })).rejects.toThrow('stop')
  })
})

describe('a backup', () => {
  it('[M1.9] is one state of the file, taken while it is written', async () => {
    const storage = kept(new LibSQLStore({ url: `file:${newFile()}` }))
    const memory = memoryOn(storage)
    await memory.createThread({ threadId: 't', resourceId: 'u', metadata: { topic: 'tea' } })
    const writing = Array.from({ length: 200 }, (_, index) => memory.saveMessages({ threadId: 't', messages: [said(`a${index}`), said(`b${index}`)] }))
    const path = join(dirname(newFile()), 'deep', 'copy.db')
    await storage.backup(path)
    await Promise.all(writing)
    const copy = memoryOn(kept(new LibSQLStore({ url: `file:${path}` })))
    const { messages } = await copy.recall({ threadId: 't', perPage: false })
    expect(messages.length % 2, 'both of a pair, or none').toBe(0)
    expect(messages.map(({ id }) => id)).toEqual((await memory.recall({ threadId: 't', perPage: false })).messages.slice(0, messages.length).map(({ id }) => id))
    expect((await copy.listThreads({ filter: { resourceId: 'u', metadata: { topic: 'tea' } } })).threads).toHaveLength(1)
    expect(readdirSync(dirname(path)).filter((name) => name.includes('partial'))).toEqual([])
    await expect(storage.backup(path)).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'path' } })
  })

  it('of a database in memory is a file too', async () => {
    const storage = kept(new LibSQLStore({ url: ':memory:' }))
    await memoryOn(storage).createThread({ threadId: 't', resourceId: 'u' })
    const path = newFile()
    await storage.backup(path)
    expect(await memoryOn(kept(new LibSQLStore({ url: `file:${path}` }))).getThreadById({ threadId: 't' })).not.toBeNull()
  })

  it('[M1.9] is put back whole while the file is open, and cuts off what runs', async () => {
    const storage = kept(new LibSQLStore({ url: `file:${newFile()}` }))
    const memory = memoryOn(storage)
    await memory.createThread({ threadId: 't', resourceId: 'u', metadata: { topic: 'tea' } })
    await memory.saveMessages({ threadId: 't', messages: conversation(5) })
    const path = newFile()
    await storage.backup(path)

    await memory.deleteMessages({ threadId: 't', messageIds: ['m0', 'm1'] })
    await memory.updateThread({ id: 't', metadata: { topic: 'coffee' } })
    await memory.createThread({ threadId: 'later', resourceId: 'u' })
    const [accepted] = await storage.accept([{
      threadId: 't', resourceId: 'u', agentId: 'agent-1', id: 's', mode: 'now', ifActive: { behavior: 'deliver' }, ifIdle: { behavior: 'wake' }, rows: [], runId: 'r', claim: { owner: 'p' }, now: 1,
    }])
    const fence = accepted && 'fence' in accepted ? accepted.fence : undefined
    if (!fence) throw new Error('the thread was woken')
    const run = await begin(storage, fence)

    await storage.restore(path)
    expect(ids((await memory.recall({ threadId: 't', perPage: false })).messages)).toBe('m0 m1 m2 m3 m4')
    expect(ids((await memory.listThreads({ filter: { resourceId: 'u', metadata: { topic: 'tea' } } })).threads)).toBe('t')
    expect((await memory.listThreads({ filter: { resourceId: 'u', metadata: { topic: 'coffee' } } })).threads).toEqual([])
    expect(await memory.getThreadById({ threadId: 'later' })).toBeNull()
    await expect(storage.commitStep(run.fence, { runId: 'r', step: 0, rows: [] })).rejects.toMatchObject({ code: 'fenced' })
    expect((await storage.getThread({ threadId: 't' }))?.epoch).toBeGreaterThan(run.fence.epoch)
    await memory.updateThread({ id: 't', metadata: { topic: 'milk' } })
    expect(ids((await memory.listThreads({ filter: { resourceId: 'u', metadata: { topic: 'milk' } } })).threads)).toBe('t')
  })

  it('[M1.9] that is the open file itself is rejected at once, under each of its names, and the store keeps working', async () => {
    const file = newFile()
    const storage = kept(new LibSQLStore({ url: `file:${file}` }))
    const memory = memoryOn(storage)
    await memory.createThread({ threadId: 't', resourceId: 'u' })
    symlinkSync(file, `${file}.link`)
    linkSync(file, `${file}.hard`)
    for (const path of [file, relative(process.cwd(), file), file.replace(/\/([^/]+)$/, '/./$1'), `${file}.link`, `${file}.hard`]) {
      await expect(storage.restore(path)).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'path' }, message: expect.stringContaining('is the database that is open') as string })
    }
    for (const path of ['', undefined, 7]) await expect(storage.restore(path as string)).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'path' } })
    await memory.createThread({ threadId: 't2', resourceId: 'u' })
    expect((await memory.listThreads()).threads).toHaveLength(2)
  })

  it('that is missing, damaged or of a newer Heed is rejected, and the file stays unchanged', async () => {
    const storage = kept(new LibSQLStore({ url: `file:${newFile()}` }))
    const memory = memoryOn(storage)
    await memory.createThread({ threadId: 't', resourceId: 'u' })
    await expect(storage.restore(newFile())).rejects.toMatchObject({ code: 'invalid_argument' })
    const noise = newFile()
    writeFileSync(noise, Buffer.alloc(9000, 3))
    await expect(storage.restore(noise)).rejects.toMatchObject({ code: 'store_corrupt' })
    const newer = newFile()
    await storage.backup(newer)
    const bytes = readFileSync(newer)
    bytes.writeUInt32BE(999, 60)
    writeFileSync(newer, bytes)
    await expect(storage.restore(newer)).rejects.toMatchObject({ code: 'store_newer' })
    const cut = newFile()
    await storage.backup(cut)
    copyFileSync(cut, `${cut}.cut`)
    writeFileSync(`${cut}.cut`, readFileSync(cut).subarray(0, 12_000))
    await expect(storage.restore(`${cut}.cut`)).rejects.toMatchObject({ code: 'store_corrupt' })
    expect(await memory.getThreadById({ threadId: 't' })).not.toBeNull()
    expect(existsSync(noise)).toBe(true)
  })
})

describe('long threads', () => {
  it('[M1.4] are cloned and cleared in a thread of their own, with others going on', async () => {
    const storage = kept(new LibSQLStore({ url: `file:${newFile()}` }))
    const memory = memoryOn(storage)
    await memory.createThread({ threadId: 't', resourceId: 'u' })
    await memory.saveMessages({ threadId: 't', messages: conversation(5_000) })
    const [{ thread }, ...others] = await Promise.all([
      memory.cloneThread({ sourceThreadId: 't', newThreadId: 'copy' }),
      memory.cloneThread({ sourceThreadId: 't', newThreadId: 'some', options: { messageLimit: 3_000 } }),
      ...Array.from({ length: 20 }, (_, index) => memory.createThread({ threadId: `beside-${index}`, resourceId: 'u' })),
    ])
    expect(others).toHaveLength(21)
    expect(thread.createdAt).toBeInstanceOf(Date)
    expect((await memory.recall({ threadId: 'copy', perPage: false })).messages).toHaveLength(5_000)
    expect(sourceIds((await memory.recall({ threadId: 'some', perPage: 1, orderBy: { direction: 'ASC' } })).messages)).toBe('m2000')
    await expect(memory.cloneThread({ sourceThreadId: 't', newThreadId: 'copy' })).rejects.toMatchObject({ code: 'thread_exists', details: { threadId: 'copy' } })
    expect(await memory.deleteMessages({ threadId: 't' })).toBe(5_000)
    expect(ids((await memory.recall({ threadId: 't' })).messages)).toBe('')
    await storage.flush()
  })

  it('and 40 saves, deletes and clones at once all succeed', async () => {
    const storage = kept(new LibSQLStore({ url: `file:${newFile()}` }))
    const memory = memoryOn(storage)
    for (let index = 0; index < 10; index++) {
      await memory.createThread({ threadId: `t${index}`, resourceId: 'u' })
      await memory.saveMessages({ threadId: `t${index}`, messages: conversation(200) })
    }
    const results = await Promise.all(Array.from({ length: 40 }, async (_, index) => {
      const threadId = `t${index % 10}`
      if (index % 4 === 0) return memory.saveMessages({ threadId, messages: [said(`new-${index}`)] })
      if (index % 4 === 1) return memory.deleteMessages({ threadId, messageIds: [`m${index}`] })
      if (index % 4 === 2) return memory.cloneThread({ sourceThreadId: threadId })
      return memory.updateMessages({ threadId, messages: [{ id: 'm0', content: { metadata: { [`k${index}`]: 1 } } }] })
    }))
    expect(results).toHaveLength(40)
    expect((await memory.listThreads({ perPage: false })).threads).toHaveLength(20)
  })
})
