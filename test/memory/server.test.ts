import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { Agent, Heed, Memory, silentLogger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { gate, soon } from '../thread/said.ts'
import { hranaServer } from './hrana-server.ts'
import { conversation, ids, sourceIds, kept, memoryOn, said } from './kept.ts'
import { newFile } from '../new-file.ts'
import { selfSigned } from './self-signed.ts'

const token = 'a-token'

async function served(path = newFile()) {
  const server = kept(await hranaServer(path, token))
  return { path, server, store: (authToken = token) => kept(new LibSQLStore({ url: server.url, authToken })) }
}

describe('a database on a server', () => {
  it('keeps threads, messages, clones and lists, and another store finds them', async () => {
    const { server, store } = await served()
    const memory = memoryOn(store())
    await memory.createThread({ threadId: 't', resourceId: 'u', title: 'Tea', metadata: { topic: 'tea', stars: 3 } })
    await memory.saveMessages({ threadId: 't', messages: conversation(8) })
    const { clonedMessages } = await memory.cloneThread({ sourceThreadId: 't', newThreadId: 'copy' })
    expect(sourceIds(clonedMessages)).toBe('m0 m1 m2 m3 m4 m5 m6 m7')
    expect(await memory.deleteMessages({ threadId: 't', messageIds: ['m0', 'm1'] })).toBe(2)
    expect(server.asked()).toBeGreaterThan(10)

    const other = memoryOn(store())
    expect(ids((await other.recall({ threadId: 't', perPage: false })).messages)).toBe('m2 m3 m4 m5 m6 m7')
    const found = await other.listThreads({ filter: { resourceId: 'u', metadata: { stars: 3 } }, orderBy: { field: 'updatedAt', direction: 'DESC' } })
    expect(ids(found.threads)).toBe('t')
  })

  it('loses no concurrent write of two processes', async () => {
    const { store } = await served()
    const [one, two] = [memoryOn(store()), memoryOn(store())]
    await one.createThread({ threadId: 't', resourceId: 'u' })
    const keys = Array.from({ length: 10 }, (_, index) => `k${index}`)
    await Promise.all(keys.map((key, index) => (index % 2 ? one : two).updateThread({ id: 't', metadata: { [key]: index } })))
    expect(Object.keys((await one.getThreadById({ threadId: 't' }))?.metadata ?? {}).toSorted()).toEqual(keys)
  })

  it('runs agents: a second Heed answers with the history of the first', async () => {
    const { store } = await served()
    const answer = async (text: string) => {
      const agent = new Agent({ id: 'guide', model: scriptedModel((call) => `${call.prompt.length}`) })
      const heed = new Heed({ agents: { agent }, storage: store(), logger: silentLogger })
      const { text: said } = await agent.generate(text, { memory: { thread: 't', resource: 'u' } })
      await heed.close()
      return said
    }
    expect([await answer('One'), await answer('Two')]).toEqual(['1', '3'])
  })

  it('keeps an inbox and schedules: summaries, full texts, keys, and a thread that is transferred with them', async () => {
    const { store } = await served()
    const storage = store()
    const clock = virtualClock()
    const hold = gate()
    const model = scriptedModel(({ index }) => (index === 0 ? { text: 'Working.', gate: hold.promise } : 'Noted.'))
    const agent = new Agent({ id: 'guide', model })
    kept(new Heed({ agents: { agent }, storage, clock, logger: silentLogger }))
    const thread = { threadId: 't', resourceId: 'u' }
    agent.sendMessage('Work.', thread)
    await soon(() => model.callCount).toBe(1)
    const high = { source: 'ci', kind: 'status', summary: 'Red.', priority: 'high' } as const
    await agent.sendNotificationSignal([high, high], thread)
    await agent.sendNotificationSignal({ ...high, dedupeKey: 'k' }, thread)
    await agent.sendNotificationSignal({ ...high, dedupeKey: 'k' }, thread)
    expect(await agent.listQueued(thread)).toMatchObject([{ signal: { tagName: 'notification-summary', attributes: { pending: 3 } } }])
    await agent.schedule({ ...thread, id: 's', message: 'Look.', at: new Date(clock.now() + 60_000) })
    hold.open()
    const inbox = (await storage.getStore('notifications'))!
    await soon(async () => (await inbox.countNotifications(thread)).delivered).toBe(3)
    await soon(() => agent.activeRun(thread)).toBeNull()
    const calls = model.callCount
    // In steps in which leases are renewed.
    await soon(async () => {
      await clock.advance(1_000)
      return (await agent.schedules.get({ id: 's' }))?.lastSignalId
    }).toMatch(/^schedule:s:/)
    await soon(async () => {
      await clock.advance(1_000)
      return model.callCount > calls && (await agent.activeRun(thread)) === null
    }).toBe(true)
    const memory = await agent.getMemory()
    await memory.transferThread({ threadId: 't', resourceId: 'v', from: 'u' })
    expect([await inbox.countNotifications({ threadId: 't', resourceId: 'v' }), (await agent.schedules.list({ resourceId: 'v' })).schedules.length]).toEqual([{ delivered: 3 }, 1])
    const { messages } = await memory.recall({ threadId: 't', perPage: false })
    expect(messages.filter(({ type }) => type === 'notification-summary')).toHaveLength(1)
    expect(messages.filter(({ type }) => type === 'notification')).toHaveLength(3)
  })

  it('that rejects the token causes a named error without the token', async () => {
    const { store } = await served()
    const failed = await store('wrong-secret').open().catch((error: unknown) => error)
    expect(failed).toMatchObject({ code: 'store_failed' })
    expect(String(failed)).not.toContain('wrong-secret')
  })

  it('[K2.1] has an index: agents recall what other threads said, and programs search', async () => {
    const { store } = await served()
    const model = scriptedModel(() => 'Yes.')
    const agent = new Agent({ id: 'guide', model, memory: new Memory({ semanticRecall: true }) })
    kept(new Heed({ agents: { agent }, storage: store(), logger: silentLogger }))
    await agent.generate('The key is under the mat.', { memory: { thread: 't', resource: 'u' } })
    await agent.generate('Where is the key?', { memory: { thread: 'other', resource: 'u' } })
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain('under the mat')
    const { hits } = await (await agent.getMemory()).recall({ threadId: 't', vectorSearchString: 'the mat' })
    expect(hits?.[0]?.text).toBe('The key is under the mat.')
  })

  it('is called in batches: 300 messages are a few round trips, not thousands', async () => {
    const { server, store } = await served()
    const memory = memoryOn(store())
    await memory.createThread({ threadId: 't', resourceId: 'u' })
    const before = server.asked()
    await memory.saveMessages({ threadId: 't', messages: Array.from({ length: 300 }, (_, index) => said(`m${index}`)) })
    expect(server.asked() - before).toBeLessThan(40)
    expect((await memory.recall({ threadId: 't', perPage: false })).messages).toHaveLength(300)
  })
})

/** Another process that trusts what this file says, if any. It says which messages a thread has, or what went wrong. */
async function asked(url: string, trusted?: string): Promise<unknown> {
  const code = `
    import { Memory } from ${JSON.stringify(new URL('../../src/index.ts', import.meta.url).href)}
    import { LibSQLStore } from ${JSON.stringify(new URL('../../src/store/sqlite/index.ts', import.meta.url).href)}
    const storage = new LibSQLStore({ url: ${JSON.stringify(url)}, authToken: ${JSON.stringify(token)}, busyTimeout: 50 })
    const memory = new Memory({ storage })
    try {
      await memory.createThread({ threadId: 't', resourceId: 'u' })
      await memory.saveMessages({ threadId: 't', messages: ['Safe?'] })
      const { messages } = await memory.recall({ threadId: 't' })
      console.log(JSON.stringify(messages.map(({ content }) => content.parts[0].text)))
    } catch (error) {
      console.log(JSON.stringify({ code: error.code, message: error.message }))
    }
    await storage.close()`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], { env: { ...process.env, ...(trusted && { NODE_EXTRA_CA_CERTS: trusted }) } })
  return JSON.parse(stdout)
}

describe('a server behind TLS', () => {
  it.each(['https:', 'libsql:'])('is reached by %s when its certificate is trusted, and rejected by name otherwise', async (scheme) => {
    const identity = selfSigned()
    const trusted = newFile().replace('.db', '.pem')
    writeFileSync(trusted, identity.cert)
    const server = kept(await hranaServer(newFile(), token, identity))
    const url = server.url.replace('https:', scheme)
    expect(await asked(url, trusted)).toEqual(['Safe?'])
    const before = server.asked()
    expect(await asked(url)).toMatchObject({ code: 'store_failed' })
    expect(server.asked()).toBe(before)
  })
})
