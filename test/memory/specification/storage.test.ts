import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { Agent, CompositeStore, Heed, InMemoryStore, Memory, silentLogger, type Message } from '../../../src/index.ts'
import { WebhookSignals } from '../../../src/sources/index.ts'
import { LibSQLStore, MemoryLibSQL, NotificationsLibSQL, SchedulesLibSQL, SubscriptionsLibSQL } from '../../../src/store/sqlite/index.ts'
import type { Processor } from '../../../src/processors/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { thrownBy } from '../../agent/asking.ts'
import { kept } from '../kept.ts'
import { newFile } from '../../new-file.ts'

const logger = silentLogger
const always = () => scriptedModel(() => 'Yes.')
const where = { thread: 'conversation-1', resource: 'customer-1' }

describe('every call about storage', () => {
  it('a Heed with a LibSQLStore: its tables are there with the first use, and relative and absolute paths are the same file', async () => {
    const file = newFile()
    const storage = kept(new LibSQLStore({ id: 'app-storage', url: `file:${file}` }))
    const agent = new Agent({ id: 'desk', model: always() })
    kept(new Heed({ agents: { desk: agent }, storage, logger }))
    await agent.generate('Good day', { memory: where })
    expect(existsSync(file)).toBe(true)
    const relative = kept(new LibSQLStore({ url: `file:${file.replace('/', '/./')}` }))
    expect((await relative.listRows({ threadId: where.thread }, { limit: 9 })).rows).toHaveLength(2)
  })

  it('two agents inherit it, made with an id and a memory alone', async () => {
    const storage = kept(new LibSQLStore({ id: 'app-storage', url: `file:${newFile()}` }))
    const first = new Agent({ id: 'first', memory: new Memory() })
    const second = new Agent({ id: 'second', memory: new Memory() })
    kept(new Heed({ agents: { first, second }, storage, logger }))
    await (await first.getMemory()).createThread({ threadId: 'shared', resourceId: 'customer-1' })
    expect(await (await second.getMemory()).getThreadById({ threadId: 'shared' })).toMatchObject({ id: 'shared', resourceId: 'customer-1' })
  })

  it('storage by domain, and an unknown domain is rejected by its name', async () => {
    const storage = kept(new CompositeStore({ id: 'composite', domains: { memory: new MemoryLibSQL({ url: `file:${newFile()}` }) } }))
    const agent = new Agent({ id: 'desk', model: always(), memory: new Memory() })
    kept(new Heed({ agents: { desk: agent }, storage, logger }))
    await agent.generate('Good day', { memory: where })
    expect((await (await agent.getMemory()).recall({ threadId: where.thread })).messages).toHaveLength(2)
    for (const [domain, why] of [['workflows', 'runs of workflows are with the threads: leave it out'], ['observability', 'they go to OpenTelemetry: leave it out']] as const)
      expect(thrownBy(() => new CompositeStore({ domains: { memory: new InMemoryStore(), [domain]: new InMemoryStore() } as object })))
        .toMatchObject({ code: 'unsupported_option', details: { option: `domains.${domain}` }, message: expect.stringContaining(why) as string })
    expect(thrownBy(() => new CompositeStore({ domains: { ledgers: new InMemoryStore() } as object }))).toMatchObject({ code: 'unsupported_option', details: { option: 'domains.ledgers' } })
  })

  it('a class for each domain, in files of their own: getStore gives each back, and a Heed uses them', async () => {
    const domains = {
      memory: new MemoryLibSQL({ url: `file:${newFile()}` }),
      notifications: new NotificationsLibSQL({ url: `file:${newFile()}` }),
      schedules: new SchedulesLibSQL({ url: `file:${newFile()}` }),
      subscriptions: new SubscriptionsLibSQL({ url: `file:${newFile()}` }),
    }
    const storage = kept(new CompositeStore({ id: 'composite', domains }))
    for (const [name, store] of Object.entries(domains)) expect(await storage.getStore(name as keyof typeof domains)).toBe(store)
    expect(await storage.getStore('recall')).toBe(await domains.memory.getStore('recall'))
    const source = new WebhookSignals({ id: 'shop', secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' })
    const agent = new Agent({ id: 'desk', model: always(), memory: new Memory(), notifications: { deliveryPolicy: { default: 'persist' } } })
    kept(new Heed({ agents: { desk: agent }, storage, sources: [source], logger }))
    const thread = { threadId: where.thread, resourceId: where.resource }
    await agent.generate('Good day', { memory: where })
    const { record } = await agent.sendNotificationSignal({ source: 'shop', kind: 'order', summary: 'Sold.' }, thread)
    await agent.schedule({ ...thread, id: 'often', message: 'Look.', every: 3_600_000 })
    await source.subscribe({ ...thread, agentId: 'desk', externalId: 'order-1' })
    expect(await domains.memory.getThread(thread)).not.toBeNull()
    expect(await domains.notifications.getNotification({ ...thread, id: record.id })).toMatchObject({ summary: 'Sold.' })
    expect(await domains.schedules.getSchedule({ id: 'often' })).toMatchObject({ status: 'active' })
    expect((await domains.subscriptions.listSubscriptions({ sourceId: 'shop', limit: 5 })).subscriptions).toMatchObject([{ externalId: 'order-1' }])
  })

  it('storage of one agent alone', async () => {
    const own = kept(new LibSQLStore({ id: 'agent-storage', url: `file:${newFile()}` }))
    const shared = kept(new InMemoryStore())
    const agent = new Agent({ id: 'desk', model: always(), memory: new Memory({ storage: own }) })
    kept(new Heed({ agents: { desk: agent }, storage: shared, logger }))
    await agent.generate('Good day', { memory: where })
    expect(await own.getThread({ threadId: where.thread })).not.toBeNull()
    expect(await shared.getThread({ threadId: where.thread })).toBeNull()
  })
})

describe('every call about threads and titles', () => {
  it('generate and stream take a thread and a resource; both are stored', async () => {
    const agent = new Agent({ id: 'desk', model: always(), memory: new Memory() })
    kept(new Heed({ agents: { desk: agent }, storage: kept(new InMemoryStore()), logger }))
    expect((await agent.generate('Good day', { memory: where })).text).toBe('Yes.')
    expect(await (await agent.stream('Still there?', { memory: where })).text).toBe('Yes.')
    expect((await (await agent.getMemory()).recall({ threadId: where.thread, resourceId: where.resource })).messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
  })

  it.each([
    ['true', true],
    ['a model and instructions of its own', { model: scriptedModel(() => 'Sums'), instructions: 'One word, please.' }],
  ])('generateTitle: %s', async (_, generateTitle) => {
    const model = scriptedModel(({ index }) => (index === 0 ? 'Four.' : 'Sums'))
    const agent = new Agent({ id: 'desk', model, memory: new Memory({ options: { generateTitle } }) })
    const heed = kept(new Heed({ agents: { desk: agent }, storage: kept(new InMemoryStore()), logger }))
    expect((await agent.generate('What is two and two?', { memory: where })).text).toBe('Four.')
    await heed.tick()
    expect(await (await agent.getMemory()).getThreadById({ threadId: where.thread })).toMatchObject({ title: 'Sums' })
    if (typeof generateTitle === 'object') {
      expect(model.calls).toHaveLength(1)
      expect(JSON.stringify(generateTitle.model.calls[0]?.prompt)).toContain('One word, please.')
    }
  })

  it('a title model by its name is taken at construction', () => {
    expect(new Memory({ options: { generateTitle: { model: 'openai/gpt-4o-mini', instructions: 'One word.' } } }).options.generateTitle).toMatchObject({ model: 'openai/gpt-4o-mini' })
  })
})

/** Files go to a place of the program's own, and what is stored has their address. */
class Uploader implements Processor {
  id = 'uploader'
  readonly kept: Array<{ bytes: Buffer; type: string | undefined }> = []

  async processInput({ messages }: { messages: Message[] }) {
    return Promise.all(messages.map((message) => this.processMessage(message)))
  }

  async processMessage(message: Message) {
    const attachments = message.content.experimental_attachments
    if (!attachments?.length) return message
    const uploaded = await Promise.all(attachments.map(async (attachment) => {
      if (!attachment.url?.startsWith('data:')) return attachment
      return { ...attachment, url: await this.upload(attachment.url, attachment.contentType) }
    }))
    return { ...message, content: { ...message.content, experimental_attachments: uploaded } }
  }

  async upload(address: string, type?: string): Promise<string> {
    this.kept.push({ bytes: Buffer.from(address.split(',')[1] ?? '', 'base64'), type })
    return `https://files.test/${this.kept.length}`
  }
}

describe('every call about attachments', () => {
  it('a processor of one\'s own takes them out before anything is stored', async () => {
    const uploader = new Uploader()
    const model = always()
    const agent = new Agent({ id: 'desk', model, memory: new Memory({ storage: kept(new InMemoryStore()) }), inputProcessors: [uploader] })
    const picture = Buffer.from('a picture')
    await agent.generate([{
      role: 'user', content: 'Look at this.', experimental_attachments: [{ url: `data:image/png;base64,${picture.toString('base64')}`, contentType: 'image/png', name: 'a.png' }],
    }], { memory: where })
    expect(uploader.kept).toEqual([{ bytes: picture, type: 'image/png' }])
    const { messages: [stored] } = await (await agent.getMemory()).recall({ threadId: where.thread })
    expect(JSON.stringify(stored)).toContain('https://files.test/1')
    expect(JSON.stringify(stored)).not.toContain(picture.toString('base64'))
    expect(JSON.stringify(model.calls[0]?.prompt)).toContain('https://files.test/1')
  })
})
