import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { Agent, type Schema } from '../../src/index.ts'
import { providerServer, scriptedModel, type ProviderServer } from '../../src/testing/index.ts'
import { chunksOf, of, recordedHeed, rejection } from './asking.ts'

const towns = z.array(z.object({ town: z.string(), degrees: z.number() }))
const mood = z.enum(['sunny', 'gloomy'])
const either = z.discriminatedUnion('kind', [z.object({ kind: z.literal('found'), value: z.string() }), z.object({ kind: z.literal('lost') })])

const values: ReadonlyArray<readonly [string, Schema, unknown]> = [
  ['a list', towns, [{ town: 'Bern', degrees: 4 }]],
  ['an empty list', towns, []],
  ['one of some words', mood, 'sunny'],
  ['a text', z.string(), 'Bern {"value":1}'],
  ['a number', z.number(), 4],
  ['nothing', z.null(), null],
  ['false', z.boolean(), false],
  ['one of some objects', either, { kind: 'found', value: 'x' }],
  ['an object or nothing', z.object({ value: z.string() }).nullable(), { value: 'x' }],
  ['plain JSON Schema of a list', { type: 'array', items: { type: 'integer' } }, [1, 2]],
  ['plain JSON Schema of a choice', { anyOf: [{ type: 'string' }, { type: 'null' }] }, null],
]
const makers = [
  ['OpenAI, responses', (server: ProviderServer) => createOpenAI(server.openai).responses('gpt-5')],
  ['OpenAI, chat', (server: ProviderServer) => createOpenAI(server.openai).chat('gpt-5')],
  ['Anthropic', (server: ProviderServer) => createAnthropic(server.anthropic)('claude-sonnet-4-5')],
] as const

describe.each(values)('[G1.15] %s as an answer', (_, schema, value) => {
  it.each(makers)('is asked for as an object and given as it is: %s', async (name, make) => {
    await using server = await providerServer({ script: [JSON.stringify({ value })] })
    const { object } = await new Agent({ id: 'a', model: make(server) }).generate('?', { structuredOutput: { schema } })
    expect(object).toEqual(value)
    const body = server.requests[0]?.body as Record<string, Record<string, Record<string, unknown>>> | undefined
    const format = name === 'OpenAI, chat' ? body?.response_format?.json_schema : name === 'Anthropic' ? body?.output_config?.format : body?.text?.format
    expect(format?.schema).toMatchObject({ type: 'object', properties: { value: expect.anything() }, required: ['value'], additionalProperties: false })
  })

  it('is taken without the object around it too, from models that leave it out', async () => {
    const model = scriptedModel([JSON.stringify(value)])
    expect((await new Agent({ id: 'a', model }).generate('?', { structuredOutput: { schema } })).object).toEqual(value)
  })
})

describe('an answer that is no object', () => {
  it('[G1.15] is typed and shown as it grows', async () => {
    const text = ['{"val', 'ue":[{"town":"Be', 'rn","degrees":', '4', '},{', '"town":"Thun","degrees":5}', ']}']
    const stream = await new Agent({ id: 'a', model: scriptedModel([{ text }]) }).stream('?', { structuredOutput: { schema: towns } })
    const grown = []
    for await (const part of stream.objectStream) {
      expectTypeOf(part).toEqualTypeOf<Array<{ town?: string; degrees?: number }>>()
      grown.push(part)
    }
    const bern = { town: 'Bern', degrees: 4 }
    const all = [bern, { town: 'Thun', degrees: 5 }]
    expect(grown).toEqual([[{ town: 'Be' }], [{ town: 'Bern' }], [bern, {}], all, all])
    expectTypeOf(await stream.object).toEqualTypeOf<Array<{ town: string; degrees: number }>>()
    expect(of(await chunksOf(stream), 'object-result').map(({ payload }) => payload.object)).toEqual([all])
    expect(await stream.text).toBe(text.join(''))
  })

  it.each([
    ['a text', ['{"value":"Be', 'rn is', ' cold."}'], z.string(), ['Be', 'Bern is', 'Bern is cold.', 'Bern is cold.']],
    ['a list without the object', ['[1', ',2', ']'], z.array(z.number()), [[], [1], [1, 2], [1, 2]]],
    ['an object without the object', ['{"kind":"found"', ',"value":"x"}'], either, [{ kind: 'found' }, { kind: 'found', value: 'x' }, { kind: 'found', value: 'x' }]],
  ])('[G1.15] is shown as it grows: %s', async (_, text, schema, grown) => {
    const stream = await new Agent({ id: 'a', model: scriptedModel([{ text }]) }).stream('?', { structuredOutput: { schema: schema as Schema } })
    const shown: unknown[] = []
    for await (const part of stream.objectStream) shown.push(part)
    expect(shown).toEqual(grown)
  })

  it('[G1.15] [G1.6] is requested again, and its errors are reported by the names of the given schema', async () => {
    const { heed } = recordedHeed()
    const wrong = '{"value":[{"town":"Bern","degrees":"cold"}]}'
    const model = scriptedModel([wrong, '{"value":[]}', wrong, '{"towns":[]}', wrong, wrong])
    const agent = new Agent({ id: 'a', heed, model })
    const ask = () => agent.generate('?', { structuredOutput: { schema: towns } })
    expect((await ask()).object).toEqual([])
    expect(JSON.stringify(model.calls[1]?.prompt.at(-1))).toMatch(/can't be used: 0\.degrees: .*number/)
    expect(await rejection(ask())).toMatchObject({ code: 'structured_output_invalid', message: expect.stringMatching(/expected array/) })
    expect(await rejection(ask())).toMatchObject({ code: 'structured_output_invalid', message: expect.stringMatching(/also not after it was asked again: 0\.degrees: /) })
  })

  it('[G1.15] has the object around it in the instructions too with jsonPromptInjection', async () => {
    const model = scriptedModel(['{"value":"sunny"}'])
    const { object } = await new Agent({ id: 'a', model }).generate('?', { structuredOutput: { schema: mood, jsonPromptInjection: true } })
    expectTypeOf(object).toEqualTypeOf<'sunny' | 'gloomy'>()
    expect(object).toBe('sunny')
    const system = model.calls[0]?.prompt.find(({ role }) => role === 'system')?.content as string
    expect(JSON.parse(system.split('\n')[1] ?? '')).toMatchObject({ type: 'object', properties: { value: { enum: ['sunny', 'gloomy'] } } })
  })

  it('[G1.15] leaves the schema of an object as it is', async () => {
    const model = scriptedModel(['{"value":{"value":1}}'])
    const schema = z.object({ value: z.object({ value: z.number() }) })
    expect((await new Agent({ id: 'a', model }).generate('?', { structuredOutput: { schema } })).object).toEqual({ value: { value: 1 } })
    expect(model.calls[0]?.responseFormat).toMatchObject({ schema: { properties: { value: { properties: { value: { type: 'number' } } } } } })
  })
})
