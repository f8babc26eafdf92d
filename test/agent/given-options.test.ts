import { describe, expect, it } from 'vitest'
import { createHandler, serve } from '../../src/http/server.ts'
import { Agent, createTool, Heed, InMemoryStore, Memory } from '../../src/index.ts'
import { GitHubSignals, WebhookSignals } from '../../src/sources/index.ts'
import { LibSQLVector } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { rejection, thrownBy } from './asking.ts'

describe('older options', () => {
  it('reach the model under their present names', async () => {
    const model = scriptedModel(['Hi.'])
    const settings = { topK: 4, seed: 7, presencePenalty: 0.1, frequencyPenalty: 0.2, stopSequences: ['END'] }
    await new Agent({ id: 'a', model }).generateLegacy('Go.', { ...settings, headers: { 'x-trace': '1' } })
    expect(model.calls[0]).toMatchObject({ ...settings, headers: { 'x-trace': '1' } })
  })

  it('say whose a thread is, also beside a memory that names it', async () => {
    const agent = new Agent({ id: 'a', model: scriptedModel(['Hi.']), memory: new Memory({ storage: new InMemoryStore() }) })
    expect(await rejection(agent.generateLegacy('Go.', { resourceId: 'u' }))).toMatchObject({ code: 'invalid_argument', details: { field: 'memory.thread' } })
    expect((await agent.generateLegacy('Go.', { resourceId: 'u', memory: { thread: 't' } })).text).toBe('Hi.')
  })
})

describe('an unknown name', () => {
  const made = () => new Agent({ id: 'a', model: scriptedModel(['Hi.']), memory: new Memory({ storage: new InMemoryStore() }) })

  it.each([
    ['memory.resourceId', { thread: 't', resource: 'u', resourceId: 'u' }],
    ['memory.thread.name', { thread: { id: 't', name: 'x' }, resource: 'u' }],
  ])('is refused: %s', async (option, memory) => {
    expect(await rejection(made().generate('Go.', { memory } as never))).toMatchObject({ code: 'unsupported_option', details: { option } })
  })

  it('is ignored if it is undefined', async () => {
    const foo = undefined
    const memory = { thread: { id: 't', foo }, resource: 'u', foo, options: { foo, semanticRecall: { foo } } }
    expect((await made().generate('Go.', { foo, modelSettings: { foo }, memory } as never)).text).toBe('Hi.')
  })
})

describe('createTool', () => {
  it.each([
    [undefined, 'needs an id'], [null, 'needs an id'], [{}, 'needs an id'],
    [{ id: 't', execute: 'run' }, "execute of tool 't' must be a function"],
    [{ id: 't', requireApproval: 'yes' }, "requireApproval of tool 't' must be true, false or a function"],
  ])('refuses %j', (config, message) => {
    expect(thrownBy(() => createTool(config as never))).toMatchObject({ code: 'invalid_tool', message: expect.stringContaining(message) })
  })
})

describe('an unknown option', () => {
  const secret = 'a secret of more than 32 characters, for tests'
  const heed = new Heed({ agents: {}, storage: new InMemoryStore() })
  it.each<[string, () => unknown]>([
    ['createTool', () => createTool({ id: 't', requireAproval: true } as never)],
    ['createHandler', () => createHandler(heed, { aut: () => null } as never)],
    ['LibSQLVector', () => new LibSQLVector({ url: ':memory:', authToken: 'x' } as never)],
    ['WebhookSignals', () => new WebhookSignals({ secret, tolerance: 5 } as never)],
    ['GitHubSignals', () => new GitHubSignals({ secret, repository: 'a/b' } as never)],
  ])('[G1.12] of %s is rejected by name', (_, call) => {
    expect(thrownBy(call)).toMatchObject({ code: 'unsupported_option', details: { option: expect.any(String) } })
  })

  it('[G1.12] of serve() is rejected by name', async () => {
    expect(await rejection(serve(heed, { port: 0, aut: () => null } as never))).toMatchObject({ code: 'unsupported_option', details: { option: 'aut' } })
  })
})

describe('what a tool returns', () => {
  it.each([
    ['a Map', new Map([['a', 1]]), 'Object.fromEntries'],
    ['a Set inside', { names: new Set(['a']) }, '[...set]'],
    ['an Error', new Error('no such city'), 'failed: no such city'],
  ])('is an error for the model when it is %s', async (_, returned, said) => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look', input: {} }] }, 'Done.'])
    const look = createTool({ id: 'look', execute: async () => returned as never })
    await new Agent({ id: 'a', model, tools: { look } }).generate('Go.')
    const last = JSON.stringify(model.calls[1]?.prompt.at(-1))
    expect(last).toContain('error-text')
    expect(last).toContain(said)
  })
})

it('agents that a function leaves out are left out', async () => {
  const model = scriptedModel(['Hi.', 'Ho.'])
  const helper = new Agent({ id: 'helper', model })
  const agent = new Agent({ id: 'a', model, agents: ({ requestContext }) => (requestContext.has('more') ? { helper } : {}) })
  const other = new Agent({ id: 'b', model, agents: { helper: undefined } })
  await agent.generate('Go.')
  await other.generate('Go.')
  expect(model.calls.map(({ tools }) => tools ?? [])).toEqual([[], []])
})
