import { APICallError, type LanguageModelV4CallOptions, type LanguageModelV4Prompt } from '@ai-sdk/provider'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { readParts } from './step-parts.ts'
import { scriptedModel } from './scripted-model.ts'
import type { ScriptedStep } from './script.ts'

const asked = (text: string, more: Partial<LanguageModelV4CallOptions> = {}): LanguageModelV4CallOptions => ({
  prompt: [{ role: 'user', content: [{ type: 'text', text }] }],
  ...more,
})

const rejection = (promise: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(promise).then(() => expect.fail('did not reject'), (error: unknown) => error)

describe('the script', () => {
  it('gives call n step n, whichever way the model is called', async () => {
    const model = scriptedModel(['one', 'two'])
    expect((await model.doGenerate(asked('?'))).content).toEqual([{ type: 'text', text: 'one' }])
    const parts = await readParts((await model.doStream(asked('?'))).stream)
    expect(parts).toContainEqual({ type: 'text-delta', id: 'text-0', delta: 'two' })
    expect(model.callCount).toBe(2)
  })

  it('names the error of a call past the end', async () => {
    const model = scriptedModel(['one'])
    await model.doGenerate(asked('?'))
    await expect(model.doStream(asked('?'))).rejects.toMatchObject({
      name: 'HeedError',
      message: expect.stringContaining('The script has 1 step and this is call 2.'),
      details: { scripted: 1, call: 2 },
    })
    await expect(scriptedModel([], { loop: true }).doStream(asked('?'))).rejects.toThrow('has 0 steps')
  })

  it('starts again with loop, with ids of their own', async () => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 't' }] }, 'done'], { loop: true })
    const ids: string[] = []
    for (let call = 0; call < 4; call++) {
      const { content } = await model.doGenerate(asked('?'))
      ids.push(...content.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : [])))
    }
    expect(ids).toEqual(['call_0_0', 'call_2_0'])
  })

  it('may be a function of the call, also an asynchronous one', async () => {
    const model = scriptedModel(async ({ index, prompt, tools, options }) => {
      expectTypeOf(prompt).toEqualTypeOf<LanguageModelV4Prompt>()
      return `${index} ${prompt.length} ${tools?.length ?? 0} ${options.temperature}`
    })
    await model.doGenerate(asked('?'))
    const tools = [{ type: 'function' as const, name: 't', inputSchema: {} }]
    const { content } = await model.doGenerate(asked('?', { tools, temperature: 1 }))
    expect(content).toEqual([{ type: 'text', text: '1 1 1 1' }])
  })

  it('throws when the function returns nothing', async () => {
    const steps: ScriptedStep[] = []
    await expect(scriptedModel(({ index }) => steps[index]!).doStream(asked('?'))).rejects.toThrow('returned no step for call 1')
  })
})

describe('what it records', () => {
  it('is the options of each call as they were', async () => {
    const image = () => ({
      type: 'file' as const,
      mediaType: 'image/png',
      data: { type: 'url' as const, url: new URL('https://example.com/a') },
    })
    const prompt: LanguageModelV4Prompt = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: [image()] },
    ]
    const providerOptions = { acme: { cache: true } }
    const { signal } = new AbortController()
    const model = scriptedModel(['ok', 'ok'])
    await model.doGenerate({ prompt, providerOptions, abortSignal: signal })
    prompt.push({ role: 'assistant', content: [{ type: 'text', text: 'later' }] })
    prompt[0] = { role: 'system', content: 'Changed.' }
    providerOptions.acme.cache = false
    await model.doGenerate({ prompt })

    expect(model.calls[0]).toEqual({
      prompt: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: [image()] },
      ],
      providerOptions: { acme: { cache: true } },
      abortSignal: signal,
    })
    expect(model.calls[0]?.abortSignal).toBe(signal)
    expect(model.calls[1]?.prompt).toHaveLength(3)
  })

  it('is nothing with record: false: the prompt is not even looked at', async () => {
    const untouchable = new Proxy([], {
      get: () => expect.fail('read the prompt'),
      ownKeys: () => expect.fail('listed the prompt'),
    })
    const model = scriptedModel(['ok', 'ok'], { record: false })
    const options = {
      get prompt(): LanguageModelV4Prompt {
        return expect.fail('took the prompt')
      },
    }
    const { usage } = await model.doGenerate(options)
    await model.doGenerate({ prompt: untouchable })
    expect(usage.inputTokens.total).toBe(0)
    expect(model.calls).toEqual([])
    expect(model.callCount).toBe(2)
  })

  it('counts texts, tool inputs and tool outputs as input', async () => {
    const { usage } = await scriptedModel(['ok']).doGenerate({
      prompt: [
        { role: 'system', content: '1234' },
        { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c', toolName: 't', input: {} }] },
        { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', toolName: 't', output: { type: 'text', value: '' } }] },
      ],
    })
    expect(usage.inputTokens.total).toBe(Math.ceil((4 + 2 + JSON.stringify({ type: 'text', value: '' }).length) / 4))
  })
})

describe('doGenerate', () => {
  it('is the stream, collected', async () => {
    const step = { reasoning: 'why so', text: 'a b', toolCalls: [{ toolName: 't', input: [1] }] }
    expect(await scriptedModel([step]).doGenerate(asked('?'))).toMatchObject({
      content: [
        { type: 'reasoning', text: 'why so' },
        { type: 'text', text: 'a b' },
        { type: 'tool-call', toolCallId: 'call_0_0', toolName: 't', input: '[1]' },
      ],
      finishReason: { unified: 'tool-calls' },
      response: { id: 'response_0', modelId: 'scripted' },
      warnings: [],
    })
  })

  it('throws an error part, and is interrupted without a finish', async () => {
    const broken = scriptedModel([{ parts: [{ type: 'error', error: new Error('mid') }] }])
    await expect(broken.doGenerate(asked('?'))).rejects.toThrow('mid')
    const open = scriptedModel([{ parts: [{ type: 'text-start', id: 'a' }, { type: 'text-delta', id: 'a', delta: 'x' }] }])
    expect(await open.doGenerate(asked('?'))).toMatchObject({
      content: [{ type: 'text', text: 'x' }],
      finishReason: { unified: 'interrupted' },
    })
  })
})

describe('failure', () => {
  it('is thrown before the first part, as the given error', async () => {
    const error = new Error('refused')
    await expect(scriptedModel([{ error }]).doStream(asked('?'))).rejects.toBe(error)
  })

  it('of a provider is the error its package would throw', async () => {
    const slow = { status: 429, headers: { 'retry-after': '3' }, message: 'Slow down.' }
    const model = scriptedModel([{ error: slow }, { error: { status: 400 } }])
    const limited = await rejection(model.doStream(asked('?')))
    expect(APICallError.isInstance(limited)).toBe(true)
    expect(limited).toMatchObject({
      statusCode: 429,
      isRetryable: true,
      responseHeaders: { 'retry-after': '3' },
      message: 'Slow down.',
    })
    await expect(model.doStream(asked('?'))).rejects.toMatchObject({ statusCode: 400, isRetryable: false })
  })

  it('in the middle breaks the stream after exactly so many parts', async () => {
    const error = new Error('lost')
    const model = scriptedModel([{ text: ['a', 'b', 'c'], errorAfter: { parts: 3, error } }])
    const reader = (await model.doStream(asked('?'))).stream.getReader()
    const seen: string[] = []
    for (let part = 0; part < 5; part++) seen.push((await reader.read()).value!.type)
    expect(seen).toEqual(['stream-start', 'response-metadata', 'text-start', 'text-delta', 'text-delta'])
    await expect(reader.read()).rejects.toBe(error)
  })

  it('after more parts than there are breaks in place of the end', async () => {
    const model = scriptedModel([{ text: 'a', errorAfter: { parts: 99, error: { status: 529 } } }])
    const { stream } = await model.doStream(asked('?'))
    await expect(readParts(stream)).rejects.toMatchObject({ statusCode: 529, isRetryable: true })
  })
})
