import assert from 'node:assert/strict'
import { MastraClient } from '@mastra/client-js'
import { z } from 'zod'
import { scriptedModel } from '../../src/testing/index.ts'
import { storedAgentChecks } from './stored-agent-checks.mjs'
import { voiceChecks } from './voice-checks.mjs'
import { workflowChecks } from './workflow-checks.mjs'

/**
 * The client package that existing programs use, unchanged, against our server. With `--peer` against the server that it was made for:
 * a check that fails there asks for more than existing clients get.
 *
 *   node bench/existing-client/run.mjs [--peer] [part of a check's name]
 */
const against = process.argv.includes('--peer') ? 'peer' : 'heed'
const only = process.argv.slice(2).find((argument) => !argument.startsWith('--'))
const { world: open } = await import(`./${against}-world.mjs`)

const resourceId = 'user-1'
const paying = { toolCalls: [{ toolName: 'pay', input: { to: 'Ada' } }] }
const asking = { toolCalls: [{ toolName: 'ask', input: {} }] }
const asksClient = { toolCalls: [{ toolName: 'weather', input: { city: 'Bern' } }] }

/** Each check has an agent of its own: what its model says is the first argument. */
async function world(steps, run) {
  const model = scriptedModel(steps)
  const { url, activeRunId, spoken, close } = await open(model)
  const client = new MastraClient({ baseUrl: url, retries: 0 })
  try {
    return await run({ client, remote: client.getAgent('guide'), activeRunId, model, spoken })
  } finally {
    await close()
  }
}

/** Watches until a chunk is as wanted. */
function watch(subscription, until) {
  const chunks = []
  const seen = new Promise((resolve, reject) => {
    subscription.processDataStream({
      onChunk(chunk) {
        chunks.push(chunk)
        if (until(chunk)) resolve(chunks)
      },
    }).then(() => resolve(chunks), reject)
  })
  return seen
}

async function read(response) {
  const chunks = []
  await response.processDataStream({ onChunk: (chunk) => void chunks.push(chunk) })
  return chunks
}

const isFinish = ({ type }) => type === 'finish'
const types = (chunks) => chunks.map(({ type }) => type)
const text = (chunks) => chunks.flatMap(({ type, payload }) => (type === 'text-delta' ? payload.text : [])).join('')
const scope = (threadId) => ({ resourceId, threadId })

/** Until nothing is active on a thread. */
async function idle(activeRunId, threadId) {
  while (await activeRunId(scope(threadId))) await new Promise((resolve) => setImmediate(resolve))
}

const checks = {
  ...workflowChecks(world, resourceId),
  ...voiceChecks(world),
  ...storedAgentChecks(world),
  'listAgents, details': () => world([], async ({ client, remote }) => {
    assert.deepEqual(Object.keys(await client.listAgents()), ['guide'])
    assert.equal((await remote.details()).name, 'guide')
  }),
  'subscribeToThread, processDataStream, sendMessage': () => world(['Hello.'], async ({ remote }) => {
    const subscription = await remote.subscribeToThread(scope('t'))
    const seen = watch(subscription, isFinish)
    const sent = await remote.sendMessage({ message: 'Hi', ...scope('t') })
    assert.equal(sent.accepted, true)
    assert.equal(typeof sent.runId, 'string')
    const chunks = await seen
    assert.equal(types(chunks)[0], 'start')
    assert.equal(types(chunks)[1], 'data-user-message')
    assert.equal(text(chunks), 'Hello.')
    subscription.unsubscribe()
  }),
  'sendMessage into an active run, queueMessage after it': () => world([paying, 'Paid.', 'Next.'], async ({ remote, model }) => {
    const subscription = await remote.subscribeToThread(scope('t'))
    let decide
    const decided = new Promise((resolve) => (decide = resolve))
    let finished = 0
    const seen = watch(subscription, (chunk) => {
      if (chunk.type === 'tool-call-approval') decide(chunk.payload.toolCallId)
      return isFinish(chunk) && ++finished === 2
    })
    await remote.sendMessage({ message: 'Pay Ada.', ...scope('t') })
    const toolCallId = await decided
    await remote.sendMessage({ message: 'And be quick.', ...scope('t'), ifActive: { behavior: 'deliver' } })
    await remote.queueMessage({ message: 'What else?', ...scope('t') })
    await remote.sendToolApproval({ ...scope('t'), toolCallId, approved: true })
    await seen
    const prompts = model.calls.map(({ prompt }) => JSON.stringify(prompt))
    assert.deepEqual(prompts.map((prompt) => [prompt.includes('And be quick.'), prompt.includes('What else?')]), [[false, false], [true, false], [true, true]])
    subscription.unsubscribe()
  }),
  'sendSignal with contents, attributes and a wake': () => world(['Seen.'], async ({ remote, activeRunId, model, spoken }) => {
    await remote.sendSignal({ signal: { type: 'reactive', tagName: 'browser', contents: 'The page changed.', attributes: { url: 'x' } }, ...scope('t'), ifIdle: { behavior: 'wake' } })
    await idle(activeRunId, 't')
    assert.match(JSON.stringify(model.calls[0].prompt), /<browser url=\\"x\\">The page changed\.<\/browser>/)
  }),
  'sendMessage with ifIdle persist wakes nothing': () => world([], async ({ remote, client, model }) => {
    await remote.sendMessage({ message: 'For later.', ...scope('t'), ifIdle: { behavior: 'persist' } })
    const { messages } = await client.listThreadMessages('t', { agentId: 'guide', resourceId })
    assert.deepEqual(messages.map(({ role }) => role), ['signal'])
    assert.equal(model.callCount, 0)
  }),
  'sendToolApproval: what follows comes over the subscription': () => world([paying, 'Paid.'], async ({ remote }) => {
    const subscription = await remote.subscribeToThread(scope('t'))
    let decide
    const decided = new Promise((resolve) => (decide = resolve))
    const seen = watch(subscription, (chunk) => {
      if (chunk.type === 'tool-call-approval') decide(chunk.payload.toolCallId)
      return isFinish(chunk)
    })
    await remote.sendMessage({ message: 'Pay Ada.', ...scope('t') })
    const toolCallId = await decided
    const { runs } = await remote.listSuspendedRuns(scope('t'))
    assert.equal(runs[0].toolCalls[0].toolCallId, toolCallId)
    assert.equal((await remote.sendToolApproval({ ...scope('t'), toolCallId, approved: true })).accepted, true)
    const chunks = await seen
    assert.equal(types(chunks).filter((type) => type === 'start').length, 1)
    assert.ok(types(chunks).includes('tool-result'))
    subscription.unsubscribe()
  }),
  'stream': () => world(['Hello.'], async ({ remote }) => {
    assert.equal(text(await read(await remote.stream('Hi'))), 'Hello.')
  }),
  'streamUntilIdle': () => world(['Hello.'], async ({ remote }) => {
    assert.equal(text(await read(await remote.streamUntilIdle('Hi', { memory: { thread: 't', resource: resourceId } }))), 'Hello.')
  }),
  'generate': () => world(['Hello.'], async ({ remote }) => {
    const { text: said } = await remote.generate('Hi', { memory: { thread: 't', resource: resourceId } })
    assert.equal(said, 'Hello.')
  }),
  'generate with structuredOutput': () => world(['{"city":"Bern"}'], async ({ remote }) => {
    const { object } = await remote.generate('Where?', { structuredOutput: { schema: z.object({ city: z.string() }) } })
    assert.deepEqual(object, { city: 'Bern' })
  }),
  'approveToolCall, declineToolCall': () => world([paying, 'Paid.', paying, 'Not paid.'], async ({ remote, activeRunId }) => {
    for (const [threadId, decide, said] of [['a', 'approveToolCall', 'Paid.'], ['b', 'declineToolCall', 'Not paid.']]) {
      const chunks = await read(await remote.stream('Pay Ada.', { memory: { thread: threadId, resource: resourceId } }))
      const call = chunks.find(({ type }) => type === 'tool-call-approval')
      assert.equal(text(await read(await remote[decide]({ runId: call.runId, toolCallId: call.payload.toolCallId }))), said)
      await idle(activeRunId, threadId)
    }
  }),
  'approveToolCallGenerate, declineToolCallGenerate': () => world([paying, 'Paid.', paying, 'Not paid.'], async ({ remote }) => {
    for (const [threadId, decide, said] of [['a', 'approveToolCallGenerate', 'Paid.'], ['b', 'declineToolCallGenerate', 'Not paid.']]) {
      const chunks = await read(await remote.stream('Pay Ada.', { memory: { thread: threadId, resource: resourceId } }))
      const call = chunks.find(({ type }) => type === 'tool-call-approval')
      assert.equal((await remote[decide]({ runId: call.runId, toolCallId: call.payload.toolCallId })).text, said)
    }
  }),
  'approve, decline and resume without a thread': () => world([paying, 'Paid.', paying, 'Not paid.', asking, 'Noted.'], async ({ remote }) => {
    const waiting = async () => (await read(await remote.stream('Go.'))).find(({ type }) => type === 'tool-call-approval' || type === 'tool-call-suspended')
    const approved = await waiting()
    assert.equal(text(await read(await remote.approveToolCall({ runId: approved.runId, toolCallId: approved.payload.toolCallId }))), 'Paid.')
    const declined = await waiting()
    assert.equal((await remote.declineToolCallGenerate({ runId: declined.runId, toolCallId: declined.payload.toolCallId })).text, 'Not paid.')
    const asked = await waiting()
    assert.equal(text(await read(await remote.resumeStream({ color: 'blue' }, { runId: asked.runId, toolCallId: asked.payload.toolCallId }))), 'Noted.')
  }),
  'generate that waits: suspendPayload': () => world([paying], async ({ remote }) => {
    const { finishReason, suspendPayload } = await remote.generate('Pay.', { memory: { thread: 't', resource: resourceId } })
    assert.deepEqual([finishReason, suspendPayload.toolName, suspendPayload.args], ['suspended', 'pay', { to: 'Ada' }])
  }),
  'stream with structuredOutput: object and object-result': () => world(['{"city":"Bern"}'], async ({ remote }) => {
    const chunks = await read(await remote.stream('Where?', { structuredOutput: { schema: z.object({ city: z.string() }) } }))
    assert.deepEqual(chunks.find(({ type }) => type === 'object-result').object, { city: 'Bern' })
    assert.equal(typeof chunks.find(({ type }) => type === 'object').object, 'object')
  }),
  'runId of generate and stream': () => world(['One.', 'Two.'], async ({ remote }) => {
    assert.equal((await remote.generate('Hi', { runId: 'mine-1' })).runId, 'mine-1')
    assert.equal((await read(await remote.stream('Hi', { runId: 'mine-2', memory: { thread: 't', resource: resourceId } })))[0].runId, 'mine-2')
  }),
  'observe': () => world([paying, 'Paid.'], async ({ remote }) => {
    const subscription = await remote.subscribeToThread(scope('t'))
    const waiting = watch(subscription, ({ type }) => type === 'tool-call-approval')
    await remote.sendMessage({ message: 'Pay Ada.', ...scope('t') })
    const { runId, payload } = (await waiting).at(-1)
    const seen = read(await remote.observe({ runId, offset: 1 }))
    await remote.sendToolApproval({ ...scope('t'), toolCallId: payload.toolCallId, approved: true })
    const chunks = await seen
    assert.equal(types(chunks)[0], 'data-user-message')
    assert.equal(types(chunks).at(-1), 'finish')
    subscription.unsubscribe()
  }),
  'abortThread, subscription.abort': () => world([paying], async ({ remote, activeRunId }) => {
    const subscription = await remote.subscribeToThread(scope('t'))
    assert.equal(await subscription.abort(), false)
    const waiting = watch(subscription, ({ type }) => type === 'tool-call-approval')
    await remote.sendMessage({ message: 'Pay Ada.', ...scope('t') })
    await waiting
    assert.equal((await remote.abortThread({ ...scope('t'), expectedRunId: 'another' })).aborted, false)
    assert.equal((await remote.abortThread(scope('t'))).aborted, true)
    await idle(activeRunId, 't')
    subscription.unsubscribe()
  }),
  'client tools over a stream': () => world([asksClient, 'Sunny.'], async ({ remote }) => {
    const weather = { id: 'weather', description: 'Weather', inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => `sun in ${city}` }
    const chunks = await read(await remote.stream('Weather?', { clientTools: { weather }, memory: { thread: 't', resource: resourceId } }))
    assert.match(text(chunks), /Sunny/)
  }),
  'client tools over generate, on a thread and without one': async () => {
    for (const options of [{ memory: { thread: 't', resource: resourceId } }, {}]) {
      await world([asksClient, 'Sunny.'], async ({ remote, model }) => {
        const weather = { id: 'weather', description: 'Weather', inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => `sun in ${city}` }
        const { text: said } = await remote.generate([{ role: 'user', content: 'Weather?' }], { clientTools: { weather }, ...options })
        assert.equal(said, 'Sunny.')
        const prompt = JSON.stringify(model.calls[1].prompt)
        assert.match(prompt, /sun in Bern/)
        assert.equal(prompt.match(/"type":"tool-call"/g).length, 1)
        assert.match(prompt, /Weather\?/)
      })
    }
  },
  'client tools over a subscription': () => world([asksClient, 'Sunny.'], async ({ remote, model }) => {
    const weather = { id: 'weather', description: 'Weather', inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => `sun in ${city}` }
    const subscription = await remote.subscribeToThread(scope('t'))
    const seen = watch(subscription, (chunk) => isFinish(chunk) && chunk.payload.stepResult.reason === 'stop')
    await remote.sendMessage({ message: 'Weather?', ...scope('t'), ifIdle: { streamOptions: { clientTools: { weather } } } })
    assert.match(text(await seen), /Sunny/)
    assert.match(JSON.stringify(model.calls[1].prompt), /sun in Bern/)
    subscription.unsubscribe()
  }),
  'threads: create, list, get, update, messages, clone, delete': () => world(['Hello.'], async ({ client, remote, activeRunId }) => {
    await client.createMemoryThread({ agentId: 'guide', resourceId, threadId: 't', title: 'One', metadata: { kind: 'trip' } })
    const list = await client.listMemoryThreads({ agentId: 'guide', resourceId, metadata: { kind: 'trip' }, page: 0, perPage: 10, orderBy: { field: 'createdAt', direction: 'ASC' } })
    assert.deepEqual([list.threads.map(({ id }) => id), list.total, list.hasMore], [['t'], 1, false])
    const thread = client.getMemoryThread({ threadId: 't', agentId: 'guide' })
    assert.equal((await thread.get()).title, 'One')
    assert.equal((await thread.update({ title: 'Two', metadata: {}, resourceId })).title, 'Two')
    await remote.sendMessage({ message: 'Hi', ...scope('t') })
    await idle(activeRunId, 't')
    const { messages } = await thread.listMessages({ resourceId })
    assert.deepEqual(messages.map(({ role }) => role), ['signal', 'assistant'])
    assert.equal((await thread.deleteMessages([messages[1].id])).success, true)
    assert.equal((await thread.clone({ newThreadId: 'copy', resourceId })).thread.id, 'copy')
    await thread.transfer({ resourceId: 'user-2' })
    await thread.delete()
    await assert.rejects(thread.get(), /404|no such thread/i)
  }),
  'saveMessageToMemory, working memory, status, config': () => world([], async ({ client }) => {
    await client.createMemoryThread({ agentId: 'guide', resourceId, threadId: 't' })
    const message = { id: 'm1', role: 'user', createdAt: new Date(0), threadId: 't', resourceId, content: { format: 2, parts: [{ type: 'text', text: 'One' }] } }
    assert.equal((await client.saveMessageToMemory({ agentId: 'guide', messages: [message] })).messages.length, 1)
    await client.updateWorkingMemory({ agentId: 'guide', threadId: 't', resourceId, workingMemory: '# Ada' })
    assert.equal((await client.getWorkingMemory({ agentId: 'guide', threadId: 't', resourceId })).workingMemory, '# Ada')
    assert.equal((await client.getMemoryStatus('guide')).result, true)
    assert.ok((await client.getMemoryConfig({ agentId: 'guide' })).config)
  }),
  'searchMemory: the message, its thread, and what was said around it': () => world(['Hello.'], async ({ client, remote, activeRunId }) => {
    await client.createMemoryThread({ agentId: 'guide', resourceId, threadId: 't', title: 'Trip' })
    await remote.sendMessage({ message: 'Where is Bern?', ...scope('t') })
    await idle(activeRunId, 't')
    const { results, count, query, searchScope } = await client.searchMemory({ agentId: 'guide', resourceId, threadId: 't', searchQuery: 'Bern' })
    const found = results.find(({ content }) => content === 'Where is Bern?')
    assert.deepEqual([found.role, found.threadId, found.threadTitle], ['signal', 't', 'Trip'])
    assert.deepEqual([found.context.before, found.context.after.map(({ role, content }) => [role, content])], [[], [['assistant', 'Hello.']]])
    assert.deepEqual([count, query, searchScope], [results.length, 'Bern', 'resource'])
  }),
  'an unknown agent is 404, a foreign thread 403': () => world(['Hello.'], async ({ client, remote, activeRunId }) => {
    await assert.rejects(client.getAgent('nobody').sendMessage({ message: 'Hi', ...scope('t') }), { status: 404 })
    await remote.sendMessage({ message: 'Hi', ...scope('t') })
    await idle(activeRunId, 't')
    await assert.rejects(remote.sendMessage({ message: 'Hi', threadId: 't', resourceId: 'user-2' }), { status: 403 })
    await assert.rejects(remote.sendSignal({ signal: { type: 'nonsense', contents: 'x' }, ...scope('t') }), { status: 400 })
  }),
}

let failed = 0
for (const [name, check] of Object.entries(checks)) {
  if (only && !name.includes(only)) continue
  let late
  try {
    await Promise.race([check(), new Promise((_resolve, reject) => (late = setTimeout(() => reject(new Error('took longer than 10 s')), 10_000)))])
    console.log(`pass  ${name}`)
  } catch (error) {
    failed++
    console.log(`FAIL  ${name}: ${String(error?.message ?? error).split('\n').slice(0, 3).join(' ')}`)
    if (only) console.log(error)
  } finally {
    clearTimeout(late)
  }
}
console.log(failed === 0 ? 'All calls work.' : `${failed} of ${Object.keys(checks).length} failed.`)
process.exit(failed === 0 ? 0 : 1)
