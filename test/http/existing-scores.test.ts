import { expect, it, onTestFinished } from 'vitest'
import { HeedClient } from '../../src/client/index.ts'
import { apiKeys, createHandler, principalScopes } from '../../src/http/server.ts'
import { Agent, Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { createScorer, textOf } from '../../src/scorers/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { createStep, createWorkflow } from '../../src/workflow/index.ts'

const short = createScorer({ id: 'short', description: 'Is short.', type: 'agent' }).generateScore(({ run: { output } }) => textOf(output).length)
const tone = createScorer({ id: 'tone', description: 'Is polite.' }).generateScore(() => 1)
const judge = createScorer({ id: 'judge', description: 'Fails.', type: 'agent', judge: { model: scriptedModel(() => '1'), instructions: 'Secret.' } }).generateScore(() => {
  throw new Error('no judge')
})

const principals = {
  ann: { resources: ['ann'], scopes: principalScopes.endUser }, bob: { resources: ['bob'], scopes: principalScopes.endUser }, both: { resources: ['ann', 'bob'], scopes: principalScopes.tenant },
  blind: { resources: ['ann'], scopes: ['send'] }, reader: { resources: ['ann'], scopes: ['read'] }, admin: { resources: '*' as const, scopes: principalScopes.operator },
}
const keyOf = (name: string) => `the-key-of-${name}-000000`

/** A server whose agent was asked three times by Ann and once by Bob, and whose workflow has run for Ann. */
async function open() {
  const clock = virtualClock()
  const guide = new Agent({ id: 'guide', name: 'Guide', model: scriptedModel(() => 'By train.'), scorers: { short: { scorer: short, sampling: { type: 'ratio', rate: 1 } }, judge: { scorer: judge } } })
  const write = createStep({ id: 'write', scorers: { tone: { scorer: tone } }, execute: () => 'Dear Ann' })
  const letters = createWorkflow({ id: 'letters' }).then(write).commit()
  const heed = new Heed({ agents: { guide }, workflows: { letters }, scorers: { tone }, storage: new InMemoryStore({ clock }), clock, logger: silentLogger, notifications: { dispatch: { enabled: false } } })
  const auth = apiKeys(Object.fromEntries(Object.entries(principals).map(([id, principal]) => [keyOf(id), { id, ...principal }])))
  const handler = createHandler(heed, { auth })
  onTestFinished(async () => {
    handler.close()
    await heed.close()
  })
  const runs: string[] = []
  for (const [index, resource] of ['ann', 'ann', 'ann', 'bob'].entries()) runs.push((await guide.generate('How?', { memory: { thread: `thread-${index}`, resource } })).runId)
  await letters.createRun({ runId: 'letter-1', resourceId: 'ann' }).startAsync({ inputData: {} })
  // The judge fails eight times.
  for (let attempt = 0; attempt < 20 && (await heed.countScores({ state: 'failed' })) < 4; attempt++) {
    await heed.tick()
    await clock.advance(300_000)
  }
  const tell = async (path: string, { as = 'ann', json }: { as?: keyof typeof principals; json?: object } = {}) => {
    const response = await handler(new Request(`http://localhost/api/scores${path}`, {
      method: json ? 'POST' : 'GET', headers: { authorization: `Bearer ${keyOf(as)}`, ...(json ? { 'content-type': 'application/json' } : {}) }, ...(json ? { body: JSON.stringify(json) } : {}),
    }))
    const answer = (await response.json()) as Record<string, unknown>
    return { http: response.status, ...answer } as Record<string, unknown>
  }
  const client = (as: keyof typeof principals) => new HeedClient({ baseUrl: 'http://localhost', headers: { authorization: `Bearer ${keyOf(as)}` }, fetch: (input, init) => handler(new Request(input, init)) })
  return { heed, tell, client, runs }
}

it('[J4.19] lists scores by run, scorer, agent, workflow and step, page by page, and of the own resources alone', async () => {
  const { tell, runs } = await open()
  const first = await tell(`/run/${runs[0]}`)
  expect(first).toMatchObject({
    http: 200, pagination: { total: 1, page: 0, perPage: 10, hasMore: false },
    scores: [{ scorerId: 'short', scorer: { id: 'short', version: '1' }, entityType: 'AGENT', entityId: 'guide', runId: runs[0], threadId: 'thread-0', resourceId: 'ann', source: 'LIVE', score: 9 }],
  })
  const [score] = first.scores as Array<{ id: string; createdAt: string; updatedAt: string }>
  expect(Number(score?.id)).toBeGreaterThan(0)
  expect(Date.parse(score?.updatedAt ?? '')).toBeGreaterThanOrEqual(Date.parse(score?.createdAt ?? ''))
  const found = async (path: string, as: keyof typeof principals = 'ann') => {
    const { pagination, scores } = (await tell(path, { as })) as unknown as { pagination: object; scores: Array<{ runId: string }> }
    return { ...pagination, runs: scores.map(({ runId }) => runs.indexOf(runId)) }
  }
  const whole = { page: 0, perPage: 10, hasMore: false }
  expect(await found('/scorer/short')).toEqual({ ...whole, total: 3, runs: [2, 1, 0] })
  expect(await found('/scorer/short?page=0&perPage=2')).toEqual({ total: 3, page: 0, perPage: 2, hasMore: true, runs: [2, 1] })
  expect(await found('/scorer/short?page=1&perPage=2')).toEqual({ total: 3, page: 1, perPage: 2, hasMore: false, runs: [0] })
  expect(await found('/entity/AGENT/guide', 'bob')).toEqual({ ...whole, total: 1, runs: [3] })
  expect(await found('/entity/AGENT/guide?page=1&perPage=3', 'admin')).toEqual({ total: 4, page: 1, perPage: 3, hasMore: false, runs: [0] })
  expect(await found(`/run/${runs[0]}?page=1`)).toEqual({ ...whole, page: 1, total: 1, runs: [] })
  expect(await found(`/run/${runs[0]}`, 'bob')).toEqual({ ...whole, total: 0, runs: [] })
  expect(await found('/scorer/short?resourceId=bob', 'both')).toEqual({ ...whole, total: 1, runs: [3] })
  // What failed has no number.
  expect(await found('/scorer/judge', 'admin')).toEqual({ ...whole, total: 0, runs: [] })
  for (const path of ['/entity/WORKFLOW/letters', '/entity/STEP/write', '/scorer/tone', '/scorer/tone?entityId=write&entityType=STEP', '/scorer/tone?entityId=letters&entityType=WORKFLOW'])
    expect([path, await tell(path)]).toMatchObject([path, { pagination: { total: 1 }, scores: [{ scorerId: 'tone', entityType: 'STEP', entityId: 'write', runId: 'letter-1', score: 1 }] }])
  expect(await tell('/entity/WORKFLOW/letters', { as: 'bob' })).toMatchObject({ pagination: { total: 0 }, scores: [] })
  for (const path of ['/scorer/tone?entityId=guide', '/scorer/tone?entityId=other&entityType=STEP']) expect([path, await tell(path)]).toMatchObject([path, { pagination: { total: 0 } }])
})

it('[J4.19] needs the scope read and a resource of the caller, and rejects what it does not know by name', async () => {
  const { tell, runs } = await open()
  for (const path of [`/run/${runs[0]}`, '/scorer/short', '/entity/AGENT/guide']) {
    expect(await tell(path, { as: 'blind' })).toMatchObject({ http: 403, details: { scope: 'read' } })
    expect(await tell(`${path}?resourceId=bob`)).toMatchObject({ http: 403 })
    expect(await tell(path, { as: 'both' })).toMatchObject({ http: 400, details: { field: 'resourceId' } })
    expect(await tell(`${path}?perPage=1001`)).toMatchObject({ http: 400, error: expect.stringContaining('perPage') as string })
    expect(await tell(`${path}?order=asc`)).toMatchObject({ http: 400, error: expect.stringContaining('order') as string })
  }
  expect(await tell('/scorer/short?entityType=STEP')).toMatchObject({ http: 400, error: expect.stringContaining('entityType') as string })
  expect(await tell('/entity/TRAJECTORY/guide')).toMatchObject({ http: 400, error: expect.stringContaining('entityType') as string })
  expect(await tell('/entity/AGENT/nobody')).toMatchObject({ http: 404, code: 'unknown_agent' })
  expect(await tell(`/run/${runs[0]}?agentId=nobody`)).toMatchObject({ http: 404, code: 'unknown_agent' })
})

it('[J4.19] lists the scorers in use with who uses them, without the instructions of their judges', async () => {
  const { tell, client } = await open()
  const { http, ...scorers } = await tell('/scorers')
  expect(http).toBe(200)
  expect(scorers).toEqual({
    tone: { scorer: { config: { id: 'tone', name: 'tone', description: 'Is polite.', type: 'any', version: '1', better: 'higher' } }, agentIds: [], agentNames: [], workflowIds: ['letters'], isRegistered: true, source: 'code' },
    short: { scorer: { config: expect.objectContaining({ id: 'short', type: 'agent' }) as object }, sampling: { type: 'ratio', rate: 1 }, agentIds: ['guide'], agentNames: ['Guide'], workflowIds: [], isRegistered: false, source: 'code' },
    judge: expect.objectContaining({ agentIds: ['guide'] }) as object,
  })
  expect(JSON.stringify(scorers)).not.toContain('Secret')
  expect(await tell('/scorers/short')).toEqual({ ...(scorers.short as object), http: 200 })
  for (const name of ['none', 'toString', '__proto__']) expect(await tell(`/scorers/${name}`)).toMatchObject({ http: 404, code: 'unknown_scorer' })
  expect(await client('ann').listScorers()).toEqual(scorers)
})

it('[J4.20] stores what the principal thinks of a run of its resources, in place of what it thought before', async () => {
  const { heed, tell, client, runs } = await open()
  const [own, , , ofBob] = runs
  const thumbs = { runId: own, scorerId: 'thumbs', score: 1 }
  const whole = { ...thumbs, threadId: 'thread-0', resourceId: 'ann', entityId: 'guide', entityType: 'AGENT', source: 'TEST', reason: 'Good.', metadata: { page: 'chat' }, version: '2' }
  expect(await tell('', { json: { score: whole } })).toMatchObject({ http: 200, score: { ...whole, by: 'ann', state: 'scored', agentId: 'guide', id: expect.any(String) as string } })
  expect((await heed.listScores({ scorerId: 'thumbs' })).scores).toMatchObject([{ runId: own, threadId: 'thread-0', source: 'test', score: 1, reason: 'Good.', metadata: { page: 'chat' }, by: 'ann', version: '2' }])
  for (const score of [0, 0.5]) expect(await tell('', { json: { score: { ...thumbs, score } } })).toMatchObject({ http: 200, score: { score, source: 'live' } })
  expect(await tell('', { as: 'admin', json: { score: { ...thumbs, score: 0.2 } } })).toMatchObject({ http: 200, score: { by: 'admin' } })
  expect(await tell(`/run/${own}`)).toMatchObject({ pagination: { total: 4 }, scores: [{ by: 'admin', score: 0.2 }, { by: 'ann', score: 0.5 }, { by: 'ann', score: 1, source: 'TEST' }, { scorerId: 'short' }] })
  for (const wrong of [{ runId: ofBob }, { runId: 'none' }, { threadId: 'thread-1' }, { threadId: 'thread-3', runId: ofBob }]) expect(await tell('', { json: { score: { ...thumbs, ...wrong } } })).toMatchObject({ http: 404, code: 'not_found' })
  expect(await tell('', { json: { score: { ...thumbs, resourceId: 'bob' } } })).toMatchObject({ http: 403 })
  expect(await tell('', { json: { score: { ...thumbs, entityId: 'nobody' } } })).toMatchObject({ http: 404, code: 'unknown_agent' })
  for (const [name, value] of [['by', 'bob'], ['id', '1'], ['entityType', 'STEP'], ['source', 'hand'], ['score', 'good'], ['reason', 'x'.repeat(65_537)]] as const)
    expect([name, await tell('', { json: { score: { ...thumbs, [name]: value } } })]).toMatchObject([name, { http: 400, error: expect.stringContaining(name) as string }])
  expect(await tell('', { as: 'reader', json: { score: thumbs } })).toMatchObject({ http: 403, details: { scope: 'send' } })
  expect(await heed.countScores({ scorerId: 'thumbs' })).toBe(3)
  const saved = await client('bob').saveScore({ agentId: 'guide', threadId: 'thread-3', resourceId: 'bob', runId: ofBob ?? '', scorerId: 'stars', version: '3', score: 4, reason: 'Fine.', metadata: { stars: 4 }, source: 'test' })
  expect(saved).toMatchObject({ agentId: 'guide', threadId: 'thread-3', resourceId: 'bob', runId: ofBob, scorerId: 'stars', version: '3', score: 4, reason: 'Fine.', metadata: { stars: 4 }, source: 'test', by: 'bob' })
  await expect(client('bob').saveScore({ threadId: 'thread-0', runId: own ?? '', scorerId: 'stars', score: 4 })).rejects.toMatchObject({ code: 'not_found' })
})

it('[J4.20] failed scores are made again by operators alone', async () => {
  const { heed, tell, client, runs } = await open()
  expect(await heed.countScores({ state: 'failed' })).toBe(4)
  for (const as of ['ann', 'both'] as const) expect(await tell('/retry', { as, json: {} })).toMatchObject({ http: 403, details: { scope: 'operate' } })
  expect(await tell('/retry', { as: 'admin', json: { agent: 'guide' } })).toMatchObject({ http: 400, error: expect.stringContaining('agent') as string })
  expect(await tell('/retry', { as: 'admin', json: { agentId: 'nobody' } })).toMatchObject({ http: 404, code: 'unknown_agent' })
  for (const query of [{ scorerId: 'short' }, { stepId: 'write' }, { workflowId: 'letters' }, { source: 'test' as const }, { threadId: 'thread-0', resourceId: 'bob' }]) expect(await client('admin').retryScores(query)).toBe(0)
  expect(await client('admin').retryScores({ agentId: 'guide', runId: runs[0] ?? '', scorerId: 'judge', threadId: 'thread-0', resourceId: 'ann', source: 'live' })).toBe(1)
  expect(await client('admin').retryScores({ limit: 2 })).toBe(2)
  expect(await tell('/retry', { as: 'admin', json: {} })).toEqual({ http: 200, retried: 1 })
  expect(await heed.countScores({ state: 'pending' })).toBe(4)
})
