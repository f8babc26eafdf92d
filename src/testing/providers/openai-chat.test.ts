import { createOpenAI } from '@ai-sdk/openai'
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { expect, it } from 'vitest'
import { readParts } from '../step-parts.ts'
import { providerServer } from './provider-server.ts'
import type { ScriptedStep } from '../script.ts'

const asked: LanguageModelV4CallOptions = { prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hello?' }] }] }

async function streamed(step: ScriptedStep) {
  await using server = await providerServer({ script: [step] })
  const { stream } = await createOpenAI(server.openai).chat('gpt-scripted').doStream(asked)
  return readParts(stream)
}

const post = (url: string, body: object) => fetch(`${url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify(body) })

it('cites pages, and has no words for documents', async () => {
  const parts = await streamed({ text: 'Yes.', sources: [{ url: 'https://example.com', title: 'E' }] })
  expect(parts.find((part) => part.type === 'source')).toMatchObject({ url: 'https://example.com', title: 'E' })
  const document = streamed({ text: 'x', sources: [{ mediaType: 'text/plain', title: 'Notes' }] })
  await expect(document).rejects.toMatchObject({ statusCode: 400, message: /type source can't be encoded in openai-chat/ })
})

it('writes a tool call given as a raw part alone', async () => {
  const call = { type: 'tool-call' as const, toolCallId: 'c', toolName: 't', input: '{"a":1}' }
  const parts = await streamed({ parts: [{ type: 'ping' }, call] })
  expect(parts).toContainEqual(expect.objectContaining(call))
})

it('sends what the API sends, reasoning as compatible servers do', async () => {
  await using server = await providerServer({ script: [{ reasoning: 'Hm.', text: 'a', toolCalls: [{ toolName: 'n' }] }] })
  const frames = (await (await post(server.url, { model: 'm', stream: true })).text()).trimEnd().split('\n\n')
  expect(frames.pop()).toBe('data: [DONE]')
  const chunks = frames.map((text) => JSON.parse(text.slice('data: '.length)))
  expect(chunks.map((chunk) => chunk.choices[0]?.delta)).toEqual([
    { role: 'assistant', content: null },
    { reasoning_content: 'Hm.' },
    { content: 'a' },
    { tool_calls: [{ index: 0, id: 'call_0_0', type: 'function', function: { name: 'n', arguments: '' } }] },
    { tool_calls: [{ index: 0, function: { arguments: '{}' } }] },
    {},
    undefined,
  ])
  expect(chunks.at(-2).choices[0].finish_reason).toBe('tool_calls')
  expect(chunks.at(-1)).toMatchObject({
    choices: [],
    usage: { completion_tokens: 2, completion_tokens_details: { reasoning_tokens: 1 } },
  })
})

it('answers in one piece', async () => {
  await using server = await providerServer({ script: [{ reasoning: 'Hm.', toolCalls: [{ toolName: 'n' }] }] })
  expect(await (await post(server.url, { model: 'm' })).json()).toMatchObject({
    object: 'chat.completion',
    model: 'm',
    choices: [
      { message: { content: null, reasoning_content: 'Hm.', tool_calls: [{ id: 'call_0_0' }] }, finish_reason: 'tool_calls' },
    ],
  })
})
