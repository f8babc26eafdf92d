import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { createGateway } from 'ai'
import { expect, it } from 'vitest'
import { readParts } from '../step-parts.ts'
import { providerServer } from './provider-server.ts'

const asked: LanguageModelV4CallOptions = { prompt: [{ role: 'user', content: [{ type: 'text', text: 'A picture?' }] }] }
const files = [{ mediaType: 'image/png', data: new Uint8Array([1, 2, 3]) }, { mediaType: 'image/png', url: 'https://files.test/a.png' }]

it('encodes every part in the gateway\'s protocol, files included', async () => {
  await using server = await providerServer({ script: [{ reasoning: 'Hm.', text: ['Here ', 'it is.'], files, toolCalls: [{ toolName: 'look', input: { at: 1 } }] }] })
  const parts = await readParts((await createGateway(server.gateway)('google/gemini-scripted').doStream(asked)).stream)
  expect(parts.map(({ type }) => type)).toEqual([
    'stream-start', 'response-metadata', 'reasoning-start', 'reasoning-delta', 'reasoning-end', 'text-start', 'text-delta', 'text-delta', 'text-end',
    'file', 'file', 'tool-input-start', 'tool-input-delta', 'tool-input-end', 'tool-call', 'finish',
  ])
  expect(parts.filter(({ type }) => type === 'file')).toEqual([
    { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQID' } },
    { type: 'file', mediaType: 'image/png', data: { type: 'url', url: 'https://files.test/a.png' } },
  ])
  expect(parts[1]).toMatchObject({ modelId: 'google/gemini-scripted' })
  expect(server.requests[0]).toMatchObject({ protocol: 'ai-gateway', body: { prompt: [{ role: 'user' }] } })
})

it('answers in one piece, and fails, as the gateway does', async () => {
  await using server = await providerServer({ script: [{ text: 'Here.', files }, { error: { status: 429, message: 'Too fast.' } }, { text: 'Here.', errorAfter: { parts: 2 } }] })
  const model = createGateway(server.gateway)('google/gemini-scripted')
  const { content } = await model.doGenerate(asked)
  expect(content).toMatchObject([{ type: 'text', text: 'Here.' }, { type: 'file', data: { data: 'AQID' } }, { type: 'file', data: { url: 'https://files.test/a.png' } }])
  await expect(model.doStream(asked)).rejects.toMatchObject({ statusCode: 429 })
  const { stream } = await model.doStream(asked)
  await expect(readParts(stream)).rejects.toBeInstanceOf(Error)
  expect(await server.requests[2]?.outcome).toBe('broken')
})
