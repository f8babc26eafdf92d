import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, createTool, Heed, InMemoryStore, Memory, RequestContext, silentLogger, type AgentConfig } from '../../src/index.ts'
import { MessageHistory } from '../../src/processors/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { rejection } from '../agent/asking.ts'
import { served } from '../http/serving.ts'
import { soon } from '../thread/said.ts'

const folders: string[] = []
const opened: Heed[] = []
afterEach(async () => {
  for (const heed of opened.splice(0)) await heed.close()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

const target = { threadId: 't', resourceId: 'u' }
const memory = { thread: 't', resource: 'u' }
const of = (tenant: string) => new RequestContext({ tenant })
const schema = z.object({ tenant: z.string().optional() })

/** A file for each tenant, and a memory that is made anew whenever it is asked for. */
function tenancy() {
  const folder = mkdtempSync(join(tmpdir(), 'heed-tenants-'))
  folders.push(folder)
  const made = (tenant: unknown) => new Memory({ storage: new LibSQLStore({ url: `file:${join(folder, `${String(tenant)}.db`)}` }) })
  const home = () => new LibSQLStore({ url: `file:${join(folder, 'home.db')}` })
  const files = () => readdirSync(folder).filter((name) => name.endsWith('.db')).toSorted()
  return { made, home, files }
}

function house(agent: Agent, storage: LibSQLStore): Heed {
  const heed = new Heed({ agents: { agent }, storage, logger: silentLogger })
  opened.push(heed)
  return heed
}

const sync: (made: (tenant: unknown) => Memory) => AgentConfig['memory'] = (made) => ({ requestContext }) => made(requestContext.get('tenant'))
const later: typeof sync = (made) => async ({ requestContext }) => made(requestContext.get('tenant'))

describe.each([['at once', sync], ['later', later]])('a memory that is found for each request, %s', (_, finder) => {
  it('[M4.2] keeps the threads of each request in the storage that it brings', async () => {
    const { made, home, files } = tenancy()
    const model = scriptedModel(() => 'Hello.')
    const agent = new Agent({ id: 'a', model, memory: finder(made) })
    const heed = house(agent, home())
    await agent.generate('I am Ada.', { memory, requestContext: of('ada') })
    await agent.generate('I am Bob.', { memory, requestContext: of('bob') })
    const stream = await agent.stream('And again.', { memory, requestContext: of('ada') })
    await stream.text
    const said = async (tenant: string) => (await (await agent.getMemory({ requestContext: of(tenant) })).recall({ threadId: 't' })).messages.map(({ content }) => content.parts.map((part) => (part.type === 'text' ? part.text : '')).join(''))
    expect(await said('ada')).toEqual(['I am Ada.', 'Hello.', 'And again.', 'Hello.'])
    expect(await said('bob')).toEqual(['I am Bob.', 'Hello.'])
    // Each file is one storage, however often it was named; nothing went elsewhere.
    expect(heed.sites.all()).toHaveLength(3)
    expect(files()).toEqual(['ada.db', 'bob.db'])
  })

  it('[M4.2] is resolved for sends, with the context of the run that they may start', async () => {
    const { made, home } = tenancy()
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'Hello.'), memory: finder(made) })
    house(agent, home())
    const to = (tenant: string) => ({ ...target, ifIdle: { streamOptions: { requestContext: of(tenant) } } })
    const ofAda = await agent.forRequest({ requestContext: of('ada') })
    const watching = await ofAda.subscribeToThread(target)
    const sent = agent.sendMessage('I am Ada.', to('ada'))
    expect(sent).toMatchObject({ accepted: true, signal: { contents: 'I am Ada.' } })
    expect(await sent.outcome).toMatchObject({ action: 'woke', runId: sent.runId })
    await sent.stored
    const types: string[] = []
    for await (const chunk of watching.stream) {
      types.push(chunk.type)
      if (chunk.type === 'finish') break
    }
    expect(types).toContain('data-user-message')
    expect(await agent.queueMessage('I am Bob.', to('bob')).outcome).toMatchObject({ action: 'woke' })
    const note = agent.sendSignal({ type: 'notification', contents: 'Note.' }, { ...to('bob'), ifIdle: { ...to('bob').ifIdle, behavior: 'persist' } })
    await note.persisted
    await agent.sendStateSignal({ id: 'lane', cacheKey: 'k', contents: 'x' }, { ...target, ifIdle: { behavior: 'persist', streamOptions: { requestContext: of('bob') } } })
    await agent.sendNotificationSignal({ source: 's', kind: 'k', summary: 'CI failed.', priority: 'urgent' }, { ...target, ifIdle: { streamOptions: { requestContext: of('bob') } } })
    const ofBob = await agent.forRequest(of('bob'))
    expect((await ofBob.listLanes(target)).map(({ id }) => id)).toEqual(['lane'])
    expect(await ofAda.listLanes(target)).toEqual([])
    expect(await ofAda.explain({ ...target, signalId: sent.signal.id })).not.toBeNull()
    await expect.poll(() => ofBob.activeRun(target)).toBeNull()
    expect(JSON.stringify((await (await ofBob.getMemory()).recall({ threadId: 't', perPage: false })).messages)).toContain('CI failed.')
  })

  it('[M4.2] lets sends of one thread arrive in their order, and repeated ones be one', async () => {
    const { made, home } = tenancy()
    let asked = 0
    const agent = new Agent({
      id: 'a', model: scriptedModel(() => 'Hello.'),
      // The first answers last.
      memory: (context) => (asked++ === 0 ? Promise.resolve().then(() => new Promise<void>((resolve) => setImmediate(resolve))).then(() => made('x')) : (finder(made) as (given: typeof context) => Memory)({ requestContext: of('x') })),
    })
    house(agent, home())
    const persist = { ...target, ifIdle: { behavior: 'persist' } } as const
    const sent = [1, 2, 3, 4].map((index) => agent.sendMessage({ contents: `m${index}`, id: `id-${index}` }, persist))
    const again = agent.sendMessage({ contents: 'm1', id: 'id-1' }, persist)
    for (const { persisted } of sent) await persisted
    expect(await again.outcome).toMatchObject({ action: 'persisted', duplicate: true })
    expect((await (await agent.getMemory()).recall({ threadId: 't' })).messages.map(({ id }) => id)).toEqual(['id-1', 'id-2', 'id-3', 'id-4'])
  })

  it('[M4.2] works in every method where it needs no context', async () => {
    const { made, home, files } = tenancy()
    const model = scriptedModel(() => 'Hello.')
    const agent = new Agent({ id: 'a', model, memory: finder(() => made('all')) })
    house(agent, home())
    expect(await agent.sendMessage('Hi.', target).outcome).toMatchObject({ action: 'woke' })
    await expect.poll(() => agent.activeRun(target)).toBeNull()
    expect(await agent.listQueued(target)).toEqual([])
    expect(await agent.listActiveThreads()).toEqual([])
    expect(await agent.abortRun(target)).toMatchObject({ aborted: false })
    expect(agent.abortThreadStream(target)).toBe(false)
    const record = await agent.schedule({ ...target, id: 's', message: 'Again.', every: 3_600_000 })
    expect(await agent.schedules.get({ id: record.id })).toMatchObject({ id: 's' })
    expect((await agent.explainPrompt('Next.', { memory })).parts.length).toBeGreaterThan(2)
    expect(files()).toEqual(['all.db'])
  })

  it('[M4.3] resumes after a restart: with start(), or with the first request that names it', async () => {
    const { made, home } = tenancy()
    const config = { id: 'a', memory: finder(made), requestContextSchema: schema } as const
    for (const tenant of ['ada', 'bob']) {
      const hung = new Agent({ ...config, model: scriptedModel([{ text: 'Half', hang: true }]) })
      const before = house(hung, home())
      await hung.sendMessage(`I am ${tenant}.`, { ...target, ifIdle: { streamOptions: { requestContext: of(tenant) } } }).outcome
      await before.close()
    }
    const asked: unknown[] = []
    const model = scriptedModel(() => 'Whole.')
    const agent = new Agent({ ...config, model, instructions: ({ requestContext }) => (asked.push(requestContext.get('tenant')), 'Go on.') })
    const heed = house(agent, home())
    await heed.start({ requestContexts: [of('ada')] })
    const ofAda = await agent.forRequest(of('ada'))
    await expect.poll(() => ofAda.activeRun(target)).toBeNull()
    expect(asked).toEqual(['ada'])
    const ofBob = await agent.forRequest(of('bob'))
    expect((await (await ofBob.getMemory()).getThreadById({ threadId: 't' }))?.id).toBe('t')
    await expect.poll(() => ofBob.activeRun(target)).toBeNull()
    expect(asked).toEqual(['ada', 'bob'])
    expect(JSON.stringify((await (await ofBob.getMemory()).recall({ threadId: 't' })).messages)).toContain('Whole.')
  })

  it('[M4.3] finds a call that is pending approval, also after a restart', async () => {
    const { made, home } = tenancy()
    const paid: unknown[] = []
    const pay = createTool({ id: 'pay', requireApproval: true, execute: (_, { requestContext }) => (paid.push(requestContext.get('tenant')), 'paid') })
    const make = () => new Agent({
      id: 'a', memory: finder(made), requestContextSchema: schema, tools: { pay },
      model: scriptedModel(({ prompt }) => (prompt.some(({ role }) => role === 'tool') ? 'Done.' : { toolCalls: [{ toolName: 'pay', input: {} }] })),
    })
    const first = make()
    const before = house(first, home())
    await first.generate('Pay.', { memory, requestContext: of('ada') })
    await before.close()
    const agent = make()
    house(agent, home())
    const ofAda = await agent.forRequest(of('ada'))
    expect((await agent.listSuspendedRuns()).runs).toEqual([])
    expect((await ofAda.listSuspendedRuns()).runs).toHaveLength(1)
    await ofAda.sendToolApproval({ ...target, approved: true })
    await expect.poll(() => ofAda.activeRun(target)).toBeNull()
    expect(paid).toEqual(['ada'])
  })

  it('[M4.2] is resolved for an agent that another agent calls', async () => {
    const { made, home, files } = tenancy()
    const below = new Agent({ id: 'below', model: scriptedModel(() => 'From below.'), memory: finder((tenant) => made(`${String(tenant)}-below`)) })
    const above = new Agent({
      id: 'above', agents: { below },
      model: scriptedModel(({ prompt }) => (prompt.some(({ role }) => role === 'tool') ? 'Done.' : { toolCalls: [{ toolName: 'agent-below', toolCallId: 'c', input: { prompt: 'Say.' } }] })),
    })
    house(above, home())
    await above.generate('Ask.', { memory, requestContext: of('ada') })
    expect(files()).toEqual(['ada-below.db', 'home.db'])
  })

  it('[M4.2] is resolved over HTTP with the context of the request', async () => {
    const { made, files } = tenancy()
    const agent = new Agent({ id: 'guide', model: scriptedModel(() => 'Hello.'), memory: finder(made), requestContextSchema: z.object({ tenant: z.string() }) })
    const { ask } = await served({ guide: agent }, { requestContext: ({ request }) => ({ tenant: request.headers.get('x-tenant') }) })
    const as = (tenant: string) => ({ headers: { 'x-tenant': tenant } })
    await ask('/agents/guide/send-message?wait=outcome', { json: { message: 'Hi', threadId: 't', resourceId: 'u' }, ...as('ada') })
    await (await ask('/agents/guide/generate', { json: { messages: 'Hi', memory }, ...as('bob') })).text()
    const lanes = async (tenant: string) => (await ask('/agents/guide/threads/t/lanes?resourceId=u', as(tenant))).status
    expect([await lanes('ada'), await lanes('bob'), await lanes('eve')]).toEqual([200, 200, 404])
    const messages = async (tenant: string) => ((await (await ask('/memory/threads/t/messages?agentId=guide&resourceId=u', as(tenant))).json()) as { messages?: unknown[] }).messages?.length
    await expect.poll(() => messages('ada')).toBe(2)
    expect(await messages('bob')).toBe(2)
    expect(files()).toEqual(['ada.db', 'bob.db', 'eve.db'])
  })
})

describe('what a memory of each request can\'t be', () => {
  it('[M4.4] is rejected by name', async () => {
    const { made, home, files } = tenancy()
    const model = scriptedModel(() => 'Hi.')
    const strict = new Agent({ id: 'strict', model, requestContextSchema: z.object({ tenant: z.string() }), memory: ({ requestContext }) => made(requestContext.get('tenant')) })
    house(strict, home())
    const nobody = { code: 'invalid_request_context' }
    expect(await rejection(strict.generate('Hi.', { memory }))).toMatchObject(nobody)
    expect(await rejection(strict.subscribeToThread(target))).toMatchObject(nobody)
    expect(await strict.sendMessage('Hi.', target).outcome).toMatchObject({ action: 'rejected', ...nobody })
    expect(await rejection(strict.sendMessage('Hi.', target).stored)).toMatchObject(nobody)
    expect(files()).toEqual([])
    const none = new Agent({ id: 'none', model, memory: (() => ({ storage: home() })) as never })
    expect(await rejection(none.generate('Hi.', { memory }))).toMatchObject({ code: 'invalid_agent', details: { field: 'memory' } })
    const history = new Agent({ id: 'h', model, inputProcessors: () => [new MessageHistory({ storage: home() })] })
    house(history, home())
    expect(await rejection(history.generate('Hi.', { memory }))).toMatchObject({ code: 'unsupported_option', details: { option: 'storage' } })
    const two = new Agent({ id: 'two', model, memory: () => made('one'), inputProcessors: [new MessageHistory({ storage: home() })] })
    expect(await rejection(two.generate('Hi.', { memory }))).toMatchObject({ code: 'invalid_agent', details: { option: 'storage' } })
    expect(model.callCount).toBe(0)
  })

  it('[M4.4] is a storage of its own for each call', async () => {
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'Hi.'), memory: () => new Memory({ storage: new InMemoryStore() }) })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
    opened.push(heed)
    const refusals: unknown[] = []
    for (let call = 0; call < 1_001; call++) await agent.getMemory().catch((error: unknown) => refusals.push(error))
    expect(refusals).toEqual([expect.objectContaining({ code: 'too_many_storages' }), expect.objectContaining({ code: 'too_many_storages' })])
  })

  it('[M4.6] may be closed by the program when it is done with it: room for another', async () => {
    const clock = virtualClock()
    const made: InMemoryStore[] = []
    const agent = new Agent({
      id: 'a', model: scriptedModel(() => 'Hi.'),
      memory: () => {
        made.push(new InMemoryStore({ clock }))
        return new Memory({ storage: made.at(-1)! })
      },
    })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore({ clock }), clock, logger: silentLogger })
    opened.push(heed)
    await agent.generate('Hi.', { memory })
    const [used] = made.splice(0)
    const refused = () => agent.getMemory().then(() => undefined, (error: { code?: string }) => error.code)
    let full: string | undefined
    while (full === undefined) full = await refused()
    expect(full).toBe('too_many_storages')
    await used?.close()
    await soon(async () => {
      await clock.advance(1_000)
      return refused()
    }).toBeUndefined()
  })

  it('[M4.4] is a function that never resolves: an abort ends the wait', async () => {
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'Hi.'), memory: () => new Promise<never>(() => {}) })
    house(agent, tenancy().home())
    const stop = new AbortController()
    const asked = agent.generate('Hi.', { memory, abortSignal: stop.signal })
    stop.abort()
    expect(await rejection(asked)).toMatchObject({ code: 'aborted' })
  })
})
