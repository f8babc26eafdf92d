import { expect, it, onTestFinished } from 'vitest'
import { Agent, createTool, Heed, InMemoryStore, RequestContext, silentLogger, type AgentConfig, type CallScorers, type HeedWorkflow, type ScorerFilter } from '../../src/index.ts'
import { checkFilter, meets, type FilteredRun } from '../../src/scorers/filter.ts'
import { createScorer, textOf, type ScorerLike } from '../../src/scorers/index.ts'
import { scriptedModel, type Script } from '../../src/testing/index.ts'
import { createStep, createWorkflow } from '../../src/workflow/index.ts'
import { z } from 'zod'

const named = (id: string, score: (output: unknown) => number = () => 1): ScorerLike =>
  createScorer({ id, description: 'd', type: 'agent' }).generateScore(({ run: { output } }) => score(output))

interface Opened {
  scorers?: Record<string, ScorerLike>
  own?: NonNullable<AgentConfig['scorers']>
  script?: Script
  storage?: InMemoryStore
}

function open({ scorers, own, script = () => 'By train.', storage = new InMemoryStore() }: Opened = {}) {
  const agent = new Agent({ id: 'guide', name: 'Guide', model: scriptedModel(script), ...(own ? { scorers: own } : {}) })
  const heed = new Heed({ agents: { agent }, storage, logger: silentLogger, notifications: { dispatch: { enabled: false } }, ...(scorers ? { scorers } : {}) })
  onTestFinished(() => heed.close())
  const ask = (options: { scorers?: CallScorers; requestContext?: RequestContext; runId?: string } = {}) =>
    agent.generate('How?', { memory: { thread: 'thread-1', resource: 'user-1' }, ...options })
  const scored = async () => {
    await heed.tick()
    return (await heed.listScores()).scores.map(({ scorerId }) => scorerId)
  }
  return { agent, heed, ask, scored }
}

const run: FilteredRun = {
  requestContext: { plan: 'pro', seats: 7, tags: ['a'], user: { id: 'ann', admin: false }, none: null }, entity: { id: 'guide', name: 'Guide' },
  entityType: 'agent', source: 'live', threadId: 't', resourceId: 'r',
}

it('[J4.11] a filter tests fields of the run, its agent and its request, and all that it names must hold', () => {
  const holds: ScorerFilter[] = [
    { 'requestContext.plan': { eq: 'pro' } }, { 'requestContext.plan': { ne: 'free' } }, { 'requestContext.seats': { gt: 6, lte: 7 } },
    { 'requestContext.seats': { gte: 7, lt: 8 } }, { 'requestContext.plan': { in: ['team', 'pro'], notIn: ['free'] } }, { 'requestContext.user.id': { eq: 'ann' } },
    { 'requestContext.user.admin': { falsy: true, exists: true } }, { 'requestContext.plan': { truthy: true } }, { 'requestContext.other': { notExists: true, falsy: true, ne: 1, notIn: [1] } },
    { 'requestContext.none': { eq: null, exists: true } }, { 'entity.id': { eq: 'guide' }, entityType: { eq: 'agent' }, source: { eq: 'live' }, threadId: { eq: 't' }, resourceId: { eq: 'r' } },
    { and: [{ source: { eq: 'live' } }, { not: { source: { eq: 'test' } } }] }, { or: [{ source: { eq: 'test' } }, { threadId: { gte: 's' } }] },
    { 'requestContext.constructor': { notExists: true } }, { 'requestContext.plan': { exists: true, truthy: true } },
  ]
  for (const filter of holds) {
    expect(() => checkFilter('filter', filter)).not.toThrow()
    expect([filter, meets(filter, run), meets({ not: filter }, run)]).toEqual([filter, true, false])
  }
  const fails: ScorerFilter[] = [
    { 'requestContext.plan': { eq: 'pro' }, source: { eq: 'test' } }, { 'requestContext.plan': { gt: 1 } }, { 'requestContext.seats': { gt: '1' } }, { 'requestContext.other': { lt: 1 } },
    { 'requestContext.other': { in: ['a'] } }, { 'requestContext.plan': { exists: false } }, { 'requestContext.none': { notExists: true } }, { 'requestContext.none': { truthy: true } },
    { 'requestContext.tags': { eq: 'a' } }, { 'requestContext.seats': { gt: 6, lt: 7 } }, { 'requestContext.seats': { lt: 7 } }, { 'requestContext.seats': { lte: 6 } }, { 'requestContext.seats': { gte: 8 } },
    { 'requestContext.plan': { falsy: true } }, { 'requestContext.plan': { notIn: ['pro'] } },
  ]
  for (const filter of fails) expect([filter, meets(filter, run)]).toEqual([filter, false])
})

it('[J4.11] a filter that cannot work is rejected by the field that is wrong, when the agent is made', () => {
  const make = (filter: unknown) => () => open({ own: { a: { scorer: named('a'), filter: filter as ScorerFilter } } })
  expect(make({ 'request.plan': { eq: 1 } })).toThrow("'request.plan'")
  expect(make({ requestContext: { eq: 1 } })).toThrow("'requestContext'")
  expect(make({ 'threadId.x': { eq: 1 } })).toThrow("'threadId.x'")
  expect(make({ threadId: { equals: 1 } })).toThrow("'equals'")
  expect(make({ threadId: {} })).toThrow('scorers.a.filter."threadId"')
  expect(make({ threadId: { in: 'a' } })).toThrow('"threadId".in')
  expect(make({ threadId: { exists: 1 } })).toThrow('"threadId".exists')
  expect(make({ threadId: { gt: null } })).toThrow('"threadId".gt')
  expect(make({ threadId: { eq: {} } })).toThrow('"threadId".eq')
  expect(make({ and: [] })).toThrow('filter.and')
  expect(make({ or: [{ threadId: { eq: 1 } }, { x: { eq: 1 } }] })).toThrow("'x'")
  expect(make({ not: [] })).toThrow('filter.not')
  expect(make({ and: [{ threadId: { eq: 1 } }], threadId: { eq: 1 } })).toThrow("'threadId'")
  expect(make([])).toThrow('scorers.a.filter')
  // @ts-expect-error a root that is none
  const wrong: ScorerFilter = { 'request.plan': { eq: 1 } }
  expect(make(wrong)).toThrow("'request.plan'")
})

it('[J4.11] a run that its filter leaves out is not scored, whatever the sample says', async () => {
  const { ask, scored } = open({ own: {
    pro: { scorer: named('pro'), filter: { 'requestContext.plan': { eq: 'pro' } } }, all: { scorer: named('all'), filter: { 'entity.name': { eq: 'Guide' }, threadId: { eq: 'thread-1' } } },
    none: { scorer: named('none'), filter: { entityType: { eq: 'step' } }, sampling: { type: 'none' } },
  } })
  await ask({ requestContext: new RequestContext({ plan: 'free' }) })
  expect(await scored()).toEqual(['all'])
  await ask({ requestContext: new RequestContext({ plan: 'pro' }) })
  expect((await scored()).toSorted()).toEqual(['all', 'all', 'pro'])
})

it('[J4.12] a scorer scores the ends that it names: a run that failed or was aborted too', async () => {
  const texts: string[] = []
  const look = createTool({ id: 'look', inputSchema: z.object({}), execute: async () => 'A train.' })
  const ended = named('ended', (output) => (texts.push(textOf(output)), 1))
  const script: Script = [{ toolCalls: [{ toolName: 'look', input: {} }] }, { error: { status: 400, message: 'no' } }, 'By train.', { text: 'By tra', hang: true }, { error: { status: 400, message: 'no' } }]
  const agent = new Agent({
    id: 'guide', model: scriptedModel(script), tools: { look },
    scorers: { ended: { scorer: ended, on: ['failed', 'aborted'] }, fine: { scorer: named('fine') } },
  })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger, notifications: { dispatch: { enabled: false } } })
  onTestFinished(() => heed.close())
  const memory = { thread: 'thread-1', resource: 'user-1' }
  await expect(agent.generate('How?', { memory, runId: 'failed' })).rejects.toThrow('no')
  await agent.generate('How?', { memory, runId: 'finished' })
  const stop = new AbortController()
  await expect(agent.generate('How?', { memory, runId: 'aborted', abortSignal: stop.signal, onChunk: ({ type }) => void (type === 'text-delta' && stop.abort()) })).rejects.toMatchObject({ code: 'aborted' })
  // Nothing of it was stored: there is nothing to score.
  await expect(agent.generate('How?', { memory, runId: 'failed at once' })).rejects.toThrow('no')
  await heed.tick()
  const { scores } = await heed.listScores()
  expect(scores.map(({ runId, scorerId, state }) => [runId, scorerId, state]).toReversed()).toEqual([
    ['failed', 'ended', 'scored'], ['finished', 'fine', 'scored'], ['aborted', 'ended', 'scored'], ['failed at once', 'ended', expect.any(String) as string],
  ])
  expect(texts.slice(0, 2)).toEqual([expect.any(String) as string, expect.stringContaining('By') as string])
})

it('[J4.17] a call has scorers of its own, in place of those of the agent: of the Heed or the agent, also by their ids', async () => {
  const polite = named('polite')
  const { agent, ask, scored, heed } = open({ scorers: { polite, brief: named('brief') }, own: { own: { scorer: named('own') } } })
  await ask({ scorers: { a: { scorer: 'brief' }, b: { scorer: polite }, c: { scorer: 'own' }, d: { scorer: 'polite-not-sampled', sampling: { type: 'ratio', rate: 0 } } } as CallScorers }).catch((error: unknown) =>
    expect(error).toMatchObject({ code: 'unknown_scorer', details: { scorerId: 'polite-not-sampled' } }))
  await ask({ scorers: { a: { scorer: 'brief' }, b: { scorer: polite }, c: { scorer: 'own' }, d: undefined } })
  expect((await scored()).toSorted()).toEqual(['brief', 'own', 'polite'])
  await ask({ scorers: {} })
  expect(await scored()).toHaveLength(3)
  await ask({ scorers: { a: { scorer: 'brief', filter: { threadId: { eq: 'another' } } }, b: { scorer: 'polite', sampling: { type: 'ratio', rate: 0 } } } })
  expect(await scored()).toHaveLength(3)
  await ask()
  expect((await scored()).filter((id) => id === 'own')).toHaveLength(2)
  expect((await heed.listScores({ state: 'failed' })).scores).toEqual([])
  await expect(ask({ scorers: { a: { scorer: named('stranger') } } })).rejects.toMatchObject({ code: 'unknown_scorer' })
  await expect(agent.generate('How?', { scorers: { a: { scorer: 'brief' } } })).rejects.toThrow('scorers have no effect')
  await expect(ask({ scorers: { a: { scorer: 'brief', samplin: 1 } as never } })).rejects.toThrow("'samplin'")
  await expect(ask({ scorers: { a: { scorer: 'brief' }, b: { scorer: 'brief' } } })).rejects.toThrow("the id 'brief' too")
  expect(() => new Agent({ id: 'x', model: scriptedModel([]), defaultOptions: { scorers: {} } as never })).toThrow('new Agent({ scorers })')
})

it('[J4.17] the scorers of a call are stored with its run: another process scores it with them', async () => {
  const storage = new InMemoryStore()
  const options: CallScorers = { a: { scorer: named('brief'), sampling: { type: 'none' } } }
  const first = open({ storage, scorers: { brief: named('brief') }, script: [{ text: 'By', hang: true }] })
  const receipt = first.agent.sendMessage('How?', { threadId: 'thread-1', resourceId: 'user-1', ifIdle: { streamOptions: { scorers: options } } })
  await receipt.outcome
  const [begun] = await first.agent.threads().store.listRuns({ limit: 1 })
  expect(begun?.options).toMatchObject({ scorers: { a: { scorer: 'brief', sampling: { type: 'none' } } } })
  expect(begun?.options.bound).toBeUndefined()
})

it('[J4.18] a Heed lists its scorers by key and by id, and an agent its own', async () => {
  const polite = named('polite-id')
  const agent = new Agent({ id: 'guide', model: scriptedModel([]), scorers: ({ requestContext }) => (requestContext.get('strict') ? { s: { scorer: named('strict'), sampling: { type: 'ratio', rate: 0.5 } } } : {}) })
  const heed = new Heed({ agents: { agent }, scorers: { polite }, storage: new InMemoryStore() })
  onTestFinished(() => heed.close())
  expect(heed.getScorer('polite')).toBe(polite)
  expect(heed.getScorerById('polite-id')).toBe(polite)
  expect(heed.listScorers()).toEqual({ polite })
  expect(() => heed.getScorer('polit' as 'polite')).toThrow('Known: polite')
  expect(() => heed.getScorerById('polite')).toThrow('polite')
  expect(await agent.listScorers()).toEqual({})
  expect(await agent.listScorers({ requestContext: new RequestContext({ strict: true }) })).toMatchObject({ s: { scorer: { id: 'strict' }, sampling: { rate: 0.5 } } })
  const make = (scorers: unknown) => () => new Heed({ scorers: scorers as never, storage: new InMemoryStore() })
  expect(make({ a: polite, b: polite })).toThrow('scorers.b')
  expect(make({ a: { id: 'x' } })).toThrow('scorers.a')
  expect(make([])).toThrow('scorers')
})

/** A workflow whose steps are scored, in a Heed. */
function openWorkflow(workflow: HeedWorkflow): Heed {
  const heed = new Heed({ workflows: { [workflow.id]: workflow }, storage: new InMemoryStore(), logger: silentLogger, notifications: { dispatch: { enabled: false } } })
  onTestFinished(() => heed.close())
  return heed
}

it('[J4.13] steps of a workflow are scored by their input and output, once for each time that one ended, by their path', async () => {
  const seen: unknown[] = []
  const long = createScorer({ id: 'long', description: 'd', type: { input: z.number(), output: z.string() } }).generateScore(({ run: { runId, input, output, requestContext } }) => {
    seen.push([runId, input, requestContext])
    return output.length
  })
  const text = createStep({
    id: 'text', inputSchema: z.number(), outputSchema: z.string(), execute: ({ inputData }) => 'x'.repeat(inputData),
    scorers: { long: { scorer: long }, few: { scorer: named2('few'), filter: { 'entity.id': { eq: 'other' } } }, never: { scorer: named2('never'), sampling: { type: 'ratio', rate: 0 } } },
  })
  const fails = createStep({ id: 'fails', execute: () => Promise.reject(new Error('no')), scorers: { any: { scorer: named2('any') } } })
  const inner = createWorkflow({ id: 'inner', inputSchema: z.array(z.number()) }).foreach(text).commit()
  const outer = createWorkflow({ id: 'outer', inputSchema: z.array(z.number()) }).then(inner).then(fails).commit()
  const heed = openWorkflow(outer)
  const run = outer.createRun({ runId: 'r1', resourceId: 'ann' })
  expect(await run.start({ inputData: [1, 2], requestContext: new RequestContext({ plan: 'pro' }) })).toMatchObject({ status: 'failed' })
  await heed.tick()
  const { scores } = await heed.listScores({ workflowId: 'outer' })
  expect(scores.map(({ runId, stepId, stepPath, scorerId, score, resourceId }) => [runId, stepId, stepPath, scorerId, score, resourceId]).toReversed().toSorted()).toEqual([
    ['r1', 'text', '0/0[0]', 'long', 1, 'ann'], ['r1', 'text', '0/0[1]', 'long', 2, 'ann'],
  ])
  expect(seen).toEqual([['r1', 1, { plan: 'pro' }], ['r1', 2, { plan: 'pro' }]])
  expect(await heed.countScores({ workflowId: 'outer', stepId: 'text' })).toBe(2)
  await outer.deleteWorkflowRunById('r1')
  expect(await heed.countScores({ workflowId: 'outer' })).toBe(0)
})

function named2(id: string): ScorerLike {
  return createScorer({ id, description: 'd' }).generateScore(() => 1)
}

it('[J4.13] scorers of a step that cannot work are rejected by name', () => {
  const make = (scorers: unknown) => () => createStep({ id: 'x', execute: () => 1, scorers: scorers as never })
  expect(make({ a: { scorer: named('a') } })).toThrow('scorers.a.scorer')
  expect(make({ a: { scorer: named2('a'), on: ['failed'] } })).toThrow("'on'")
  expect(make({ a: { scorer: named2('a') }, b: { scorer: named2('a') } })).toThrow('scorers.b.scorer')
  expect(make({ a: { scorer: named2('a'), filter: { x: { eq: 1 } } } })).toThrow("'x'")
})

it('[J4.17] every call that starts a run takes scorers', async () => {
  const { agent, heed } = open({ scorers: { brief: named('brief') }, script: () => 'Fine.' })
  const scorers: CallScorers = { a: { scorer: 'brief' } }
  const memory = { thread: 'thread-1', resource: 'user-1' }
  const target = { threadId: 'thread-1', resourceId: 'user-1', ifIdle: { streamOptions: { scorers } } }
  await agent.generate('a', { memory, scorers })
  await (await agent.stream('b', { memory, scorers })).text
  await agent.generateLegacy('c', { memory, scorers })
  await (await agent.streamLegacy('d', { memory, scorers })).text
  const idle = async () => {
    await expect.poll(() => agent.activeRun({ threadId: 'thread-1' })).toBeNull()
  }
  const sends: Array<() => Promise<unknown>> = [
    () => agent.sendMessage('e', target).outcome, () => agent.queueMessage('f', target).outcome, () => agent.sendSignal({ type: 'reactive', tagName: 'ping', contents: 'g' }, target).outcome,
    () => agent.sendStateSignal({ id: 'lane', cacheKey: '1', mode: 'snapshot', contents: 'h' }, target),
    () => agent.sendNotificationSignal({ source: 'mail', kind: 'letter', priority: 'urgent', summary: 'i' }, target),
  ]
  for (const send of sends) {
    await send()
    await idle()
  }
  await heed.tick()
  const runs = await agent.threads().store.countRuns({ status: ['finished'] })
  expect([runs, await heed.countScores({ scorerId: 'brief', state: 'scored' })]).toEqual([9, 9])
})
