import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent, createTool, Heed, InMemoryStore, isHeedError, RequestContext, type Processor } from 'heed'
import { HeedClient } from 'heed/client'
import { serve } from 'heed/server'
import { scriptedModel, virtualClock } from 'heed/testing'
import { cloneStep, cloneWorkflow, createStep, createWorkflow, mapVariable, ProcessorStepSchema } from 'heed/workflows'
import { z } from 'zod'

// Every call of a definition and of a run, as a program of a user has them.

const value = z.object({ n: z.number() })
const plus = <const Id extends string>(id: Id, by = 1) => createStep({
  id, inputSchema: value, outputSchema: value, execute: async ({ inputData }) => ({ n: inputData.n + by }),
})
const shown = (result: { status: string; result?: unknown; error?: unknown }) => (result.status === 'success' ? result.result : [result.status, result.error])

test('every way to put steps together', async () => {
  const list = createStep({ id: 'list', inputSchema: value, outputSchema: z.array(value), execute: async ({ inputData }) => [inputData, { n: 10 }] })
  const sum = createStep({
    id: 'sum', inputSchema: z.array(value), outputSchema: value, execute: async ({ inputData }) => ({ n: inputData.reduce((total, { n }) => total + n, 0) }),
  })
  const within = createWorkflow({ id: 'within', inputSchema: value, outputSchema: value }).then(plus('inner')).commit()
  const workflow = createWorkflow({ id: 'all', description: 'All.', inputSchema: value, outputSchema: value, metadata: { team: 'a' }, retryConfig: { attempts: 1, delay: 1 } })
    .then(plus('one'))
    .parallel([plus('left'), plus('right', 2)])
    .map(({ inputData }) => ({ n: inputData.left.n + inputData.right.n }))
    .branch([[async ({ inputData }) => inputData.n > 3, plus('large', 100)], [async ({ inputData }) => inputData.n <= 3, plus('small', 200)]])
    .map(({ inputData }) => ({ n: inputData.large?.n ?? 0 }))
    .then(list)
    .foreach(plus('each'), { concurrency: 2 })
    .then(sum)
    .dowhile(plus('while'), async ({ iterationCount }) => iterationCount < 2)
    .dountil(plus('until'), async ({ inputData }) => inputData.n > 0)
    .sleep(1)
    .sleepUntil(() => new Date())
    .then(within)
    .then(cloneStep(plus('first'), { id: 'cloned' }))
    .commit()
  // 1, 2; 3 + 4; 107; 108 + 11; 121; 122; 123; 124
  assert.deepEqual(shown(await workflow.createRun().start({ inputData: { n: 1 } })), { n: 124 })
  const again = cloneWorkflow(workflow, { id: 'again' })
  assert.deepEqual(shown(await again.createRun().start({ inputData: { n: 1 } })), { n: 124 })
})

test('fields of a map, the state, results of earlier steps, and what a context has', async () => {
  const first = createStep({
    id: 'first', inputSchema: value, outputSchema: value, stateSchema: z.object({ seen: z.number() }),
    execute: async ({ inputData, state, setState, runId, workflowId, stepKey, retryCount, requestContext, getInitData, writer, abortSignal }) => {
      setState({ seen: state.seen + 1 })
      writer.write({ progress: 1 })
      assert.deepEqual([runId, workflowId, stepKey, retryCount, abortSignal.aborted], ['run', 'fields', 'run:0:0', 0, false])
      assert.deepEqual([requestContext.get('tenant'), getInitData()], ['acme', { n: 5 }])
      return { n: inputData.n * 2 }
    },
  })
  const workflow = createWorkflow({ id: 'fields', inputSchema: value, stateSchema: z.object({ seen: z.number() }) })
    .then(first)
    .map({
      doubled: { step: first, path: 'n' }, given: { initData: true, path: 'n' }, fixed: { value: 'x' }, tenant: { requestContextPath: 'tenant' },
      text: { template: 'n is ${init.n}' }, made: { fn: async ({ getStepResult }) => getStepResult(first) },
    })
    .commit()
  const done = await workflow.createRun({ runId: 'run' }).start({ inputData: { n: 5 }, initialState: { seen: 1 }, requestContext: new RequestContext({ tenant: 'acme' }) })
  const strict = createWorkflow({ id: 'strict', requestContextSchema: z.object({ tenant: z.string() }), outputSchema: z.string().transform(Number) }).map(() => '7').commit()
  await assert.rejects(strict.createRun().start(), { code: 'invalid_request_context' })
  assert.equal(shown(await strict.createRun().start({ requestContext: new RequestContext({ tenant: 'acme' }) })), 7)
  const { text, ...rest } = shown(done) as Record<string, unknown>
  assert.deepEqual(rest, { doubled: 10, given: 5, fixed: 'x', tenant: 'acme', made: { n: 10 } })
  assert.equal(typeof text, 'string')
  assert.deepEqual([done.state, done.steps.first?.status, done.path.map(({ path }) => path)], [{ seen: 2 }, 'success', ['0']])
})

test('steps of agents, tools and processors', async () => {
  const agent = new Agent({ id: 'poet', model: scriptedModel(['A verse.', '{"lines":4}']) })
  const tool = createTool({ id: 'double', inputSchema: z.object({ text: z.string() }), outputSchema: z.object({ length: z.number() }), execute: async ({ text }) => ({ length: text.length }) })
  const counted = createStep(new Agent({ id: 'counter', model: scriptedModel(['{"lines":4}']) }), { structuredOutput: { schema: z.object({ lines: z.number() }) } })
  const workflow = createWorkflow({ id: 'poem', inputSchema: z.object({ prompt: z.string() }) })
    .then(createStep(agent)).then(createStep(tool)).map(({ inputData }) => ({ prompt: `${inputData.length}` })).then(counted).commit()
  const done = await workflow.createRun().start({ inputData: { prompt: 'Write.' } })
  assert.deepEqual(shown(done), { lines: 4 })
  const polite: Processor = { id: 'polite', processInput: ({ abort }) => abort('No.') }
  const checks = createWorkflow({ id: 'checks', inputSchema: ProcessorStepSchema }).then(createStep(polite)).commit()
  const guarded = new Agent({ id: 'guarded', model: scriptedModel(['Never.']), inputProcessors: [checks] })
  assert.equal((await guarded.generate('Hi')).tripwire?.processorId, 'polite')
})

const ask = createStep({
  id: 'ask', inputSchema: value, outputSchema: value, suspendSchema: z.object({ question: z.string() }), resumeSchema: value,
  execute: async ({ inputData, resumeData, suspend }) => (resumeData ? { n: inputData.n + resumeData.n } : suspend({ question: 'How much?' }, { resumeLabel: 'amount' })),
})
const asking = () => createWorkflow({ id: 'asking', inputSchema: value, outputSchema: value }).then(plus('one')).then(ask).then(plus('last')).commit()

test('every call of a run', async () => {
  const waiting = createWorkflow({ id: 'waiting' }).waitForEvent('go', { schema: value, timeoutMs: 60_000 }).commit()
  const ends = createWorkflow({ id: 'ends', inputSchema: z.string() }).then(createStep({
    id: 'end', inputSchema: z.string(), execute: async ({ inputData, bail, abort }) => (inputData === 'bail' ? bail('left') : inputData === 'abort' ? abort() : Promise.reject(new Error('no'))),
  })).commit()
  const heed = new Heed({ workflows: { asking: asking(), waiting, ends }, storage: new InMemoryStore() })
  assert.deepEqual([Object.keys(heed.listWorkflows()), heed.getWorkflowById('asking').id], [['asking', 'waiting', 'ends'], 'asking'])
  const workflow = heed.getWorkflow('asking')
  const run = workflow.createRun({ runId: 'r1', resourceId: 'ada' })
  const asked = await run.start({ inputData: { n: 1 } })
  assert.ok(asked.status === 'suspended')
  assert.deepEqual([asked.suspended, asked.suspendPayload, asked.resumeLabels], [['1'], { 1: { question: 'How much?' } }, { amount: '1' }])
  assert.deepEqual(shown(await run.resume({ label: 'amount', resumeData: { n: 10 } })), { n: 13 })
  await assert.rejects(run.resume({ step: 'ask', resumeData: { n: 10 } }), { code: 'run_not_suspended' })
  assert.equal((await run.status())?.status, 'success')
  // Another run, from a step on.
  const travelled = await run.timeTravel({ step: 'last', inputData: { n: 100 } })
  assert.deepEqual(shown(travelled), { n: 101 })
  const again = run.timeTravelStream({ step: 'last', runId: 'again' })
  const last: string[] = []
  for await (const { type } of again.fullStream) last.push(type)
  assert.deepEqual([shown(await again.result), again.runId, last.at(-1)], [{ n: 13 }, 'again', 'workflow-finish'])

  const streamed = workflow.createRun({ runId: 'r2', resourceId: 'ada' })
  const types: string[] = []
  const stream = streamed.stream({ inputData: { n: 1 } })
  for await (const { type } of stream.fullStream) types.push(type)
  assert.equal((await stream.result).status, 'suspended')
  assert.ok(types.includes('workflow-start') && types.includes('workflow-step-result') && types.includes('workflow-step-suspended'))
  const resumed = streamed.resumeStream({ resumeData: { n: 1 } })
  for await (const { type } of resumed.fullStream) types.push(type)
  assert.deepEqual([shown(await resumed.result), types.at(-1)], [{ n: 4 }, 'workflow-finish'])

  const third = workflow.createRun({ runId: 'r3', resourceId: 'ada' })
  await third.startAsync({ inputData: { n: 1 } })
  while ((await third.status())?.status !== 'suspended') await new Promise((resolve) => setTimeout(resolve, 5))
  await third.cancel()
  assert.equal((await third.status())?.status, 'canceled')

  const event = heed.getWorkflow('waiting').createRun({ runId: 'e1' })
  await event.startAsync()
  await event.sendEvent('go', { n: 7 }, { id: 'once' })
  assert.deepEqual(shown(await event.start()), { n: 7 })
  const end = (how: string) => heed.getWorkflow('ends').createRun().start({ inputData: how })
  assert.deepEqual([shown(await end('bail')), (await end('abort')).status, (await end('fail')).status], ['left', 'canceled', 'failed'])

  const { runs, total } = await workflow.listWorkflowRuns({ resourceId: 'ada', status: 'success' })
  assert.deepEqual([total, runs.some(({ runId }) => runId === 'r2')], [runs.length, true])
  assert.equal((await workflow.getWorkflowRunById('r1'))?.status, 'success')
  assert.deepEqual([await workflow.deleteWorkflowRunById('r1'), await workflow.getWorkflowRunById('r1')], [true, null])
  await heed.close()
})

test('the same over HTTP', async () => {
  const workflow = asking()
  const heed = new Heed({ workflows: { asking: workflow }, storage: new InMemoryStore() })
  const server = await serve(heed, { port: 0, handleSignals: false })
  const client = new HeedClient({ baseUrl: server.url })
  assert.deepEqual(Object.keys(await client.listWorkflows()), ['asking'])
  const remote = client.getWorkflow<typeof workflow>('asking')
  assert.equal((await remote.details()).id, 'asking')
  const run = remote.createRun({ runId: 'r1', resourceId: 'ada' })
  assert.equal((await run.start({ inputData: { n: 1 } })).status, 'suspended')
  await run.resumeAsync({ resumeData: { n: 5 } })
  assert.deepEqual(shown(await run.settled()), { n: 8 })
  const seen: string[] = []
  for await (const { type } of await remote.createRun({ runId: 'r2', resourceId: 'ada' }).stream({ inputData: { n: 1 } })) seen.push(type)
  assert.ok(seen.includes('workflow-step-suspended'))
  assert.deepEqual([(await remote.runs({ resourceId: 'ada' })).total, (await remote.runById({ runId: 'r1', resourceId: 'ada' }))?.status], [2, 'success'])
  await remote.createRun({ runId: 'r2', resourceId: 'ada' }).cancel()
  await remote.deleteRunById({ runId: 'r1', resourceId: 'ada' })
  assert.equal((await remote.runs({ resourceId: 'ada' })).total, 1)
  await server.close()
})

test('places have names, descriptions and metadata; agents and tools stand in the builder; fields of a map have schemas', async () => {
  const about = { description: 'Why.', metadata: { team: 'a' } }
  const agent = new Agent({ id: 'poet', model: scriptedModel(['A verse.', '{"lines":4}']) })
  const tool = createTool({ id: 'size', inputSchema: z.object({ text: z.string() }), outputSchema: value, execute: async ({ text }) => ({ n: text.length }) })
  const tenant = mapVariable({ requestContextPath: 'tenant', schema: z.string() })
  const workflow = createWorkflow({ id: 'told', inputSchema: z.object({ prompt: z.string() }), ...about })
    .agent(agent, { id: 'write', ...about })
    .tool(tool, { id: 'measure', ...about })
    .parallel([plus('left'), plus('right')], { id: 'both', ...about })
    .map({ left: { step: plus('left'), path: 'n' }, tenant, given: { initData: true, path: 'prompt', schema: z.string() } }, { id: 'joined', ...about })
    .map(({ inputData }) => [inputData.left, inputData.tenant.length, inputData.given.length], { id: 'listed' })
    .foreach(createStep({ id: 'same', inputSchema: z.number(), outputSchema: z.number(), execute: async ({ inputData }) => inputData }), { concurrency: ({ inputData }) => inputData.length, id: 'all', ...about })
    .sleep(1, { id: 'nap', ...about })
    .map(() => ({ prompt: 'Count.' }))
    .agent(agent, { structuredOutput: { schema: z.object({ lines: z.number() }) } })
    .commit()
  const stream = workflow.createRun().stream({ inputData: { prompt: 'Write.' }, requestContext: new RequestContext({ tenant: 'acme' }) })
  const progress: unknown[] = []
  const ended: unknown[] = []
  for await (const { type, payload } of stream.fullStream) {
    if (type === 'workflow-step-progress') progress.push([payload.id, payload.completedCount, payload.totalCount])
    if (type === 'workflow-step-finish') ended.push([payload.id, payload.metadata])
  }
  const done = await stream.result
  assert.deepEqual([shown(done), await stream.status, (await stream.usage) !== undefined], [{ lines: 4 }, 'success', true])
  assert.deepEqual(done.stepExecutionPath, ['write', 'measure', 'left', 'right', 'same', 'same', 'same', 'poet'])
  assert.deepEqual(progress, [['same', 1, 3], ['same', 2, 3], ['same', 3, 3]])
  assert.deepEqual([done.steps.write?.metadata, ended.some((one) => JSON.stringify(one) === '["write",{"team":"a"}]')], [{ team: 'a' }, true])
})

test('runs that go on one step at a time, streams that stay open, and everything that begins again', async () => {
  const list = createWorkflow({ id: 'list', inputSchema: z.array(value) }).foreach(ask, { concurrency: 2 }).commit()
  const within = createWorkflow({ id: 'within', inputSchema: value, outputSchema: value }).then(ask).commit()
  const outer = createWorkflow({ id: 'outer', inputSchema: value, outputSchema: value }).then(plus('one')).then(within).then(plus('last')).commit()
  const heed = new Heed({ workflows: { list, outer }, storage: new InMemoryStore() })
  const run = outer.createRun({ runId: 'r1', resourceId: 'ada' })
  assert.equal((await run.start({ inputData: { n: 1 }, perStep: true })).status, 'paused')
  assert.deepEqual((await run.resume({ perStep: true })).status, 'suspended')
  assert.equal((await run.resume({ step: ['within', 'ask'], resumeData: { n: 1 }, perStep: true })).status, 'paused')
  assert.deepEqual(shown(await run.resume()), { n: 4 })
  assert.deepEqual(shown(await run.timeTravel({ step: 'within.ask', resumeData: { n: 10 }, context: { one: { output: { n: 100 } } } })), { n: 111 })
  assert.equal((await run.timeTravel({ step: 'one', perStep: true })).status, 'paused')

  const open = outer.createRun({ runId: 'r2', resourceId: 'ada' })
  const stream = open.stream({ inputData: { n: 1 }, closeOnSuspend: false })
  const types: string[] = []
  for await (const { type } of stream.fullStream) {
    types.push(type)
    if (type === 'workflow-suspended') await open.resumeAsync({ label: 'amount', resumeData: { n: 1 } })
  }
  assert.deepEqual([types.includes('workflow-suspended'), types.at(-1), await stream.status], [true, 'workflow-finish', 'success'])
  const reader = open.observeStream().getReader()
  assert.equal((await reader.read()).value?.type, 'workflow-snapshot')

  const each = list.createRun({ runId: 'l1', resourceId: 'ada' })
  assert.equal((await each.start({ inputData: [{ n: 1 }, { n: 2 }] })).status, 'suspended')
  assert.equal((await each.resume({ forEachIndex: 1, resumeData: { n: 1 } })).status, 'suspended')
  assert.deepEqual(shown(await each.resume({ step: ask, resumeData: { n: 1 } })), [{ n: 2 }, { n: 3 }])

  assert.deepEqual(await outer.getWorkflowRunById('r1', { fields: ['status', 'result'] }), { status: 'success', result: { n: 4 } })
  assert.deepEqual(Object.keys((await outer.getWorkflowRunById('r1', { withNestedWorkflows: false }))?.steps ?? {}), ['one', 'last'])
  assert.deepEqual([(await outer.listActiveWorkflowRuns()).total, await outer.restartAllActiveWorkflowRuns()], [0, { runIds: [] }])
  await heed.close()
})

test('hooks of runs, and runs that a schedule starts', async () => {
  const told: string[] = []
  const ended = Promise.withResolvers<void>()
  const clock = virtualClock(Date.UTC(2026, 0, 1, 8, 59, 50))
  const hooked = createWorkflow({
    id: 'hooked', inputSchema: value, outputSchema: value,
    schedule: { id: 'hourly', cron: '0 * * * *', timezone: 'UTC', inputData: { n: 1 }, metadata: { why: 'a report' } },
    options: {
      onStart({ inputData, workflowId }) {
        told.push(`start ${workflowId}`)
        if (inputData.n > 5) throw new Error('too much')
      },
      onFinish({ status, runId }) {
        told.push(`finish ${status}`)
        if (runId.startsWith('schedule:')) ended.resolve()
      },
      onError: ({ error }) => void told.push(`error ${error.message}`),
    },
  }).then(plus('one')).commit()
  const heed = new Heed({ workflows: { hooked }, storage: new InMemoryStore({ clock }), clock })
  await heed.start()
  assert.equal((await hooked.createRun().start({ inputData: { n: 6 } })).status, 'failed')
  assert.deepEqual((await hooked.listSchedules()).map(({ id, nextAt, metadata }) => [id, nextAt?.toISOString(), metadata]), [['hourly', '2026-01-01T09:00:00.000Z', { why: 'a report' }]])
  await clock.advance(20_000)
  await ended.promise
  assert.deepEqual(shown((await hooked.getWorkflowRunById('schedule:hourly:2026-01-01T09:00:00.000Z')) ?? { status: 'none' }), { n: 2 })
  assert.deepEqual(told, ['start hooked', 'finish failed', 'error too much', 'start hooked', 'finish success'])
  await heed.close()
})

test('what other engines have besides is refused, with what takes its place', async () => {
  const workflow = createWorkflow({ id: 'own' }).map(() => 1).commit()
  const refused = (code: string) => (error: unknown) => isHeedError(error) && error.code === code
  await assert.rejects(workflow.createRun().start({ outputOptions: { includeState: true } } as never), refused('unsupported_option'))
  assert.throws(() => createWorkflow({ id: 'x', options: { shouldPersistSnapshot: () => true } } as never), refused('unsupported_option'))
  assert.throws(() => createWorkflow({ id: 'x', schedule: { cron: 'often' } }), refused('invalid_workflow'))
})
