import assert from 'node:assert/strict'

/** All chunks of a stream of records, or the first of them until one is as wanted. */
async function chunksOf(stream, until = () => false) {
  const chunks = []
  for await (const chunk of stream) {
    chunks.push(chunk)
    if (until(chunk)) break
  }
  return chunks
}

const types = (chunks) => chunks.map(({ type }) => type)
const about = (chunks, id) => chunks.filter(({ type, payload }) => type.startsWith('workflow-step-') && payload.id === id).map(({ type }) => type)
const isFinish = ({ type }) => type === 'workflow-finish'

/** Until the run is in a status. */
async function status(workflow, runId, wanted) {
  for (;;) {
    const run = await workflow.runById(runId)
    if (run.status === wanted) return run
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Every call of the client about workflows: `world` opens a server with those of `script.mjs`. */
export const workflowChecks = (world, resourceId) => ({
  'listWorkflows, details, getSchema': () => world([], async ({ client }) => {
    const all = await client.listWorkflows()
    assert.deepEqual(Object.keys(all).sort(), ['fails', 'list', 'nested', 'sleeps', 'sums'])
    const workflow = client.getWorkflow('sums')
    const { name, description, steps, allSteps, stepGraph } = await workflow.details()
    assert.deepEqual([name, description, Object.keys(steps), stepGraph.length], ['sums', 'Adds.', ['double', 'ask', 'last'], 3])
    assert.equal(typeof steps.ask.resumeSchema, 'string')
    assert.ok('ask' in allSteps)
    assert.deepEqual((await workflow.getSchema()).inputSchema.properties.n, { type: 'number' })
    assert.ok('inner.ask' in (await client.getWorkflow('nested').details()).allSteps)
    assert.equal((await client.listWorkflows(undefined, true)).sums.name, 'sums')
    await assert.rejects(client.getWorkflow('nothing').details(), { status: 404 })
  }),
  'createRun, start, runById, resume, cancel of a run that has ended': () => world([], async ({ client }) => {
    const workflow = client.getWorkflow('sums')
    const run = await workflow.createRun({ resourceId })
    assert.equal((await workflow.runById(run.runId)).status, 'pending')
    assert.equal(typeof (await run.start({ inputData: { n: 2 } })).message, 'string')
    const asked = await status(workflow, run.runId, 'suspended')
    assert.equal(asked.resourceId, resourceId)
    assert.equal(asked.workflowName, 'sums')
    assert.deepEqual([asked.payload, asked.steps.double.output, asked.steps.ask.suspendPayload.question], [{ n: 2 }, { n: 4 }, 'By how much?'])
    assert.equal(typeof (await run.resume({ step: 'ask', resumeData: { by: 3 } })).message, 'string')
    const done = await status(workflow, run.runId, 'success')
    assert.deepEqual([done.result, done.steps.last.status], [{ n: 7 }, 'success'])
    const some = await workflow.runById(run.runId, { fields: ['result'], withNestedWorkflows: false })
    assert.deepEqual([some.status, some.result, some.steps], ['success', { n: 7 }, undefined])
  }),
  'startAsync, resumeAsync, resumeNoWait: the result, with what is asked': () => world([], async ({ client }) => {
    const workflow = client.getWorkflow('sums')
    const run = await workflow.createRun({ runId: 'r1', resourceId })
    const asked = await run.startAsync({ inputData: { n: 2 }, initialState: { extra: 100 }, resourceId })
    assert.deepEqual([asked.status, asked.suspended, asked.suspendPayload.ask.question], ['suspended', [['ask']], 'By how much?'])
    const done = await run.resumeAsync({ step: asked.suspended[0], resumeData: { by: 3 } })
    assert.deepEqual([done.status, done.result, done.steps.ask.output], ['success', { n: 107 }, { n: 7 }])
    const other = await workflow.createRun({ resourceId })
    await other.startAsync({ inputData: { n: 1 } })
    assert.equal((await other.resumeNoWait({ step: 'ask', resumeData: { by: 1 } })).runId, other.runId)
    await status(workflow, other.runId, 'success')
    const failed = await (await client.getWorkflow('fails').createRun()).startAsync({ inputData: { n: 1 } })
    assert.deepEqual([failed.status, failed.error.message], ['failed', 'out of paper'])
  }),
  'resume of a step within a workflow, and of one element of a list': () => world([], async ({ client }) => {
    const run = await client.getWorkflow('nested').createRun({ resourceId })
    const { suspended } = await run.startAsync({ inputData: { n: 2 } })
    assert.deepEqual(suspended, [['inner', 'ask']])
    assert.deepEqual((await run.resumeAsync({ step: suspended[0], resumeData: { by: 1 } })).result, { n: 5 })
    const list = await client.getWorkflow('list').createRun({ resourceId })
    assert.equal((await list.startAsync({ inputData: [10, 20] })).status, 'suspended')
    assert.equal((await list.resumeAsync({ step: 'each', forEachIndex: 1, resumeData: { by: 2 } })).status, 'suspended')
    assert.deepEqual((await list.resumeAsync({ step: 'each', forEachIndex: 0, resumeData: { by: 1 } })).result, [{ n: 11 }, { n: 22 }])
  }),
  'stream, resumeStream: records': () => world([], async ({ client }) => {
    const run = await client.getWorkflow('sums').createRun({ resourceId })
    const first = await chunksOf(await run.stream({ inputData: { n: 2 } }))
    assert.equal(types(first)[0], 'workflow-start')
    assert.deepEqual(about(first, 'double').slice(0, 2), ['workflow-step-start', 'workflow-step-result'])
    assert.ok(about(first, 'ask').includes('workflow-step-suspended'))
    assert.ok(first.every(({ runId, from }) => runId === run.runId && from === 'WORKFLOW'))
    const rest = await chunksOf(await run.resumeStream({ step: 'ask', resumeData: { by: 3 } }))
    assert.deepEqual(rest.filter(({ type, payload }) => type === 'workflow-step-result' && payload.id === 'last').map(({ payload }) => payload.output), [{ n: 7 }])
    assert.equal(rest.at(-1).payload.workflowStatus, 'success')
  }),
  'observe: a run from its start, while it goes on and after its end': () => world([], async ({ client }) => {
    const workflow = client.getWorkflow('sums')
    const run = await workflow.createRun({ resourceId })
    const first = await chunksOf(await run.stream({ inputData: { n: 2 } }))
    const watching = chunksOf(await run.observe(), isFinish)
    const behind = chunksOf(await run.observe({ offset: 3 }), isFinish)
    await run.resume({ step: 'ask', resumeData: { by: 3 } })
    const [all, some] = await Promise.all([watching, behind])
    assert.deepEqual(types(all).slice(0, first.length), types(first))
    assert.deepEqual(types(some), types(all).slice(3))
    await status(workflow, run.runId, 'success')
    const after = await chunksOf(await run.observe(), isFinish)
    assert.deepEqual([types(after)[0], about(after, 'last').includes('workflow-step-result')], ['workflow-start', true])
  }),
  'timeTravel, timeTravelAsync, timeTravelStream': () => world([], async ({ client }) => {
    const run = await client.getWorkflow('sums').createRun({ resourceId })
    await run.startAsync({ inputData: { n: 2 } })
    await run.resumeAsync({ step: 'ask', resumeData: { by: 3 } })
    assert.deepEqual((await run.timeTravelAsync({ step: 'last', inputData: { n: 50 } })).result, { n: 50 })
    const chunks = await chunksOf(await run.timeTravelStream({ step: ['last'], inputData: { n: 60 } }))
    assert.deepEqual(chunks.find(({ type, payload }) => type === 'workflow-step-result' && payload.id === 'last').payload.output, { n: 60 })
    assert.equal(typeof (await run.timeTravel({ step: 'last' })).message, 'string')
  }),
  'runs, listWorkflowRunCounts, deleteRunById': () => world([], async ({ client }) => {
    const workflow = client.getWorkflow('sums')
    const names = ['r1', 'r2', 'r3']
    for (const runId of names) await (await workflow.createRun({ runId, resourceId: runId === 'r3' ? 'user-2' : resourceId })).startAsync({ inputData: { n: 1 }, resourceId: runId === 'r3' ? 'user-2' : resourceId })
    const { runs, total } = await workflow.runs({ resourceId, status: 'suspended', page: 0, perPage: 1 })
    assert.deepEqual([total, runs.length, runs[0].workflowName, runs[0].snapshot.status], [2, 1, 'sums', 'suspended'])
    assert.equal((await workflow.runs({ fromDate: new Date(Date.now() + 60_000) })).total, 0)
    assert.deepEqual((await workflow.runs({ limit: 2, offset: 2 })).runs.length, 1)
    assert.deepEqual((await client.listWorkflowRunCounts()).sums, { running: 0, suspended: 3 })
    assert.equal(typeof (await workflow.deleteRunById('r1')).message, 'string')
    await assert.rejects(workflow.runById('r1'), { status: 404 })
    assert.equal((await workflow.runs({ resourceId })).total, 1)
  }),
  'cancel of a run that sleeps; restart and restartAsync of one that has ended': () => world([], async ({ client }) => {
    const workflow = client.getWorkflow('sleeps')
    const run = await workflow.createRun({ resourceId })
    await run.start({ inputData: { n: 1 } })
    await status(workflow, run.runId, 'waiting')
    assert.equal(typeof (await run.cancel()).message, 'string')
    await status(workflow, run.runId, 'canceled')
    await assert.rejects(run.restartAsync())
  }),
})
