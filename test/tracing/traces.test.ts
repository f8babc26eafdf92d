import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { Agent, createTool, Heed, InMemoryStore, silentLogger, type AgentConfig } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import type { CollectedSpan } from './collector.ts'
import { registerSdk } from './sdk.ts'

const memory = { thread: 't1', resource: 'user-1' }
const target = { threadId: 't1', resourceId: 'user-1' }

function heedOf(agent: Agent, more: Partial<ConstructorParameters<typeof Heed>[0]> = {}): Heed {
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger, ...more })
  onTestFinished(() => heed.close())
  return heed
}

function agentOf(config: Partial<AgentConfig>): Agent {
  return new Agent({ id: 'guide', name: 'Guide', model: scriptedModel(['Hello.'], { modelId: 'm1' }), ...config } as AgentConfig)
}

/** The spans as a tree of names: each below its parent, in the order in which they began. */
function treeOf(spans: readonly CollectedSpan[], parent?: CollectedSpan): string[] {
  const ids = new Set(spans.map(({ spanId }) => spanId))
  return spans
    .filter(({ parentSpanId }) => (parent ? parentSpanId === parent.spanId : parentSpanId === undefined || !ids.has(parentSpanId)))
    .toSorted((one, other) => Number(one.start - other.start))
    .flatMap((span) => [span.name, ...treeOf(spans, span).map((name) => `  ${name}`)])
}

describe('traces', () => {
  it('[T1.3] a run is below the caller that waits for it, and an agent that a tool asks is below that tool', async () => {
    const { spans, flush, tracer } = await registerSdk()
    const helper = new Agent({ id: 'helper', name: 'Helper', description: 'Helps.', model: scriptedModel(['Helped.'], { modelId: 'm2', loop: true }) })
    const call = { toolCalls: [{ toolName: 'agent-helper', input: { prompt: 'Help.' } }] }
    const agent = agentOf({ model: scriptedModel([call, 'Done.', call, 'Done.'], { modelId: 'm1' }), agents: { helper } })
    heedOf(agent)
    const tree = (root: string) => [root, '  invoke_agent Guide', '    chat m1', '    execute_tool agent-helper', '      invoke_agent Helper', '        chat m2', '    chat m1']
    for (const [root, options] of [['alone', {}], ['on a thread', { memory }]] as const) {
      await tracer.startActiveSpan(root, async (span) => {
        await agent.generate('Go.', options)
        span.end()
      })
      await flush()
      expect(treeOf(spans.splice(0).filter(({ name }) => !name.startsWith('accept')))).toEqual(tree(root))
    }
  })

  it('[T1.3] the run that takes a signal links to the span that sent it, also in another process', async () => {
    const { spans, flush, tracer, exporter } = await registerSdk()
    const folder = mkdtempSync(join(tmpdir(), 'heed-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const storage = () => new LibSQLStore({ url: `file:${join(folder, 'heed.db')}` })
    const hanging = agentOf({ model: scriptedModel([{ text: ['I think ', 'and'], hang: { parts: 2 } }], { modelId: 'm1' }) })
    const first = new Heed({ agents: { hanging }, storage: storage(), logger: silentLogger })
    const sent = await tracer.startActiveSpan('click', async (click) => {
      const subscription = await hanging.subscribeToThread(target)
      const receipt = hanging.sendMessage('Hello?', target)
      for await (const chunk of subscription.stream) if (chunk.type === 'text-delta') break
      click.end()
      return receipt
    })
    const queued = hanging.queueMessage('And then?', target)
    await queued.stored
    await first.close()
    const agent = agentOf({ model: scriptedModel(['Hello.', 'And so on.'], { modelId: 'm1' }) })
    const second = heedOf(agent, { storage: storage() })
    await second.start()
    await expect.poll(async () => (await (await agent.getMemory()).getThreadById({ threadId: 't1' }))?.status).toBe('idle')
    await expect.poll(() => exporter.open.size).toBe(0)
    await flush()
    const accepts = spans.filter(({ name }) => name.startsWith('accept_signal'))
    const runs = spans.filter(({ name }) => name === 'invoke_agent Guide')
    expect(runs.map(({ attributes, links, status, events }) => ({ resumed: attributes['heed.run.resumed'], linked: links.map(({ spanId }) => spanId), failed: status.code === 2, events: events.map(({ name }) => name) }))).toEqual([
      { resumed: undefined, linked: [accepts[0]?.spanId], failed: true, events: ['heed.drain', 'exception'] },
      { resumed: true, linked: [], failed: false, events: ['heed.takeover'] },
      { resumed: undefined, linked: [accepts[1]?.spanId], failed: false, events: ['heed.drain'] },
    ])
    expect(runs[0]?.attributes).toMatchObject({ 'error.type': 'closed', 'heed.run.id': sent.runId })
    expect(runs[1]?.attributes['heed.run.id']).toBe(sent.runId)
    expect(runs.every(({ parentSpanId }) => parentSpanId === undefined)).toBe(true)
  })

  it('[T1.4] a tool that fails, or is called wrongly, is an error on its span, without the secret in its words; the run is none', async () => {
    const { spans, points, flush } = await registerSdk()
    const pay = createTool({ id: 'pay', inputSchema: z.object({ amount: z.number() }), execute: async () => Promise.reject(new TypeError('401 for Bearer abcdefgh12345678')) })
    const calls = [{ toolName: 'pay', input: { amount: 3 } }, { toolName: 'pay', input: { amount: 'three' } }, { toolName: 'nope', input: {} }]
    const agent = agentOf({ model: scriptedModel([{ toolCalls: calls }, 'It failed.'], { modelId: 'm1' }), tools: { pay } })
    heedOf(agent, { tracing: { recordInputs: true, recordOutputs: true } })
    await agent.generate('Pay.', { memory })
    await flush()
    const tools = spans.filter(({ name }) => name.startsWith('execute_tool')).map(({ name, status, attributes, events }) => [name, status.code, attributes['error.type'], events.map((event) => event.name).join()])
    expect(tools.toSorted((one, other) => String(one[2]).localeCompare(String(other[2])))).toEqual([
      ['execute_tool pay', 2, 'tool_input_invalid', 'exception'],
      ['execute_tool pay', 2, 'TypeError', 'exception'],
      ['execute_tool nope', 2, 'unknown_tool', 'exception'],
    ])
    expect(spans.find(({ attributes }) => attributes['error.type'] === 'TypeError')?.status.message).toBe('401 for Bearer [redacted]')
    expect(spans.find(({ name }) => name === 'invoke_agent Guide')?.status.code ?? 0).toBe(0)
    expect(points.filter(({ metric }) => metric === 'gen_ai.execute_tool.duration')).toMatchObject([{ attributes: { 'gen_ai.tool.name': 'pay', 'error.type': 'TypeError' } }])
  })

  it('[T1.2] an error is recorded by its type and code alone unless contents are recorded: its message may quote them', async () => {
    const { spans, flush } = await registerSdk()
    const pay = createTool({ id: 'pay', inputSchema: z.object({ iban: z.number() }), execute: async () => 1 })
    const fail = createTool({ id: 'fail', execute: async () => Promise.reject(Object.assign(new Error('Ada of Zermatt has no account'), { code: 'ENOTFOUND' })) })
    const odd = createTool({ id: 'odd', execute: async () => Promise.reject(Object.assign(new Error('x'), { name: 'Ada of Zermatt', code: 'in Zermatt' })) })
    const calls = [{ toolName: 'pay', input: { iban: 'CH93-ZERMATT' } }, { toolName: 'fail', input: {} }, { toolName: 'odd', input: {} }]
    const told = async (tracing: { recordInputs?: boolean; recordOutputs?: boolean }) => {
      const agent = agentOf({ model: scriptedModel([{ toolCalls: calls }, { error: { status: 400, message: 'no Zermatt here' } }], { modelId: 'm1' }), tools: { pay, fail, odd } })
      heedOf(agent, { tracing })
      await agent.generate('x').catch(() => {})
      await flush()
      return spans.splice(0).filter(({ status }) => status.code === 2).map(({ name, status, attributes, events }) => JSON.stringify([name, status.message, attributes['error.type'], events.map((event) => event.attributes)]))
    }
    for (const tracing of [{}, { recordInputs: true }, { recordOutputs: true }]) {
      const failed = await told(tracing)
      expect(failed).toHaveLength(5)
      expect(failed.join()).not.toMatch(/zermatt/i)
      expect(failed.find((one) => one.includes('execute_tool fail'))).toContain('"Error ENOTFOUND"')
      expect(failed.find((one) => one.includes('execute_tool odd'))).toContain('"_OTHER"')
      expect(failed.find((one) => one.includes('execute_tool pay'))).toContain('"tool_input_invalid"')
    }
    expect((await told({ recordInputs: true, recordOutputs: true })).filter((one) => /zermatt/i.test(one))).not.toHaveLength(0)
  })

  it('[T1.4] a tool that answers with an error, as those of MCP do, is an error of its span', async () => {
    const { spans, flush } = await registerSdk()
    const book = createTool({ id: 'book', execute: async () => ({ isError: true, content: [{ type: 'text', text: 'no seat' }] }) })
    const agent = agentOf({ model: scriptedModel([{ toolCalls: [{ toolName: 'book', input: {} }] }, 'ok'], { modelId: 'm1' }), tools: { book } })
    heedOf(agent)
    await agent.generate('x')
    await flush()
    const span = spans.find(({ name }) => name === 'execute_tool book')
    expect([span?.status, span?.attributes['error.type'], span?.attributes['heed.tool.outcome']]).toEqual([{ code: 2, message: 'tool_error' }, 'tool_error', 'returned'])
  })

  it('[T1.4] a model that fails is one span with its retries, the next in line another; a run that fails says why', async () => {
    const { spans, points, flush } = await registerSdk()
    const clock = virtualClock()
    const busy = { error: { status: 503, message: 'busy' } }
    const broken = scriptedModel([busy, busy, busy, busy, busy, busy], { modelId: 'm1', provider: 'amazon-bedrock' })
    const agent = agentOf({ model: [{ model: broken, maxRetries: 1 }, scriptedModel(['Yes.', busy], { modelId: 'm2', provider: 'xai.chat' })] })
    heedOf(agent, { clock })
    const answer = async (question: string) => {
      const pass = { over: false }
      const answered = agent.generate(question, { modelSettings: { maxRetries: 0 } }).then(({ text }) => text, (error: unknown) => error).finally(() => (pass.over = true))
      await expect.poll(async () => (await clock.advance(60_000), pass.over)).toBe(true)
      return answered
    }
    expect(await answer('Well?')).toBe('Yes.')
    await flush()
    const chats = spans.filter(({ name }) => name.startsWith('chat')).map(({ name, status, events, attributes }) => [name, attributes['gen_ai.provider.name'], status.code, attributes['error.type'], events.map((event) => event.name).join()])
    expect(chats).toEqual([['chat m1', 'aws.bedrock', 2, 'provider_error', 'heed.retry,exception'], ['chat m2', 'x_ai', 0, undefined, '']])
    expect(points.filter(({ metric }) => metric === 'gen_ai.client.operation.duration').map(({ attributes }) => attributes['error.type'])).toEqual(['provider_error', undefined])
    spans.length = 0
    expect(await answer('Again?')).toMatchObject({ code: 'provider_error' })
    await flush()
    expect(spans.find(({ name }) => name === 'invoke_agent Guide')).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': 'provider_error', 'gen_ai.response.finish_reasons': ['error'] } })
  })

  it('[T1.4] an abort ends every span and is no error; an interrupt ends the chat alone', async () => {
    const { spans, flush, exporter } = await registerSdk()
    const running = Promise.withResolvers<void>()
    const wait = createTool({ id: 'wait', execute: () => (running.resolve(), new Promise(() => {})) })
    const model = scriptedModel([{ text: ['I write ', 'and'], hang: { parts: 2 } }, { toolCalls: [{ toolName: 'wait', input: {} }] }], { modelId: 'm1' })
    const agent = agentOf({ model, tools: { wait } })
    heedOf(agent)
    const subscription = await agent.subscribeToThread(target)
    const first = agent.sendMessage('Write.', target)
    for await (const chunk of subscription.stream) if (chunk.type === 'text-delta') break
    agent.sendMessage('Stop, wait.', { ...target, ifActive: { behavior: 'interrupt' } })
    await running.promise
    await agent.abortRun({ ...target, expectedRunId: first.runId })
    await expect.poll(() => exporter.open.size).toBe(0)
    await flush()
    expect(spans.every(({ status }) => (status.code ?? 0) === 0)).toBe(true)
    const reasons = (name: string) => spans.filter((span) => span.name === name).map(({ attributes }) => attributes['gen_ai.response.finish_reasons'] ?? attributes['heed.tool.outcome'])
    expect(reasons('chat m1')).toEqual([['interrupted'], ['tool-calls']])
    expect(reasons('execute_tool wait')).toEqual(['aborted'])
    expect(reasons('invoke_agent Guide')).toEqual([['aborted']])
  })

  it('[T1.1] a call that waits for approval has no span until it is executed, below the span of the approval', async () => {
    const { spans, flush, tracer } = await registerSdk()
    const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' })
    const agent = agentOf({ model: scriptedModel([{ toolCalls: [{ toolName: 'pay', input: {} }] }, 'Paid.'], { modelId: 'm1' }), tools: { pay } })
    heedOf(agent)
    const { runId } = await agent.generate('Pay.', { memory })
    await flush()
    expect(treeOf(spans)).toEqual(['invoke_agent Guide', '  chat m1'])
    expect(spans.find(({ name }) => name === 'invoke_agent Guide')?.attributes).toMatchObject({ 'gen_ai.response.finish_reasons': ['suspended'], 'heed.run.waiting': ['pay'] })
    spans.length = 0
    await tracer.startActiveSpan('approve', async (span) => {
      await (await agent.approveToolCall({ runId })).result
      span.end()
    })
    await flush()
    expect(treeOf(spans)).toEqual(['approve', '  invoke_agent Guide', '    execute_tool pay', '    chat m1'])
    expect(spans.find(({ name }) => name === 'invoke_agent Guide')).toMatchObject({ attributes: { 'heed.run.resumed': true, 'heed.run.id': runId }, events: [] })
  })

  it('[T1.1] a state signal is on the span of the send, and on that of the run where a processor computes it', async () => {
    const { spans, flush, exporter } = await registerSdk()
    const agent = agentOf({ inputProcessors: [{ id: 'clock-lane', stateId: 'page', computeStateSignal: async () => ({ contents: 'The page is open.', cacheKey: 'open', mode: 'snapshot' as const }) }] })
    heedOf(agent)
    const receipt = await agent.sendStateSignal({ id: 'cart', contents: 'The cart is empty.', cacheKey: 'empty', mode: 'snapshot' }, target)
    expect(receipt.skipped).toBe(false)
    await expect.poll(() => exporter.open.size + Number(exporter.ended.length === 0)).toBe(0)
    await flush()
    expect(spans.find(({ name }) => name === 'accept_signal state')?.attributes).toMatchObject({ 'heed.lane.id': 'cart', 'heed.lane.mode': 'snapshot', 'heed.lane.version': 1 })
    expect(spans.find(({ name }) => name === 'invoke_agent Guide')?.events.find(({ name }) => name === 'heed.lane')?.attributes).toEqual({ 'heed.lane.id': 'page', 'heed.lane.mode': 'snapshot', 'heed.step': 0 })
  })

  it('[T1.2] inputs and outputs are recorded only where the options ask for them, and then without secrets', async () => {
    const { spans, flush } = await registerSdk()
    const secrets = { apiKey: 'abcdef', passphrase: 'correct horse', token: 'tok-abcdef', privateKey: 'xabcdef', credentials: { user: 'ada', key: 'yabcdef' }, signature: 'zabcdef', page: JSON.stringify({ password: 'abcdef and more' }) }
    const look = createTool({ id: 'look', inputSchema: z.object({ at: z.string(), password: z.string() }), execute: async () => ({ ...secrets, seen: 'rain' }) })
    const script = [{ text: 'I look.', toolCalls: [{ toolName: 'look', input: { at: 'Bern', password: 'correct horse battery' } }] }, 'It rains.']
    const content = ['gen_ai.input.messages', 'gen_ai.system_instructions', 'gen_ai.output.messages', 'gen_ai.tool.call.arguments', 'gen_ai.tool.call.result']
    const recorded = async (tracing: { recordInputs?: boolean; recordOutputs?: boolean }) => {
      const agent = agentOf({ instructions: 'Say where.', model: scriptedModel(script, { modelId: 'm1' }), tools: { look } })
      heedOf(agent, { tracing })
      await agent.generate('Does it rain? My key is sk-proj-0123456789abcdef.')
      await flush()
      const found = spans.splice(0)
      const values = new Map(found.flatMap(({ attributes }) => content.flatMap((name) => (attributes[name] === undefined ? [] : [[name, attributes[name]] as const]))))
      return { names: content.filter((name) => values.has(name)), values, text: JSON.stringify(found.map(({ attributes, events, status }) => [attributes, events.map((event) => event.attributes), status])) }
    }
    expect((await recorded({})).names).toEqual([])
    expect((await recorded({ recordInputs: true })).names).toEqual(['gen_ai.input.messages', 'gen_ai.system_instructions', 'gen_ai.tool.call.arguments'])
    expect((await recorded({ recordOutputs: true })).names).toEqual(['gen_ai.output.messages', 'gen_ai.tool.call.result'])
    const { values, text } = await recorded({ recordInputs: true, recordOutputs: true })
    expect(text).not.toMatch(/0123456789abcdef|abcdef|horse|battery|and more/)
    expect(JSON.parse(String(values.get('gen_ai.tool.call.arguments')))).toEqual({ at: 'Bern', password: '[redacted]' })
    expect(JSON.parse(String(values.get('gen_ai.output.messages')))).toEqual([{ role: 'assistant', parts: [{ type: 'text', content: 'It rains.' }], finish_reason: 'stop' }])
    expect(JSON.parse(String(values.get('gen_ai.system_instructions')))).toEqual([{ type: 'text', content: 'Say where.' }])
  })

  it('[T1.5] nothing is traced before an SDK is registered, after it is gone, or where tracing is false; a bad setting is refused by name', async () => {
    const agent = agentOf({ model: scriptedModel(['Hello.'], { loop: true }) })
    heedOf(agent)
    await agent.generate('Hi.', { memory })
    const { exporter, unregister } = await registerSdk()
    const silent = agentOf({ id: 'silent' })
    heedOf(silent, { tracing: false })
    await silent.generate('Hi.', { memory })
    await silent.sendMessage('Hi.', target).outcome
    expect([exporter.open.size, exporter.ended.length]).toEqual([0, 0])
    await agent.generate('Hi.', { memory })
    expect(exporter.ended.map((span) => span.wire().name)).toContain('invoke_agent Guide')
    unregister()
    const before = exporter.ended.length
    await agent.generate('Hi.', { memory })
    const [row] = (await (await agent.getMemory()).recall({ threadId: 't1', resourceId: 'user-1', perPage: false })).messages.slice(-2)
    expect(JSON.stringify(row)).not.toContain('traceparent')
    expect(exporter.ended).toHaveLength(before)
    expect(() => new Heed({ tracing: { recordAll: true } as never })).toThrow(/recordAll/)
    expect(() => new Heed({ tracing: { recordInputs: 'yes' } as never })).toThrow(/recordInputs/)
  })
})
