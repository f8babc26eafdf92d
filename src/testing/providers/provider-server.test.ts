import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { APICallError, type LanguageModelV4, type LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Clock } from '../../base/clock.ts'
import { readParts } from '../step-parts.ts'
import { type ProviderServer, providerServer } from './provider-server.ts'
import { virtualClock } from '../virtual-clock.ts'

const asked: LanguageModelV4CallOptions = {
  prompt: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: [{ type: 'text', text: 'Hello?' }] },
  ],
  tools: [{ type: 'function', name: 'weather', inputSchema: { type: 'object', properties: { city: { type: 'string' } } } }],
}

const rejection = (promise: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(promise).then(() => expect.fail('did not reject'), (error: unknown) => error)

let server: ProviderServer
beforeEach(async () => {
  server = await providerServer()
})
afterEach(() => server.close())

const providers: Array<[string, (given: ProviderServer) => LanguageModelV4]> = [
  ['openai-responses', (given) => createOpenAI(given.openai)('gpt-scripted')],
  ['openai-chat', (given) => createOpenAI(given.openai).chat('gpt-scripted')],
  ['anthropic-messages', (given) => createAnthropic(given.anthropic)('claude-scripted')],
]

describe.each(providers)('%s, as its provider package reads it', (protocol, modelOf) => {
  const streamed = async () => readParts((await modelOf(server).doStream(asked)).stream)

  it('streams text in the deltas of the script', async () => {
    server.script([{ text: ['It ', 'rains, "softly"\n', 'in Zürich ☔.'] }])
    const parts = await streamed()
    expect(parts.flatMap((part) => (part.type === 'text-delta' ? [part.delta] : []))).toEqual([
      'It ', 'rains, "softly"\n', 'in Zürich ☔.',
    ])
    expect(parts.map((part) => part.type)).toEqual([
      'stream-start', 'response-metadata',
      ...(protocol === 'anthropic-messages' ? ['custom'] : []),
      'text-start', 'text-delta', 'text-delta', 'text-delta', 'text-end', 'finish',
    ])
    expect(parts.at(-1)).toMatchObject({ finishReason: { unified: 'stop' } })
  })

  it('streams tool calls', async () => {
    const toolCalls = [
      { toolName: 'weather', input: { city: 'Saint-Jean-Pied-de-Port', days: [1, 2] } },
      { toolName: 'weather', toolCallId: 'mine' },
    ]
    server.script([{ text: 'Let me see.', toolCalls }])
    const parts = await streamed()
    const calls = parts.flatMap((part) => (part.type === 'tool-call' ? [[part.toolCallId, part.toolName, part.input]] : []))
    expect(calls).toEqual([
      ['call_0_0', 'weather', '{"city":"Saint-Jean-Pied-de-Port","days":[1,2]}'],
      ['mine', 'weather', '{}'],
    ])
    expect(parts.filter((part) => part.type === 'tool-input-delta').length).toBeGreaterThan(2)
    expect(parts.at(-1)).toMatchObject({ finishReason: { unified: 'tool-calls' } })
  })

  it('hands on a malformed tool input as it is', async () => {
    server.script([{ toolCalls: [{ toolName: 'weather', inputText: '{"city": "Be' }] }])
    const parts = await streamed()
    const pieces = parts.flatMap((part) => (part.type === 'tool-input-delta' ? [part.delta] : []))
    expect(pieces.join('')).toBe('{"city": "Be')
    expect(parts).toContainEqual(expect.objectContaining({ type: 'tool-call', toolCallId: 'call_0_0', input: '{"city": "Be' }))
  })

  it('counts tokens, cache reads and writes among them', async () => {
    const usage = { inputTokens: 1000, cachedInputTokens: 800, cacheWriteTokens: 50, outputTokens: 70, reasoningTokens: 30 }
    server.script([{ text: 'x', usage }, { text: 'x', usage }])
    const expected = {
      inputTokens: { total: 1000, noCache: 150, cacheRead: 800, cacheWrite: 50 },
      outputTokens: { total: 70, text: 40, reasoning: 30 },
    }
    expect((await streamed()).at(-1)).toMatchObject({ usage: expected })
    expect((await modelOf(server).doGenerate(asked)).usage).toMatchObject(expected)
  })

  it('reports how the answer ended', async () => {
    for (const unified of ['length', 'content-filter', 'other', 'interrupted'] as const) {
      server.script([{ text: 'x', finishReason: unified }])
      expect((await streamed()).at(-1)).toMatchObject({ type: 'finish', finishReason: { unified } })
    }
  })

  it('refuses with 429 and when to come back', async () => {
    server.script([{ error: { status: 429, headers: { 'retry-after': '7' }, message: 'Too fast.' } }])
    const error = await rejection(streamed())
    expect(APICallError.isInstance(error)).toBe(true)
    expect(error).toMatchObject({ statusCode: 429, isRetryable: true, message: 'Too fast.' })
    expect(error).toMatchObject({ responseHeaders: { 'retry-after': '7' } })
  })

  it('fails with 500, and with a status for an error that has none', async () => {
    server.script([{ error: { status: 500 } }, { error: new Error('down') }])
    expect(await rejection(streamed())).toMatchObject({ statusCode: 500, isRetryable: true })
    expect(await rejection(streamed())).toMatchObject({ statusCode: 500, message: 'down' })
    expect(await server.requests[0]?.outcome).toBe('answered')
  })

  it('breaks the socket in the middle, after the parts before have arrived', async () => {
    const gate = Promise.withResolvers<void>()
    server.script([{ text: ['one ', 'two ', 'three'], gate: { parts: 3, until: gate.promise }, errorAfter: { parts: 3 } }])
    const { stream } = await modelOf(server).doStream(asked)
    const seen: string[] = []
    const reading = async () => {
      for await (const part of stream) {
        if (part.type !== 'text-delta') continue
        seen.push(part.delta)
        if (seen.length === 2) gate.resolve()
      }
    }
    const error = await rejection(reading())
    expect(seen).toEqual(['one ', 'two '])
    expect(error).toBeInstanceOf(Error)
    expect(await server.requests[0]?.outcome).toBe('broken')
  })

  it('sends an error event in the middle of an answer', async () => {
    const error = { status: 529, type: 'overloaded_error', message: 'Busy.' }
    server.script([{ text: ['one ', 'two'], errorAfter: { parts: 2, error } }])
    const parts = await streamed()
    expect(parts).toContainEqual(expect.objectContaining({ type: 'text-delta', delta: 'one ' }))
    expect(parts.find((part) => part.type === 'error')).toMatchObject({ error: { message: 'Busy.' } })
    expect(await server.requests[0]?.outcome).toBe('answered')
  })

  it('fails in its first event, with status 200', async () => {
    const error = { status: 529, type: 'overloaded_error', message: 'Busy.' }
    server.script([{ text: 'x', errorAfter: { parts: 0, error } }])
    expect(await rejection(modelOf(server).doStream(asked))).toMatchObject({ message: 'Busy.', isRetryable: true })
  })

  it('notices that the client went away', async () => {
    server.script([{ text: 'a', hang: true }])
    const abort = new AbortController()
    const { stream } = await modelOf(server).doStream({ ...asked, abortSignal: abort.signal })
    const failed = rejection(readParts(stream))
    abort.abort()
    expect(await failed).toMatchObject({ name: 'AbortError' })
    expect(await server.requests[0]?.outcome).toBe('disconnected')
  })

  it('answers in one piece without stream', async () => {
    const toolCalls = [{ toolName: 'weather', input: { city: 'Bern' } }]
    server.script([{ text: 'It rains.', toolCalls }, { error: { status: 500 } }])
    const result = await modelOf(server).doGenerate(asked)
    expect(result.content).toMatchObject([
      { type: 'text', text: 'It rains.' },
      { type: 'tool-call', toolCallId: 'call_0_0', toolName: 'weather', input: '{"city":"Bern"}' },
    ])
    expect(result.finishReason.unified).toBe('tool-calls')
    expect(await rejection(modelOf(server).doGenerate(asked))).toMatchObject({ statusCode: 500 })
  })

  it('breaks an answer in one piece before it is there', async () => {
    server.script([{ text: 'x', errorAfter: { parts: 1 } }])
    expect(await rejection(modelOf(server).doGenerate(asked))).toBeInstanceOf(Error)
    expect(await server.requests[0]?.outcome).toBe('broken')
  })

  it('refuses a tool whose input is not one object', async () => {
    server.script(['x'], { loop: true })
    for (const inputSchema of [{ type: 'string' }, { type: 'object', anyOf: [{ type: 'object' }] }] as const) {
      const tools = [{ type: 'function' as const, name: 'bad', inputSchema: inputSchema as object }]
      expect(await rejection(modelOf(server).doStream({ ...asked, tools }))).toMatchObject({ statusCode: 400, isRetryable: false, message: expect.stringMatching(/object/) })
    }
  })

  it('records the request', async () => {
    server.script(['x'])
    await streamed()
    expect(server.requests).toHaveLength(1)
    expect(server.requests[0]).toMatchObject({ index: 0, protocol, body: { stream: true } })
    expect(server.requests[0]?.body.model).toContain('scripted')
    expect(JSON.stringify(server.requests[0]?.body)).toContain('Hello?')
    expect(JSON.stringify(server.requests[0]?.headers)).toContain('scripted')
  })

  it('responds with 400 when the script has no more steps, or a part that the protocol can\'t encode', async () => {
    server.script([{ files: [{ mediaType: 'image/png', url: 'https://files.test/a.png' }] }])
    const refused = { statusCode: 400, isRetryable: false }
    expect(await rejection(streamed())).toMatchObject({ ...refused, message: expect.stringContaining(`type file can't be encoded in ${protocol}`) })
    expect(await rejection(streamed())).toMatchObject({ ...refused, message: /has 1 step and this is call 2/ })
  })
})

describe('the server', () => {
  const model = () => createOpenAI(server.openai)('x')

  it.each([
    ['a list', { type: 'array', items: { type: 'string' } }, /got 'type: "array"'/],
    ['a choice', { anyOf: [{ type: 'object' }, { type: 'null' }] }, /got 'type: "None"'/],
    ['a choice of objects', { type: 'object', anyOf: [{ required: ['a'] }] }, /got 'anyOf'/],
  ] as const)('refuses what OpenAI does: %s as the root of an answer', async (_, schema, message) => {
    server.script(['x'], { loop: true })
    const openai = createOpenAI(server.openai)
    for (const model of [openai.responses('x'), openai.chat('x')]) {
      const json = { ...asked, responseFormat: { type: 'json', schema: schema as object } as const }
      expect(await rejection(model.doStream(json))).toMatchObject({ statusCode: 400, isRetryable: false, message: expect.stringMatching(message) })
      expect((await model.doGenerate({ ...asked, responseFormat: { type: 'json', schema: { type: 'object' } } })).content).toMatchObject([{ text: 'x' }])
    }
  })

  it('takes a function as its script', async () => {
    server.script((request) => `${request.index} ${request.protocol} ${String(request.body.model)}`)
    await model().doGenerate(asked)
    const { content } = await createAnthropic(server.anthropic)('y').doGenerate(asked)
    expect(content).toMatchObject([{ text: '1 anthropic-messages y' }])
  })

  it('starts a new script with its first step, while ids go on', async () => {
    const step = { toolCalls: [{ toolName: 'weather' }] }
    server.script([step], { loop: true })
    const ids: unknown[] = []
    for (let call = 0; call < 2; call++) ids.push(...(await model().doGenerate(asked)).content)
    server.script([step])
    ids.push(...(await model().doGenerate(asked)).content)
    expect(ids).toMatchObject([{ toolCallId: 'call_0_0' }, { toolCallId: 'call_1_0' }, { toolCallId: 'call_2_0' }])
  })

  it('keeps time by the clock it is given', async () => {
    const clock = virtualClock()
    const timersSet = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let count = 0
    const watched: Clock = {
      now: clock.now,
      after(...timer) {
        timersSet[count++]?.resolve()
        return clock.after(...timer)
      },
    }
    await using paced = await providerServer({ clock: watched, pace: { deltaMs: 1000 }, script: ['one two'] })
    const { stream } = await createOpenAI(paced.openai)('x').doStream(asked)
    const seen: string[] = []
    const firstDelta = Promise.withResolvers<void>()
    const reading = (async () => {
      for await (const part of stream) {
        if (part.type !== 'text-delta') continue
        seen.push(part.delta)
        firstDelta.resolve()
      }
    })()
    await timersSet[0]?.promise
    await clock.advance(999)
    expect(clock.pending).toBe(1)
    await clock.advance(1)
    await firstDelta.promise
    await timersSet[1]?.promise
    expect(seen).toEqual(['one '])
    await clock.advance(1000)
    await reading
    expect(seen).toEqual(['one ', 'two'])
    expect(clock.pending).toBe(0)
  })

  it('ends every connection and every timer on close', async () => {
    const clock = virtualClock()
    const closing = await providerServer({ clock, pace: { deltaMs: 1000 }, script: ['one', { text: 'two', hang: true }] })
    const streams = [
      (await createOpenAI(closing.openai)('x').doStream(asked)).stream,
      (await createAnthropic(closing.anthropic)('x').doStream(asked)).stream,
    ]
    const failures = Promise.all(streams.map((stream) => rejection(readParts(stream))))
    await closing.close()
    expect(clock.pending).toBe(0)
    expect(await failures).toEqual([expect.any(Error), expect.any(Error)])
    expect(await closing.requests[0]?.outcome).toBe('disconnected')
    await expect(fetch(closing.url)).rejects.toThrow('fetch failed')
    await closing.close()
  })

  it('names its paths for an unknown one, and rejects a body that is not JSON', async () => {
    const lost = await fetch(`${server.url}/v1/models`)
    expect(lost.status).toBe(404)
    expect(await lost.text()).toContain('/v1/chat/completions')
    const garbled = await fetch(`${server.url}/v1/messages?beta=true`, { method: 'POST', body: '{' })
    expect(garbled.status).toBe(400)
    expect(await garbled.json()).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } })
    expect(server.requests).toEqual([])
  })
})
