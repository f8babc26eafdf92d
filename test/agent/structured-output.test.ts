import { jsonSchema } from 'ai'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { Agent } from '../../src/agent/agent.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { chunksOf, of, recordedHeed, rejection, typesOf } from './asking.ts'

const schema = z.object({ city: z.string(), degrees: z.number() })
const good = '{"city":"Bern","degrees":4}'

describe('structured output', () => {
  it('is the value, checked and typed by its schema, which is sent to the model', async () => {
    const model = scriptedModel([good])
    const stream = await new Agent({ id: 'a', model }).stream('Weather?', { structuredOutput: { schema, name: 'weather', description: 'A report.' } })
    const object = await stream.object
    expectTypeOf(object).toEqualTypeOf<{ city: string; degrees: number }>()
    expect(object).toEqual({ city: 'Bern', degrees: 4 })
    expect(model.calls[0]?.responseFormat).toEqual({
      type: 'json',
      name: 'weather',
      description: 'A report.',
      schema: {
        type: 'object',
        properties: { city: { type: 'string' }, degrees: { type: 'number' } },
        required: ['city', 'degrees'],
        additionalProperties: false,
      },
    })
    expect(of(await chunksOf(stream), 'object-result').map((chunk) => chunk.payload.object)).toEqual([object])
  })

  it('is shown as it grows, and the last that is shown is the value', async () => {
    const text = ['{"city":"Be', 'rn","deg', 'rees":', '4', '}']
    const stream = await new Agent({ id: 'a', model: scriptedModel([{ text }]) }).stream('Weather?', { structuredOutput: { schema } })
    const grown = []
    for await (const object of stream.objectStream) {
      expectTypeOf(object).toEqualTypeOf<{ city?: string; degrees?: number }>()
      grown.push(object)
    }
    expect(grown).toEqual([{ city: 'Be' }, { city: 'Bern' }, { city: 'Bern', degrees: 4 }, { city: 'Bern', degrees: 4 }])
    const chunks = await chunksOf(stream)
    expect(of(chunks, 'object').map(({ payload }) => payload.object)).toEqual(grown.slice(0, -1))
  })

  it('costs no more to show than it is long', async () => {
    const list = Array.from({ length: 2_000 }, (_, index) => `line ${index}`)
    const text = JSON.stringify({ list }).match(/.{1,8}/g) ?? []
    const stream = await new Agent({ id: 'a', model: scriptedModel([{ text }]) }).stream('List.', { structuredOutput: { schema: z.object({ list: z.array(z.string()) }) } })
    expect(await stream.object).toEqual({ list })
    const shown = of(await chunksOf(stream), 'object').length
    expect(shown).toBeGreaterThan(50)
    expect(shown).toBeLessThan(500)
  })

  it('is what the schema makes of it', async () => {
    const transformed = z.object({ at: z.string().transform((text) => text.length) })
    const { object } = await new Agent({ id: 'a', model: scriptedModel(['{"at":"noon"}']) }).generate('?', { structuredOutput: { schema: transformed } })
    expectTypeOf(object).toEqualTypeOf<{ at: number }>()
    expect(object).toEqual({ at: 4 })
  })

  it.each([
    ['a code block', '```json\n{"city":"Bern","degrees":4}\n```'],
    ['a code block without a language', '```\n{"city":"Bern","degrees":4}\n```  '],
    ['a code block on one line', '```json {"city":"Bern","degrees":4} ```'],
    ['a code block with words around it', 'Here it is:\n```json\n{"city":"Bern","degrees":4}\n```\nHope this helps!'],
    ['a text with a code block in it', '{"city":"```json\\n1\\n```","degrees":4}', '```json\n1\n```'],
  ])('is found in %s', async (_, text, city = 'Bern') => {
    const model = scriptedModel([text])
    const { object } = await new Agent({ id: 'a', model }).generate('?', { structuredOutput: { schema } })
    expect(object).toEqual({ city, degrees: 4 })
    expect(model.callCount).toBe(1)
  })

  it('[G1.6] [P1.2] is asked for again once, in a step that is appended to the prompt', async () => {
    const model = scriptedModel(['{"city":"Bern"}', good])
    const { object, steps, messages } = await new Agent({ id: 'a', instructions: 'Be exact.', model }).generate('Weather?', { structuredOutput: { schema } })
    expect(object).toEqual({ city: 'Bern', degrees: 4 })
    expect(steps).toHaveLength(2)
    const [first, second] = model.calls.map((call) => JSON.stringify(call.prompt).slice(0, -1))
    expect(second?.startsWith(first ?? '?')).toBe(true)
    expect(model.calls[1]?.prompt.slice(2)).toMatchObject([
      { role: 'assistant', content: [{ text: '{"city":"Bern"}' }] },
      { role: 'user', content: [{ text: expect.stringMatching(/can't be used: degrees: .*Answer again/) }] },
    ])
    // The request is for the model alone.
    expect(JSON.stringify(messages)).not.toContain('Answer again')
  })

  it('[G1.6] is a named error when it is wrong again', async () => {
    const { heed } = recordedHeed()
    const model = scriptedModel(['nothing', '{"city":7}'])
    const stream = await new Agent({ id: 'a', heed, model }).stream('Weather?', { structuredOutput: { schema } })
    const chunks = await chunksOf(stream)
    expect(model.callCount).toBe(2)
    expect(typesOf(chunks).at(-1)).toBe('error')
    expect(of(chunks, 'error')).toMatchObject([{ payload: { error: { code: 'structured_output_invalid', message: expect.stringContaining('also not after it was asked again') } } }])
    expect(await rejection(stream.object)).toMatchObject({ code: 'structured_output_invalid', details: { text: '{"city":7}' } })
  })

  it('is not asked for again beyond maxSteps', async () => {
    const { heed } = recordedHeed()
    const model = scriptedModel(['nothing', good])
    const error = await rejection(new Agent({ id: 'a', heed, model }).generate('Weather?', { maxSteps: 1, structuredOutput: { schema } }))
    expect(error).toMatchObject({ code: 'structured_output_invalid' })
    expect((error as Error).message).not.toContain('asked again')
    expect(model.callCount).toBe(1)
  })

  it('comes after the tools', async () => {
    const model = scriptedModel([{ text: 'Let me look.', toolCalls: [{ toolName: 'look' }] }, 'It is cold.', good])
    const tools = { look: createTool({ id: 'look', execute: async () => 4 }) }
    const { object, toolResults } = await new Agent({ id: 'a', model, tools }).generate('Weather?', { structuredOutput: { schema } })
    expect(object).toEqual({ city: 'Bern', degrees: 4 })
    expect(toolResults).toMatchObject([{ result: 4 }])
    expect(model.calls.map((call) => call.responseFormat?.type)).toEqual(['json', 'json', 'json'])
  })

  it('has its schema in the instructions too with jsonPromptInjection', async () => {
    const model = scriptedModel([good])
    await new Agent({ id: 'a', instructions: 'Be exact.', model }).generate('?', { structuredOutput: { schema, jsonPromptInjection: true } })
    const system = model.calls[0]?.prompt.filter((message) => message.role === 'system').map((message) => message.content)
    expect(system?.[0]).toBe('Be exact.')
    expect(JSON.parse(system?.[1]?.split('\n')[1] ?? '')).toMatchObject({ required: ['city', 'degrees'] })
  })

  it('takes plain JSON Schema and schemas of the AI SDK', async () => {
    const plain = { type: 'object' as const, properties: { degrees: { type: 'integer' as const, minimum: 0 } }, required: ['degrees'] }
    const model = scriptedModel(['{"degrees":-1}', '{"degrees":3}', '{"degrees":"x"}', '{"degrees":4}'])
    const agent = new Agent({ id: 'a', model })
    const first = await agent.generate('?', { structuredOutput: { schema: plain } })
    expect(first.object).toEqual({ degrees: 3 })
    expect(JSON.stringify(model.calls[1]?.prompt.at(-1))).toContain('degrees: must be >= 0')
    const second = await agent.generate('?', { structuredOutput: { schema: jsonSchema<{ degrees: number }>(plain) } })
    expectTypeOf(second.object).toEqualTypeOf<{ degrees: number }>()
    expect(second.object).toEqual({ degrees: 4 })
  })

  it('refuses a schema that is none before it asks anything', async () => {
    const model = scriptedModel([good])
    const agent = new Agent({ id: 'a', model })
    for (const bad of [42, {}, 'string', { type: 'banana' }, class Weather {}]) {
      expect(await rejection(agent.generate('?', { structuredOutput: { schema: bad as never } }))).toMatchObject({ code: 'invalid_schema', message: expect.stringContaining('structuredOutput.schema') })
    }
    expect(model.callCount).toBe(0)
  })

  it('fails by name when plain JSON Schema can\'t be compiled', async () => {
    const { heed } = recordedHeed()
    const agent = new Agent({ id: 'a', heed, model: scriptedModel([good]) })
    const schemaWithTypo = { type: 'object', properties: { a: { type: 'banana' } } } as never
    expect(await rejection(agent.generate('?', { structuredOutput: { schema: schemaWithTypo } }))).toMatchObject({ code: 'invalid_schema' })
  })

  it.each([
    ['in a block that is never closed', `\`\`\`json${' '.repeat(100_000)}`],
    ['between two blocks', `\`\`\`${' '.repeat(100_000)}\`\`\`${' '.repeat(100_000)}\``],
    ['of fences', '```'.repeat(100_000)],
  ])('is not looked for for ever %s', async (_, text) => {
    const { object } = await new Agent({ id: 'a', model: scriptedModel([text, good]) }).generate('?', { structuredOutput: { schema } })
    expect(object).toEqual({ city: 'Bern', degrees: 4 })
  })

  it.each([
    ['the last of several blocks', 'Run:\n```sh\nls\n```\nand:\n```json\n{"city":"Bern","degrees":4}\n```'],
    ['a block before a quote', '```json\n{"city":"Bern","degrees":4}\n```\nas "asked"'],
  ])('is found in %s', async (_, text) => {
    expect((await new Agent({ id: 'a', model: scriptedModel([text]) }).generate('?', { structuredOutput: { schema } })).object).toEqual({ city: 'Bern', degrees: 4 })
  })

  it('[G1.5] can be aborted while it is checked, and the text so far is kept', async () => {
    const checking = Promise.withResolvers<void>()
    const endless = z.string().refine(() => {
      checking.resolve()
      return new Promise<boolean>(() => {})
    })
    const stop = new AbortController()
    const stream = await new Agent({ id: 'a', model: scriptedModel(['"Hi."']) }).stream('?', { structuredOutput: { schema: endless }, abortSignal: stop.signal })
    await checking.promise
    stop.abort()
    expect(typesOf(await chunksOf(stream)).at(-1)).toBe('abort')
    expect(await stream.text).toBe('"Hi."')
    expect(JSON.stringify(await stream.messages)).toContain('Hi.')
  })
})
