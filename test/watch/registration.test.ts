import { describe, expect, it } from 'vitest'
import { Channel, Contacts, directChannel } from '../../src/channel/index.ts'
import { Agent, CompositeStore, InMemoryStore, Memory, silentLogger } from '../../src/index.ts'
import { WatchesLibSQL } from '../../src/store/sqlite/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { idle, soon } from '../thread/said.ts'
import { call, code, message, opened, reasons, target, watching } from './watching.ts'

const found = call('complete_task', { result: '482913' })
const sms = { description: 'the code', expected_channels: ['sms'], result_schema: code }
const named = (toolCallId: string, input: object) => ({ toolCalls: [{ toolCallId, toolName: 'await_signal', input }] })

describe('a registration', () => {
  it('[V1.36] of an agent with a storage of its own beside the channels of its Heed is refused by name, from the program and from the model', async () => {
    const model = scriptedModel([call('await_signal', sms), 'It failed.'])
    const agent = new Agent({ id: 'apart', model, watches: true, memory: new Memory({ storage: new InMemoryStore() }) })
    const adapter = directChannel({ kind: 'sms' })
    opened({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger, channels: [new Channel({ id: 'phone', adapter, resourceId: 'ada' })] })
    await expect(agent.awaitSignal(sms, target)).rejects.toMatchObject({ code: 'unsupported_option', details: { option: 'memory.storage', agent: 'apart' } })
    await agent.sendMessage('Wait.', target).outcome
    await idle(agent, target)
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain('has a storage of its own')
    expect((await agent.listWatches()).watches).toEqual([])
  })

  it('[V1.36] is accepted where the Heed has no channels: those of another process may store in the same place', async () => {
    const agent = new Agent({ id: 'apart', model: scriptedModel(['Noted.']), watches: true, memory: new Memory({ storage: new InMemoryStore() }) })
    opened({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
    expect(await agent.awaitSignal(sms, target)).toMatchObject({ state: 'open' })
  })

  it('[V1.37] two calls of one run with one id in two steps are two watches', async () => {
    const script = [named('call_0', sms), named('call_0', { ...sms, description: 'another' }), 'I wait for both.']
    const { agent } = watching({ script, judge: [] })
    await agent.sendMessage('Wait for both.', target).outcome
    await idle(agent, target)
    const { watches } = await agent.listWatches()
    expect(watches.map(({ description }) => description).toSorted()).toEqual(['another', 'the code'])
  })

  it('[V1.42] that is refused leaves no thread behind, and one that is accepted creates it', async () => {
    const { agent } = watching({ script: [], judge: [], agent: { watches: { maxOpen: 1 } } })
    const threads = async () => (await (await agent.getMemory()).listThreads({ filter: { resourceId: 'ada' } })).threads.map(({ id }) => id)
    await agent.awaitSignal(sms, { ...target, id: 'first' })
    expect(await threads()).toEqual(['login'])
    await expect(agent.awaitSignal(sms, { ...target, threadId: 'second' })).rejects.toMatchObject({ code: 'too_many_watches' })
    await expect(agent.awaitSignal(sms, { ...target, threadId: 'second', id: 'first' })).rejects.toMatchObject({ code: 'id_taken' })
    await expect(agent.awaitSignal(sms, { ...target, resourceId: 'bob' })).rejects.toMatchObject({ code: 'thread_forbidden' })
    expect(await threads()).toEqual(['login'])
  })

  it('[V1.42] with watches in a database of their own finds or creates its thread in that of the threads', async () => {
    const model = scriptedModel(['Noted.'])
    const agent = new Agent({ id: 'assistant', model, watches: true })
    const storage = new CompositeStore({ default: new InMemoryStore(), domains: { watches: new WatchesLibSQL({ url: ':memory:' }) } })
    opened({ agents: { agent }, storage, logger: silentLogger })
    const { id } = await agent.awaitSignal(sms, target)
    expect((await (await agent.getMemory()).listThreads({ filter: { resourceId: 'ada' } })).threads.map((thread) => thread.id)).toEqual(['login'])
    await agent.cancelWatch({ id })
    await soon(() => reasons(model)).toEqual(['cancelled'])
  })

  it('[V1.41] wakes its thread, however long the ids of the run and the call are; a longer id of the program is rejected by name', async () => {
    const { agent, model } = watching({ script: ({ index }) => (index === 0 ? named('c'.repeat(250), sms) : 'Fine.'), judge: [] })
    await agent.sendMessage('Wait.', { ...target, ifIdle: { streamOptions: { runId: 'r'.repeat(200) } } }).outcome
    await idle(agent, target)
    const { watches: [watch] } = await agent.listWatches()
    await agent.cancelWatch({ id: watch?.id ?? '' })
    await soon(() => reasons(model)).toEqual(['cancelled'])
    await expect(agent.awaitSignal(sms, { ...target, id: 'w'.repeat(201) })).rejects.toMatchObject({ code: 'invalid_argument', message: expect.stringContaining('id must be at most 200') as string })
    const { id } = await agent.awaitSignal(sms, { ...target, id: 'w'.repeat(200) })
    await agent.cancelWatch({ id })
    await soon(() => reasons(model)).toEqual(['cancelled', 'cancelled'])
  })

  it('[V1.39] that is repeated when the watch is over returns it, whatever its times are by then', async () => {
    const clock = virtualClock()
    const { agent, adapter, model } = watching({ clock, script: () => 'Noted.', judge: () => found })
    const input = { ...sms, expires_at: new Date(clock.now() + 60_000).toISOString() }
    const first = await agent.awaitSignal(input, { ...target, id: 'w' })
    await adapter.deliver(message('1', 'Your code is 482913.'))
    await soon(() => reasons(model)).toEqual(['matched'])
    await clock.advance(120_000)
    const again = await agent.awaitSignal(input, { ...target, id: 'w' })
    expect(again).toMatchObject({ id: 'w', state: 'ended', reason: 'matched', createdAt: first.createdAt, expiresAt: first.expiresAt })
    await expect(agent.awaitSignal(input, { ...target, id: 'another' })).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'expires_at' } })
    await expect(agent.awaitSignal(sms, { ...target, threadId: 'elsewhere', id: 'w' })).rejects.toMatchObject({ code: 'id_taken' })
    expect((await agent.listWatches()).watches).toHaveLength(1)
  })

  it('[V3.7] a contact that is added after it does not count for it, and counts for the next watch', async () => {
    const clock = virtualClock()
    const contacts = new Contacts()
    const { agent, adapter, model, judging } = watching({ clock, contacts, script: () => 'Noted.', judge: () => found })
    const first = await agent.awaitSignal({ ...sms, expected_contacts: ['bank'] }, { ...target, threadId: 'first' })
    await clock.advance(1)
    contacts.add({ id: 'bank', addresses: [{ kind: 'sms', address: '+15550100' }] })
    expect(contacts.list()).toEqual([{ id: 'bank', addresses: [{ kind: 'sms', address: '+15550100', since: clock.now() }] }])
    await adapter.deliver(message('1', 'Your code is 482913.'))
    await soon(async () => (await agent.explain({ watchId: first.id }))?.messages.map(({ reason }) => reason)).toEqual(['contact'])
    await clock.advance(1)
    await agent.awaitSignal({ ...sms, expected_contacts: ['bank'] }, { ...target, threadId: 'second' })
    await adapter.deliver(message('2', 'Your code is 482913.'))
    await soon(() => reasons(model)).toEqual(['matched'])
    expect([(await agent.getWatch({ id: first.id }))?.state, judging.callCount]).toEqual(['open', 1])
  })

  it('[V3.7] contacts that are added before they belong to a channel were always theirs', async () => {
    const contacts = new Contacts()
    contacts.add({ id: 'bank', addresses: [{ kind: 'sms', address: '+15550100' }] })
    expect(contacts.list()[0]?.addresses[0]?.since).toBe(0)
  })
})

describe('a watch of an agent that no process has', () => {
  it('[V1.33] expires, and those behind it go on', async () => {
    const clock = virtualClock()
    const first = watching({ clock, script: () => 'Noted.', judge: () => found, agent: { id: 'gone' } })
    const { id } = await first.agent.awaitSignal({ ...sms, exclusive: true, expires_in_minutes: 1 }, { ...target, threadId: 'first' })
    await first.heed.close()
    const { heed, agent, adapter, model } = watching({ clock, file: first.file, script: () => 'Noted.', judge: () => found })
    await heed.start()
    await agent.awaitSignal(sms, target)
    await adapter.deliver(message('1', 'Your code is 482913.'))
    await clock.advance(5 * 60_000)
    expect(reasons(model)).toEqual([])
    await clock.advance(10 * 60_000)
    await soon(() => reasons(model)).toEqual(['matched'])
    const third = watching({ clock, file: first.file, script: () => 'Noted.', judge: () => found, agent: { id: 'gone' }, channel: ['sms', 'other'] })
    await third.heed.start()
    expect(await third.agent.getWatch({ id })).toMatchObject({ state: 'ended', reason: 'expired' })
    await soon(() => reasons(third.model)).toEqual(['expired'])
  })
})
