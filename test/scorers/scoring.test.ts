import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LanguageModelV4 } from '@ai-sdk/provider'
import { expect, it, onTestFinished } from 'vitest'
import { Agent, createTool, Heed, InMemoryStore, RequestContext, silentLogger, type AgentConfig, type Storage } from '../../src/index.ts'
import { HeedEditor } from '../../src/editor/index.ts'
import { createAnswerRelevancyScorer, createScorer, textOf, type ScorerLike } from '../../src/scorers/index.ts'
import { selectScorers } from '../../src/scorers/sampling.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, virtualClock, type Script, type VirtualClock } from '../../src/testing/index.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }

interface Opened {
  storage?: Storage
  clock?: VirtualClock
  script?: Script
  dispatch?: boolean
}

function open(scorers: NonNullable<AgentConfig['scorers']>, { clock, storage = new InMemoryStore(clock ? { clock } : {}), script = () => 'By train.', dispatch = true }: Opened = {}) {
  const agent = new Agent({ id: 'guide', instructions: 'You plan trips.', model: scriptedModel(script), scorers })
  const heed = new Heed({
    agents: { agent }, storage, logger: silentLogger, notifications: { dispatch: { enabled: dispatch } }, ...(clock ? { clock } : {}),
  })
  onTestFinished(() => heed.close())
  const settled = async (count: number) => {
    const states = async () => (await heed.listScores()).scores.filter(({ state }) => state !== 'pending').length
    await expect.poll(states, { timeout: 20_000 }).toBe(count)
    return (await heed.listScores()).scores
  }
  return { agent, heed, settled }
}

const short = createScorer({ id: 'short', description: 'd', type: 'agent' })
  .generateScore(({ run: { output } }) => (textOf(output).length < 20 ? 1 : 0)).generateReason(({ run: { output } }) => textOf(output))

it('[J4.1] a run on a thread is scored after it finished, with its input, instructions, history, tool calls and cost', async () => {
  let seen: unknown
  const all = createScorer({ id: 'all', description: 'd', type: 'agent' }).generateScore(({ run }) => {
    seen = { ...run, input: { ...run.input, inputMessages: textOf(run.input.inputMessages), rememberedMessages: textOf(run.input.rememberedMessages) }, output: textOf(run.output) }
    return 1
  })
  const script = [{ text: 'Sintra.' }, { text: 'By train.', usage: { inputTokens: 7, outputTokens: 2 } }]
  const { agent, settled } = open({ all: { scorer: all } }, { script })
  await agent.generate('Where?', { memory: { thread: thread.threadId, resource: thread.resourceId } })
  await settled(1)
  await agent.generate('How?', { memory: { thread: thread.threadId, resource: thread.resourceId } })
  const [score] = await settled(2)
  expect(score).toMatchObject({ ...thread, agentId: 'guide', scorerId: 'all', version: '1', state: 'scored', score: 1, attempts: 1 })
  expect(seen).toMatchObject({
    runId: score?.runId, output: 'By train.', metrics: { usage: { outputTokens: 2 }, steps: 1, durationMs: expect.any(Number) as number },
    input: { inputMessages: 'How?', rememberedMessages: 'Where?\nSintra.', systemMessages: ['You plan trips.'] },
  })
})

it('[J4.10] a score names what it is about: run, steps, scorer with its version, and the version of the agent', async () => {
  const look = createTool({ id: 'look', inputSchema: { type: 'object' }, execute: async () => 'A train.' })
  const script: Script = [{ toolCalls: [{ toolName: 'look', input: {} }] }, 'By train.', 'By train.']
  const agent = new Agent({ id: 'guide', instructions: 'You plan trips.', model: scriptedModel(script), tools: { look }, scorers: { short: { scorer: short } } })
  const editor = new HeedEditor()
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), editor, logger: silentLogger, notifications: { dispatch: { enabled: false } } })
  onTestFinished(() => heed.close())
  const first = await agent.generate('How?', { memory: { thread: thread.threadId, resource: thread.resourceId } })
  await editor.save('guide', { base: 0, instructions: 'Be brief.', by: 'ann' })
  await editor.publish('guide', { version: 1, expected: 0, by: 'ann' })
  const second = await agent.generate('How?', { memory: { thread: thread.threadId, resource: thread.resourceId } })
  await heed.tick()
  const about = { ...thread, agentId: 'guide', scorerId: 'short', version: '1', state: 'scored' }
  const { scores } = await heed.listScores()
  expect(scores).toMatchObject([{ ...about, runId: second.runId, steps: 1, agentVersion: 1 }, { ...about, runId: first.runId, steps: 2 }])
  // No release, and no tracer.
  expect(Object.keys(scores[1] ?? {})).not.toEqual(expect.arrayContaining(['traceId']))
})

it('[J4.4] scores are listed by thread, resource, run, agent, scorer and state, in pages', async () => {
  const { agent, heed, settled } = open({ short: { scorer: short } })
  for (const thread of ['a', 'b', 'c']) await agent.generate('How?', { memory: { thread, resource: `of-${thread}` } })
  const [newest] = await settled(3)
  expect(newest).toMatchObject({ threadId: 'c' })
  const found = async (query: object) => (await heed.listScores(query)).scores.map(({ threadId }) => threadId)
  expect(await found({ threadId: 'a' })).toEqual(['a'])
  expect(await found({ resourceId: 'of-b' })).toEqual(['b'])
  expect(await found({ runId: newest?.runId })).toEqual(['c'])
  expect(await found({ agentId: 'guide', scorerId: 'short', state: 'scored' })).toEqual(['c', 'b', 'a'])
  expect([await found({ scorerId: 'other' }), await found({ state: 'failed' })]).toEqual([[], []])
  const { scores, next } = await heed.listScores({ limit: 2 })
  expect(scores.map(({ threadId }) => threadId)).toEqual(['c', 'b'])
  expect(await found({ before: next })).toEqual(['a'])
  await expect(heed.listScores({ agentId: 'nobody' })).rejects.toMatchObject({ code: 'unknown_agent' })
  const tenant = new RequestContext({ tenant: 'acme' })
  const asked = new Agent({ id: 'x', model: scriptedModel([]), instructions: ({ requestContext }) => `For ${String(requestContext.get('tenant'))}.` })
  expect(await asked.getInstructions({ requestContext: tenant })).toEqual(['For acme.'])
})

it('[J4.5] a judge that fails is asked again later, and never fails or delays the run', async () => {
  const clock = virtualClock()
  const finding = JSON.stringify({ findings: [{ text: 'x', verdict: 'yes', why: 'y' }] })
  let calls = 0
  const model = scriptedModel(() => (++calls < 3 ? { error: { status: 400, message: 'broken judge' } } : finding))
  const { agent, heed, settled } = open({ relevancy: { scorer: createAnswerRelevancyScorer({ model }) } }, { clock })
  expect(await agent.generate('How?', { memory: { thread: thread.threadId, resource: thread.resourceId } })).toMatchObject({ text: 'By train.' })
  await expect.poll(async () => {
    await clock.advance(1_000)
    return (await heed.listScores()).scores[0]?.attempts
  }, { timeout: 20_000 }).toBe(3)
  expect((await settled(1))[0]).toMatchObject({ state: 'scored', score: 1, attempts: 3, usage: { outputTokens: expect.any(Number) as number } })
})

it('[J4.5] gives up after eight attempts, and the score has the error', async () => {
  const clock = virtualClock()
  const broken = createScorer({ id: 'broken', description: 'd', type: 'agent' }).generateScore(() => {
    throw new Error('no')
  })
  const { agent, heed, settled } = open({ broken: { scorer: broken } }, { clock })
  await agent.generate('How?', { memory: { thread: thread.threadId, resource: thread.resourceId } })
  await expect.poll(async () => {
    await clock.advance(300_000)
    return (await heed.listScores({ state: 'failed' })).scores.length
  }, { timeout: 20_000 }).toBe(1)
  expect((await settled(1))[0]).toMatchObject({ attempts: 8, error: { code: 'scorer_failed', message: expect.stringContaining('no') as string } })
})

it('[J4.6] what a process left is scored by the next one, once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-scores-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const storage = () => new LibSQLStore({ url: `file:${join(folder, 'heed.db')}` })
  const first = open({ short: { scorer: short } }, { storage: storage(), dispatch: false })
  await first.agent.generate('How?', { memory: { thread: thread.threadId, resource: thread.resourceId } })
  expect((await first.heed.listScores()).scores).toMatchObject([{ state: 'pending', attempts: 0 }])
  await first.heed.close()
  let scored = 0
  const counted = createScorer({ id: 'short', description: 'd', type: 'agent' }).generateScore(() => ++scored)
  const next = open({ short: { scorer: counted } }, { storage: storage(), dispatch: false })
  expect(await next.heed.tick()).toMatchObject({ scores: 1 })
  expect(await next.settled(1)).toMatchObject([{ state: 'scored', score: 1 }])
  expect(await next.heed.tick()).toMatchObject({ scores: 0 })
  expect(scored).toBe(1)
})

it('[J4.7] a share of the runs is scored: the same for every scorer of one rate, and a lower rate is part of a higher one', () => {
  const named = (id: string): ScorerLike => createScorer({ id, description: 'd', type: 'agent' }).generateScore(() => 1)
  const entry = (id: string, rate: number) => ({ scorer: named(id), sampling: { type: 'ratio' as const, rate } })
  const about = { requestContext: {}, entity: {}, entityType: 'agent', source: 'live', threadId: 't', resourceId: 'r' } as const
  const runs = Array.from({ length: 4_000 }, (_, index) => selectScorers({ a: entry('a', 0.1), b: entry('b', 0.1), c: entry('c', 0.5), d: entry('d', 0), e: { scorer: named('e') } }, `run-${index}`, about).map(({ scorer }) => scorer.id))
  const count = (id: string) => runs.filter((ids) => ids.includes(id)).length
  expect(runs.every((ids) => ids.includes('a') === ids.includes('b') && (!ids.includes('a') || ids.includes('c')))).toBe(true)
  expect(count('a')).toBeGreaterThan(320)
  expect(count('a')).toBeLessThan(480)
  expect(count('c')).toBeGreaterThan(1_850)
  expect([count('d'), count('e')]).toEqual([0, 4_000])
})

it('[J4.8] scorers that cannot work are rejected by name when the agent is made', () => {
  const values = createScorer({ id: 'values', description: 'd', type: { input: { type: 'string' }, output: { type: 'string' } } }).generateScore(() => 1)
  const make = (scorers: unknown) => () => new Agent({ id: 'a', model: scriptedModel([]), scorers: scorers as never })
  expect(make({ one: { scorer: values } })).toThrow('scorers.one.scorer')
  expect(make({ one: { scorer: short, sampling: { type: 'ratio', rate: 2 } } })).toThrow('scorers.one.sampling.rate')
  expect(make({ one: { scorer: short, sampling: { type: 'often' } } })).toThrow('scorers.one.sampling.type')
  expect(make({ one: { scorer: short, sampling: { type: 'none', rate: 1 } } })).toThrow('scorers.one.sampling.rate')
  expect(make({ one: { scorer: short, filtr: {} } })).toThrow("'filtr'")
  expect(make({ one: { scorer: short, filter: {} } })).toThrow('scorers.one.filter')
  expect(make({ one: { scorer: short, on: ['tripwire'] } })).toThrow('scorers.one.on')
  expect(make({ one: { scorer: short }, two: { scorer: short } })).toThrow("'short'")
  expect(make({ one: short })).toThrow('scorers of agent')
  expect(make([])).toThrow('scorers of agent')
})

it('[J4.5] the scorers of a run read it once, and none sees what another one changed of it', async () => {
  const storage = new InMemoryStore()
  const seen: string[] = []
  const greedy = (id: string): ScorerLike => createScorer({ id, description: 'd', type: 'agent' }).generateScore(({ run }) => {
    seen.push(textOf(run.output))
    run.output.length = 0
    return 1
  })
  const { agent, settled } = open({ a: { scorer: greedy('a') }, b: { scorer: greedy('b') }, c: { scorer: greedy('c') }, d: { scorer: greedy('d') }, e: { scorer: greedy('e') } }, { storage })
  let reads = 0
  await agent.threads().open()
  const { store } = agent.threads()
  const readPrompt = store.readPrompt.bind(store)
  store.readPrompt = (...args) => {
    reads++
    return readPrompt(...args)
  }
  await agent.generate('How?', { memory: { thread: thread.threadId, resource: thread.resourceId } })
  reads = 0
  await settled(5)
  expect([reads, seen]).toEqual([1, Array.from({ length: 5 }, () => 'By train.')])
})

it('[J1.4] [J4.5] a judge that lies about its format or never answers keeps its error, and costs no other scorer its score', async () => {
  const clock = virtualClock()
  let asked = 0
  const liar = scriptedModel(() => {
    asked++
    return '{"findings": "all of them", "score": 1}'
  })
  const silent = scriptedModel(() => ({ text: '', hang: true }))
  const judged = (id: string, model: LanguageModelV4) => createScorer({ id, description: 'd', type: 'agent', judge: { model, instructions: 'Judge.' } })
    .analyze({ description: 'd', outputSchema: { type: 'object', properties: { findings: { type: 'array' } }, required: ['findings'] }, createPrompt: () => 'Judge.' })
    .generateScore(() => 1)
  const { agent, heed } = open({ liar: { scorer: judged('liar', liar) }, silent: { scorer: judged('silent', silent) }, short: { scorer: short } }, { clock })
  expect(await agent.generate('How?', { memory: { thread: thread.threadId, resource: thread.resourceId } })).toMatchObject({ text: 'By train.' })
  const states = async () => Object.fromEntries((await heed.listScores()).scores.map(({ scorerId, state }) => [scorerId, state]))
  await expect.poll(async () => {
    await clock.advance(100)
    return (await states()).short
  }, { timeout: 20_000 }).toBe('scored')
  await expect.poll(async () => {
    await clock.advance(60_000)
    return states()
  }, { timeout: 60_000 }).toEqual({ liar: 'failed', silent: 'failed', short: 'scored' })
  const errors = Object.fromEntries((await heed.listScores()).scores.map(({ scorerId, error, attempts }) => [scorerId, { attempts, message: String(error?.message) }]))
  // Each attempt asked the liar twice.
  expect([asked, errors.liar?.attempts, errors.silent?.attempts]).toEqual([16, 8, 8])
  expect(errors.silent?.message).toContain('No score after')
})

it('[J4.5] a scorer in code that never ends keeps an error, and costs no other run its scores', async () => {
  const clock = virtualClock()
  const endless = createScorer({ id: 'endless', description: 'd', type: 'agent' }).generateScore(() => new Promise<number>(() => {}))
  const { agent, heed } = open({ endless: { scorer: endless }, short: { scorer: short } }, { clock })
  const count = 6
  for (let index = 0; index < count; index++) await agent.generate('How?', { memory: { thread: `thread-${index}`, resource: thread.resourceId } })
  const states = async (scorerId: string) => (await heed.listScores({ scorerId })).scores.map(({ state }) => state)
  await expect.poll(async () => {
    await clock.advance(100)
    return (await states('short')).filter((state) => state === 'scored').length
  }, { timeout: 20_000 }).toBeGreaterThanOrEqual(3)
  await expect.poll(async () => {
    await clock.advance(60_000)
    return [...(await states('short')), ...(await states('endless'))]
  }, { timeout: 120_000 }).toEqual([...Array.from({ length: count }, () => 'scored'), ...Array.from({ length: count }, () => 'failed')])
  const { scores } = await heed.listScores({ scorerId: 'endless' })
  expect(scores.map(({ attempts, error }) => [attempts >= 8, String(error?.message).includes('No score after')])).toEqual(scores.map(() => [true, true]))
}, 150_000)

it('[J4.5] what a scorer does not change or read is its own too: fields may be replaced, and are made when they are read', async () => {
  const seen: unknown[] = []
  const reads = (id: string): ScorerLike => createScorer({ id, description: 'd', type: 'agent' }).generateScore(({ run }) => {
    seen.push([Object.keys(run.input), textOf(run.input.inputMessages), run.input.inputMessages[0]?.createdAt instanceof Date, run.input.systemMessages])
    run.input.inputMessages[0]?.createdAt.setTime(0)
    seen.push((run.input.inputMessages[0]?.createdAt.getTime() ?? 0) === 0)
    run.input.inputMessages = []
    run.input.systemMessages.push('changed')
    return structuredClone(run.input).inputMessages.length
  })
  const { agent, settled } = open({ a: { scorer: reads('a') }, b: { scorer: reads('b') } })
  await agent.generate('How?', { memory: { thread: thread.threadId, resource: thread.resourceId } })
  await settled(2)
  const once = [[['inputMessages', 'rememberedMessages', 'systemMessages'], 'How?', true, ['You plan trips.', 'changed']], true]
  expect(seen).toEqual([...once, ...once])
})
