import { describe, expect, it, onTestFinished } from 'vitest'
import { createHandler } from '../../src/http/server.ts'
import { Agent, createTool, Heed, InMemoryStore, Memory, silentLogger } from '../../src/index.ts'
import { ModerationProcessor } from '../../src/processors/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from '../http/serving.ts'
import type { CollectedSpan } from './collector.ts'
import { registerSdk } from './sdk.ts'

const caller = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' }
const traceparent = `00-${caller.traceId}-${caller.spanId}-01`

function guide(): Agent {
  const look = createTool({ id: 'look', execute: async () => 'seen' })
  const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' })
  const model = scriptedModel(({ prompt }) => {
    const last = prompt.at(-1)
    if (last?.role === 'tool') return 'Done.'
    return { toolCalls: [{ toolName: JSON.stringify(last).includes('Pay') ? 'pay' : 'look', input: {} }] }
  }, { modelId: 'm1' })
  return new Agent({ id: 'guide', name: 'Guide', model, tools: { look, pay } })
}

/** The spans as they hang together, each with the name of what is above it. */
function parents(spans: readonly CollectedSpan[]): Record<string, string> {
  const names = new Map([[caller.spanId, 'the caller'], ...spans.map(({ spanId, name }) => [spanId, name] as const)])
  return Object.fromEntries(spans.map(({ name, parentSpanId = '' }) => [name, names.get(parentSpanId) ?? 'nothing']))
}

describe('requests that say who asks for them', () => {
  it('[T1.6] what a caller awaits is below the span that the request names: generate, stream, an approval', async () => {
    const { spans, flush, exporter } = await registerSdk()
    const { ask } = await served({ guide: guide() })
    const memory = { thread: thread.threadId, resource: thread.resourceId }
    const asked = async (path: string, json: object) => {
      const response = await ask(`/agents/guide/${path}`, { json, headers: { traceparent } })
      expect(response.status).toBe(200)
      const text = await response.text()
      await expect.poll(() => exporter.open.size).toBe(0)
      await flush()
      return { text, spans: spans.splice(0) }
    }
    const run = { 'invoke_agent Guide': 'the caller', 'chat m1': 'invoke_agent Guide', 'execute_tool look': 'invoke_agent Guide' }
    for (const [path, json] of [['generate', { messages: 'Look.' }], ['generate', { messages: 'Look.', memory }], ['stream', { messages: 'Look.' }], ['stream', { messages: 'Look.', memory }]] as const) {
      const { spans: found } = await asked(path, json)
      expect(parents(found)).toEqual(run)
      expect(new Set(found.map(({ traceId }) => traceId))).toEqual(new Set([caller.traceId]))
      expect(found).toHaveLength(4)
    }
    const { text } = await asked('generate', { messages: 'Pay.', memory })
    const { spans: approved } = await asked('approve-tool-call', { runId: (JSON.parse(text) as { runId: string }).runId })
    expect(parents(approved)).toEqual({ 'invoke_agent Guide': 'the caller', 'execute_tool pay': 'invoke_agent Guide', 'chat m1': 'invoke_agent Guide' })
  })

  it('[T1.6] a send is below it, and the run that the send wakes links to the send', async () => {
    const { spans, flush, exporter } = await registerSdk()
    const { ask } = await served({ guide: guide() })
    await ask('/agents/guide/send-message', { json: { message: 'Look.', ...thread }, headers: { traceparent } })
    await expect.poll(() => exporter.ended.some((span) => span.wire().name === 'invoke_agent Guide')).toBe(true)
    await flush()
    expect(parents(spans)).toEqual({ 'accept_signal user': 'the caller', 'invoke_agent Guide': 'nothing', 'chat m1': 'invoke_agent Guide', 'execute_tool look': 'invoke_agent Guide' })
    const accept = spans.find(({ name }) => name === 'accept_signal user')
    expect(spans.find(({ name }) => name === 'invoke_agent Guide')?.links).toMatchObject([{ traceId: caller.traceId, spanId: accept?.spanId }])
  })

  it.each([
    ['no name', undefined], ['words', 'none'], ['an empty trace id', `00-${'0'.repeat(32)}-${caller.spanId}-01`], ['an empty span id', `00-${caller.traceId}-${'0'.repeat(16)}-01`],
    ['a form that there will never be', `ff-${caller.traceId}-${caller.spanId}-01`], ['more than the form has', `${traceparent}-more`], ['capitals', traceparent.toUpperCase()],
  ])('[T1.6] %s is passed over', async (_what, given) => {
    const { spans, flush } = await registerSdk()
    const { ask } = await served({ guide: guide() })
    const response = await ask('/agents/guide/generate', { json: { messages: 'Look.' }, headers: given === undefined ? {} : { traceparent: given } })
    expect(response.status).toBe(200)
    await flush()
    expect(parents(spans)['invoke_agent Guide']).toBe('nothing')
  })

  it('[T1.6] later forms are read as far as they are known', async () => {
    const { spans, flush } = await registerSdk()
    const { ask } = await served({ guide: guide() })
    await ask('/agents/guide/generate', { json: { messages: 'Look.' }, headers: { traceparent: `01-${caller.traceId}-${caller.spanId}-00-more` } })
    await flush()
    expect(parents(spans)['invoke_agent Guide']).toBe('the caller')
  })

  it('[T1.6] a span that is open around the handler stays the parent, and unauthenticated requests name none', async () => {
    const { spans, flush, tracer } = await registerSdk()
    const heed = new Heed({ agents: { guide: guide() }, storage: new InMemoryStore(), logger: silentLogger })
    const seen: Array<string | undefined> = []
    const { trace } = await import('@opentelemetry/api')
    const handler = createHandler(heed, {
      auth: (request) => {
        seen.push(trace.getActiveSpan()?.spanContext().spanId)
        return request.headers.get('authorization') === null ? null : { id: 'ann', resources: '*' as const }
      },
    })
    onTestFinished(async () => {
      handler.close()
      await heed.close()
    })
    const request = (headers: Record<string, string>) => new Request('http://localhost/api/agents/guide/generate', {
      method: 'POST', body: JSON.stringify({ messages: 'Look.' }), headers: { 'content-type': 'application/json', traceparent, ...headers },
    })
    expect((await handler(request({}))).status).toBe(401)
    expect(seen).toEqual([undefined])
    await tracer.startActiveSpan('POST /api/agents/:id/generate', async (span) => {
      expect((await handler(request({ authorization: 'ann' }))).status).toBe(200)
      span.end()
    })
    await flush()
    expect(parents(spans)['invoke_agent Guide']).toBe('POST /api/agents/:id/generate')
  })

  it('[T1.5] nothing is read of it where tracing is false', async () => {
    const { exporter } = await registerSdk()
    const { trace } = await import('@opentelemetry/api')
    let inTool: unknown = 'not asked'
    const look = createTool({ id: 'look', execute: async () => ((inTool = trace.getActiveSpan()), 'seen') })
    const heed = new Heed({ agents: { guide: new Agent({ id: 'guide', model: scriptedModel([{ toolCalls: [{ toolName: 'look', input: {} }] }, 'Done.']), tools: { look } }) }, storage: new InMemoryStore(), logger: silentLogger, tracing: false })
    const handler = createHandler(heed, { auth: 'local' })
    onTestFinished(async () => {
      handler.close()
      await heed.close()
    })
    await handler(new Request('http://localhost/api/agents/guide/generate', { method: 'POST', body: JSON.stringify({ messages: 'Look.' }), headers: { 'content-type': 'application/json', traceparent } }))
    expect([inTool, exporter.open.size, exporter.ended.length]).toEqual([undefined, 0, 0])
  })
})

describe('models that are asked besides the run', () => {
  it('[T1.7] a title is a chat of its thread, below the run that wanted it, with what it cost', async () => {
    const { spans, points, flush, exporter } = await registerSdk()
    const titles = scriptedModel([{ text: 'Trains to Bern', usage: { inputTokens: 30, outputTokens: 4 } }], { modelId: 'small', provider: 'openai.responses' })
    const agent = new Agent({ id: 'guide', name: 'Guide', model: scriptedModel(['Hello.'], { modelId: 'm1' }), memory: new Memory({ options: { generateTitle: { model: titles } } }) })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger, tracing: { recordOutputs: true } })
    onTestFinished(() => heed.close())
    await agent.generate('When does the train leave?', { memory: { thread: 't1', resource: 'user-1' } })
    await expect.poll(() => exporter.ended.some((span) => span.wire().name === 'chat small')).toBe(true)
    await flush()
    expect(parents(spans)).toMatchObject({ 'chat small': 'invoke_agent Guide' })
    const title = spans.find(({ name }) => name === 'chat small')
    expect(title?.attributes).toEqual({
      'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai', 'gen_ai.request.model': 'small', 'gen_ai.request.stream': true, 'gen_ai.conversation.id': 't1', 'heed.purpose': 'title',
      'gen_ai.response.model': 'small', 'gen_ai.response.finish_reasons': ['stop'], 'gen_ai.usage.input_tokens': 30, 'gen_ai.usage.output_tokens': 4,
      'gen_ai.response.time_to_first_chunk': expect.any(Number) as number,
      'gen_ai.output.messages': JSON.stringify([{ role: 'assistant', parts: [{ type: 'text', content: 'Trains to Bern' }], finish_reason: 'stop' }]),
    })
    expect(points.filter(({ metric, attributes }) => metric === 'gen_ai.client.token.usage' && attributes['gen_ai.request.model'] === 'small').map(({ value }) => value)).toEqual([30, 4])
  })

  it('[T1.7] a title that failed is an error of its chat', async () => {
    const { spans, flush, exporter } = await registerSdk()
    const titles = scriptedModel([{ text: ['Tra'], errorAfter: { parts: 2 } }], { modelId: 'small' })
    const agent = new Agent({ id: 'guide', name: 'Guide', model: scriptedModel(['Hello.'], { modelId: 'm1' }), memory: new Memory({ options: { generateTitle: { model: titles } } }) })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
    onTestFinished(() => heed.close())
    await agent.generate('When does the train leave?', { memory: { thread: 't1', resource: 'user-1' } })
    await expect.poll(() => exporter.ended.some((span) => span.wire().name === 'chat small')).toBe(true)
    await flush()
    expect(spans.find(({ name }) => name === 'chat small')).toMatchObject({ status: { code: 2 }, attributes: { 'gen_ai.response.finish_reasons': ['error'] } })
  })

  it('[T1.7] a judge is an agent with its chat, below the run that it judges', async () => {
    const { spans, flush } = await registerSdk()
    const judge = new Agent({ id: 'judge', name: 'Judge', model: scriptedModel([JSON.stringify({ categories: [] })], { modelId: 'strict', loop: true }) })
    const agent = new Agent({ id: 'guide', name: 'Guide', model: scriptedModel(['Hello.'], { modelId: 'm1' }), inputProcessors: [new ModerationProcessor({ judge, onFailure: 'allow' })] })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
    onTestFinished(() => heed.close())
    await agent.generate('Hi.', { memory: { thread: 't1', resource: 'user-1' } })
    await flush()
    expect(parents(spans)).toEqual({ 'invoke_agent Guide': 'nothing', 'invoke_agent Judge': 'invoke_agent Guide', 'chat strict': 'invoke_agent Judge', 'chat m1': 'invoke_agent Guide' })
  })
})
