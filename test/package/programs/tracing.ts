import assert from 'node:assert/strict'
import { test } from 'node:test'
import { trace, type Span, type Tracer, type TracerProvider } from '@opentelemetry/api'
import { Agent, createTool } from 'heed'
import { scriptedModel } from 'heed/testing'
import { served, thread } from './parts/serving.ts'

test('spans of a run over HTTP go to the provider that is registered with the OpenTelemetry API', async () => {
  const ended: string[] = []
  const startSpan = (name: string) => {
    const spanId = String(ended.length + 1).padStart(16, '0')
    const span: Span = trace.wrapSpanContext({ traceId: '1'.repeat(32), spanId, traceFlags: 1 })
    return Object.assign(span, { isRecording: () => true, end: () => void ended.push(name) })
  }
  const provider: TracerProvider = { getTracer: () => ({ startSpan }) as unknown as Tracer }
  assert.ok(trace.setGlobalTracerProvider(provider))
  const look = createTool({ id: 'look', execute: async () => 'seen' })
  const model = scriptedModel([{ toolCalls: [{ toolName: 'look', input: {} }] }, 'Seen.'], { modelId: 'm1' })
  const agent = new Agent({ id: 'guide', name: 'Guide', model, tools: { look } })
  const { client, server } = await served(agent)
  // The answer comes when the run has ended: closing the server earlier would hand the run over before its tool was called.
  await client.getAgent('guide').generate('Look.', { memory: { thread: thread.threadId, resource: thread.resourceId } })
  await server.close()
  for (const name of ['chat m1', 'execute_tool look', 'invoke_agent Guide']) {
    assert.ok(ended.includes(name), `${name} is not in ${ended.join(', ')}`)
  }
})
