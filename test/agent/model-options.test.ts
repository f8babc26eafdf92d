import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/agent/agent.ts'
import { scriptedModel } from '../../src/testing/index.ts'

describe('what reaches the model besides the prompt', () => {
  it('are the settings, the headers and the provider options of the call', async () => {
    const model = scriptedModel(['Hi.'])
    const settings = {
      temperature: 0.5, topP: 0.9, topK: 4, maxOutputTokens: 77, presencePenalty: 0.1, frequencyPenalty: 0.2, seed: 3,
      stopSequences: ['END'], headers: { 'x-trace': 't1' }, reasoning: 'low' as const,
    }
    await new Agent({ id: 'a', model }).generate('Go.', {
      modelSettings: { ...settings, maxRetries: 0 },
      providerOptions: { openai: { reasoningEffort: 'low' } },
      includeRawChunks: true,
    })
    expect(model.calls[0]).toMatchObject({ ...settings, providerOptions: { openai: { reasoningEffort: 'low' } }, includeRawChunks: true })
    expect(model.calls[0]).not.toHaveProperty('maxRetries')
  })

  it.each<[string, unknown]>([['temperature', 'hot'], ['maxOutputTokens', '5'], ['seed', Number.NaN], ['maxRetries', true], ['stopSequences', 'END'], ['headers', 'x-trace: 1'], ['headers', { a: 1 }]])('[G1.12] a setting of the wrong type is rejected by name: %s', async (name, value) => {
    const model = scriptedModel(['Hi.'])
    const wrong = { modelSettings: { [name]: value } } as never
    const named = { code: 'invalid_argument', details: { option: `modelSettings.${name}` } }
    await expect(new Agent({ id: 'a', model }).generate('Go.', wrong)).rejects.toMatchObject(named)
    await expect((async () => new Agent({ id: 'a', model: [Object.assign({ model }, wrong)] }).generate('Go.'))()).rejects.toMatchObject(named)
    expect(model.calls).toEqual([])
  })

  it('[G1.12] provider options that are of no provider are rejected', async () => {
    const model = scriptedModel(['Hi.'])
    const flat = { providerOptions: { reasoningEffort: 'low' } } as never
    await expect(new Agent({ id: 'a', model }).generate('Go.', flat)).rejects.toMatchObject({ code: 'invalid_argument', details: { option: 'providerOptions' } })
    await expect((async () => new Agent({ id: 'a', model: [Object.assign({ model }, flat)] }).generate('Go.'))()).rejects.toMatchObject({ details: { option: 'providerOptions' } })
    expect(model.calls).toEqual([])
  })

  it('[G1.12] messages that are passed as an option are rejected with where they belong', async () => {
    await expect(new Agent({ id: 'a', model: scriptedModel(['Hi.']) }).generate({ messages: 'Go.' } as never)).rejects.toMatchObject({ code: 'invalid_message', message: expect.stringContaining('(messages, options)') as string })
  })

  it('joins the call with the defaults of the agent, setting by setting', async () => {
    const model = scriptedModel(['Hi.'])
    const agent = new Agent({
      id: 'a',
      model,
      defaultOptions: {
        modelSettings: { temperature: 0.1, topP: 0.2 },
        providerOptions: { openai: { user: 'u1', store: false }, anthropic: { effort: 'low' } },
      },
    })
    await agent.generate('Go.', { modelSettings: { temperature: 0.9 }, providerOptions: { openai: { user: 'u2' } } })
    expect(model.calls[0]).toMatchObject({
      temperature: 0.9,
      topP: 0.2,
      providerOptions: { openai: { user: 'u2', store: false }, anthropic: { effort: 'low' } },
    })
  })

  it('takes default options under their legacy names, for the method that they are of', async () => {
    const model = scriptedModel(['Hi.', 'Ho.'])
    const agent = new Agent({
      id: 'a',
      model,
      defaultGenerateOptionsLegacy: { temperature: 0.3, maxTokens: 50, topP: 0.4 },
      defaultStreamOptionsLegacy: () => ({ maxTokens: 60 }),
    })
    await agent.generateLegacy('Go.')
    await (await agent.streamLegacy('Go.')).result
    expect(model.calls).toMatchObject([{ temperature: 0.3, maxOutputTokens: 50, topP: 0.4 }, { maxOutputTokens: 60 }])
    expect(model.calls[1]).not.toMatchObject({ temperature: 0.3 })
  })

  it('is asked of the model that the call names in place of the agent\'s', async () => {
    const own = scriptedModel(['own'])
    const other = scriptedModel(['other'])
    expect((await new Agent({ id: 'a', model: own }).generate('Go.', { model: other })).text).toBe('other')
    expect(own.callCount).toBe(0)
  })

  it.each(['v2', 'v3'] as const)('is the same for a model of the interface %s', async (specificationVersion) => {
    const model = specificationVersion === 'v2'
      ? scriptedModel([{ reasoning: 'Hm.', text: 'Hi.', usage: { inputTokens: 9, outputTokens: 4, cachedInputTokens: 5, reasoningTokens: 1 } }], { specificationVersion })
      : scriptedModel([{ reasoning: 'Hm.', text: 'Hi.', usage: { inputTokens: 9, outputTokens: 4, cachedInputTokens: 5, reasoningTokens: 1 } }], { specificationVersion })
    const result = await new Agent({ id: 'a', instructions: 'Be kind.', model }).generate('Go.', { modelSettings: { temperature: 0.5 } })
    expect(result).toMatchObject({ text: 'Hi.', reasoningText: 'Hm.', finishReason: 'stop' })
    expect(result.usage).toEqual({ inputTokens: 9, outputTokens: 4, totalTokens: 13, reasoningTokens: 1, cachedInputTokens: 5, cacheWriteTokens: 0 })
    expect(model.calls[0]).toMatchObject({
      temperature: 0.5,
      prompt: [{ role: 'system', content: 'Be kind.' }, { role: 'user', content: [{ type: 'text', text: 'Go.' }] }],
    })
  })
})
