import { describe, expect, it } from 'vitest'
import { Agent, createTool, type Processor, type ProcessorContext } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from '../thread/places.ts'

const memory = { thread: 't', resource: 'u' }

describe.each(placeKinds())('the processors of a run, $name', ({ make }) => {
  it('[G2.7] have one state each, wherever they are in both lists and however often', async () => {
    const states = new Map<string, Set<unknown>>()
    const asked: string[] = []
    const looks = (id: string): Processor => {
      const look = (hook: string) => ({ state }: ProcessorContext): undefined => {
        asked.push(`${id} ${hook}`)
        states.set(id, (states.get(id) ?? new Set()).add(state))
        return undefined
      }
      return { id, processInput: look('input'), processOutputStep: look('step'), processOutputResult: look('result') }
    }
    const [a, b, c] = [looks('a'), looks('b'), looks('c')]
    const agent = new Agent({ id: 'a', model: scriptedModel(['Hello.']), inputProcessors: [a, b, a], outputProcessors: [b, c, a] })
    openHeed({ agent }, make().store())
    await agent.generate('Go.', { memory })

    expect(asked).toEqual(['a input', 'b input', 'a input', 'b step', 'c step', 'a step', 'b result', 'c result', 'a result'])
    expect([...states.values()].map((found) => found.size)).toEqual([1, 1, 1])
    expect(new Set([...states.values()].flatMap((found) => [...found])).size).toBe(3)
  })

  it('[G2.1] are asked one after the other, whether they answer at once or later', async () => {
    const order: string[] = []
    const hooks = ['processInput', 'processInputStep', 'processOutputStep', 'processOutputResult'] as const
    const atOnce = (id: string) => ({ id, ...Object.fromEntries(hooks.map((hook) => [hook, () => void order.push(`${hook} ${id}`)])) }) as Processor
    const later = (id: string) => ({
      id,
      ...Object.fromEntries(hooks.map((hook) => [hook, async () => {
        order.push(`${hook} ${id} begins`)
        await new Promise((resolve) => setImmediate(resolve))
        order.push(`${hook} ${id} ends`)
      }])),
    }) as Processor
    const all = [atOnce('1'), later('2'), atOnce('3'), later('4'), atOnce('5')]
    const agent = new Agent({ id: 'a', model: scriptedModel(['Hello.']), inputProcessors: all, outputProcessors: all })
    openHeed({ agent }, make().store())
    expect((await agent.generate('Go.', { memory })).text).toBe('Hello.')

    expect(order).toEqual(hooks.flatMap((hook) => ['1', '2 begins', '2 ends', '3', '4 begins', '4 ends', '5'].map((what) => `${hook} ${what}`)))
  })

  it('[G2.41] are those that its lists had when it began', async () => {
    const asked: string[] = []
    const guard = (id: string): Processor => ({ id, processOutputResult: () => void asked.push(id) })
    const processors = [guard('first')]
    const swap = createTool({ id: 'swap', execute: () => processors.splice(0, 1, guard('second')).length })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'swap' }] }, 'Done.', 'Again.'])
    const agent = new Agent({ id: 'a', model, tools: { swap }, outputProcessors: processors })
    openHeed({ agent }, make().store())

    await agent.generate('Go.', { memory })
    expect(asked).toEqual(['first'])
    await agent.generate('Go on.', { memory })
    expect(asked).toEqual(['first', 'second'])
  })

  it('[G2.6] go on to refuse with the abort of an earlier call, also after one that had the model asked again', async () => {
    let kept: ProcessorContext['abort'] | undefined
    let steps = 0
    const processor: Processor = {
      id: 'strict',
      processOutputStep({ abort }) {
        kept ??= abort
        if (steps++ === 0) abort('Once more.', { retry: true })
      },
      processOutputResult() {
        kept?.('No.')
      },
    }
    const agent = new Agent({ id: 'a', model: scriptedModel(['One.', 'Two.']), outputProcessors: [processor] })
    openHeed({ agent }, make().store())
    expect((await agent.generate('Go.', { memory })).tripwire).toMatchObject({ reason: 'No.', processorId: 'strict' })
    expect(steps).toBe(2)
  })
})
