import { expect, it, onTestFinished } from 'vitest'
import { Agent, Heed, InMemoryStore, RequestContext, silentLogger, type AgentConfig } from '../../src/index.ts'
import { scorersInUse } from '../../src/heed/scores.ts'
import { createScorer, textOf, type ScorerLike } from '../../src/scorers/index.ts'
import { scriptedModel, virtualClock, type VirtualClock } from '../../src/testing/index.ts'
import { createStep, createWorkflow } from '../../src/workflow/index.ts'

const memory = { thread: 'thread-1', resource: 'user-1' }
const short = createScorer({ id: 'short', description: 'd', type: 'agent' }).generateScore(({ run: { output } }) => textOf(output).length)

function open(own: AgentConfig['scorers'] = {}, { clock, scorers = {} }: { clock?: VirtualClock; scorers?: Record<string, ScorerLike> } = {}) {
  const agent = new Agent({ id: 'guide', model: scriptedModel(() => 'By train.'), scorers: own })
  const heed = new Heed({
    agents: { agent }, scorers, storage: new InMemoryStore(clock ? { clock } : {}), logger: silentLogger, notifications: { dispatch: { enabled: false } }, ...(clock ? { clock } : {}),
  })
  onTestFinished(() => heed.close())
  return { agent, heed }
}

it('[J4.14] a person scores a run beside its scorers, and again: the newer one counts', async () => {
  const { agent, heed } = open({ short: { scorer: short } })
  const { runId } = await agent.generate('How?', { memory })
  await heed.tick()
  const thumbs = { threadId: 'thread-1', resourceId: 'user-1', runId, scorerId: 'thumbs' }
  const saved = await heed.saveScore({ ...thumbs, score: 0, by: 'ann', reason: 'Too short.', metadata: { page: 'chat' } })
  expect(saved).toMatchObject({ ...thumbs, agentId: 'guide', version: '1', state: 'scored', source: 'live', score: 0, by: 'ann', reason: 'Too short.', metadata: { page: 'chat' } })
  await heed.saveScore({ ...thumbs, score: 1, by: 'ann' })
  await heed.saveScore({ ...thumbs, score: 0.5, by: 'bob', source: 'test', version: '2' })
  const { scores } = await heed.listScores({ runId })
  expect(scores.map(({ scorerId, by, score, source }) => [scorerId, by, score, source])).toEqual([['thumbs', 'bob', 0.5, 'test'], ['thumbs', 'ann', 1, 'live'], ['short', undefined, 9, 'live']])
  expect([await heed.countScores({ runId }), await heed.countScores({ source: 'test' }), await heed.countScores({ agentId: 'guide', scorerId: 'thumbs' })]).toEqual([3, 1, 2])
  expect((await heed.listScores({ offset: 1, limit: 1 })).scores.map(({ by }) => by)).toEqual(['ann'])
  expect((await heed.listScores({ source: 'test' })).scores.map(({ by }) => by)).toEqual(['bob'])
  await expect(heed.saveScore({ ...thumbs, runId: 'none', score: 1 })).rejects.toMatchObject({ code: 'not_found' })
  await expect(heed.saveScore({ ...thumbs, resourceId: 'user-2', score: 1 })).rejects.toMatchObject({ code: 'not_found' })
  await expect(heed.saveScore({ ...thumbs, score: Number.NaN })).rejects.toThrow('score must be a number')
  await expect(heed.saveScore({ ...thumbs, score: 1, source: 'hand' as never })).rejects.toThrow('source')
  await expect(heed.saveScore({ ...thumbs, score: 1, agentId: 'nobody' })).rejects.toMatchObject({ code: 'unknown_agent' })
  const counted = async (query: object) => [await heed.countScores(query), (await heed.listScores(query)).scores.length]
  for (const query of [{ threadId: 'thread-2' }, { resourceId: 'user-2' }, { state: 'failed' }, { stepId: 'x' }]) expect(await counted(query)).toEqual([0, 0])
  expect(await counted({ threadId: 'thread-1', resourceId: 'user-1', state: 'scored' })).toEqual([3, 3])
  await (await agent.getMemory()).deleteThread('thread-1')
  expect(await heed.countScores()).toBe(0)
})

it('[J4.15] a judge that failed eight times is listed with its error, and its score is made when it is retried', async () => {
  const clock = virtualClock()
  let isBroken = true
  let calls = 0
  const judge = createScorer({ id: 'judge', description: 'd', type: 'agent' }).generateScore(() => {
    calls++
    if (isBroken) throw new Error('no judge')
    return 1
  })
  const { agent, heed } = open({ judge: { scorer: judge }, short: { scorer: short } }, { clock })
  const { runId } = await agent.generate('How?', { memory })
  const settle = async (state: 'failed' | 'scored') => {
    for (let attempt = 0; attempt < 20 && (await heed.countScores({ scorerId: 'judge', state })) === 0; attempt++) {
      await heed.tick()
      await clock.advance(300_000)
    }
    return (await heed.listScores({ scorerId: 'judge' })).scores[0]
  }
  expect(await settle('failed')).toMatchObject({ runId, attempts: 8, error: { message: expect.stringContaining('no judge') as string } })
  const others = [{ scorerId: 'short' }, { threadId: 'thread-2' }, { resourceId: 'user-2' }, { runId: 'another' }, { stepId: 'x' }, { source: 'test' as const }]
  for (const query of others) expect(await heed.retryScores(query)).toBe(0)
  await expect(heed.retryScores({ agentId: 'nobody' })).rejects.toMatchObject({ code: 'unknown_agent' })
  await expect(heed.retryScores({ workflowId: 'none' })).rejects.toMatchObject({ code: 'unknown_workflow' })
  expect(await heed.retryScores({ scorerId: 'judge', runId })).toBe(1)
  // It has as many attempts as before.
  expect(await settle('failed')).toMatchObject({ attempts: 16, retries: 1 })
  isBroken = false
  expect(await heed.retryScores({ agentId: 'guide', threadId: 'thread-1', limit: 10 })).toBe(1)
  const scored = await settle('scored')
  expect(scored).toMatchObject({ state: 'scored', score: 1, attempts: 17, retries: 2 })
  expect([scored?.error, calls]).toEqual([undefined, 17])
})

it('[J4.16] runs that ended before are scored as new ones are, once, by the filter and the sample', async () => {
  const { agent, heed } = open({}, { scorers: { short } })
  const ask = (plan: string) => agent.generate('How?', { memory, requestContext: new RequestContext({ plan }) })
  for (let index = 0; index < 6; index++) await ask(index % 2 === 0 ? 'pro' : 'free')
  expect(await heed.countScores()).toBe(0)
  const pro = { agentId: 'guide', scorer: 'short', filter: { 'requestContext.plan': { eq: 'pro' } } } as const
  expect(await heed.backfillScores({ ...pro, to: new Date(0) })).toEqual({ runs: 0, added: 0 })
  expect(await heed.backfillScores({ ...pro, from: new Date(Date.now() + 60_000) })).toEqual({ runs: 0, added: 0 })
  expect(await heed.backfillScores({ ...pro, on: ['failed'] })).toEqual({ runs: 0, added: 0 })
  expect(await heed.backfillScores({ ...pro, sampling: { type: 'ratio', rate: 0 } })).toEqual({ runs: 0, added: 0 })
  expect(await heed.backfillScores({ ...pro, from: new Date(0), to: new Date() })).toEqual({ runs: 3, added: 3 })
  expect(await heed.backfillScores({ agentId: 'guide', scorer: 'short' })).toEqual({ runs: 6, added: 3 })
  await heed.tick()
  const { scores } = await heed.listScores({ scorerId: 'short' })
  expect(scores.map(({ state, score }) => [state, score])).toEqual(Array.from({ length: 6 }, () => ['scored', 9]))
  expect(new Set(scores.map(({ runId }) => runId)).size).toBe(6)
  await expect(heed.backfillScores({ agentId: 'guide', scorer: 'other' })).rejects.toMatchObject({ code: 'unknown_scorer' })
  await expect(heed.backfillScores({ ...pro, from: 'today' as never })).rejects.toThrow('from must be a Date')
  await expect(heed.backfillScores({ ...pro, sampling: { type: 'ratio', rate: 3 } })).rejects.toThrow('rate')
})

it('[J4.18] the scorers in use are found with who uses them', async () => {
  const step = createScorer({ id: 'step', description: 'd' }).generateScore(() => 1)
  const entry = { one: { scorer: step }, two: { scorer: createScorer({ id: 'two', description: 'd' }).generateScore(() => 1) } }
  const order = createWorkflow({ id: 'order' }).then(createStep({ id: 'a', execute: () => 1, scorers: entry })).then(createStep({ id: 'b', execute: () => 1, scorers: entry })).commit()
  const agent = new Agent({ id: 'guide', name: 'Guide', model: scriptedModel([]), scorers: { s: { scorer: short, sampling: { type: 'ratio', rate: 0.5 } } } })
  const heed = new Heed({ agents: { agent }, workflows: { order }, scorers: { step }, storage: new InMemoryStore() })
  onTestFinished(() => heed.close())
  const none = { agentIds: [], agentNames: [], workflowIds: ['order'] }
  expect(await scorersInUse(heed)).toEqual({
    step: { scorer: step, ...none, isRegistered: true }, two: { scorer: entry.two.scorer, ...none, isRegistered: false },
    short: { scorer: short, sampling: { type: 'ratio', rate: 0.5 }, agentIds: ['guide'], agentNames: ['Guide'], workflowIds: [], isRegistered: false },
  })
})
