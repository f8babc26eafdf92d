import { getEventListeners } from 'node:events'
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import { readParts } from './step-parts.ts'
import { scriptedModel } from './scripted-model.ts'
import type { ScriptedStep } from './script.ts'
import { virtualClock } from './virtual-clock.ts'

const asked = (text: string, more: Partial<LanguageModelV4CallOptions> = {}): LanguageModelV4CallOptions => ({
  prompt: [{ role: 'user', content: [{ type: 'text', text }] }],
  ...more,
})

const rejection = (promise: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(promise).then(() => expect.fail('did not reject'), (error: unknown) => error)

describe('time', () => {
  it('is none without a pace: no timer is set', async () => {
    const clock = virtualClock()
    const { stream } = await scriptedModel(['a b c'], { clock }).doStream(asked('?'))
    expect(await readParts(stream)).toHaveLength(8)
    expect(clock.pending).toBe(0)
  })

  it('passes before each delta with a pace', async () => {
    const clock = virtualClock(0)
    const model = scriptedModel([{ text: ['a', 'b'] }], { clock, pace: { deltaMs: 20 } })
    const { stream } = await model.doStream(asked('?'))
    const seen: string[] = []
    const reading = (async () => {
      for await (const part of stream) seen.push(`${part.type}@${clock.now()}`)
    })()
    await clock.advance(19)
    expect(seen).toEqual(['stream-start@0', 'response-metadata@0', 'text-start@0'])
    await clock.runAll()
    await reading
    expect(seen.slice(3)).toEqual(['text-delta@20', 'text-delta@40', 'text-end@40', 'finish@40'])
  })

  it('passes before the answer, or before its failure, with delayMs', async () => {
    const clock = virtualClock(0)
    const model = scriptedModel([{ delayMs: 50, error: new Error('late') }], { clock })
    const failed = rejection(model.doStream(asked('?')))
    await clock.advance(49)
    expect(clock.pending).toBe(1)
    await clock.advance(1)
    expect(await failed).toMatchObject({ message: 'late' })
  })
})

describe('gate', () => {
  it('holds back the whole answer', async () => {
    const gate = Promise.withResolvers<void>()
    const call = scriptedModel([{ gate: gate.promise, text: 'a' }]).doStream(asked('?'))
    let answered = false
    void call.then(() => (answered = true))
    await virtualClock().advance(0)
    expect(answered).toBe(false)
    gate.resolve()
    expect(await readParts((await call).stream)).toHaveLength(6)
  })

  it('holds back the rest of an answer', async () => {
    const gate = Promise.withResolvers<void>()
    const model = scriptedModel([{ text: ['a', 'b'], gate: { parts: 2, until: gate.promise } }])
    const reader = (await model.doStream(asked('?'))).stream.getReader()
    for (let part = 0; part < 4; part++) await reader.read()
    let went = false
    const next = reader.read().then((part) => {
      went = true
      return part
    })
    await virtualClock().advance(0)
    expect(went).toBe(false)
    gate.resolve()
    expect((await next).value).toEqual({ type: 'text-delta', id: 'text-0', delta: 'b' })
  })
})

describe('abort', () => {
  it('refuses a call that is aborted already, and counts it', async () => {
    const model = scriptedModel(['a'])
    const reason = new Error('no')
    await expect(model.doStream(asked('?', { abortSignal: AbortSignal.abort(reason) }))).rejects.toBe(reason)
    expect(model.callCount).toBe(1)
  })

  it('errors the stream at once with an AbortError and drops what was not read', async () => {
    const abort = new AbortController()
    const { stream } = await scriptedModel(['a b c']).doStream(asked('?', { abortSignal: abort.signal }))
    const reader = stream.getReader()
    await reader.read()
    abort.abort()
    await expect(reader.read()).rejects.toMatchObject({ name: 'AbortError' })
  })

  it.for<[string, ScriptedStep]>([
    ['a hang', { text: 'a', hang: true }],
    ['a gate', { text: 'a', gate: { parts: 1, until: new Promise(() => {}) } }],
    ['a pace', { text: 'a' }],
  ])('ends %s', async ([, step]) => {
    const abort = new AbortController()
    const clock = virtualClock()
    const model = scriptedModel([step], { clock, pace: { deltaMs: 1000 } })
    const { stream } = await model.doStream(asked('?', { abortSignal: abort.signal }))
    const failed = rejection(readParts(stream))
    await clock.advance(0)
    abort.abort()
    expect(await failed).toMatchObject({ name: 'AbortError' })
    await clock.advance(0)
    expect(clock.pending).toBe(0)
  })

  it.for<[string, ScriptedStep]>([
    ['a delay', { delayMs: 1000 }],
    ['a gate', { gate: new Promise(() => {}) }],
  ])('ends %s before the answer', async ([, step]) => {
    const abort = new AbortController()
    const clock = virtualClock()
    const failed = rejection(scriptedModel([step], { clock }).doStream(asked('?', { abortSignal: abort.signal })))
    await clock.advance(0)
    abort.abort()
    expect(await failed).toBe(abort.signal.reason)
    expect(clock.pending).toBe(0)
  })

  it('leaves nothing on the signal when the answer has ended', async () => {
    const { signal } = new AbortController()
    const model = scriptedModel(['a', { text: 'b', errorAfter: { parts: 1 } }, { text: 'c', gate: Promise.resolve() }, 'd'])
    await readParts((await model.doStream(asked('?', { abortSignal: signal }))).stream)
    await rejection(readParts((await model.doStream(asked('?', { abortSignal: signal }))).stream))
    await readParts((await model.doStream(asked('?', { abortSignal: signal }))).stream)
    await (await model.doStream(asked('?', { abortSignal: signal }))).stream.cancel()
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('is not needed to give up reading: cancelling ends every wait', async () => {
    const clock = virtualClock()
    const { stream } = await scriptedModel(['a'], { clock, pace: { deltaMs: 1000 } }).doStream(asked('?'))
    const reader = stream.getReader()
    const read = (async () => {
      while (!(await reader.read()).done);
    })()
    await clock.advance(0)
    expect(clock.pending).toBe(1)
    await reader.cancel()
    await read
    await clock.advance(0)
    expect(clock.pending).toBe(0)
  })
})

describe('hang', () => {
  it.for<[boolean | { parts: number }, string]>([
    [true, 'text-end'],
    [{ parts: 2 }, 'text-delta'],
    [{ parts: 0 }, 'response-metadata'],
  ])('%j is silent after %s', async ([hang, last]) => {
    const abort = new AbortController()
    const { stream } = await scriptedModel([{ text: ['a', 'b'], hang }]).doStream(asked('?', { abortSignal: abort.signal }))
    const seen: string[] = []
    const reading = async () => {
      for await (const part of stream) seen.push(part.type)
    }
    const failed = rejection(reading())
    await virtualClock().advance(0)
    expect(seen.at(-1)).toBe(last)
    abort.abort()
    expect(await failed).toMatchObject({ name: 'AbortError' })
  })
})
