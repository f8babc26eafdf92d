import { describe, expect, it } from 'vitest'
import { Agent, createTool, Memory, type Processor } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { gate, idle, texts, userTexts } from '../thread/said.ts'

const thread = { threadId: 't', resourceId: 'u' }
const memory = { thread: 't', resource: 'u' }
const beside = { ...thread, ifActive: { behavior: 'persist' } } as const
const whole = (key: string) => ({ id: 'editor', cacheKey: key, contents: `Open: ${key}.`, value: { file: key } })
const change = (key: string) => ({ id: 'editor', mode: 'delta', cacheKey: key, contents: `Now: ${key}.`, delta: { to: key } }) as const

describe.each(placeKinds())('persisted and delivered states of one lane, $name', ({ make }) => {
  /** A run with one tool call, in which `tell` happens. */
  function open(tell: (agent: Agent) => Promise<unknown>, inputProcessors: Processor[] = []) {
    const model = scriptedModel(({ prompt }) => (prompt.some(({ role }) => role === 'tool') ? 'Done.' : { toolCalls: [{ toolName: 'look' }] }))
    const look = createTool({ id: 'look', execute: async () => (await tell(agent), 'seen') })
    const agent: Agent = new Agent({ id: 'a', model, tools: { look }, inputProcessors, memory: new Memory({ semanticRecall: false }) })
    openHeed({ agent }, make().store())
    return { agent, model }
  }

  const states = (call: Parameters<typeof userTexts>[0]) => userTexts(call).filter((text) => text.includes('<state>')).map((text) => text.replaceAll(/<\/?state>/g, ''))

  it('[L1.8] the older state is not the last that the model reads, and the newest is repeated once', async () => {
    const { agent, model } = open(async () => {
      await agent.sendStateSignal(whole('one'), beside)
      await agent.sendStateSignal(whole('two'), thread)
    })
    await agent.generate('Go.', { memory })
    expect(states(model.calls[1])).toEqual(['Open: two.'])
    await agent.generate('Next.', { memory })
    expect(states(model.calls[2])).toEqual(['Open: two.', 'Open: one.', 'Open: two.'])
    await agent.generate('And now.', { memory })
    expect(states(model.calls[3])).toEqual(['Open: two.', 'Open: one.', 'Open: two.'])
    expect(await agent.getLane({ ...thread, id: 'editor' })).toMatchObject({ version: 2, value: { file: 'two' } })
    for (const [index, { prompt }] of model.calls.entries()) {
      const before = texts(model.calls[index - 1]?.prompt ?? [])
      expect(texts(prompt).slice(0, before.length)).toEqual(before)
    }
  })

  it('[L1.8] a delta that was delivered before its predecessor is repeated after it, in the order of versions', async () => {
    const { agent, model } = open(async () => {
      await agent.sendStateSignal(change('b'), beside)
      await agent.sendStateSignal(change('c'), thread)
    })
    await agent.sendStateSignal(whole('a'), { ...thread, ifIdle: { behavior: 'persist' } })
    await agent.generate('Go.', { memory })
    await agent.generate('Next.', { memory })
    expect(states(model.calls[2])).toEqual(['Open: a.', 'Now: c.', 'Now: b.', 'Open: a.Now: b.Now: c.'])
  })

  it('[L1.8] a state that was pending while a processor of the run stored a newer one is followed by the newer one', async () => {
    const keeper: Processor = {
      id: 'keeper',
      stateId: 'editor',
      async processInputStep({ stepNumber }) {
        if (stepNumber === 0) await agent.sendStateSignal(whole('outside'), thread)
      },
      computeStateSignal: ({ stepNumber }) => (stepNumber === 0 ? { cacheKey: 'own', contents: 'Open: own.' } : undefined),
    }
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look' }] }, 'Done.', 'Done.'])
    const look = createTool({ id: 'look', execute: () => 'seen' })
    const agent: Agent = new Agent({ id: 'a', model, tools: { look }, inputProcessors: [keeper], memory: new Memory({ semanticRecall: false }) })
    openHeed({ agent }, make().store())
    await agent.generate('Go.', { memory })
    expect(states(model.calls[1])).toEqual(['Open: own.', 'Open: outside.', 'Open: own.'])
  })

  it('[L1.8] a state that was pending for another agent\'s run and is older than a stored one is followed by the newer one', async () => {
    const hold = gate()
    const first = new Agent({ id: 'first', model: scriptedModel([{ text: ['a', 'b'], gate: { parts: 2, until: hold.promise } }]), memory: new Memory({ semanticRecall: false }) })
    const model = scriptedModel(() => 'Done.')
    const second = new Agent({ id: 'second', model, memory: new Memory({ semanticRecall: false }) })
    openHeed({ first, second }, make().store())
    await first.sendMessage('Go.', thread).outcome
    await second.sendStateSignal(whole('one'), thread)
    await second.sendStateSignal(whole('two'), beside)
    hold.open()
    await idle(second, thread)
    expect(states(model.calls[0])).toEqual(['Open: two.', 'Open: one.', 'Open: two.'])
  })

  it('[L1.8] a processor receives them by version, and the newest is not repeated', async () => {
    const seen: unknown[] = []
    const keeper: Processor = {
      id: 'keeper',
      stateId: 'editor',
      computeStateSignal: ({ activeStateSignals, lastSnapshot, deltasSinceSnapshot }) => {
        seen.push([activeStateSignals.map(({ contents }) => contents), lastSnapshot?.contents, deltasSinceSnapshot.map(({ contents }) => contents)])
        return seen.length < 3 ? undefined : { cacheKey: 'two', contents: 'Open: two.' }
      },
    }
    const { agent, model } = open(async () => {
      await agent.sendStateSignal(whole('one'), beside)
      await agent.sendStateSignal(whole('two'), thread)
    }, [keeper])
    await agent.generate('Go.', { memory })
    await agent.generate('Next.', { memory })
    expect(seen.at(-1)).toEqual([['Open: one.', 'Open: two.'], 'Open: two.', []])
    expect(states(model.calls[2])).toEqual(['Open: two.', 'Open: one.', 'Open: two.'])
  })

  it.each(['value', 'delta'])('[L1.9] metadata.%s is rejected if the lane would take it as its value', async (field) => {
    const { agent } = open(async () => {})
    const sent = agent.sendStateSignal({ ...whole('a'), value: undefined, metadata: { [field]: 'mine' } }, { ...thread, ifIdle: { behavior: 'persist' } })
    await expect(sent).rejects.toMatchObject({ code: 'invalid_signal', details: { field: `metadata.${field}` } })
    expect(await agent.getLane({ ...thread, id: 'editor' })).toBeNull()
    await agent.sendStateSignal({ ...whole('a'), mode: 'delta', delta: 1, metadata: { [field]: 'mine', note: 'kept' } }, { ...thread, ifIdle: { behavior: 'persist' } })
    expect(await agent.getLane({ ...thread, id: 'editor' })).toMatchObject({ value: { file: 'a' }, deltas: [{ delta: 1, signal: { metadata: { note: 'kept' } } }] })
  })

  it('[L1.9] a snapshot with a delta is rejected, and a delta may consist of contents alone', async () => {
    const { agent } = open(async () => {})
    const quiet = { ...thread, ifIdle: { behavior: 'persist' } } as const
    const { value: _, ...words } = whole('a')
    for (const mode of [undefined, 'snapshot'] as const) {
      const sent = agent.sendStateSignal({ ...words, ...(mode ? { mode } : {}), delta: { line: 7 } }, quiet)
      await expect(sent).rejects.toMatchObject({ code: 'invalid_signal', message: expect.stringContaining("Set mode: 'delta'") as string, details: { field: 'delta' } })
    }
    expect(await agent.getLane({ ...thread, id: 'editor' })).toBeNull()
    await agent.sendStateSignal({ ...words, mode: 'delta' }, quiet)
    expect(await agent.getLane({ ...thread, id: 'editor' })).toMatchObject({ mode: 'delta', deltas: [{ mode: 'delta' }] })
  })
})
