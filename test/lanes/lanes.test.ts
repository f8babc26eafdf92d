import { describe, expect, it } from 'vitest'
import { Agent, createTool, Memory, type ComputeStateSignalArgs, type Processor } from '../../src/index.ts'
import { TokenLimiter } from '../../src/processors/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { idle, texts, userTexts } from '../thread/said.ts'

const thread = { threadId: 't', resourceId: 'u' }
const quiet = { ...thread, ifIdle: { behavior: 'persist' } } as const
const snapshot = (key: string) => ({ id: 'editor', cacheKey: key, contents: `Open: ${key}.`, value: { file: key } })
const delta = (key: string) => ({ id: 'editor', mode: 'delta', cacheKey: key, contents: `Now: ${key}.`, delta: { to: key } }) as const

describe.each(placeKinds())('the lanes of a thread, $name', ({ make }) => {
  function open(more: Partial<ConstructorParameters<typeof Agent>[0]> = {}, place = make()) {
    const model = scriptedModel(() => 'seen')
    const agent = new Agent({ id: 'a', model, memory: new Memory({ window: { low: 1, high: 1 }, semanticRecall: false }), ...more })
    return { model, agent, heed: openHeed({ agent }, place.store()), place }
  }

  it.each([
    { name: 'where all is in the window', memory: { lastMessages: 100 } },
    { name: 'where the window loses it', memory: { window: { low: 2, high: 6 } } },
  ])('[L1.10] a TokenLimiter keeps the current state of a lane in every prompt, and no earlier state, $name', async ({ memory }) => {
    const model = scriptedModel(() => 'y'.repeat(400))
    const { agent } = open({ model, memory: new Memory({ ...memory, semanticRecall: false }), inputProcessors: [new TokenLimiter(400)] })
    for (const state of [snapshot('old.ts'), delta('older.ts'), snapshot('a.ts'), delta('b.ts')]) await agent.sendStateSignal(state, quiet)
    for (let turn = 0; turn < 12; turn++) {
      if (turn === 8) await agent.sendStateSignal(delta('c.ts'), quiet)
      await agent.generate(`Question ${turn}.`, { memory: { thread: 't', resource: 'u' } })
      const prompt = texts(model.calls.at(-1)?.prompt ?? []).join('\n')
      const told = ['Open: a.ts.', 'Now: b.ts.', ...(turn >= 8 ? ['Now: c.ts.'] : [])]
      expect([turn, told.filter((state) => !prompt.includes(state))]).toEqual([turn, []])
      if (turn > 5) expect([turn, prompt.includes('Open: old.ts.'), prompt.includes('Question 0.')]).toEqual([turn, false, false])
    }
  })

  it('[L1.1] of twenty concurrent states with one cacheKey one is stored and nineteen report skipped', async () => {
    const { agent } = open()
    const answers = await Promise.all(Array.from({ length: 20 }, () => agent.sendStateSignal(snapshot('a.ts'), quiet)))
    expect(answers.filter(({ skipped }) => skipped)).toHaveLength(19)
    expect((await agent.listLaneHistory({ ...thread, id: 'editor' })).signals).toHaveLength(1)
  })

  it('[L1.2] twenty concurrent states of different lanes are all tracked', async () => {
    const { agent } = open()
    await Promise.all(Array.from({ length: 20 }, (_, index) => agent.sendStateSignal({ ...snapshot('a.ts'), id: `lane-${index}` }, quiet)))
    expect(await agent.listLanes(thread)).toHaveLength(20)
    const metadata = (await (await agent.getMemory()).getThreadById(thread))?.metadata
    const tracked = metadata?.heed as { stateSignals: Record<string, unknown> } | undefined
    expect(Object.keys(tracked?.stateSignals ?? {})).toHaveLength(20)
    expect(tracked?.stateSignals['lane-7']).toEqual({
      currentCacheKey: 'a.ts', currentMode: 'snapshot', version: 1, lastSignalId: expect.any(String), lastSnapshotSignalId: expect.any(String),
    })
  })

  it('[L1.1] a discarded state is stored if it is sent again', async () => {
    const { agent } = open()
    await agent.sendStateSignal(snapshot('a.ts'), { ...thread, ifIdle: { behavior: 'discard' } })
    expect(await agent.getLane({ ...thread, id: 'editor' })).toBeNull()
    expect(await agent.sendStateSignal(snapshot('a.ts'), quiet)).toMatchObject({ skipped: false })
    expect(await agent.getLane({ ...thread, id: 'editor' })).toMatchObject({ version: 1, value: { file: 'a.ts' } })
  })

  it('[L1.3] can be read: the current state, every delta since the snapshot in order, and the history by version', async () => {
    const { agent } = open()
    await agent.sendStateSignal(snapshot('old.ts'), quiet)
    await agent.sendStateSignal(snapshot('a.ts'), quiet)
    for (const key of ['b.ts', 'c.ts', 'd.ts']) await agent.sendStateSignal(delta(key), quiet)
    const lane = await agent.getLane({ ...thread, id: 'editor' })
    expect(lane).toMatchObject({ id: 'editor', version: 5, cacheKey: 'd.ts', mode: 'delta', snapshot: { version: 2, value: { file: 'a.ts' }, waiting: false } })
    expect(lane?.deltas.map((change) => [change.version, change.delta])).toEqual([[3, { to: 'b.ts' }], [4, { to: 'c.ts' }], [5, { to: 'd.ts' }]])
    expect(lane).not.toHaveProperty('value')
    const page = await agent.listLaneHistory({ ...thread, id: 'editor', limit: 2 })
    expect([page.signals.map(({ version }) => version), page.more]).toEqual([[5, 4], true])
    const rest = await agent.listLaneHistory({ ...thread, id: 'editor', before: 4 })
    expect([rest.signals.map(({ signal }) => signal.contents), rest.more]).toEqual([['Now: b.ts.', 'Open: a.ts.', 'Open: old.ts.'], false])
  })

  it('are empty on a thread that does not exist, rejected for another resource, and validated', async () => {
    const { agent } = open()
    expect([await agent.getLane({ ...thread, id: 'x' }), await agent.listLanes(thread), await agent.listLaneHistory({ ...thread, id: 'x' })]).toEqual([null, [], { signals: [], more: false }])
    await agent.sendStateSignal(snapshot('a.ts'), quiet)
    await expect(agent.getLane({ threadId: 't', resourceId: 'other', id: 'editor' })).rejects.toMatchObject({ code: 'thread_forbidden' })
    await expect(agent.listLanes({ ...thread, limit: 0 })).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'limit' } })
  })

  it('[L1.4] a state whose run a guardrail rejected is stored again', async () => {
    const picky: Processor = { id: 'picky', processInput: ({ messages, abort }) => (JSON.stringify(messages).includes('secret') ? abort('no') : undefined) }
    const { agent } = open({ inputProcessors: [picky] })
    await agent.sendStateSignal(snapshot('a.ts'), quiet)
    await agent.sendStateSignal(snapshot('secret.ts'), thread)
    await idle(agent, thread)
    expect(await agent.getLane({ ...thread, id: 'editor' })).toMatchObject({ version: 1, value: { file: 'a.ts' } })
    expect(await agent.sendStateSignal(snapshot('secret.ts'), quiet)).toMatchObject({ skipped: false, signal: { metadata: { state: { version: 3 } } } })
  })

  it('[L1.4] a state that was cancelled before a run took it is stored again', async () => {
    const hold = Promise.withResolvers<void>()
    const model = scriptedModel([{ text: ['a', 'b'], gate: { parts: 2, until: hold.promise } }, 'more', 'more'])
    const { agent } = open({ model })
    await agent.sendMessage('Go.', thread).outcome
    const sent = await agent.sendStateSignal(snapshot('a.ts'), thread)
    const id = sent.skipped ? '' : sent.signal.id
    expect(await agent.getLane({ ...thread, id: 'editor' })).toMatchObject({ snapshot: { waiting: true } })
    expect(await agent.cancelQueued({ ...thread, signalIds: [id] })).toEqual([id])
    expect(await agent.sendStateSignal(snapshot('a.ts'), thread)).toMatchObject({ skipped: false })
    hold.resolve()
    await idle(agent, thread)
  })

  it('[L1.6] that the window has lost are repeated once, as one context row that readers do not see', async () => {
    const { agent, model } = open()
    await agent.sendStateSignal(snapshot('a.ts'), quiet)
    await agent.sendStateSignal(delta('b.ts'), quiet)
    const memory = { thread: 't', resource: 'u' }
    await agent.generate('One.', { memory })
    await agent.generate('Two.', { memory })
    const repeated = '<state>Open: a.ts.</state><state>Now: b.ts.</state>'
    expect(texts(model.calls[1]?.prompt ?? [])).toEqual(['user: One.', 'assistant: seen', 'user: Two.', `user: ${repeated}`])
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect(JSON.stringify(messages).match(/Open: a\.ts/g)).toHaveLength(1)
    expect(await agent.listLanes(thread)).toMatchObject([{ version: 2 }])
  })

  it('[L1.6] are not repeated while they are in the window, nor twice while the repetition is', async () => {
    const { agent, model } = open({ memory: new Memory({ window: { low: 2, high: 4 }, semanticRecall: false }) })
    await agent.sendStateSignal(snapshot('a.ts'), quiet)
    const memory = { thread: 't', resource: 'u' }
    for (const word of ['One.', 'Two.', 'Three.', 'Four.', 'Five.']) await agent.generate(word, { memory })
    const told = model.calls.map((call) => userTexts(call).filter((text) => text.includes('Open: a.ts')).length)
    expect(told.every((count) => count === 1)).toBe(true)
    expect(userTexts(model.calls[0])[0]).toBe('<state>Open: a.ts.</state>')
    expect(userTexts(model.calls.at(-1))[0]).not.toBe('<state>Open: a.ts.</state>')
  })

  it('[L1.6] are deleted with the states that they quote', async () => {
    const { agent, model, place } = open({ memory: new Memory({ window: { low: 2, high: 2 }, semanticRecall: false }) })
    const sent = await agent.sendStateSignal(snapshot('a.ts'), quiet)
    const memory = { thread: 't', resource: 'u' }
    await agent.generate('One.', { memory })
    await agent.generate('Two.', { memory })
    expect(userTexts(model.calls[1])).toContain('<state>Open: a.ts.</state>')
    await place.store().deleteMessages(thread, [sent.skipped ? '' : sent.signal.id])
    await agent.generate('Three.', { memory })
    expect(JSON.stringify(model.calls[2]?.prompt)).not.toContain('Open: a.ts')
    expect(await agent.listLanes(thread)).toEqual([])
  })

  it('[L1.5] of a processor: skipped only while the copy is in the window; snapshot and deltas come from history when it is lost', async () => {
    let file = 'a.ts'
    const seen: Array<Pick<ComputeStateSignalArgs, 'contextWindow'> & { active: number; last: unknown; deltas: unknown[] }> = []
    const editor: Processor = {
      id: 'editor-state',
      stateId: 'editor',
      computeStateSignal({ contextWindow, activeStateSignals, lastSnapshot, deltasSinceSnapshot }) {
        seen.push({ contextWindow, active: activeStateSignals.length, last: lastSnapshot?.metadata?.value, deltas: deltasSinceSnapshot.map(({ metadata }) => metadata?.delta) })
        return contextWindow.hasSnapshot && file !== 'a.ts'
          ? { mode: 'delta', cacheKey: file, contents: `Now: ${file}.`, delta: { to: file } }
          : { mode: 'snapshot', cacheKey: file, contents: `Open: ${file}.`, value: { file } }
      },
    }
    const turn = createTool({ id: 'turn', execute: () => (file = 'b.ts') })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'turn' }] }, { toolCalls: [{ toolName: 'turn' }] }, 'done', 'again'])
    const { agent, place, heed } = open({ model, tools: { turn }, inputProcessors: [editor] })
    const memory = { thread: 't', resource: 'u' }
    await agent.generate('One.', { memory })
    const told = (await agent.listLaneHistory({ ...thread, id: 'editor' })).signals
    expect(told.map(({ version, mode }) => [version, mode])).toEqual([[2, 'delta'], [1, 'snapshot']])
    expect(told.map(({ signal }) => signal.metadata?.state)).toMatchObject([{ version: 2 }, { version: 1 }])
    await heed.close()

    const after = open({ model, tools: { turn }, inputProcessors: [editor] }, place)
    await after.agent.generate('Two.', { memory })
    expect(seen).toEqual([
      { contextWindow: { hasSnapshot: false }, active: 0, last: undefined, deltas: [] },
      { contextWindow: { hasSnapshot: true }, active: 1, last: { file: 'a.ts' }, deltas: [] },
      { contextWindow: { hasSnapshot: true }, active: 2, last: { file: 'a.ts' }, deltas: [{ to: 'b.ts' }] },
      { contextWindow: { hasSnapshot: false }, active: 0, last: { file: 'a.ts' }, deltas: [{ to: 'b.ts' }] },
    ])
    expect(await after.agent.getLane({ ...thread, id: 'editor' })).toMatchObject({ version: 3, mode: 'snapshot', value: { file: 'b.ts' } })
    expect(userTexts(model.calls.at(-1))).toEqual(['Two.', '<state>Open: b.ts.</state>'])
  })

  it.each([{ where: 'on a thread', memory: { thread: 't', resource: 'u' } }, { where: 'without one', memory: undefined }])('[L1.5] a processor receives the states of its own run, $where, also if another processor removes them from the prompt', async ({ memory }) => {
    const given: unknown[] = []
    const trim: Processor = { id: 'trim', processInputStep: ({ messages }) => messages.filter(({ role }) => role !== 'signal') }
    const lane: Processor = {
      id: 'lane',
      computeStateSignal({ contextWindow, lastSnapshot, deltasSinceSnapshot, stepNumber }) {
        given.push([contextWindow.hasSnapshot, lastSnapshot?.contents, deltasSinceSnapshot.map(({ contents }) => contents)])
        return stepNumber === 0 ? { cacheKey: 's', contents: 'all' } : { mode: 'delta', cacheKey: `d${stepNumber}`, contents: `change ${stepNumber}`, delta: stepNumber }
      },
    }
    const model = scriptedModel(({ index }) => (index < 3 ? { toolCalls: [{ toolName: 'look' }] } : 'Done.'))
    const { agent } = open({ model, tools: { look: createTool({ id: 'look', execute: () => 'seen' }) }, inputProcessors: [trim, lane] })
    await agent.generate('Go.', memory ? { memory } : {})
    expect(given).toEqual([[false, undefined, []], [false, 'all', []], [false, 'all', ['change 1']], [false, 'all', ['change 1', 'change 2']]])
  })

  it('[L1.11] deltas of a deleted snapshot are not passed to a processor as those of an older one', async () => {
    const given: unknown[] = []
    const lane: Processor = {
      id: 'editor',
      computeStateSignal({ contextWindow, lastSnapshot, deltasSinceSnapshot }) {
        given.push([contextWindow.hasSnapshot, lastSnapshot?.contents, deltasSinceSnapshot.map(({ contents }) => contents)])
        return contextWindow.hasSnapshot ? undefined : { cacheKey: 'fresh', contents: 'All anew.' }
      },
    }
    const { agent } = open({ memory: new Memory({ lastMessages: 100, semanticRecall: false }), inputProcessors: [lane] })
    for (const state of [snapshot('old.ts'), delta('older.ts'), { ...snapshot('a.ts'), signalId: 'middle' }, delta('b.ts')]) await agent.sendStateSignal(state, quiet)
    await (await agent.getMemory()).deleteMessages({ ...thread, messageIds: ['middle'] })
    expect(await agent.getLane({ ...thread, id: 'editor' })).toMatchObject({ version: 4, deltas: [{ version: 4 }] })
    expect(await agent.getLane({ ...thread, id: 'editor' })).not.toHaveProperty('snapshot')
    for (const words of ['One.', 'Two.']) await agent.generate(words, { memory: { thread: 't', resource: 'u' } })
    expect(given).toEqual([[false, undefined, ['Now: b.ts.']], [true, 'All anew.', []]])
  })

  it('[L1.5] of a processor and of sends share one version count', async () => {
    const count: Processor = { id: 'editor', computeStateSignal: ({ stepNumber }) => ({ cacheKey: `own-${stepNumber}`, contents: `Own ${stepNumber}.` }) }
    const { agent, model } = open({ inputProcessors: [count], memory: new Memory({ window: { low: 5, high: 10 }, semanticRecall: false }) })
    await agent.sendStateSignal(snapshot('a.ts'), quiet)
    await agent.sendMessage('Go.', thread).outcome
    await idle(agent, thread)
    await agent.sendStateSignal(delta('b.ts'), quiet)
    const { signals } = await agent.listLaneHistory({ ...thread, id: 'editor' })
    expect(signals.map(({ version, signal }) => [version, signal.contents])).toEqual([[3, 'Now: b.ts.'], [2, 'Own 0.'], [1, 'Open: a.ts.']])
    expect(userTexts(model.calls[0])).toEqual(['<state>Open: a.ts.</state>', 'Go.', '<state>Own 0.</state>'])
  })

  it('[L1.5] a processor is asked for a new snapshot after maxDeltas deltas', async () => {
    let step = 0
    const chain: Processor = {
      id: 'chain',
      maxDeltas: 2,
      computeStateSignal: ({ contextWindow }) => ({ mode: contextWindow.hasSnapshot ? 'delta' : 'snapshot', cacheKey: `${++step}`, contents: `${step}` }),
    }
    const again = createTool({ id: 'again', execute: () => 'ok' })
    const model = scriptedModel([...Array.from({ length: 6 }, () => ({ toolCalls: [{ toolName: 'again' }] })), 'done'])
    const { agent } = open({ model, tools: { again }, inputProcessors: [chain] })
    await agent.generate('Go.', { memory: { thread: 't', resource: 'u' } })
    const { signals } = await agent.listLaneHistory({ ...thread, id: 'chain' })
    expect(signals.toReversed().map(({ mode }) => mode)).toEqual(['snapshot', 'delta', 'delta', 'snapshot', 'delta', 'delta', 'snapshot'])
  })
})
