import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { HeedClient } from '../../src/client/index.ts'
import { apiKeys, principalScopes, serve, type Principal } from '../../src/http/server.ts'
import { Agent, Heed, InMemoryStore, RequestContext, silentLogger } from '../../src/index.ts'
import { createScorer, notScorable } from '../../src/scorers/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { cloneStep, createStep, createWorkflow, type WorkflowChunk } from '../../src/workflow/index.ts'

const number = z.object({ n: z.number() })
const add = createStep({ id: 'add', inputSchema: number, outputSchema: number, execute: async ({ inputData }) => ({ n: inputData.n + 1 }) })
const ask = createStep({
  id: 'ask', inputSchema: number, outputSchema: number, suspendSchema: z.object({ question: z.string() }), resumeSchema: number,
  execute: ({ inputData, resumeData, suspend }) => (resumeData ? { n: inputData.n + resumeData.n } : suspend({ question: 'How much?' })),
})
const fail = createStep({ id: 'fail', inputSchema: number, outputSchema: number, execute: () => Promise.reject(new Error('host db-7 refused')) })
const sums = () => createWorkflow({ id: 'sums', description: 'Adds.', inputSchema: number, outputSchema: number }).then(add).then(ask).then(cloneStep(add, { id: 'last' })).commit()
const fails = () => createWorkflow({ id: 'fails', inputSchema: number, outputSchema: number }).then(fail).commit()
const waits = () => createWorkflow({ id: 'waits', inputSchema: number, outputSchema: number }).then(add).waitForEvent('paid', { schema: number }).commit()

const principals: Record<string, Principal> = {
  ada: { id: 'ada', resources: ['ada'], scopes: principalScopes.tenant },
  bob: { id: 'bob', resources: ['bob'], scopes: principalScopes.tenant },
  user: { id: 'user', resources: ['ada'], scopes: principalScopes.endUser },
  operator: { id: 'operator', resources: '*', scopes: principalScopes.operator },
}
const keyOf = (name: string) => `key-of-${name}-0000000000`

async function workflowServer() {
  const heed = new Heed({ workflows: { sums: sums(), fails: fails(), waits: waits() }, storage: new InMemoryStore(), logger: silentLogger })
  const server = await serve(heed, { port: 0, handleSignals: false, auth: apiKeys(Object.fromEntries(Object.entries(principals).map(([name, principal]) => [keyOf(name), principal]))) })
  onTestFinished(() => server.close())
  const as = (name: string) => new HeedClient({ baseUrl: server.url, headers: { authorization: `Bearer ${keyOf(name)}` }, retries: 0 })
  return { heed, server, as }
}

it('[F6.1] a client starts, follows and resumes runs, with the types of the workflow', async () => {
  const { as } = await workflowServer()
  const workflow = as('ada').getWorkflow<ReturnType<typeof sums>>('sums')
  expect(await workflow.details()).toMatchObject({ id: 'sums', description: 'Adds.', stepGraph: [{ type: 'step', id: 'add' }, { id: 'ask' }, { id: 'last' }], steps: { ask: { resumeSchema: expect.stringContaining('"n"') as string } } })
  expect(JSON.parse((await as('ada').listWorkflows()).sums?.inputSchema ?? '')).toMatchObject({ type: 'object', properties: { n: { type: 'number' } } })
  const run = workflow.createRun({ runId: 'r1' })
  expect(await run.start({ inputData: { n: 1 } })).toMatchObject({ status: 'suspended', suspended: ['1'], suspendPayload: { 1: { question: 'How much?' } } })
  // Started again, it is the same run.
  expect(await workflow.createRun({ runId: 'r1' }).start({ inputData: { n: 50 } })).toMatchObject({ status: 'suspended', input: { n: 1 } })
  const done = await run.resume({ resumeData: { n: 10 } })
  const result: { n: number } | undefined = done.status === 'success' ? done.result : undefined
  expect(result).toEqual({ n: 13 })
  await expect(run.resume({ resumeData: { n: 10 } })).rejects.toMatchObject({ code: 'run_not_suspended' })
  await expect(run.resume({ resumeData: { n: 'x' } as never })).rejects.toMatchObject({ code: 'run_not_suspended' })
  await expect(workflow.createRun().start({ inputData: { n: 'x' } as never })).rejects.toMatchObject({ code: 'invalid_argument' })
  await expect(as('ada').getWorkflow('none').details()).rejects.toMatchObject({ code: 'unknown_workflow' })
  // Another run from a step.
  const again = await run.timeTravel({ step: { id: 'last' }, inputData: { n: 100 }, runId: 'r1-again' })
  expect(again.runId).toBe('r1-again')
  expect(await again.settled()).toMatchObject({ status: 'success', result: { n: 101 } })
  expect(await run.status()).toMatchObject({ result: { n: 13 } })
})

it('[F6.2] a stream has the chunks of a run with cursors: a reader that returns with one misses and repeats nothing', async () => {
  const { as } = await workflowServer()
  const workflow = as('ada').getWorkflow('sums')
  const chunks: WorkflowChunk[] = []
  for await (const chunk of await workflow.createRun({ runId: 'r1' }).stream({ inputData: { n: 1 } })) chunks.push(chunk)
  expect(chunks.map(({ type }) => type)).toEqual(['workflow-start', 'workflow-step-start', 'workflow-step-result', 'workflow-step-finish', 'workflow-step-start', 'workflow-step-suspended', 'workflow-suspended'])
  const run = workflow.createRun({ runId: 'r1' })
  const rest: WorkflowChunk[] = []
  const reading = (async () => {
    for await (const chunk of run.observe({ after: chunks[3]?.cursor ?? '' })) rest.push(chunk)
  })()
  await expect.poll(() => rest.length).toBeGreaterThan(0)
  await run.resumeAsync({ resumeData: { n: 1 } })
  await reading
  expect(rest.slice(0, 3)).toEqual(chunks.slice(4))
  expect(rest.slice(3).map(({ type }) => type)).toEqual(['workflow-step-start', 'workflow-step-result', 'workflow-step-finish', 'workflow-step-start', 'workflow-step-result', 'workflow-step-finish', 'workflow-finish'])
  // After the end: what is left, or a snapshot with the result.
  const after = rest.at(-1)?.cursor ?? ''
  for (const options of [{ after }, {}]) {
    const late: WorkflowChunk[] = []
    for await (const chunk of run.observe(options)) late.push(chunk)
    expect(late).toMatchObject([{ type: 'workflow-snapshot', payload: { workflowStatus: 'success', finalWorkflowResult: { n: 4 } } }])
  }
  await expect(run.observe({ after: 'nonsense' }).next()).rejects.toMatchObject({ code: 'invalid_argument' })
  await expect(workflow.createRun({ runId: 'none' }).observe().next()).rejects.toMatchObject({ code: 'not_found' })
})

it('[F6.3] a run is of its resource: to others it does not exist, and who may only run may not answer', async () => {
  const { as } = await workflowServer()
  const run = as('ada').getWorkflow('sums').createRun({ runId: 'r1' })
  await run.start({ inputData: { n: 1 } })
  const foreign = as('bob').getWorkflow('sums').createRun({ runId: 'r1' })
  const missing = as('bob').getWorkflow('sums').createRun({ runId: 'none' })
  for (const call of ['status', 'cancel', 'restart'] as const) {
    const told = await Promise.all([foreign[call](), missing[call]()].map((answer) => (answer as Promise<unknown>).then(() => 'done', (error: { code: string; message: string }) => [error.code, error.message])))
    expect(told).toEqual([['not_found', "There is no run 'r1' of this workflow."], ['not_found', "There is no run 'none' of this workflow."]])
  }
  await expect(foreign.startAsync({ inputData: { n: 1 } })).rejects.toMatchObject({ code: 'thread_forbidden' })
  const rest: Array<(run: typeof foreign) => Promise<unknown>> = [
    (run) => run.resume({ resumeData: { n: 1 } }), (run) => run.resumeAsync({ resumeData: { n: 1 } }), (run) => run.timeTravel({ step: 'add' }),
    (run) => run.observe().next(), (run) => run.settled(),
  ]
  for (const call of rest) {
    const told = await Promise.all([foreign, missing].map((run) => call(run).then(() => 'done', (error: { code: string }) => error.code)))
    expect(told).toEqual(['not_found', 'not_found'])
  }
  await expect((async () => {
    for await (const _ of await foreign.stream({ inputData: { n: 1 } })) expect.unreachable()
  })()).rejects.toMatchObject({ code: 'thread_forbidden' })
  // A run that begins again may not take the name of another resource's run.
  const own = as('bob').getWorkflow('sums').createRun({ runId: 'r9' })
  await own.start({ inputData: { n: 1 } })
  await expect(own.timeTravel({ step: 'add', runId: 'r1' })).rejects.toMatchObject({ code: 'id_taken' })
  expect(await run.status()).toMatchObject({ status: 'suspended' })
  const event = as('ada').getWorkflow('waits').createRun({ runId: 'w1' })
  await event.startAsync({ inputData: { n: 1 } })
  await expect(as('bob').getWorkflow('waits').createRun({ runId: 'w1' }).sendEvent('paid', { n: 7 })).rejects.toMatchObject({ code: 'not_found' })
  await event.cancel()
  await expect(as('bob').getWorkflow('sums').createRun({ runId: 'r1', resourceId: 'ada' }).status()).rejects.toMatchObject({ code: 'forbidden' })
  expect(await as('bob').getWorkflow('sums').deleteRunById({ runId: 'none' })).toBe(false)
  await expect(as('bob').getWorkflow('sums').deleteRunById({ runId: 'r1' })).rejects.toMatchObject({ code: 'not_found' })
  expect((await as('bob').getWorkflow('sums').runs()).runs.map(({ runId }) => runId)).toEqual(['r9'])
  const user = as('user').getWorkflow('sums')
  await expect(user.createRun({ runId: 'r1' }).resumeAsync({ resumeData: { n: 1 } })).rejects.toMatchObject({ code: 'forbidden', details: { scope: 'approve' } })
  await expect(user.createRun({ runId: 'r1' }).timeTravel({ step: 'last' })).rejects.toMatchObject({ details: { scope: 'approve' } })
  expect(await user.runById({ runId: 'r1' })).toMatchObject({ status: 'suspended' })
  expect(await as('operator').getWorkflow('sums').runs({ resourceId: 'ada', status: 'suspended' })).toMatchObject({ total: 1, runs: [{ runId: 'r1', status: 'suspended', resourceId: 'ada' }] })
  expect(await as('ada').getWorkflow('sums').deleteRunById({ runId: 'r1' })).toBe(true)
})

it('[F6.4] a run that waits is no running one; an event and a cancel reach it, and the text of an error is for operators', async () => {
  const { as } = await workflowServer()
  const workflow = as('ada').getWorkflow('waits')
  const [run, other] = [workflow.createRun({ runId: 'r1' }), workflow.createRun({ runId: 'r2' })]
  for (const one of [run, other]) await one.startAsync({ inputData: { n: 1 } })
  await expect.poll(async () => (await workflow.runs({ status: ['running', 'pending'] })).total).toBe(0)
  expect((await workflow.runs({ status: 'waiting' })).total).toBe(2)
  await run.sendEvent('paid', { n: 7 }, { id: 'e1' })
  expect(await run.settled()).toMatchObject({ status: 'success', result: { n: 7 } })
  await expect(run.sendEvent('paid', { n: 7 })).rejects.toMatchObject({ code: 'run_over' })
  await other.cancel()
  expect(await other.status()).toMatchObject({ status: 'canceled' })
  await expect(other.restart()).rejects.toMatchObject({ code: 'run_not_parked' })
  const failed = as('ada').getWorkflow('fails').createRun({ runId: 'r3' })
  const seen: string[] = []
  for await (const chunk of await failed.stream({ inputData: { n: 1 } })) seen.push(JSON.stringify(chunk))
  const told = await failed.status()
  expect(told).toMatchObject({ status: 'failed', error: { code: 'step_failed' }, steps: { fail: { error: { code: 'step_failed' } } } })
  expect(`${seen.join('')}${JSON.stringify(told)}`).not.toContain('db-7')
  const whole = await as('operator').getWorkflow('fails').createRun({ runId: 'r3', resourceId: 'ada' }).status()
  expect(whole).toMatchObject({ error: { message: 'host db-7 refused' } })
})

it('[F6.5] an agent lists its workflows for a request, and its threads are none of theirs', async () => {
  const workflow = sums()
  const agent = new Agent({ id: 'clerk', model: scriptedModel(['Hi']), workflows: ({ requestContext }) => (requestContext.get('tier') === 'gold' ? { sums: workflow, none: undefined } : {}) })
  const heed = new Heed({ agents: { agent }, workflows: { sums: workflow }, storage: new InMemoryStore(), logger: silentLogger })
  onTestFinished(() => heed.close())
  expect(await agent.listWorkflows()).toEqual({})
  expect(Object.keys(await agent.listWorkflows({ requestContext: new RequestContext({ tier: 'gold' }) }))).toEqual(['sums'])
  await workflow.createRun({ runId: 'r1', resourceId: 'ada' }).start({ inputData: { n: 1 } })
  await expect(agent.sendMessage('Hi', { threadId: 'workflow:sums/r1', resourceId: 'ada' }).stored).rejects.toMatchObject({ code: 'invalid_argument' })
})

it('[F6.1] the state, the request context, a label and the filters of a list reach the run', async () => {
  const told = createStep({
    id: 'told', execute: ({ state, requestContext, resumeData, suspend }) => (resumeData === undefined ? suspend('?', { resumeLabel: 'yes' }) : { state, tier: requestContext.get('tier'), resumeData }),
  })
  const heed = new Heed({ workflows: { told: createWorkflow({ id: 'told' }).parallel([told, cloneStep(told, { id: 'other' })]).commit() }, storage: new InMemoryStore(), logger: silentLogger })
  const server = await serve(heed, { port: 0, handleSignals: false })
  onTestFinished(() => server.close())
  const workflow = new HeedClient({ baseUrl: server.url }).getWorkflow('told')
  const given = { initialState: { seen: 1 }, requestContext: { tier: 'gold' } }
  const run = workflow.createRun({ runId: 'r1', resourceId: 'ada' })
  expect(await run.start(given)).toMatchObject({ status: 'suspended', suspended: ['0.0', '0.1'], state: { seen: 1 } })
  expect(await run.resume({ step: { id: 'other' }, resumeData: 1 })).toMatchObject({ status: 'suspended', suspended: ['0.0'] })
  await run.resumeAsync({ label: 'yes', resumeData: 2 })
  const result = { told: { state: { seen: 1 }, tier: 'gold', resumeData: 2 }, other: { state: { seen: 1 }, tier: 'gold', resumeData: 1 } }
  expect(await run.settled()).toMatchObject({ status: 'success', result })
  const again = await run.timeTravel({ step: 'other', initialState: { seen: 2 }, requestContext: { tier: 'tin' } })
  await again.settled()
  expect(await again.resume({ step: 'other', resumeData: 3 })).toMatchObject({ result: { other: { state: { seen: 2 }, tier: 'tin', resumeData: 3 } } })
  const streamed = workflow.createRun({ runId: 'r2', resourceId: 'bob' })
  for await (const chunk of await streamed.stream(given)) expect(chunk.runId).toBe('r2')
  expect(await streamed.resume({ step: '0.0', resumeData: 1 })).toMatchObject({ state: { seen: 1 } })
  const opened: string[] = []
  await streamed.cancel()
  for await (const _ of streamed.observe({ reconnect: { maxRetries: 0, delayMs: 1, onLost: () => opened.push('lost'), onOpen: () => opened.push('open') } })) opened.push('chunk')
  expect(opened).toEqual(['open', 'chunk'])
  const ids = async (query: Parameters<typeof workflow.runs>[0]) => (await workflow.runs(query)).runs.map(({ runId }) => runId)
  expect(await ids({ resourceId: 'bob' })).toEqual(['r2'])
  expect(await ids({ page: 1, perPage: 2 })).toEqual(['r1'])
  expect([await ids({ fromDate: new Date(Date.now() + 60_000) }), (await ids({ toDate: new Date(Date.now() + 60_000) })).length]).toEqual([[], 3])
})

it('[F6.1] what steps, pauses and begins again is the same over HTTP', async () => {
  const one = z.number()
  const plus = (id: string) => createStep({ id, inputSchema: one, outputSchema: one, execute: ({ inputData }) => inputData + 1 })
  const asks = createStep({ id: 'asks', inputSchema: one, outputSchema: one, resumeSchema: one, execute: ({ inputData, resumeData, suspend }) => (resumeData === undefined ? suspend('?') : inputData + resumeData) })
  const steps = createWorkflow({ id: 'steps', inputSchema: one, outputSchema: one, description: 'Steps.', schedule: { id: 'yearly', cron: '@yearly', timezone: 'UTC', inputData: 1 } })
    .then(plus('a')).then(plus('b')).map(({ inputData }) => inputData, { id: 'same', description: 'The same.', metadata: { of: 'b' } }).then(plus('c')).commit()
  const lists = createWorkflow({ id: 'lists', inputSchema: z.array(one) }).foreach(asks, { concurrency: 2 }).commit()
  const heed = new Heed({ workflows: { steps, lists }, storage: new InMemoryStore(), logger: silentLogger })
  const server = await serve(heed, { port: 0, handleSignals: false })
  onTestFinished(() => server.close())
  const client = new HeedClient({ baseUrl: server.url })
  const workflow = client.getWorkflow<typeof steps>('steps')
  expect(await workflow.details()).toMatchObject({ schedules: [{ id: 'yearly', cron: '@yearly', timezone: 'UTC' }], stepGraph: [{ id: 'a' }, { id: 'b' }, { id: 'same', description: 'The same.', metadata: { of: 'b' } }, { id: 'c' }] })
  const run = workflow.createRun({ runId: 'r1', resourceId: 'ada' })
  expect(await run.start({ inputData: 1, perStep: true })).toMatchObject({ status: 'paused', stepExecutionPath: ['a'] })
  expect(await run.resume({ perStep: true })).toMatchObject({ status: 'paused', stepExecutionPath: ['a', 'b'] })
  expect((await workflow.runs({ status: 'paused' })).total).toBe(1)
  await run.resumeAsync({ perStep: true })
  expect(await run.settled()).toMatchObject({ status: 'success', result: 4 })
  const second = workflow.createRun({ runId: 'r2', resourceId: 'ada' })
  await second.startAsync({ inputData: 1, perStep: true })
  expect(await second.settled()).toMatchObject({ status: 'paused' })
  const types: string[] = []
  for await (const { type } of await workflow.createRun({ runId: 'r3', resourceId: 'ada' }).stream({ inputData: 1, perStep: true })) types.push(type)
  expect(types.at(-1)).toBe('workflow-paused')
  const context = { a: { status: 'success', payload: 8, output: 9, startedAt: 1, endedAt: 2 } } as const
  const again = await run.timeTravel({ step: 'b', perStep: true, context, runId: 'r4' })
  expect(await again.settled()).toMatchObject({ status: 'paused', steps: { a: { payload: 8, output: 9, startedAt: 1, endedAt: 2 }, b: { output: 10 } } })
  const list = client.getWorkflow<typeof lists>('lists').createRun({ runId: 'l1', resourceId: 'ada' })
  expect(await list.start({ inputData: [1, 2] })).toMatchObject({ suspended: ['0[0]', '0[1]'] })
  expect(await (await list.timeTravel({ step: '0[1]', resumeData: 5 })).settled()).toMatchObject({ suspended: ['0[0]'], steps: { asks: { output: 7 } } })
  expect(await list.resume({ step: ['asks'], forEachIndex: 1, resumeData: 10 })).toMatchObject({ suspended: ['0[0]'] })
  await list.resumeAsync({ forEachIndex: 0, resumeData: 20 })
  expect(await list.settled()).toMatchObject({ status: 'success', result: [21, 12] })
})

it('[J4.9] scores are listed by agent, run, thread, scorer and state, page by page, and are of their resource', async () => {
  const always = createScorer({ id: 'always', description: 'One.' }).generateScore(() => 1)
  const never = createScorer({ id: 'never', description: 'None.' }).generateScore(() => notScorable('No text.'))
  const agent = new Agent({ id: 'guide', model: scriptedModel(() => 'Hello.'), scorers: { always: { scorer: always }, never: { scorer: never } } })
  const other = new Agent({ id: 'other', model: scriptedModel(() => 'Hi.'), scorers: { always: { scorer: always } } })
  const heed = new Heed({ agents: { agent, other }, storage: new InMemoryStore(), logger: silentLogger, notifications: { dispatch: { enabled: false } } })
  const auth = apiKeys(Object.fromEntries(Object.entries(principals).map(([name, principal]) => [keyOf(name), principal])))
  const server = await serve(heed, { port: 0, handleSignals: false, auth })
  onTestFinished(() => server.close())
  const runIds: string[] = []
  for (const resource of ['ada', 'bob']) for (const thread of [`${resource}-1`, `${resource}-2`]) runIds.push((await agent.generate('Hi', { memory: { thread, resource } })).runId)
  await other.generate('Hi', { memory: { thread: 'ada-3', resource: 'ada' } })
  await heed.tick()
  const as = (name: string) => new HeedClient({ baseUrl: server.url, headers: { authorization: `Bearer ${keyOf(name)}` } })
  const found = async (name: string, query: Parameters<HeedClient['listScores']>[0] = {}) => (await as(name).listScores(query)).scores.map(({ threadId, scorerId, state }) => `${threadId} ${scorerId} ${state}`)
  const all = await found('ada')
  expect(all.toSorted()).toEqual(['ada-1 always scored', 'ada-1 never not_scorable', 'ada-2 always scored', 'ada-2 never not_scorable', 'ada-3 always scored'])
  expect(all[0]).toBe('ada-3 always scored')
  expect(await found('ada', { agentId: 'other' })).toEqual(['ada-3 always scored'])
  expect(await found('ada', { threadId: 'ada-2', scorerId: 'never' })).toEqual(['ada-2 never not_scorable'])
  expect(await found('ada', { runId: runIds[0] ?? '', state: 'scored' })).toEqual(['ada-1 always scored'])
  // Another's: nothing of it, by whatever it is named.
  for (const query of [{ runId: runIds[2] ?? '' }, { threadId: 'bob-1' }]) expect(await found('ada', query)).toEqual([])
  await expect(as('ada').listScores({ resourceId: 'bob' })).rejects.toMatchObject({ code: 'forbidden' })
  await expect(as('ada').listScores({ agentId: 'none' })).rejects.toMatchObject({ code: 'unknown_agent' })
  expect((await found('operator', { resourceId: 'bob' })).length).toBe(4)
  const pages: string[] = []
  for (let before: number | undefined, first = true; first || before !== undefined; first = false) {
    const page: Awaited<ReturnType<HeedClient['listScores']>> = await as('ada').listScores({ limit: 2, ...(before === undefined ? {} : { before }) })
    expect(page.scores.length).toBeLessThanOrEqual(2)
    pages.push(...page.scores.map(({ threadId, scorerId, state }) => `${threadId} ${scorerId} ${state}`))
    before = page.next
  }
  expect(pages).toEqual(all)
  expect((await as('ada').listScores({ limit: 1 })).scores).toMatchObject([{ score: 1, version: '1', attempts: 1, agentId: 'other', createdAt: expect.stringMatching(/^20.*Z$/) as string }])
})
