import { describe, expect, it } from 'vitest'
import { Agent, InMemoryStore, type Processor } from '../../src/index.ts'
import { MessageHistory, SemanticRecall, WorkingMemory } from '../../src/processors/index.ts'
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
    ['nothing', undefined, 'Rejected by p'], ['null', null, 'Rejected by p'], ['an empty text', '', 'Rejected by p'], ['a number', 7, '7'],
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
  class Misspelt {
    id = 'p'
    proccessInput() {}
  }
  const ask = async (lists: { inputProcessors?: unknown[]; outputProcessors?: unknown[] }) => new Agent({ id: 'a', model: scriptedModel(['Said.']), ...(lists as object) }).generate('Go.')

  const odd: Array<[string, unknown]> = [
    ['an empty id', { id: '', processInput() {} }],
    ['a number as processInput', { id: 'p', processInput: 7 }],
    ['a text as processOutputResult', { id: 'p', processInput() {}, processOutputResult: 'check' }],
    ['a timeoutMs below 0', { id: 'p', processInput() {}, timeoutMs: -1 }],
    ['a timeoutMs that is no number', { id: 'p', processInput() {}, timeoutMs: Number.NaN }],
    ['maxDeltas of 0', { id: 'p', computeStateSignal() {}, maxDeltas: 0 }],
    ['a name that is a number', { id: 'p', name: 7, processInput() {} }],
    ['a stateId that is empty', { id: 'p', stateId: '', computeStateSignal() {} }],
    ['no hook', { id: 'p' }],
    ['a method that is none', { id: 'p', check() {} }],
    ['proccessInput beside another hook', { id: 'p', processInputStep() {}, proccessInput() {} }],
    ['processinput', { id: 'p', processInputStep() {}, processinput() {} }],
    ['a class with proccessInput', new Misspelt()],
    ['a class in its place', Misspelt],
    ['null in its place', null],
    ['a text in its place', 'p'],
    ['hooks of output alone, among the input processors', { id: 'p', processOutputStep() {}, processOutputResult() {} }],
  ]
  it.each(odd)('[G2.9] is refused by name: with %s', async (_, processor) => {
    await expect(ask({ inputProcessors: [processor] })).rejects.toMatchObject({ code: 'invalid_agent', message: expect.stringContaining('inputProcessors') as string })
    const found = new Agent({ id: 'a', model: scriptedModel(['Said.']), inputProcessors: () => [processor] as Processor[] })
    await expect(found.generate('Go.')).rejects.toMatchObject({ code: 'invalid_agent' })
  })

  it('[G2.9] says what is meant, and where it belongs', async () => {
    await expect(ask({ inputProcessors: [{ id: 'p', proccessInput() {} }] })).rejects.toThrow("'proccessInput' is not a hook. Did you mean processInput?")
    await expect(ask({ outputProcessors: [{ id: 'p', processInput() {} }] })).rejects.toThrow('Move it to inputProcessors')
    await expect(ask({ inputProcessors: [{ id: 'p', processToolResult() {} }] })).rejects.toThrow('Move it to outputProcessors')
    const agent = new Agent({ id: 'a', model: scriptedModel(['Said.']) })
    await expect(agent.generate('Go.', { outputProcessors: [{ id: 'p', processInput() {} }] })).rejects.toThrow('Move it to inputProcessors')
  })

  it('[G2.9] is not one that is in both lists, has methods of its own, or is memory\'s', async () => {
    const both: Processor = { id: 'both', processOutputStep() {} }
    const own = { id: 'own', processInput() {}, processMessage() {}, processInputs() {} }
    const model = scriptedModel(['Said.'])
    const agent = new Agent({ id: 'a', model, inputProcessors: [new MessageHistory({ lastMessages: 5 }), new WorkingMemory(), new SemanticRecall(), both, own], outputProcessors: [both] })
    openHeed({ agent }, new InMemoryStore())
    expect((await agent.generate('Go.', { memory })).text).toBe('Said.')
  })
})
