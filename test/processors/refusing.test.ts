import { describe, expect, it } from 'vitest'
import { Agent, InMemoryStore, type Processor } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed } from '../thread/places.ts'

const memory = { thread: 't', resource: 'u' }

async function refused(processor: Processor) {
  const model = scriptedModel(['Said.'])
  const agent = new Agent({ id: 'a', model, inputProcessors: [processor] })
  openHeed({ agent }, new InMemoryStore())
  const { tripwire } = await agent.generate('Go.', { memory })
  const { messages } = await (await agent.getMemory()).recall({ threadId: 't', resourceId: 'u' })
  return { tripwire, calls: model.callCount, messages }
}

describe('a refusal', () => {
  const swallowing: Array<[string, Processor['processInput']]> = [
    ['catches it', ({ abort }) => { try { abort('no') } catch { return undefined } }],
    ['catches it later', async ({ abort }) => { try { await Promise.resolve(); abort('no') } catch { return undefined } }],
    ['throws something else in its place', ({ abort }) => { try { abort('no') } catch { throw new Error('other') } }],
  ]
  it.each(swallowing)('[G2.6] counts when the processor %s', async (_, processInput) => {
    const { tripwire, calls, messages } = await refused({ id: 'p', ...(processInput ? { processInput } : {}) })
    expect([tripwire?.reason, calls, messages]).toEqual(['no', 0, []])
  })

  const reasons: Array<[string, unknown, string]> = [
    ['nothing', undefined, 'Refused by p'], ['null', null, 'Refused by p'], ['an empty text', '', 'Refused by p'], ['a number', 7, '7'],
    ['an error', new Error('why'), 'why'], ['an object', { a: 1 }, '{"a":1}'], ['what is no JSON', { a: 1n }, '[object Object]'],
  ]
  it.each(reasons)('[G2.6] has a reason in words when it is given %s', async (_, reason, words) => {
    const { tripwire, calls, messages } = await refused({ id: 'p', processInput: ({ abort }) => abort(reason as string, { metadata: { a: 1n } }) })
    expect(tripwire).toEqual({ reason: expect.stringContaining(words) as string, processorId: 'p' })
    expect([calls, messages]).toEqual([0, []])
  })

  it('[G2.7] two processors of one id have a state each', async () => {
    const seen: unknown[] = []
    const counting = (): Processor => ({ id: 'same', processInput: ({ state }) => void seen.push((state.count = ((state.count as number | undefined) ?? 0) + 1)) })
    const agent = new Agent({ id: 'a', model: scriptedModel(['Said.']), inputProcessors: [counting(), counting()] })
    await agent.generate('Go.')
    expect(seen).toEqual([1, 1])
  })
})

describe('a processor that can\'t be meant', () => {
  const odd: Array<[string, object]> = [
    ['id', { id: '', processInput() {} }], ['processInput', { id: 'p', processInput: 7 }], ['timeoutMs', { id: 'p', processInput() {}, timeoutMs: -1 }],
    ['timeoutMs', { id: 'p', processInput() {}, timeoutMs: Number.NaN }], ['maxDeltas', { id: 'p', computeStateSignal() {}, maxDeltas: 0 }],
  ]
  it.each(odd)('[G2.9] is refused by name: %s', async (name, processor) => {
    const asked = async () => new Agent({ id: 'a', model: scriptedModel(['Said.']), inputProcessors: [processor as Processor] }).generate('Go.')
    await expect(asked()).rejects.toMatchObject({ code: 'invalid_agent', message: expect.stringContaining(name) as string })
  })
})
