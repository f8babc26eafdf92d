import { createOpenAI } from '@ai-sdk/openai'
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { expect, it } from 'vitest'
import { readParts } from '../step-parts.ts'
import { providerServer } from './provider-server.ts'
import type { ScriptedStep } from '../script.ts'

const asked: LanguageModelV4CallOptions = { prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hello?' }] }] }

async function streamed(step: ScriptedStep, options = asked) {
  await using server = await providerServer({ script: [step] })
  const { stream } = await createOpenAI(server.openai)('gpt-5').doStream(options)
  return readParts(stream)
}

it('streams a summary of its reasoning', async () => {
  const parts = await streamed({ reasoning: ['Hm, ', 'well.'], text: 'Yes.' })
  const reasoning = parts.filter((part) => part.type.startsWith('reasoning'))
  expect(reasoning.map((part) => part.type)).toEqual(['reasoning-start', 'reasoning-delta', 'reasoning-delta', 'reasoning-end'])
  expect(reasoning.flatMap((part) => ('delta' in part ? [part.delta] : []))).toEqual(['Hm, ', 'well.'])
  expect(parts).toContainEqual(expect.objectContaining({ type: 'text-delta', id: 'msg_0_1', delta: 'Yes.' }))
})

it('seals its reasoning when that is asked for', async () => {
  const parts = await streamed({ reasoning: 'Hm.' }, { ...asked, providerOptions: { openai: { store: false } } })
  expect(parts.find((part) => part.type === 'reasoning-end')).toMatchObject({
    providerMetadata: { openai: { itemId: 'rs_0_0', reasoningEncryptedContent: 'encrypted_rs_0_0' } },
  })
})

it('cites pages and documents', async () => {
  const sources = [{ url: 'https://example.com', title: 'E' }, { mediaType: 'text/plain', title: 'Notes', filename: 'notes.txt' }]
  const parts = await streamed({ text: 'Yes.', sources })
  expect(parts.filter((part) => part.type === 'source')).toMatchObject([
    { sourceType: 'url', url: 'https://example.com', title: 'E' },
    { sourceType: 'document', filename: 'notes.txt' },
  ])
})

it('fails as a response that failed', async () => {
  const parts = await streamed({ text: 'x', finishReason: 'error' })
  expect(parts.find((part) => part.type === 'error')).toMatchObject({ error: { message: 'The scripted answer failed.' } })
  expect(parts.at(-1)).toMatchObject({ finishReason: { unified: 'error' } })
})

it('writes a tool call given as a raw part alone', async () => {
  const call = { type: 'tool-call' as const, toolCallId: 'c', toolName: 't', input: '{"a":1}' }
  const parts = await streamed({ parts: [{ type: 'ping' }, call] })
  expect(parts).toContainEqual(expect.objectContaining(call))
  expect(parts.at(-1)).toMatchObject({ finishReason: { unified: 'interrupted' } })
})

it('sends what the API sends, in its order, numbered', async () => {
  await using server = await providerServer({ script: [{ text: ['a', 'b'], toolCalls: [{ toolName: 'n' }] }] })
  const body = JSON.stringify({ model: 'm', stream: true })
  const response = await fetch(`${server.url}/v1/responses`, { method: 'POST', body })
  const events = (await response.text()).trimEnd().split('\n\n').map((text) => JSON.parse(text.slice(text.indexOf('data: ') + 6)))
  expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, position) => position))
  expect(events.map((event) => event.type)).toEqual([
    'response.created', 'response.in_progress',
    'response.output_item.added', 'response.content_part.added', 'response.output_text.delta', 'response.output_text.delta',
    'response.output_text.done', 'response.content_part.done', 'response.output_item.done',
    'response.output_item.added', 'response.function_call_arguments.delta', 'response.function_call_arguments.done',
    'response.output_item.done',
    'response.completed',
  ])
  expect(events.at(-1).response).toMatchObject({
    status: 'completed',
    output: [
      { type: 'message', content: [{ type: 'output_text', text: 'ab' }] },
      { type: 'function_call', call_id: 'call_0_0', name: 'n', arguments: '{}' },
    ],
  })
})
