import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent } from '../../src/agent/agent.ts'
import type { AgentStream } from '../../src/agent/stream.ts'
import type { Processor } from '../../src/processors/processor.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { Heed, InMemoryStore, Memory, silentLogger } from '../../src/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { chunksOf, of, recordedHeed, refuseStrayRejections, rejection, turn, typesOf } from './asking.ts'

const never = new Promise<never>(() => {})

/** A function that returns the value once, and never settles after that. */
function onceThen<T>(value: T): () => T | Promise<never> {
  let isFirst = true
  return () => {
    if (!isFirst) return never
    isFirst = false
    return value
  }
}

/** A model of which only `doStream` matters. */
function odd(doStream: (...args: Parameters<LanguageModelV4['doStream']>) => unknown): LanguageModelV4 {
  return { specificationVersion: 'v4', provider: 'odd', modelId: 'odd', supportedUrls: {}, doStream, doGenerate: () => never } as unknown as LanguageModelV4
}

/** The run ended in an abort, without waiting for anything. */
async function ended(stream: AgentStream<unknown, unknown, unknown>) {
  const chunks = await chunksOf(stream)
  expect(typesOf(chunks).at(-1)).toBe('abort')
  expect(typesOf(chunks).filter((type) => type === 'abort' || type === 'error' || type === 'finish')).toEqual(['abort'])
  expect(await stream.finishReason).toBe('aborted')
  return chunks
}

describe('an abort', () => {
  refuseStrayRejections()

  it('[G1.5] before the start calls no model', async () => {
    const model = scriptedModel(['Hi.'])
    const agent = new Agent({ id: 'a', model })
    await ended(await agent.stream('Go.', { abortSignal: AbortSignal.abort() }))
    expect(await rejection(agent.generate('Go.', { abortSignal: AbortSignal.abort(new Error('changed my mind')) }))).toMatchObject({
      code: 'aborted',
      cause: { message: 'changed my mind' },
    })
    expect(model.callCount).toBe(0)
  })

  it('[G1.5] while the agent is still looking for what it needs is an error with that name', async () => {
    for (const config of [{ instructions: () => never }, { tools: () => never }, { model: () => never }, { defaultOptions: () => never }]) {
      const stop = new AbortController()
      const asked = new Agent({ id: 'a', model: scriptedModel(['Hi.']), ...config }).stream('Go.', { abortSignal: stop.signal })
      await turn()
      stop.abort()
      expect(await rejection(asked)).toMatchObject({ code: 'aborted' })
    }
  })

  it('[G1.5] does not wait for a function of the agent that never settles, whenever it comes, on a thread or not', async () => {
    const memory = { thread: 'thread-1', resource: 'user-1' }
    const onThread = [{ memory: () => never }, { memory: onceThen(new Memory()) }, { defaultOptions: () => never }, { defaultOptions: onceThen({}) }]
    const without = [{ instructions: () => never }, { tools: () => never }, { model: () => never }, { defaultOptions: () => never }]
    const cases = [...onThread.map((config) => ({ config, options: { memory } })), ...without.map((config) => ({ config, options: {} }))]
    for (const { config, options } of cases) {
      for (const isLate of [false, true]) {
        const agent = new Agent({ id: 'a', model: scriptedModel(['Hi.']), ...config })
        const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
        const stop = new AbortController()
        if (!isLate) stop.abort(new Error('changed my mind'))
        const asked = agent.generate('Go.', { ...options, abortSignal: stop.signal })
        if (isLate) {
          for (let turns = 0; turns < 20; turns++) await turn()
          stop.abort(new Error('changed my mind'))
        }
        expect(await rejection(asked)).toMatchObject({ code: 'aborted', cause: { message: 'changed my mind' } })
        await heed.close()
      }
    }
  })

  it('[G1.5] before the start is the same error on a thread', async () => {
    const agent = new Agent({ id: 'a', model: scriptedModel([]) })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
    const options = { memory: { thread: 'thread-1', resource: 'user-1' }, abortSignal: AbortSignal.abort(new Error('changed my mind')) }
    for (const asked of [agent.generate('Go.', options), agent.stream('Go.', options)])
      expect(await rejection(asked)).toMatchObject({ code: 'aborted', cause: { message: 'changed my mind' } })
    await heed.close()
  })

  it('[G1.5] while the model has not answered yet', async () => {
    const stop = new AbortController()
    const signals: Array<AbortSignal | undefined> = []
    const model = odd(({ abortSignal }) => {
      signals.push(abortSignal)
      return never
    })
    const stream = await new Agent({ id: 'a', model }).stream('Go.', { abortSignal: stop.signal })
    await turn()
    stop.abort()
    await ended(stream)
    expect(signals[0]?.aborted).toBe(true)
    expect(await stream.text).toBe('')
  })

  it('[G1.5] closes a stream that comes too late', async () => {
    const stop = new AbortController()
    const answer = Promise.withResolvers<unknown>()
    let cancelled = false
    const stream = await new Agent({ id: 'a', model: odd(() => answer.promise) }).stream('Go.', { abortSignal: stop.signal })
    await turn()
    stop.abort()
    await ended(stream)
    answer.resolve({ stream: new ReadableStream({ cancel: () => void (cancelled = true) }) })
    await turn()
    expect(cancelled).toBe(true)
  })

  it('[G1.5] in the middle of a text keeps the text so far', async () => {
    const stop = new AbortController()
    const model = scriptedModel([{ reasoning: 'Hm.', text: ['Once ', 'upon ', 'a time'], hang: { parts: 6 } }])
    const stream = await new Agent({ id: 'a', model }).stream('A story.', { abortSignal: stop.signal })
    for await (const text of stream.textStream) if (text === 'upon ') stop.abort()
    const chunks = await ended(stream)
    expect(of(chunks, 'text-start')).toHaveLength(1)
    expect(of(chunks, 'text-end')).toHaveLength(1)
    const { text, steps, messages, reasoningText } = await stream.result
    expect(text).toBe('Once upon ')
    expect(reasoningText).toBe('Hm.')
    expect(steps).toMatchObject([{ finishReason: 'aborted' }])
    expect(messages).toMatchObject([{ content: { metadata: { incomplete: 'aborted' } } }])
    expect(messages[0]?.content.parts.map((part) => part.type)).toEqual(['step-start', 'reasoning', 'text'])
  })

  it('[G1.5] is prompt with a provider whose stream ignores it', async () => {
    const stop = new AbortController()
    let cancelled = false
    const model = odd(async () => ({
      stream: new ReadableStream<LanguageModelV4StreamPart>({
        start(controller) {
          controller.enqueue({ type: 'text-start', id: 't' })
          controller.enqueue({ type: 'text-delta', id: 't', delta: 'Once ' })
        },
        cancel() {
          cancelled = true
          return never
        },
      }),
    }))
    const stream = await new Agent({ id: 'a', model }).stream('A story.', { abortSignal: stop.signal })
    for await (const text of stream.textStream) if (text === 'Once ') stop.abort()
    await ended(stream)
    expect(cancelled).toBe(true)
    expect(await stream.text).toBe('Once ')
  })

  it('[G1.5] while input of a call arrives drops the call', async () => {
    const stop = new AbortController()
    const model = scriptedModel([{ text: 'Look:', toolCalls: [{ toolName: 'look', input: { a: 'a long text that takes two pieces' } }], hang: { parts: 5 } }])
    const stream = await new Agent({ id: 'a', model }).stream('Go.', { abortSignal: stop.signal })
    for await (const chunk of stream.fullStream) if (chunk.type === 'tool-call-delta') stop.abort()
    const chunks = await ended(stream)
    expect(of(chunks, 'tool-call-input-streaming-end')).toHaveLength(1)
    expect((await stream.messages)[0]?.content.parts.map((part) => part.type)).toEqual(['step-start', 'text'])
    expect(await stream.toolCalls).toEqual([])
  })

  it('[G1.5] during a tool stops it, also one that never settles, and says so in its place', async () => {
    const stop = new AbortController()
    const reasons: unknown[] = []
    const hang = createTool({
      id: 'hang',
      execute: (_, { abortSignal }) => {
        abortSignal.addEventListener('abort', () => reasons.push(abortSignal.reason))
        return never
      },
    })
    const quick = createTool({ id: 'quick', execute: async () => 'done' })
    const model = scriptedModel([{ text: 'Trying.', toolCalls: [{ toolName: 'hang' }, { toolName: 'quick' }, { toolName: 'hang' }] }])
    const stream = await new Agent({ id: 'a', model, tools: { hang, quick } }).stream('Go.', { abortSignal: stop.signal, toolCallConcurrency: 2 })
    await turn()
    stop.abort()
    const chunks = await ended(stream)
    const stopped = 'hang was stopped: the run was aborted.'
    expect(await stream.toolResults).toMatchObject([{ result: stopped, isError: true }, { result: 'done' }, { result: stopped, isError: true }])
    expect(of(chunks, 'tool-error')).toHaveLength(2)
    expect(reasons).toMatchObject([{ code: 'aborted' }, { code: 'aborted' }])
    expect(await stream.text).toBe('Trying.')
    expect(model.callCount).toBe(1)
  })

  it('[G1.5] starts no tool any more', async () => {
    const stop = new AbortController()
    const ran: string[] = []
    const tools = {
      first: createTool({ id: 'first', execute: async () => stop.abort() }),
      second: createTool({ id: 'second', requireApproval: () => ran.push('asked') > 9, execute: async () => ran.push('second') }),
    }
    const model = scriptedModel([{ toolCalls: [{ toolName: 'first' }, { toolName: 'second' }] }])
    const stream = await new Agent({ id: 'a', model, tools }).stream('Go.', { abortSignal: stop.signal, toolCallConcurrency: 1 })
    await ended(stream)
    expect(ran).toEqual([])
  })

  it('[G1.5] during whatever else a tool is asked', async () => {
    const hanging = [
      createTool({ id: 't', requireApproval: () => never, execute: async () => 1 }),
      createTool({ id: 't', inputSchema: z.object({}).refine(() => never), execute: async () => 1 }),
      createTool({ id: 't', execute: async () => 1, toModelOutput: () => never }),
      createTool({ id: 't', execute: async () => 1, transform: { display: { output: () => never } } }),
      createTool({ id: 't', execute: async () => 1, transform: { transcript: { input: () => never } } }),
    ]
    for (const t of hanging) {
      const stop = new AbortController()
      const model = scriptedModel([{ toolCalls: [{ toolName: 't' }] }, 'never'])
      const stream = await new Agent({ id: 'a', model, tools: { t } }).stream('Go.', { abortSignal: stop.signal })
      await turn()
      stop.abort()
      await ended(stream)
    }
  })

  it('[G1.5] during a pause before a retry', async () => {
    const stop = new AbortController()
    const clock = virtualClock()
    const model = scriptedModel([{ error: { status: 429, headers: { 'retry-after': '30' } } }, 'never'])
    const stream = await new Agent({ id: 'a', heed: recordedHeed(clock).heed, model }).stream('Go.', { abortSignal: stop.signal })
    await clock.advance(1_000)
    expect(clock.pending).toBe(1)
    stop.abort()
    await ended(stream)
    expect(clock.pending).toBe(0)
    expect(model.callCount).toBe(1)
  })

  it('[G1.5] during a stop condition', async () => {
    const stop = new AbortController()
    const tools = { look: createTool({ id: 'look', execute: async () => 1 }) }
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look' }] }, 'never'])
    const stream = await new Agent({ id: 'a', model, tools }).stream('Go.', { abortSignal: stop.signal, stopWhen: () => never })
    await turn()
    stop.abort()
    await ended(stream)
  })

  const hooks: Processor[] = [
    { id: 'p', processInput: () => never },
    { id: 'p', processInputStep: () => never },
    { id: 'p', computeStateSignal: () => never },
    { id: 'p', processOutputStream: ({ part }) => (part.type === 'text-delta' ? never : undefined) },
    { id: 'p', processOutputStep: () => never },
    { id: 'p', processOutputResult: () => never },
  ]
  it.each(hooks.map((hook) => [Object.keys(hook)[1], hook] as const))('[G1.5] during %s of a processor', async (_, processor) => {
    const stop = new AbortController()
    const agent = new Agent({ id: 'a', model: scriptedModel(['Hi.']), inputProcessors: [processor], outputProcessors: [processor] })
    const stream = await agent.stream('Go.', { abortSignal: stop.signal })
    await turn()
    stop.abort()
    await ended(stream)
  })

  it('[G1.5] keeps the text from before a processor got stuck', async () => {
    const stop = new AbortController()
    const stuck: Processor = { id: 'p', processOutputStream: ({ part }) => (part.type === 'text-delta' && part.payload.text === 'upon' ? never : undefined) }
    const stream = await new Agent({ id: 'a', model: scriptedModel([{ text: ['Once ', 'upon'] }]), outputProcessors: [stuck] }).stream('Go.', { abortSignal: stop.signal })
    await turn()
    stop.abort()
    await ended(stream)
    expect(await stream.text).toBe('Once ')
  })

  it('[G1.5] lets processors see the chunks after it', async () => {
    const stop = new AbortController()
    const seen: string[] = []
    const watcher: Processor = { id: 'p', processOutputStream: async ({ part }) => void seen.push(part.type) }
    const model = scriptedModel([{ text: ['Once ', 'upon'], hang: { parts: 2 } }])
    const stream = await new Agent({ id: 'a', model, outputProcessors: [watcher] }).stream('Go.', { abortSignal: stop.signal })
    for await (const text of stream.textStream) if (text === 'Once ') stop.abort()
    await ended(stream)
    expect(seen.slice(-3)).toEqual(['text-delta', 'text-end', 'step-finish'])
  })

  it('[G1.5] after the end changes nothing, and leaves no listener', async () => {
    const stop = new AbortController()
    let listeners = 0
    const { addEventListener, removeEventListener } = stop.signal
    stop.signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
      listeners++
      addEventListener.apply(stop.signal, args)
    }
    stop.signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
      listeners--
      removeEventListener.apply(stop.signal, args)
    }
    const stream = await new Agent({ id: 'a', model: scriptedModel(['Hi.']) }).stream('Go.', { abortSignal: stop.signal })
    expect(await stream.finishReason).toBe('stop')
    await turn()
    expect(listeners).toBe(0)
    stop.abort()
    expect(typesOf(await chunksOf(stream)).at(-1)).toBe('finish')
  })

  it('[G1.5] of many tools at once raises no warning', async () => {
    const warnings: Error[] = []
    // What other files of this worker left behind may cause warnings of other names.
    const keep = (warning: Error) => void (warning.name === 'MaxListenersExceededWarning' && warnings.push(warning))
    process.on('warning', keep)
    const stop = new AbortController()
    const hang = createTool({ id: 'hang', execute: () => never })
    const model = scriptedModel([{ toolCalls: Array.from({ length: 40 }, () => ({ toolName: 'hang' })) }])
    const stream = await new Agent({ id: 'a', model, tools: { hang } }).stream('Go.', { abortSignal: stop.signal, toolCallConcurrency: 40 })
    await turn()
    stop.abort()
    expect(await stream.toolResults).toHaveLength(40)
    await turn()
    process.off('warning', keep)
    expect(warnings).toEqual([])
  })
})
