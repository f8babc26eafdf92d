import { afterEach, describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore, RequestContext, type SendOptions } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { rejection, thrownBy } from '../agent/asking.ts'

const target = { threadId: 't', resourceId: 'u' }
const opened: Heed[] = []
afterEach(async () => {
  for (const heed of opened.splice(0)) await heed.close()
})

function made() {
  const model = scriptedModel(() => 'Hi.')
  const agent = new Agent({ id: 'a', model })
  opened.push(new Heed({ agents: { agent }, storage: new InMemoryStore() }))
  return { agent, model, threads: async () => (await (await agent.getMemory()).listThreads()).threads }
}

describe('an unknown field', () => {
  it.each([
    ['ifActive.behaviour', { ...target, ifActive: { behaviour: 'persist' } }],
    ['ifActive.streamOptions', { ...target, ifActive: { streamOptions: {} } }],
    ['ifIdle.behaviour', { ...target, ifIdle: { behaviour: 'persist' } }],
    ['ifIdle.attribute', { ...target, ifIdle: { attribute: { a: 1 } } }],
    ['ifidle', { ...target, ifidle: {} }],
    ['ifIdle', { ...target, ifIdle: 'persist' }],
  ])('[A3.4] %s of a send is rejected by name', async (field, options) => {
    const { agent, model, threads } = made()
    const refused = { code: 'invalid_argument', details: { field } }
    expect(thrownBy(() => agent.sendMessage('Hello.', options as never))).toMatchObject(refused)
    expect(thrownBy(() => agent.queueMessage('Hello.', options as never))).toMatchObject(refused)
    expect(thrownBy(() => agent.sendSignal({ type: 'notification', contents: 'x' }, options as never))).toMatchObject(refused)
    expect(await rejection(agent.sendStateSignal({ id: 'l', cacheKey: 'k', contents: 'x' }, options as never))).toMatchObject(refused)
    expect(await threads()).toEqual([])
    expect(model.callCount).toBe(0)
  })

  it('[A3.4] of a message, a signal or a state is rejected by name', async () => {
    const { agent, threads } = made()
    const wrong = (field: string) => ({ code: 'invalid_signal', details: { field } })
    expect(thrownBy(() => agent.sendMessage({ contents: 'x', attribute: { a: 1 } } as never, target))).toMatchObject(wrong('attribute'))
    expect(thrownBy(() => agent.sendMessage({ contents: 'x', tagName: 'note' } as never, target))).toMatchObject(wrong('tagName'))
    expect(thrownBy(() => agent.sendSignal({ type: 'user', contents: 'x', tag: 'y' } as never, target))).toMatchObject(wrong('tag'))
    expect(await rejection(agent.sendStateSignal({ id: 'l', cacheKey: 'k', contents: 'x', data: {} } as never, target))).toMatchObject(wrong('data'))
    const parts = [{ type: 'text', text: 'x' }, { type: 'file', data: 'AAAA', mediaType: 'image/png', name: 'a.png' }]
    expect(thrownBy(() => agent.sendMessage({ contents: parts } as never, target))).toMatchObject(wrong('contents[1].name'))
    expect(thrownBy(() => agent.sendMessage([{ type: 'text', text: 'x', state: 'done' }] as never, target))).toMatchObject(wrong('contents[0].state'))
    expect(await rejection(agent.subscribeToThread({ ...target, from: '1.2' } as never))).toMatchObject({ code: 'unsupported_option', details: { option: 'from' } })
    expect(await threads()).toEqual([])
  })

  it('[A3.4] is not reported for a signal from a receipt, which may be sent again', async () => {
    const { agent } = made()
    const first = agent.sendSignal({ type: 'notification', contents: 'CI failed.', attributes: { pr: 1 } }, { ...target, ifIdle: { behavior: 'persist' } })
    const again = agent.sendSignal(first.signal, { ...target, threadId: 'other', ifIdle: { behavior: 'persist' } })
    expect((await again.outcome).action).toBe('persisted')
    expect(again.signal).toMatchObject({ id: first.signal.id, contents: 'CI failed.', attributes: { pr: 1 } })
  })
})

describe('a send to a run', () => {
  it('[A3.7] that is not active is rejected, also if the thread is named', async () => {
    const { agent, model } = made()
    const { runId = '' } = await agent.sendMessage('Hello.', target).outcome
    await expect.poll(() => agent.activeRun(target)).toBeNull()
    for (const run of [runId, 'nonsense']) {
      for (const where of [{ runId: run }, { ...target, runId: run }]) {
        expect(await agent.sendMessage('Late.', where).outcome).toMatchObject({ action: 'rejected', code: 'no_active_run' })
      }
    }
    expect(model.callCount).toBe(1)
  })
})

describe('options of a send that cannot take effect', () => {
  const requestContext = new RequestContext()
  const cases: Array<[field: string, options: Partial<SendOptions>]> = [
    ['ifIdle.behavior', { runId: 'r', ifIdle: { behavior: 'persist' } }],
    ['ifIdle.attributes', { runId: 'r', ifIdle: { attributes: { a: 1 } } }],
    ['ifIdle.streamOptions.maxSteps', { runId: 'r', ifIdle: { streamOptions: { maxSteps: 1 } } }],
    ...(['persist', 'discard'] as const).flatMap((behavior): Array<[string, Partial<SendOptions>]> => [
      ['ifIdle.streamOptions.maxSteps', { ifIdle: { behavior, streamOptions: { maxSteps: 1 } } }],
      ['ifIdle.streamOptions.runId', { ifIdle: { behavior, streamOptions: { requestContext, runId: 'x' } } }],
      ['ifIdle.streamOptions.memory.options', { ifIdle: { behavior, streamOptions: { memory: { options: { lastMessages: 1 } } } } }],
    ]),
    ['ifIdle.streamOptions.memory.options.save', { ifIdle: { streamOptions: { memory: { options: { save: false } } } } }],
    ['ifIdle.streamOptions.memory.thread', { ifIdle: { behavior: 'discard', streamOptions: { memory: { thread: { title: 'x' } } } } }],
  ]

  it.each(cases)('[A3.10] %s is rejected by name: %j', async (field, options) => {
    const { agent } = made()
    const send = { ...target, ...options } as SendOptions
    for (const call of [() => agent.sendMessage('x', send), () => agent.queueMessage('x', send), () => agent.sendSignal({ type: 'reactive', contents: 'x' }, send)]) {
      expect(call).toThrow(expect.objectContaining({ code: 'invalid_argument', details: { field }, message: expect.stringContaining(`${field} has no effect`) as string }))
    }
    await expect(agent.sendStateSignal({ id: 's', cacheKey: 'k', contents: 'x' }, send)).rejects.toMatchObject({ details: { field } })
  })

  it('[A3.10] a queued message that is to interrupt is rejected', () => {
    const { agent } = made()
    expect(() => agent.queueMessage('x', { ...target, ifActive: { behavior: 'interrupt' } })).toThrow(/ifActive.behavior has no effect/)
  })

  it('[A3.10] what takes effect without a run is accepted: the request context, and title and metadata of a thread that stores the signal', async () => {
    const { agent } = made()
    const streamOptions = { requestContext, memory: { thread: { title: 'Notes', metadata: { a: 1 } }, resource: target.resourceId } }
    expect(await agent.sendMessage('x', { ...target, ifIdle: { behavior: 'persist', streamOptions } }).outcome).toMatchObject({ action: 'persisted' })
    expect(await (await agent.getMemory()).getThreadById(target)).toMatchObject({ title: 'Notes', metadata: { a: 1 } })
    const discarded = { behavior: 'discard' as const, streamOptions: { requestContext, memory: { thread: target.threadId } } }
    expect(await agent.sendMessage('x', { ...target, ifIdle: discarded }).outcome).toMatchObject({ action: 'discarded' })
    expect(await agent.sendMessage('x', { runId: 'none', ifIdle: { streamOptions: { requestContext } } }).outcome).toMatchObject({ code: 'no_active_run' })
  })
})

describe('a value that throws when it is read', () => {
  const boom = () => {
    throw new Error('boom')
  }
  it.each([
    ['attributes.v', { attributes: { v: { toJSON: boom } } }],
    ['attributes.v', { attributes: { v: Object.defineProperty({}, 'x', { get: boom, enumerable: true }) } }],
    ['attributes', { attributes: Object.defineProperty({}, 'x', { get: boom, enumerable: true }) }],
    ['attributes', { attributes: new Proxy({}, { ownKeys: boom }) }],
    ['attributes', { attributes: { v: new Proxy({}, { getPrototypeOf: boom }) } }],
    ['metadata', { metadata: new Proxy({}, { getPrototypeOf: boom }) }],
    ['providerOptions', { providerOptions: new Proxy({}, { ownKeys: boom }) }],
  ])('[A3.1] is rejected with the name of its field: %s', async (field, more) => {
    const { agent, threads } = made()
    expect(thrownBy(() => agent.sendMessage({ contents: 'x', ...more } as never, target))).toMatchObject({ code: 'invalid_signal', details: { field } })
    if ('attributes' in more) expect(thrownBy(() => agent.sendMessage('x', { ...target, ifIdle: { attributes: more.attributes } } as never))).toMatchObject({ code: 'invalid_signal', details: { field: `ifIdle.${field}` } })
    expect(await threads()).toEqual([])
  })
})

describe('a message', () => {
  it.each([[''], ['  \n'], [[]], [[{ type: 'text', text: ' ' }]], [{ contents: '' }], [{ contents: [] }]])('[A3.5] that is empty (%j) is rejected with invalid_message, as generate() is', async (nothing) => {
    const { agent, model, threads } = made()
    const refused = { code: 'invalid_message', message: 'The message is empty. Pass a text or a file.' }
    expect(await rejection(agent.generate(''))).toMatchObject(refused)
    expect(thrownBy(() => agent.sendMessage(nothing as never, target))).toMatchObject(refused)
    expect(thrownBy(() => agent.queueMessage(nothing as never, target))).toMatchObject(refused)
    expect(thrownBy(() => agent.sendSignal({ type: 'user-message', contents: '' }, target))).toMatchObject(refused)
    expect(await threads()).toEqual([])
    expect(model.callCount).toBe(0)
  })

  it('[A3.5] of a file alone, or of attributes alone, is not empty', async () => {
    const { agent } = made()
    const persist = { ...target, ifIdle: { behavior: 'persist' } } as const
    expect((await agent.sendMessage([{ type: 'file', data: 'aGVsbG8=', mediaType: 'image/png' }], persist).outcome).action).toBe('persisted')
    expect((await agent.sendMessage({ contents: '', attributes: { reaction: 'thumbs-up' } }, persist).outcome).action).toBe('persisted')
    expect((await agent.sendSignal({ type: 'notification', contents: '', attributes: { source: 'ci' } }, persist).outcome).action).toBe('persisted')
  })
})

describe('the thread and resource of the run that a send starts', () => {
  it.each([
    ['thread', { thread: 'other' }],
    ['thread', { thread: { id: 'other', title: 'x' } }],
    ['resource', { thread: 't', resource: 'somebody' }],
  ])('[A3.6] can\'t be another %s', async (field, memory) => {
    const { agent, threads } = made()
    const options = { ...target, ifIdle: { streamOptions: { memory } } }
    const refused = { code: 'invalid_argument', details: { field: `ifIdle.streamOptions.memory.${field}` } }
    expect(thrownBy(() => agent.sendMessage('x', options))).toMatchObject(refused)
    expect(await rejection(agent.sendStateSignal({ id: 'l', cacheKey: 'k', contents: 'x' }, options))).toMatchObject(refused)
    expect(await rejection(agent.sendNotificationSignal({ source: 's', kind: 'k', summary: 'x' }, options))).toMatchObject(refused)
    expect(await threads()).toEqual([])
  })

  it('[A3.6] may be repeated in streamOptions.memory', async () => {
    const { agent } = made()
    const said = agent.sendMessage('x', { ...target, ifIdle: { streamOptions: { memory: { thread: 't', resource: 'u' } } } })
    expect((await said.outcome).action).toBe('woke')
  })
})
