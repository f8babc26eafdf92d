import { describe, expect, it } from 'vitest'
import { Agent, type ModelConfig } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const failing = () => scriptedModel([{ error: { status: 400, message: 'no' } }], { modelId: 'first' })

describe('[G1.19] an entry of a list of models', () => {
  it('has settings, provider options and headers of its own, over those of the call', async () => {
    const first = failing()
    const second = scriptedModel(['Hello.'], { modelId: 'second' })
    const agent = new Agent({
      id: 'a',
      model: [
        { model: first, modelSettings: { temperature: 0.1, headers: { a: 'settings' } }, headers: { a: 'entry', b: 'entry' } },
        { model: second, modelSettings: { topP: 0.2 }, providerOptions: { openai: { effort: 'low' }, other: { x: 1 } } },
      ],
    })
    const options = { modelSettings: { temperature: 0.9, headers: { c: 'call' } }, providerOptions: { openai: { effort: 'high', user: 'u' } } }
    expect((await agent.generate('Go.', options)).text).toBe('Hello.')
    expect(first.calls).toMatchObject([{ temperature: 0.1, headers: { a: 'entry', b: 'entry', c: 'call' }, providerOptions: { openai: { effort: 'high', user: 'u' } } }])
    expect(second.calls).toMatchObject([{ temperature: 0.9, topP: 0.2, headers: { c: 'call' }, providerOptions: { openai: { effort: 'low', user: 'u' }, other: { x: 1 } } }])
    expect(second.calls[0]?.headers).toEqual({ c: 'call' })
  })

  it('has retries of its own, also among its settings', async () => {
    const retried = scriptedModel([{ error: { status: 503, message: 'busy' } }, 'Hello.'])
    const agent = new Agent({ id: 'a', model: [{ model: retried, modelSettings: { maxRetries: 0 } }, { model: scriptedModel(['Second.']) }] })
    expect((await agent.generate('Go.')).text).toBe('Second.')
    expect(retried.callCount).toBe(1)
  })

  it.each<[string, object, object]>([
    ['an unknown name', { enabled: false }, { code: 'unsupported_option', message: "model[1] of agent 'a' has no option 'enabled'. Known: model, maxRetries, modelSettings, providerOptions, headers.", details: { option: 'enabled' } }],
    ['an unknown setting', { modelSettings: { temprature: 1 } }, { code: 'unsupported_option', details: { option: 'temprature' } }],
    ['provider options without a provider', { providerOptions: { effort: 'low' } }, { code: 'invalid_argument', details: { option: 'providerOptions' } }],
    ['headers that are not strings', { headers: { a: 1 } }, { code: 'invalid_argument', details: { option: 'headers' } }],
    ['settings that are a function', { modelSettings: () => ({}) }, { code: 'invalid_argument', details: { option: 'modelSettings' } }],
    ['a negative number of retries', { maxRetries: -1 }, { code: 'invalid_argument', details: { option: 'maxRetries' } }],
  ])('is refused with %s', async (_, entry, error) => {
    const model = [failing(), { model: failing(), ...entry }] as ModelConfig
    expect(() => new Agent({ id: 'a', model })).toThrow(expect.objectContaining(error))
    await expect(new Agent({ id: 'a', model: () => model }).generate('Go.')).rejects.toMatchObject(error)
  })
})

describe('[G1.20] a provider that finishes its answer with an error', () => {
  it('and sends none: the call fails, and history has the answer as incomplete', async () => {
    const model = scriptedModel([{ text: 'Half of', finishReason: { unified: 'error', raw: 'MALFORMED_CALL' } }])
    const agent = new Agent({ id: 'a', model })
    await expect(agent.generate('Go.')).rejects.toMatchObject({ code: 'stream_broken', message: expect.stringContaining("gave the reason 'MALFORMED_CALL'") as string })
    const stream = await new Agent({ id: 'a', model: scriptedModel([{ text: 'Half of', finishReason: 'error' }]) }).stream('Go.')
    const types: string[] = []
    await expect((async () => {
      for await (const { type } of stream.fullStream) types.push(type)
      return stream.text
    })()).rejects.toThrow('ended with an error')
    expect(types).toContain('error')
  })

  it('is followed by the next model of the list', async () => {
    const agent = new Agent({ id: 'a', model: [scriptedModel([{ text: 'Half of', finishReason: 'error' }]), scriptedModel([' it.'])] })
    expect((await agent.generate('Go.')).text).toBe('Half of it.')
  })
})
