import { describe, expect, it } from 'vitest'
import { Agent, createTool, InMemoryStore, MessageList, type Chunk, type Processor } from '../../src/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { chunksOf, of, refuseStrayRejections, rejection, typesOf } from '../agent/asking.ts'
import { openHeed } from '../thread/places.ts'
import { gate, soon, texts } from '../thread/said.ts'

const hooks = [
  'processInput', 'processInputStep', 'computeStateSignal', 'processOutputStream', 'processOutputStep', 'processToolResult', 'processOutputResult', 'processAPIError',
] as const
type Hook = (typeof hooks)[number]
type Context = { sendSignal(signal: { type: 'reactive'; contents: string }): Promise<unknown>; part?: Chunk; abortSignal: AbortSignal; state: Record<string, unknown> }

const thread = { threadId: 't', resourceId: 'u' }
const memory = { thread: 't', resource: 'u' }

/** A processor with this one hook, asked at its first time only; in a stream, at the first words. */
function once(hook: Hook, act: (context: Context) => unknown): Processor {
  let done = false
  const asked = (context: Context) => {
    if (done || (hook === 'processOutputStream' && context.part?.type !== 'text-delta')) return undefined
    done = true
    return act(context)
  }
  return { id: 'p', [hook]: asked }
}

/** Two steps with a tool between them; a call of the model that fails first where errors are looked at. */
function open(processor: Processor, clock = virtualClock()) {
  const fails = 'processAPIError' in processor
  const model = scriptedModel([
    ...(fails ? [{ error: { status: 400, message: 'no' } }] : []), { text: 'Looking.', toolCalls: [{ toolName: 'look', toolCallId: 'c1' }] }, 'Done.', 'Done again.',
  ])
  const look = createTool({ id: 'look', execute: () => 'seen' })
  const agent = new Agent({ id: 'a', model, tools: { look }, inputProcessors: [processor], outputProcessors: fails ? [] : [processor] })
  return { agent, model, clock, heed: openHeed({ agent }, new InMemoryStore(), { clock }) }
}

describe('the hooks of a run', () => {
  refuseStrayRejections()

  it('[G2.1] are asked in one order, whatever they are of; those of one kind in the order of the lists', async () => {
    const asked: string[] = []
    const named = (id: string): Processor => {
      const note = (where: string) => void asked.push(`${id} ${where}`)
      return {
        id,
        processInput: () => note('input'),
        processInputStep: () => note('input step'),
        computeStateSignal: () => note('state'),
        processOutputStream: ({ part }) => (part.type === 'text-delta' ? note('stream') : undefined),
        processOutputStep: () => note('output step'),
        processToolResult: () => note('tool result'),
        processOutputResult: () => note('output result'),
      }
    }
    const [x, y] = [named('x'), named('y')]
    const model = scriptedModel([{ text: 'Looking.', toolCalls: [{ toolName: 'look' }] }, 'Done.'])
    const look = createTool({ id: 'look', execute: () => 'seen' })
    await new Agent({ id: 'a', model, tools: { look }, inputProcessors: [x, y], outputProcessors: [x, y] }).generate('Go.')
    const both = (...places: string[]) => places.flatMap((place) => [`x ${place}`, `y ${place}`])
    const step = both('input step', 'state', 'stream', 'output step')
    expect(asked).toEqual([...both('input'), ...step, ...both('tool result'), ...step, ...both('output result')])
  })

  const odd = (over: object) => ({ id: 'x', role: 'user', createdAt: new Date(0), content: { format: 2, parts: [{ type: 'text', text: 'x' }] }, ...over })
  const notMessages: Array<[string, unknown]> = [
    ['null', null], ['a text', 'text'], ['a number', 7], ['an object that is no answer', { answer: 1 }], ['null in a list', [null]], ['a text in a list', ['text']],
    ['an unknown role', [odd({ role: 'wizard' })]], ['no date', [odd({ createdAt: undefined })]], ['no id', [odd({ id: undefined })]], ['no parts', [odd({ content: {} })]],
    ['a part that is null', [odd({ content: { format: 2, parts: [null] } })]], ['a text part without text', [odd({ content: { format: 2, parts: [{ type: 'text' }] } })]],
    ['what is no JSON', [odd({ content: { format: 2, parts: [], metadata: { a: 1n } } })]], ['one message twice', [odd({}), odd({})]],
  ]
  const call = { type: 'text-delta', runId: 'r', from: 'AGENT' }
  const circle: Record<string, unknown> = {}
  circle.self = circle
  /** What is no answer of each hook. */
  const garbage: Record<Hook, Array<[string, unknown]>> = {
    processInput: [...notMessages, ['nothing of all there is', []], ['a field that is none', { messages: [], tools: [] }], ['system messages of a user', { systemMessages: [{ role: 'user', content: 'x' }] }],
      ['system messages that are none', { systemMessages: 7 }]],
    processInputStep: [...notMessages, ['nothing of all there is', []], ['a field that is none', { messages: [odd({})], tools: [] }], ['system messages that are none', { systemMessages: 7 }],
      ['activeTools that are a number', { activeTools: 7 }], ['activeTools that are a text', { activeTools: 'look' }], ['unknown activeTools', { activeTools: ['nope'] }],
      ['an unknown toolChoice', { toolChoice: 'often' }], ['a toolChoice that is a number', { toolChoice: 7 }], ['a toolChoice of an unknown tool', { toolChoice: { type: 'tool', toolName: 'nope' } }],
      ['a toolChoice that is not active', { activeTools: [], toolChoice: { type: 'tool', toolName: 'look' } }], ['the name of a model', { model: 'openai/gpt-5' }], ['a model that is a number', { model: 7 }],
      ['modelSettings that are a number', { modelSettings: 7 }], ['unknown modelSettings', { modelSettings: { warmth: 1 } }], ['providerOptions that are a list', { providerOptions: [] }]],
    computeStateSignal: [['null', null], ['a text', 'text'], ['zero', 0], ['a list', []], ['no cacheKey', { contents: 'x' }], ['no contents', { cacheKey: 'a' }], ['an odd tag', { cacheKey: 'a', contents: 'x', tagName: '1 2' }],
      ['an odd mode', { cacheKey: 'a', contents: 'x', mode: 'whole' }], ['what is no JSON', { cacheKey: 'a', contents: 'x', value: 1n }], ['a field that is none', { cacheKey: 'a', contents: 'x', version: 3 }]],
    processOutputStream: [['a text', 'text'], ['a list', []], ['no type', {}], ['an unknown type', { ...call, type: 'words', payload: {} }], ['a delta without payload', call],
      ['a delta whose text is a number', { ...call, payload: { id: '1', text: 5 } }], ['no run', { type: 'text-delta', payload: { id: '1', text: 'x' } }], ['what is no JSON', { type: 'data-x', runId: 'r', data: circle }]],
    processOutputStep: [...notMessages, ['nothing of a step with calls', []]],
    processToolResult: [['null', null], ['a text', 'text'], ['a list', []], ['no result', { result: undefined }], ['a result that is no JSON', { result: 1n }], ['a field that is none', { result: 1, args: {} }]],
    processOutputResult: notMessages,
    processAPIError: [['null', null], ['a text', 'yes'], ['a number', 7], ['a list', []], ['a retry that is no boolean', { retry: 'yes' }], ['a field that is none', { retry: true, model: 'x' }]],
  }
  const answers = hooks.flatMap((hook) => garbage[hook].map(([what, returned]) => ({ hook, what, returned })))

  it.each(hooks)('[G2.2] %s that throws ends the run by its name', async (hook) => {
    const { agent } = open(once(hook, () => { throw new Error('broke') }))
    const stream = await agent.stream('Go.', { memory })
    expect(typesOf(await chunksOf(stream)).at(-1)).toBe('error')
    expect(await rejection(stream.result)).toMatchObject({ code: 'processor_failed', message: `Processor 'p' failed in ${hook}: broke` })
    expect(await agent.activeRun(thread)).toBeNull()
  })

  it('[G2.2] [G2.3] a processor that has a name is called by it beside its id', async () => {
    const named = (processor: Omit<Processor, 'id' | 'name'>): Processor => ({ id: 'p', name: 'House rules', ...processor })
    const { agent } = open(named({ processInput: () => { throw new Error('broke') } }))
    expect(await rejection((await agent.stream('Go.', { memory })).result)).toMatchObject({ code: 'processor_failed', message: "Processor 'p' (House rules) failed in processInput: broke", details: { processorId: 'p' } })
    const inside = gate()
    const slow = open(named({ timeoutMs: 1_000, processInput: () => (inside.open(), new Promise<never>(() => {})) }))
    const { result } = await slow.agent.stream('Go.', { memory })
    await inside.promise
    await slow.clock.advance(1_000)
    expect(await rejection(result)).toMatchObject({ code: 'processor_timeout', message: expect.stringContaining("Processor 'p' (House rules) did not finish") as string })
  })

  it.each(answers)('[G2.2] $hook that answers with $what ends the run by its name, and the thread goes on', async ({ hook, returned }) => {
    const { agent } = open(once(hook, () => returned))
    const failure = await rejection((await agent.stream('Go.', { memory })).result)
    expect(failure).toMatchObject({ code: 'processor_failed', message: expect.stringContaining(`Processor 'p' failed in ${hook}: `) as string })
    expect(await agent.activeRun(thread)).toBeNull()
    expect((await agent.generate('Again.', { memory })).finishReason).toBe('stop')
  })

  it.each(['processInput', 'processInputStep', 'processOutputStep', 'processOutputResult'] as const)('[G2.2] %s that returns a list of its own ends the run by its name', async (hook) => {
    const { agent } = open(once(hook, () => new MessageList()))
    expect(await rejection((await agent.stream('Go.', { memory })).result)).toMatchObject({ code: 'processor_failed', message: expect.stringContaining(`in ${hook}: it returned a new MessageList`) })
  })

  it.each(hooks)('[G2.3] %s that never comes to an end is given up in time, and what it sends later is refused', async (hook) => {
    const inside = gate()
    const late = gate()
    let refused: unknown
    const processor = once(hook, async ({ sendSignal }) => {
      inside.open()
      await late.promise
      refused = await rejection(sendSignal({ type: 'reactive', contents: 'late' }))
      return new Promise(() => {})
    })
    const { agent, clock, model } = open({ ...processor, timeoutMs: 1_000 })
    const stream = await agent.stream('Go.', { memory })
    await inside.promise
    await clock.advance(999)
    expect(await agent.activeRun(thread)).not.toBeNull()
    await clock.advance(1)
    expect(await rejection(stream.result)).toMatchObject({ code: 'processor_timeout', details: { processorId: 'p', hook, timeoutMs: 1_000 } })
    await soon(() => agent.activeRun(thread)).toBeNull()
    late.open()
    await soon(() => refused).toMatchObject({ code: 'no_active_run' })
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect(JSON.stringify(messages)).not.toContain('late')
    // The thread goes on: every call has a result.
    const prompts = model.callCount
    await agent.generate('Again.', { memory, maxSteps: 1 }).catch(() => {})
    const shown = texts(model.calls[prompts]?.prompt ?? [])
    expect(shown.filter((text) => text.startsWith('tool: ')).length).toBe(shown.filter((text) => text.includes('look(')).length)
  })

  it.each(hooks)('[G2.3] an abort does not wait for %s, and leaves no timer', async (hook) => {
    const inside = gate()
    const { agent, clock, heed } = open(once(hook, () => (inside.open(), new Promise(() => {}))))
    const stop = new AbortController()
    const stream = await agent.stream('Go.', { memory, abortSignal: stop.signal })
    await inside.promise
    stop.abort()
    expect((await stream.result).finishReason).toBe('aborted')
    await heed.close()
    expect(clock.pending).toBe(0)
  })

  /** What is shown right before and right after the echo of a signal that a hook sent and waited for. */
  const places: Record<Hook, [before: string, after: string]> = {
    processInput: ['start', 'step-start'],
    processInputStep: ['start', 'step-start'],
    computeStateSignal: ['start', 'step-start'],
    processAPIError: ['step-start', 'step-start'],
    processOutputStream: ['text-start', 'text-delta'],
    processOutputStep: ['tool-call', 'tool-result'],
    processToolResult: ['tool-call', 'tool-result'],
    processOutputResult: ['text-end', 'step-finish'],
  }

  it.each(hooks)('[G2.4] %s may send a signal: shown at its place, stored once, in the next prompt, and no result is lost', async (hook) => {
    const { agent, model } = open(once(hook, async ({ sendSignal }) => {
      await sendSignal({ type: 'reactive', contents: 'Mind this.' })
      return hook === 'processAPIError' ? { retry: true } : undefined
    }))
    const chunks = await chunksOf(await agent.stream('Go.', { memory }))
    const at = chunks.findIndex(({ type }) => type === 'data-signal')
    expect(of(chunks, 'data-signal')).toHaveLength(1)
    expect([chunks[at - 1]?.type, chunks[at + 1]?.type]).toEqual(places[hook])
    expect(typesOf(chunks).at(-1)).toBe('finish')
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect(messages.filter(({ role, content }) => role === 'signal' && JSON.stringify(content).includes('Mind this.'))).toHaveLength(1)
    expect(JSON.stringify(messages).match(/"result":"seen"/g)).toHaveLength(1)
    if (hook === 'processOutputResult') return
    const next = texts(model.calls.at(-1)?.prompt ?? [])
    expect(next.filter((text) => text.includes('Mind this.'))).toEqual(['user: <system-reminder>Mind this.</system-reminder>'])
    const call = next.findIndex((text) => text.includes('look('))
    expect(next[call + 1]).toMatch(/^tool: = .*seen/)
  })

  it.each([['is aborted', 'aborted'], ['fails', 'failed']] as const)('[G2.4] what a hook sent is in history also when the run %s before the step is over', async (_, how) => {
    const stop = new AbortController()
    const sends: Processor = {
      id: 'p',
      async processOutputStream({ part, sendSignal }) {
        if (part.type !== 'text-delta') return
        await sendSignal({ type: 'reactive', contents: 'Mind this.' })
        if (how === 'failed') throw new Error('broke')
        stop.abort()
      },
    }
    const { agent } = open(sends)
    const stream = await agent.stream('Go.', { memory, abortSignal: stop.signal })
    const shown = of(await chunksOf(stream), 'data-signal')
    await Promise.allSettled([stream.result])
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect([shown.length, messages.filter(({ role, content }) => role === 'signal' && JSON.stringify(content).includes('Mind this.')).length]).toEqual([1, 1])
  })

  it('[G2.4] a signal that is sent when the run is stored as over is refused, and logged', async () => {
    const refused: unknown[] = []
    const late: Processor = {
      id: 'p',
      processOutputStream: async ({ part, sendSignal }) => {
        if (part.type === 'finish') refused.push(await rejection(sendSignal({ type: 'reactive', contents: 'Late.' })))
      },
    }
    const { agent } = open(late)
    const chunks = await chunksOf(await agent.stream('Go.', { memory }))
    expect(refused).toMatchObject([{ code: 'no_active_run' }])
    expect(of(chunks, 'data-signal')).toHaveLength(0)
    expect(typesOf(chunks).at(-1)).toBe('finish')
  })
})
