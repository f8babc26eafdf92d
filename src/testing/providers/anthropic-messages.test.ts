import { createAnthropic } from '@ai-sdk/anthropic'
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { expect, it } from 'vitest'
import { readParts } from '../step-parts.ts'
import { providerServer } from './provider-server.ts'
import type { ScriptedStep } from '../script.ts'

const asked: LanguageModelV4CallOptions = { prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hello?' }] }] }

async function streamed(...script: ScriptedStep[]) {
  await using server = await providerServer({ script })
  const { stream } = await createAnthropic(server.anthropic)('claude-scripted').doStream(asked)
  return readParts(stream)
}

it('thinks aloud, and signs it', async () => {
  const parts = await streamed({ reasoning: ['Hm, ', 'well.'], text: 'Yes.' })
  expect(parts.filter((part) => part.type.startsWith('reasoning'))).toEqual([
    { type: 'reasoning-start', id: '0' },
    { type: 'reasoning-delta', id: '0', delta: 'Hm, ' },
    { type: 'reasoning-delta', id: '0', delta: 'well.' },
    { type: 'reasoning-delta', id: '0', delta: '', providerMetadata: { anthropic: { signature: 'signature_0_0' } } },
    { type: 'reasoning-end', id: '0' },
  ])
  expect(parts).toContainEqual({ type: 'text-delta', id: '1', delta: 'Yes.' })
})

it('signs its thoughts in one piece as well', async () => {
  await using server = await providerServer({ script: [{ reasoning: 'Hm.', text: 'Yes.' }] })
  const { content } = await createAnthropic(server.anthropic)('claude-scripted').doGenerate(asked)
  expect(content).toMatchObject([
    { type: 'reasoning', text: 'Hm.', providerMetadata: { anthropic: { signature: 'signature_0_0' } } },
    { type: 'text', text: 'Yes.' },
  ])
})

it('cites sources, and needs a text for them', async () => {
  const parts = await streamed({ text: 'Yes.', sources: [{ url: 'https://example.com', title: 'E' }] })
  expect(parts.find((part) => part.type === 'text-end')).toMatchObject({
    citations: [{ source: { url: 'https://example.com', title: 'E' } }],
  })
  const silent = streamed({ sources: [{ url: 'https://example.com' }] })
  await expect(silent).rejects.toMatchObject({ statusCode: 400, message: /a text cites a source/ })
})

it('writes a tool call given as a raw part alone', async () => {
  const call = { type: 'tool-call' as const, toolCallId: 'c', toolName: 't', input: '{"a":1}' }
  const parts = await streamed({ parts: [{ type: 'ping' }, call] })
  expect(parts).toContainEqual(expect.objectContaining(call))
})

it('refuses raw parts out of order', async () => {
  const failing = streamed({ parts: [{ type: 'text-delta', id: 'a', delta: 'x' }] })
  await expect(failing).rejects.toMatchObject({ statusCode: 400, message: /a before it was started/ })
})

it('sends what the API sends, in its order', async () => {
  await using server = await providerServer({ script: [{ reasoning: 'r', text: 't', toolCalls: [{ toolName: 'n' }] }] })
  const body = JSON.stringify({ model: 'm', stream: true })
  const response = await fetch(`${server.url}/v1/messages`, { method: 'POST', body })
  expect(response.headers.get('content-type')).toContain('text/event-stream')
  const frames = (await response.text()).trimEnd().split('\n\n').map((text) => text.split('\n'))
  for (const [event, data] of frames) {
    expect(event).toBe(`event: ${JSON.parse(data!.slice('data: '.length)).type}`)
  }
  expect(frames.map(([event]) => event!.slice('event: '.length))).toEqual([
    'message_start', 'ping',
    'content_block_start', 'content_block_delta', 'content_block_delta', 'content_block_stop',
    'content_block_start', 'content_block_delta', 'content_block_stop',
    'content_block_start', 'content_block_delta', 'content_block_stop',
    'message_delta', 'message_stop',
  ])
})
