import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { Agent, InMemoryStore, Memory, type AgentConfig, type LogFields } from '../../src/index.ts'
import { LibSQLStore, LibSQLVector } from '../../src/store/sqlite/index.ts'
import { SemanticRecall } from '../../src/processors/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import type { ThreadStore } from '../../src/store/contract/threads.ts'
import { newFile } from '../new-file.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { rejection } from '../agent/asking.ts'
import { gate, idle } from '../thread/said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }

function guide(config: Partial<AgentConfig> = {}) {
  const model = scriptedModel(() => 'Fine.')
  return { agent: new Agent({ id: 'guide', model, ...config }), model }
}

describe.each(placeKinds())('options of the run that a send starts, $name', ({ make }) => {
  it.each<[string, Partial<AgentConfig>]>([['', {}], [', also where the storage depends on the request', { memory: async () => new Memory() }]])(
    '[A3.9] runId is the id of the run%s',
    async (_, config) => {
      const { agent } = guide(config)
      openHeed({ agent }, make().store())
      const ifIdle = { streamOptions: { runId: 'run-1' } }
      const sent = agent.sendMessage('One.', { ...thread, ifIdle })
      expect(sent.runId).toBe('run-1')
      expect(await sent.outcome).toMatchObject({ action: 'woke', runId: 'run-1' })
      await idle(agent, thread)
      const taken = { action: 'rejected', code: 'invalid_argument' }
      for (const send of ['queueMessage', 'sendMessage'] as const) {
        expect(await agent[send]('Two.', { ...thread, ifIdle }).outcome, send).toMatchObject(taken)
        expect(await agent[send]('Three.', { ...thread, threadId: 'thread-2', ifIdle }).outcome, send).toMatchObject(taken)
      }
      const notified = await agent.sendNotificationSignal(
        { source: 'ci', kind: 'status', summary: 'Failed.', priority: 'urgent' }, { ...thread, ifIdle: { streamOptions: { runId: 'run-9' } } },
      )
      expect(notified.runId).toBe('run-9')
      await idle(agent, thread)
    },
  )

  it.each(['sendMessage', 'queueMessage', 'generate', 'stream'] as const)('[A3.9] %s with the id of a run that the thread has is rejected and stores nothing', async (call) => {
    const { agent } = guide({ memory: new Memory() })
    openHeed({ agent }, make().store())
    const memory = { thread: thread.threadId, resource: thread.resourceId }
    await agent.generate('One.', { memory, runId: 'run-1' })
    const stored = async () => (await (await agent.getMemory()).recall({ ...thread, perPage: false })).messages.length
    const before = await stored()
    const use = async () => {
      if (call === 'generate') return agent.generate('Two.', { memory, runId: 'run-1' })
      if (call === 'stream') return (await agent.stream('Two.', { memory, runId: 'run-1' })).text
      return agent[call]('Two.', { ...thread, ifIdle: { streamOptions: { runId: 'run-1' } } }).stored
    }
    expect(await rejection(use())).toMatchObject({ code: 'invalid_argument', message: expect.stringContaining("run 'run-1'") as string, details: { field: 'runId' } })
    expect(await stored()).toBe(before)
    // A repetition of the send that started the run is that send.
    const ifIdle = { streamOptions: { runId: 'run-2' } }
    for (const duplicate of [false, true]) {
      const receipt = agent.sendMessage({ id: 'm', contents: 'Three.' }, { ...thread, ifIdle })
      expect(await receipt.acceptance).toMatchObject({ duplicate, runId: 'run-2' })
      await idle(agent, thread)
    }
  })

  it('[A3.9] of two queued messages with one runId the second is rejected, and a message that enters that run is delivered', async () => {
    const hold = gate()
    const { agent } = guide({ model: scriptedModel(({ index }) => (index === 0 ? { text: 'First.', gate: hold.promise } : 'Later.')) })
    openHeed({ agent }, make().store())
    await agent.sendMessage('One.', thread).outcome
    const ifIdle = { streamOptions: { runId: 'run-1' } }
    const first = agent.queueMessage('Two.', { ...thread, ifIdle })
    await first.stored
    expect(await agent.queueMessage('Three.', { ...thread, ifIdle }).outcome).toMatchObject({ action: 'rejected', code: 'invalid_argument' })
    const entering = agent.sendMessage('Four.', { ...thread, ifIdle })
    hold.open()
    expect(await entering.outcome).toMatchObject({ action: 'delivered' })
    expect(await first.outcome).toMatchObject({ runId: 'run-1' })
    await idle(agent, thread)
  })

  it('[A3.9] memory.thread sets the title and merges the metadata, of a new thread and of an existing one', async () => {
    const { agent } = guide({ memory: new Memory({ workingMemory: { enabled: true, scope: 'thread' } }) })
    openHeed({ agent }, make().store())
    const memory = await agent.getMemory()
    const read = async () => {
      await idle(agent, thread)
      const { title, metadata } = (await memory.getThreadById(thread)) ?? {}
      return { title, metadata }
    }
    const send = (about: { title?: string; metadata?: Record<string, string | null> }) =>
      agent.sendMessage('Go.', { ...thread, ifIdle: { streamOptions: { memory: { thread: about } } } }).outcome
    await send({ title: 'A trip', metadata: { a: '1', b: '2' } })
    expect(await read()).toEqual({ title: 'A trip', metadata: { a: '1', b: '2' } })
    await send({ title: 'A journey', metadata: { b: '3', c: '4', a: null, workingMemory: '# Notes' } })
    expect(await read()).toEqual({ title: 'A journey', metadata: { b: '3', c: '4' } })
    expect(await memory.getWorkingMemory(thread)).toBe('# Notes')
    await agent.generate('On.', { memory: { thread: { id: thread.threadId, title: 'A tour', metadata: { d: '5' } }, resource: thread.resourceId } })
    expect(await read()).toEqual({ title: 'A tour', metadata: { b: '3', c: '4', d: '5' } })
    await agent.generate('On.', { memory: { thread: thread.threadId, resource: thread.resourceId } })
    expect(await read()).toEqual({ title: 'A tour', metadata: { b: '3', c: '4', d: '5' } })
  })

  it.each([{ title: 7 }, { metadata: 'x' }])('[A3.9] rejects memory.thread with %o by name', async (about) => {
    const { agent } = guide()
    openHeed({ agent }, make().store())
    const [field] = Object.keys(about)
    const option = { details: { option: `memory.thread.${field}` } }
    expect(() => agent.sendMessage('Go.', { ...thread, ifIdle: { streamOptions: { memory: { thread: about as object } } } })).toThrow(
      expect.objectContaining(option),
    )
    await expect(agent.generate('Go.', { memory: { thread: { id: 't', ...(about as object) }, resource: 'u' } })).rejects.toMatchObject(option)
  })
})

describe('vectors and recall', () => {
  it('[K2.7] rejects a LibSQLVector of another database than the storage', async () => {
    const [one, other] = [`file:${newFile()}`, `file:${newFile()}`]
    const code = { code: 'unsupported_option', details: { option: 'vector' } }
    expect(() => new Memory({ storage: new LibSQLStore({ url: one }), vector: new LibSQLVector({ url: other }) })).toThrow(
      expect.objectContaining(code),
    )
    expect(new Memory({ storage: new LibSQLStore({ url: one }), vector: new LibSQLVector({ url: one }) })).toBeInstanceOf(Memory)
    // Where the storage is that of the Heed, the first use finds out.
    const vector = new LibSQLVector({ url: other })
    for (const config of [{ memory: new Memory({ vector }) }, { inputProcessors: [new SemanticRecall({ vector })] }]) {
      const { agent } = guide(config)
      openHeed({ agent }, new LibSQLStore({ url: one }))
      await expect(agent.generate('Go.', { memory: { thread: 't', resource: 'u' } })).rejects.toMatchObject(code)
      if (config.memory) await expect((await agent.getMemory()).listThreads({})).rejects.toMatchObject(code)
      expect(existsSync(`${other.slice(5)}-vectors`)).toBe(false)
    }
  })

  it('[K2.7] rejects recall that is asked for on a storage without an index', async () => {
    const unindexed = () => new Proxy<ThreadStore>(new InMemoryStore(), {
      get: (target, key) => {
        if (key === 'getStore') return async () => undefined
        const value: unknown = Reflect.get(target, key)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const call = { memory: { thread: 't', resource: 'u' } }
    for (const config of [{ memory: new Memory({ semanticRecall: true }) }, { memory: new Memory({ semanticRecall: { topK: 2 } }) }, { inputProcessors: [new SemanticRecall()] }]) {
      const { agent } = guide(config)
      openHeed({ agent }, unindexed())
      await expect(agent.generate('Go.', call)).rejects.toMatchObject({ code: 'unsupported_option', details: { option: 'semanticRecall' } })
    }
    for (const config of [{ memory: new Memory() }, { memory: new Memory({ semanticRecall: false }) }]) {
      const { agent } = guide(config)
      openHeed({ agent }, unindexed())
      expect((await agent.generate('Go.', call)).text).toBe('Fine.')
    }
  })
})

describe('defaults', () => {
  it('[M1.14] the default file of an agent without a Heed is named in one line of the log', () => {
    const program = `
      import { Agent, Memory } from '${join(import.meta.dirname, '../../src/index.ts')}'
      import { scriptedModel } from '${join(import.meta.dirname, '../../src/testing/index.ts')}'
      for (const id of ['one', 'two']) {
        const agent = new Agent({ id, model: scriptedModel(['Fine.']), memory: new Memory() })
        await agent.generate('Go.', { memory: { thread: id, resource: 'u' } })
      }
      process.exit(0)`
    const cwd = join(newFile(), '..')
    const { stderr, status } = spawnSync(process.execPath, ['--input-type=module-typescript', '--eval', program], { cwd, encoding: 'utf8' })
    expect([status, stderr.trim().split('\n')]).toEqual([0, [expect.stringMatching(/^heed warn: no storage is configured: .*heed\.db"}$/)]])
    expect(existsSync(join(cwd, 'heed.db'))).toBe(true)
  })

  it('[G1.7] default options of the legacy methods are for each of them alone', async () => {
    const { agent, model } = guide({
      defaultOptions: { modelSettings: { seed: 3 } },
      defaultGenerateOptionsLegacy: { temperature: 0.1 },
      defaultStreamOptionsLegacy: async () => ({ maxTokens: 7, temperature: 0.2 }),
    })
    openHeed({ agent }, new InMemoryStore())
    await agent.generate('Go.')
    await (await agent.stream('Go.')).text
    await agent.generateLegacy('Go.')
    await (await agent.streamLegacy('Go.', { temperature: 0.5 })).text
    await agent.sendMessage('Go.', thread).outcome
    await idle(agent, thread)
    expect(model.calls.map(({ seed, temperature, maxOutputTokens }) => [seed, temperature, maxOutputTokens])).toEqual([
      [3, undefined, undefined], [3, undefined, undefined], [3, 0.1, undefined], [3, 0.5, 7], [3, undefined, undefined],
    ])
    await expect(new Agent({ id: 'x', model, defaultGenerateOptionsLegacy: () => 7 as never }).generateLegacy('Go.')).rejects.toMatchObject({
      code: 'invalid_agent',
    })
  })

  it('[G1.7] a runId in default options is rejected by name, also of a function: it is for one run', async () => {
    const refused = { code: 'invalid_argument', details: { option: 'runId' } }
    const options = { runId: 'run-1' } as object
    for (const name of ['defaultOptions', 'defaultGenerateOptionsLegacy', 'defaultStreamOptionsLegacy']) {
      expect(() => guide({ [name]: options })).toThrow(expect.objectContaining(refused))
    }
    await expect(guide({ defaultOptions: () => options }).agent.generate('Go.')).rejects.toMatchObject(refused)
    await expect(guide({ defaultGenerateOptionsLegacy: () => options }).agent.generateLegacy('Go.')).rejects.toMatchObject(refused)
    await expect(guide({ defaultStreamOptionsLegacy: () => options }).agent.streamLegacy('Go.')).rejects.toMatchObject(refused)
  })

  it('[G1.7] provider options on instructions that are about the call are options of the call', async () => {
    const cacheControl = { type: 'ephemeral' }
    const { agent, model } = guide({
      instructions: [
        { role: 'system', content: 'One.', providerOptions: { openai: { reasoningEffort: 'low', user: 'u' }, anthropic: { cacheControl } } },
        { role: 'system', content: 'Two.', providerOptions: { openai: { reasoningEffort: 'high' }, anthropic: { thinking: { type: 'enabled' } } } },
        'Three.',
      ],
      defaultOptions: { providerOptions: { openai: { store: false } } },
    })
    openHeed({ agent }, new InMemoryStore())
    await agent.generate('Go.', { providerOptions: { openai: { user: 'v' } } })
    expect(model.calls[0]?.providerOptions).toEqual({
      openai: { reasoningEffort: 'high', user: 'v', store: false }, anthropic: { thinking: { type: 'enabled' } },
    })
    expect(model.calls[0]?.prompt.filter(({ role }) => role === 'system').map(({ providerOptions }) => providerOptions)).toEqual([
      { anthropic: { cacheControl } }, undefined, undefined,
    ])
    await agent.generate('Go.', { instructions: { role: 'system', content: 'Other.' }, system: { role: 'system', content: 'X.', providerOptions: { groq: { serviceTier: 'flex' } } } })
    expect(model.calls[1]?.providerOptions).toEqual({ openai: { store: false }, groq: { serviceTier: 'flex' } })
  })
})

describe('a run that fails', () => {
  it('[T2.3] is logged with its remedy where no caller receives the error', async () => {
    const logged: Array<[string, LogFields | undefined]> = []
    const error = (message: string, fields?: LogFields) => void logged.push([message, fields])
    const agent = new Agent({ id: 'guide', model: () => 'nobody/knows' })
    openHeed({ agent }, new InMemoryStore(), { logger: { debug: () => {}, info: () => {}, warn: () => {}, error } })
    const { runId } = agent.sendMessage('Go.', thread)
    await expect.poll(() => logged).toEqual([
      ['a run failed', { threadId: 'thread-1', runId, agentId: 'guide', code: 'unknown_provider', error: expect.stringContaining('Supported: openai') }],
    ])
    await idle(agent, thread)
    await expect(agent.generate('Go.', { memory: { thread: 'thread-1', resource: 'user-1' } })).rejects.toMatchObject({ code: 'unknown_provider' })
    expect(logged).toHaveLength(1)
  })
})
