import { describe, expect, it } from 'vitest'
import { emptyView, reduceChunk } from '../../src/client/view/thread-view.ts'
import { Agent, Memory, toUIMessages } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from './places.ts'
import { idle, isType, readUntil } from './said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const weather = { type: 'reactive', tagName: 'weather', contents: 'It rains in Bern.', transient: true } as const

describe.each(placeKinds())('a transient signal $name', ({ make }) => {
  it('[A4.3] is read by the run that takes it, and is neither displayed nor found afterwards', async () => {
    const model = scriptedModel(['Take an umbrella.', 'Fine.'])
    const agent = new Agent({ id: 'guide', model, memory: new Memory() })
    openHeed({ agent }, make().store())
    const { stream } = await agent.subscribeToThread(thread)
    const heard = readUntil(stream, isType('finish'))
    const sent = agent.sendSignal(weather, thread)
    expect(sent.signal.transient).toBe(true)
    expect(await sent.outcome).toMatchObject({ action: 'woke', runId: sent.runId })
    await idle(agent, thread)
    expect(JSON.stringify(model.calls[0]?.prompt.at(-1))).toContain('<weather>It rains in Bern.</weather>')
    const chunks = await heard
    expect(chunks.find(({ type }) => type === 'data-signal')).toMatchObject({ data: { id: sent.signal.id, transient: true }, transient: true })
    const memory = await agent.getMemory()
    const { messages } = await memory.recall({ ...thread, perPage: false })
    const shown = toUIMessages(messages)
    expect(shown.map(({ role }) => role)).toEqual(['assistant'])
    expect(chunks.reduce(reduceChunk, emptyView).messages.map(({ id, role }) => [id, role])).toEqual(shown.map(({ id, role }) => [id, role]))
    expect((await memory.recall({ ...thread, vectorSearchString: 'rains in Bern' })).hits ?? []).toEqual([])
  })

  it('[A4.3] is discarded if it would only be persisted', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello.']) })
    openHeed({ agent }, make().store())
    await agent.sendMessage('Hi.', thread).outcome
    await idle(agent, thread)
    const sent = agent.sendSignal(weather, { ...thread, ifIdle: { behavior: 'persist' }, ifActive: { behavior: 'persist' } })
    expect([sent.runId, sent.signal.transient, 'persisted' in sent]).toEqual([sent.signal.id, true, false])
    expect(await sent.outcome).toEqual({ action: 'discarded' })
    expect((await (await agent.getMemory()).recall({ ...thread, perPage: false })).messages).toHaveLength(2)
  })

  it('[A3.1] is rejected as a state, and with a value other than a boolean', () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel([]) })
    openHeed({ agent }, make().store())
    expect(() => agent.sendSignal({ ...weather, type: 'state' }, thread)).toThrow(expect.objectContaining({ code: 'invalid_signal', details: expect.objectContaining({ field: 'transient' }) as object }))
    expect(() => agent.sendSignal({ ...weather, transient: 'yes' as never }, thread)).toThrow(expect.objectContaining({ code: 'invalid_signal' }))
    expect(() => agent.sendMessage({ contents: 'Hi', transient: true } as never, thread)).toThrow(expect.objectContaining({ code: 'invalid_signal' }))
  })
})
