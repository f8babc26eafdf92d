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

  it('[G2.6] refuse with an abort that is kept, and caught, in the stream after the model was asked again', async () => {
    const processor: Processor<'p'> = {
      id: 'p',
      processInputStep({ state, abort }) {
        state.abort = abort
      },
      processOutputStream({ part, state }) {
        if (part.type !== 'text-delta' || !part.payload.text.includes('secret')) return part
        try {
          ;(state.abort as ProcessorContext['abort'])('blocked')
        } catch {
          return part
        }
      },
      processOutputStep({ text, abort }) {
        if (text === 'bad') abort('again', { retry: true })
      },
    }
    const agent = new Agent({ id: 'a', model: scriptedModel(['bad', 'secret']), inputProcessors: [processor], outputProcessors: [processor] })
    openHeed({ agent }, make().store())
    expect((await agent.generate('Go.', { memory })).tripwire).toMatchObject({ reason: 'blocked' })
  })

  it('[G2.4] send with a sendSignal that is kept, and awaited in the stream after the model was asked again', async () => {
    const processor: Processor<'p'> = {
      id: 'p',
      timeoutMs: 5_000,
      processInput({ state, sendSignal }) {
        state.send = sendSignal
      },
      async processOutputStream({ part, state }) {
        const send = state.send as ProcessorContext['sendSignal']
        if (part.type === 'text-delta' && part.payload.text.includes('two')) await send({ type: 'system-reminder', contents: 'Counted.' })
        return part
      },
      processOutputStep({ text, abort }) {
        if (text === 'one') abort('again', { retry: true })
      },
    }
    const agent = new Agent({ id: 'a', model: scriptedModel(['one', 'two']), inputProcessors: [processor], outputProcessors: [processor] })
    openHeed({ agent }, make().store())
    expect((await agent.generate('Go.', { memory })).text).toBe('two')
  })

  it('[G2.7] [G2.42] share the settings of a step and get lists of their own: what one changes in place is no other run\'s', async () => {
    const seen: unknown[] = []
    const processor: Processor = {
      id: 'p',
      processInputStep({ modelSettings }) {
        seen.push({ ...modelSettings })
        modelSettings.temperature = 1
      },
      processOutputStep({ toolCalls }) {
        seen.push(toolCalls.length)
        ;(toolCalls as unknown[]).push('mine')
      },
    }
    const other = { ...processor, id: 'q' }
    const agent = new Agent({ id: 'a', model: scriptedModel(['One.', 'Two.']), inputProcessors: [processor, other], outputProcessors: [processor] })
    openHeed({ agent }, make().store())
    await agent.generate('Go.', { memory })
    await agent.generate('Go on.', { memory })
    expect(seen).toEqual([{}, { temperature: 1 }, 0, {}, { temperature: 1 }, 0])
  })

  it('[G2.3] wait once for what only looks like a promise', async () => {
    let begun = 0
    class Lazy extends Promise<undefined> {
      static override get [Symbol.species]() {
        return Promise
      }

      // oxlint-disable-next-line unicorn/no-thenable -- it is what is tested
      override then<A, B>(resolved?: ((value: undefined) => A | PromiseLike<A>) | null, rejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<A | B> {
        begun++
        return super.then(resolved, rejected)
      }
    }
    const lazy = new Lazy((resolve) => void setImmediate(() => resolve(undefined)))
    const agent = new Agent({ id: 'a', model: scriptedModel(['Hello.']), inputProcessors: [{ id: 'p', processInput: () => lazy }] })
    openHeed({ agent }, make().store())
    expect((await agent.generate('Go.', { memory })).text).toBe('Hello.')
    expect(begun).toBe(1)
  })
})
