import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { trace } from '@opentelemetry/api'
import { expect, it, onTestFinished } from 'vitest'
import { Agent, createTool, Heed, Memory, silentLogger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import type { CollectedSpan } from './collector.ts'
import { registerSdk } from './sdk.ts'

const secret = 'sk-live-0123456789abcdef'

function filed(): LibSQLStore {
  const folder = mkdtempSync(join(tmpdir(), 'heed-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return new LibSQLStore({ url: `file:${join(folder, 'heed.db')}` })
}

it('[T1.1] [T1.2] a run of two steps with a steer and a recall is seven spans at a collector, each with its name, parent, attributes and times', async () => {
  const { spans, points, flush, tracer, exporter } = await registerSdk()
  const running = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  let inTool: string | undefined
  const look = createTool({
    id: 'look',
    description: 'Looks up timetables.',
    execute: async () => {
      inTool = trace.getActiveSpan()?.spanContext().spanId
      running.resolve()
      await go.promise
      tracer.startSpan('query the timetable').end()
      return { leaves: '8:05' }
    },
  })
  const usage = { inputTokens: 120, outputTokens: 8 }
  const model = scriptedModel([{ text: 'I look.', toolCalls: [{ toolName: 'look', input: { password: secret } }], usage }, { text: 'The 8:05 from Bern.', usage: { inputTokens: 150, outputTokens: 12 } }], { modelId: 'guide-1', provider: 'openai.responses' })
  const agent = new Agent({ id: 'guide', name: 'Guide', model, tools: { look }, memory: new Memory() })
  const heed = new Heed({ agents: { agent }, storage: filed(), logger: silentLogger })
  onTestFinished(() => heed.close())
  await agent.threads().open()
  const memory = await agent.getMemory()
  await memory.createThread({ threadId: 'earlier', resourceId: 'user-7' })
  await memory.saveMessages({
    messages: [{ id: 'm1', role: 'user', threadId: 'earlier', resourceId: 'user-7', createdAt: new Date(0), content: { format: 2, parts: [{ type: 'text', text: 'My favourite railway station is Zermatt.' }] } }],
  })
  const send = { threadId: 'trip', resourceId: 'user-7' }

  const page = tracer.startSpan('page')
  const [wake, steer] = await tracer.startActiveSpan('click', async (click) => {
    const first = agent.sendMessage('When does the railway leave from my favourite station?', send)
    await running.promise
    const second = agent.sendMessage({ id: 'steer-1', contents: `By train, please. ${secret}` }, send)
    await second.stored
    click.end()
    return [first, second] as const
  })
  go.resolve()
  expect(await wake.outcome).toMatchObject({ action: 'woke' })
  expect(await steer.outcome).toMatchObject({ action: 'delivered', step: 1 })
  await expect.poll(() => exporter.open.size).toBe(1)
  page.end()
  await flush()

  const named = (name: string) => spans.filter((span) => span.name === name)
  const only = (name: string): CollectedSpan => {
    const found = named(name)
    expect(found, name).toHaveLength(1)
    return found[0] as CollectedSpan
  }
  const run = only('invoke_agent Guide')
  const tool = only('execute_tool look')
  const recall = only('search_memory')
  const inner = only('query the timetable')
  const click = only('click')
  const [firstChat, secondChat] = named('chat guide-1') as [CollectedSpan, CollectedSpan]
  const [firstAccept, secondAccept] = named('accept_signal user') as [CollectedSpan, CollectedSpan]
  expect(spans).toHaveLength(10)

  // Parents: the run has no parent, since no caller waits for it; the sends are where they were made.
  expect(run.parentSpanId).toBeUndefined()
  for (const child of [tool, recall, firstChat, secondChat]) expect(child).toMatchObject({ parentSpanId: run.spanId, traceId: run.traceId })
  expect(inner.parentSpanId).toBe(tool.spanId)
  expect(inTool).toBe(tool.spanId)
  for (const accept of [firstAccept, secondAccept]) expect(accept).toMatchObject({ parentSpanId: click.spanId, traceId: click.traceId })
  expect(run.links.map(({ traceId, spanId }) => ({ traceId, spanId }))).toEqual([firstAccept, secondAccept].map(({ traceId, spanId }) => ({ traceId, spanId })))

  // What each says of itself.
  const runId = wake.runId
  expect(run.attributes).toEqual({
    'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.id': 'guide', 'gen_ai.agent.name': 'Guide', 'gen_ai.conversation.id': 'trip', 'heed.resource.id': 'user-7', 'heed.run.id': runId,
    'gen_ai.usage.input_tokens': 270, 'gen_ai.usage.output_tokens': 20, 'gen_ai.response.finish_reasons': ['stop'], 'heed.run.steps': 2,
  })
  expect(run.events.map(({ name, attributes }) => ({ name, ...attributes }))).toEqual([
    { name: 'heed.drain', 'heed.drain.count': 1, 'heed.step': 0, 'heed.signal.ids': [wake.signal.id] },
    { name: 'heed.drain', 'heed.drain.count': 1, 'heed.step': 1, 'heed.signal.ids': ['steer-1'] },
  ])
  const asked = { 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai', 'gen_ai.request.model': 'guide-1', 'gen_ai.conversation.id': 'trip', 'gen_ai.request.stream': true }
  expect(firstChat.attributes).toMatchObject({ ...asked, 'heed.step': 0, 'gen_ai.usage.input_tokens': 120, 'gen_ai.usage.output_tokens': 8, 'gen_ai.response.finish_reasons': ['tool-calls'] })
  expect(secondChat.attributes).toMatchObject({ ...asked, 'heed.step': 1, 'gen_ai.usage.input_tokens': 150, 'gen_ai.usage.output_tokens': 12, 'gen_ai.response.finish_reasons': ['stop'] })
  expect(firstChat.attributes['gen_ai.response.time_to_first_chunk']).toBeGreaterThanOrEqual(0)
  expect(tool.attributes).toMatchObject({
    'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'look', 'gen_ai.tool.type': 'function', 'gen_ai.tool.description': 'Looks up timetables.', 'gen_ai.conversation.id': 'trip', 'heed.tool.outcome': 'returned',
  })
  expect(tool.attributes['gen_ai.tool.call.id']).toEqual(expect.any(String))
  expect(recall.attributes).toEqual({
    'gen_ai.operation.name': 'search_memory', 'gen_ai.conversation.id': 'trip', 'gen_ai.request.top_k': 6, 'heed.recall.count': 1, 'heed.recall.found': 1, 'heed.recall.kinds': ['words'],
    'heed.recall.best_score': expect.any(Number), 'heed.recall.duration_ms': expect.any(Number),
  })
  expect(firstAccept.attributes).toMatchObject({ 'heed.signal.id': wake.signal.id, 'heed.signal.type': 'user', 'heed.signal.route': 'wake', 'heed.run.id': runId, 'gen_ai.conversation.id': 'trip', 'gen_ai.agent.id': 'guide' })
  expect(secondAccept.attributes).toMatchObject({ 'heed.signal.id': 'steer-1', 'heed.signal.route': 'deliver', 'heed.run.id': runId, 'heed.signal.duplicate': false })
  expect([run, firstChat, tool, firstAccept].map(({ kind }) => kind)).toEqual([1, 3, 1, 4])
  expect(spans.every(({ status }) => (status.code ?? 0) === 0)).toBe(true)

  // Times: one after the other, all within the run.
  const order = [recall, firstChat, tool, secondChat]
  for (const [index, span] of order.entries()) {
    expect(span.start).toBeGreaterThanOrEqual(order[index - 1]?.end ?? run.start)
    expect(span.end).toBeLessThanOrEqual(run.end)
  }
  expect(secondAccept.start).toBeGreaterThanOrEqual(tool.start)
  expect(run.events[1]?.time).toBeGreaterThanOrEqual(tool.end)

  // No span has a text of the conversation.
  const everything = JSON.stringify([spans, points], (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
  for (const said of [secret, 'railway', 'Zermatt', '8:05', 'I look']) expect(everything).not.toContain(said)

  const point = (metric: string) => points.filter((candidate) => candidate.metric === metric)
  const measured = { 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai', 'gen_ai.request.model': 'guide-1' }
  expect(point('gen_ai.client.token.usage').map(({ value, unit, attributes }) => [value, unit, attributes['gen_ai.token.type']])).toEqual([
    [120, '{token}', 'input'], [8, '{token}', 'output'], [150, '{token}', 'input'], [12, '{token}', 'output'],
  ])
  expect(point('gen_ai.client.operation.duration')).toMatchObject([{ unit: 's', attributes: measured }, { unit: 's', attributes: measured }])
  expect(point('gen_ai.invoke_agent.duration')).toMatchObject([{ attributes: { 'gen_ai.agent.name': 'Guide' } }])
  expect(point('gen_ai.execute_tool.duration')).toMatchObject([{ attributes: { 'gen_ai.tool.name': 'look' } }])
  expect(point('heed.signals.accepted').map(({ value, attributes }) => [value, attributes['heed.signal.route']])).toEqual([[1, 'wake'], [1, 'deliver']])
  expect(point('heed.mailbox.depth').map(({ value }) => value)).toEqual([1, 1, 0])
})
