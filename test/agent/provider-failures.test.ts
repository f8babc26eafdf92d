import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent } from '../../src/agent/agent.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { providerServer, scriptedModel, virtualClock, type ProviderServer, type ScriptedStep, type VirtualClock } from '../../src/testing/index.ts'
import { chunksOf, of, recordedHeed, refuseStrayRejections, rejection, typesOf } from './asking.ts'

const makers = [
  ['OpenAI, responses', (server: ProviderServer) => createOpenAI(server.openai).responses('gpt-5')],
  ['OpenAI, chat', (server: ProviderServer) => createOpenAI(server.openai).chat('gpt-5')],
  ['Anthropic', (server: ProviderServer) => createAnthropic(server.anthropic)('claude-sonnet-4-5')],
] as const

/** Waits, by turns of the event loop, until something is so. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve))
}

/** Lets every pause pass until it is done. */
async function hurried<T>(clock: VirtualClock, work: PromiseLike<T>): Promise<T> {
  let done = false
  const settle = () => void (done = true)
  work.then(settle, settle)
  while (!done) {
    await new Promise((resolve) => setImmediate(resolve))
    if (clock.pending > 0) await clock.runAll()
  }
  return work
}

describe.each(makers)('a failure of %s', (_, make) => {
  refuseStrayRejections()

  it('[G1.4] that says when to come back is waited for that long', async () => {
    await using server = await providerServer({ script: [{ error: { status: 429, headers: { 'retry-after': '7' } } }, 'Hi.'] })
    const clock = virtualClock()
    const stream = await new Agent({ id: 'a', heed: recordedHeed(clock).heed, model: make(server) }).stream('Go.')
    await until(() => clock.pending > 0)
    await clock.advance(6_999)
    expect(server.requests).toHaveLength(1)
    await clock.advance(1)
    expect(await stream.text).toBe('Hi.')
    expect(server.requests).toHaveLength(2)
    expect(typesOf(await chunksOf(stream)).filter((type) => type === 'step-start' || type === 'error')).toEqual(['step-start'])
  })

  it('[G1.4] that may pass is tried again, with a growing pause', async () => {
    await using server = await providerServer({ script: [{ error: { status: 500 } }, { error: { status: 503 } }, 'Hi.'] })
    const clock = virtualClock(0)
    const stream = await new Agent({ id: 'a', heed: recordedHeed(clock).heed, model: make(server) }).stream('Go.')
    // The requests are real: each pause begins when its failure has arrived, and only then does the clock move.
    const pause = async (requests: number, least: number, most: number) => {
      await until(() => clock.pending > 0)
      await clock.advance(least - 1)
      expect([server.requests.length, clock.pending]).toEqual([requests, 1])
      await clock.advance(most - least + 1)
      await until(() => server.requests.length > requests)
    }
    await pause(1, 375, 625)
    await pause(2, 750, 1_250)
    expect(await stream.text).toBe('Hi.')
  })

  it('[G1.4] that can\'t pass is not tried again: the next model is', async () => {
    await using server = await providerServer({ script: [{ error: { status: 400, message: 'bad request' } }] })
    const next = scriptedModel(['From the next.'])
    const { text } = await new Agent({ id: 'a', heed: recordedHeed().heed, model: [make(server), next] }).generate('Go.')
    expect(text).toBe('From the next.')
    expect(server.requests).toHaveLength(1)
  })

  it('[G1.4] of all models ends the run with one error chunk', async () => {
    await using server = await providerServer({ script: [{ error: { status: 401, message: 'who are you' } }, { error: { status: 403, message: 'not you' } }], loop: true })
    const agent = new Agent({ id: 'a', heed: recordedHeed().heed, model: [make(server), { model: make(server), maxRetries: 5 }] })
    const stream = await agent.stream('Go.')
    const chunks = await chunksOf(stream)
    expect(typesOf(chunks)).toEqual(['start', 'step-start', 'error'])
    expect(of(chunks, 'error')[0]?.payload.error).toMatchObject({ name: 'HeedError', code: 'provider_error', retryable: false, message: expect.stringContaining('not you') })
    expect(await rejection(agent.generate('Go.'))).toMatchObject({ code: 'provider_error', details: { statusCode: 403 } })
    expect(server.requests).toHaveLength(4)
  })

  it('[G1.4] in the very first event is a failed call, and is tried again', async () => {
    await using server = await providerServer({ script: [{ text: 'never', errorAfter: { parts: 0, error: { status: 529, type: 'overloaded_error', message: 'Overloaded' } } }, 'Hi.'] })
    const clock = virtualClock()
    const stream = await new Agent({ id: 'a', heed: recordedHeed(clock).heed, model: make(server) }).stream('Go.')
    await until(() => clock.pending > 0 || server.requests.length > 1)
    await clock.runAll()
    expect(await stream.text).toBe('Hi.')
    expect(of(await chunksOf(stream), 'step-start')).toHaveLength(1)
  })

  it('[G1.5] in the middle of a text keeps the text so far, and a new step continues from it', async () => {
    await using server = await providerServer({ script: [{ text: ['Once ', 'upon ', 'a time'], errorAfter: { parts: 3 } }, 'a time.'] })
    const clock = virtualClock()
    const stream = await new Agent({ id: 'a', heed: recordedHeed(clock).heed, model: make(server) }).stream('A story.')
    const chunks = await hurried(clock, chunksOf(stream))
    const { steps, messages, text } = await stream.result
    expect(steps.map((step) => [step.text, step.finishReason])).toEqual([['Once upon ', 'error'], ['a time.', 'stop']])
    expect(text).toBe('Once upon a time.')
    expect(of(chunks, 'text-start')).toHaveLength(2)
    expect(of(chunks, 'text-end')).toHaveLength(2)
    expect(typesOf(chunks)).not.toContain('error')
    const sent = JSON.stringify(server.requests[1]?.body)
    expect(sent).toContain('Once upon ')
    expect(sent).toContain('Go on from where it ends')
    expect(JSON.stringify(messages)).not.toContain('Go on from where it ends')
  })
})

describe.each(makers)('an error event of %s in the middle of a stream', (_, make) => {
  refuseStrayRejections()

  it('is a broken stream, and one that may pass is gone on from', async () => {
    const failure = { status: 529, type: 'overloaded_error', message: 'Overloaded' }
    await using server = await providerServer({ script: [{ text: ['Once ', 'upon ', 'a time'], errorAfter: { parts: 3, error: failure } }, 'a time.'] })
    const clock = virtualClock()
    const { steps } = await hurried(clock, new Agent({ id: 'a', heed: recordedHeed(clock).heed, model: make(server) }).generate('A story.'))
    expect(steps.map((step) => step.text)).toEqual(['Once upon ', 'a time.'])
  })

  it('ends the run when it can\'t pass, in words', async () => {
    const failure = { status: 400, type: 'invalid_request_error', message: 'No such thing' }
    await using server = await providerServer({ script: [{ text: ['Once ', 'upon ', 'a time'], errorAfter: { parts: 3, error: failure } }] })
    const stream = await new Agent({ id: 'a', heed: recordedHeed().heed, model: make(server) }).stream('A story.')
    expect(of(await chunksOf(stream), 'error')).toMatchObject([{ payload: { error: { code: 'stream_broken', retryable: false, message: expect.stringMatching(/broke off: No such thing$/) } } }])
    expect(server.requests).toHaveLength(1)
  })
})

describe('a stream that breaks', () => {
  refuseStrayRejections()
  const broken = (text: string): ScriptedStep => ({ text: [text], errorAfter: { parts: 2, error: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) } })

  it('[G1.4] again and again ends the run with an error, and the text so far is kept', async () => {
    const model = scriptedModel([broken('one'), broken('two'), broken('three'), 'never'])
    const clock = virtualClock()
    const stream = await new Agent({ id: 'a', heed: recordedHeed(clock).heed, model }).stream('Go.')
    const chunks = await hurried(clock, chunksOf(stream))
    expect(model.callCount).toBe(3)
    expect(of(chunks, 'error')).toMatchObject([{ payload: { error: { code: 'stream_broken', retryable: true } } }])
    expect(of(chunks, 'text-delta').map((chunk) => chunk.payload.text)).toEqual(['one', 'two', 'three'])
    expect(await rejection(stream.result)).toMatchObject({ code: 'stream_broken' })
  })

  it('now and then in a long run does not end it', async () => {
    const look: ScriptedStep = { toolCalls: [{ toolName: 'look' }] }
    const model = scriptedModel([broken('a'), look, broken('b'), look, broken('c'), look, broken('d'), 'Done.'])
    const tools = { look: createTool({ id: 'look', execute: async () => 'seen' }) }
    const clock = virtualClock()
    const { text } = await hurried(clock, new Agent({ id: 'a', heed: recordedHeed(clock).heed, model, tools }).generate('Go.'))
    expect(text).toBe('dDone.')
  })

  it('[G1.4] is gone on from after a pause that grows', async () => {
    const clock = virtualClock(0)
    const model = scriptedModel([broken('one'), broken('two'), 'three'])
    const stream = await new Agent({ id: 'a', heed: recordedHeed(clock).heed, model }).stream('Go.')
    await clock.advance(374)
    expect(model.callCount).toBe(1)
    await clock.advance(251)
    expect(model.callCount).toBe(2)
    await clock.advance(1_250)
    expect(await stream.text).toBe('onetwothree')
    expect(clock.pending).toBe(0)
  })

  it('[G1.4] is gone on from when its provider said, and by the next model when that is too late', async () => {
    const busy = (after: string): ScriptedStep => ({ text: ['one '], errorAfter: { parts: 2, error: { status: 529, headers: { 'retry-after': after } } } })
    const clock = virtualClock()
    const model = scriptedModel([busy('7'), 'two'])
    const stream = await new Agent({ id: 'a', heed: recordedHeed(clock).heed, model }).stream('Go.')
    await clock.advance(6_999)
    expect(model.callCount).toBe(1)
    await clock.advance(1)
    expect(await stream.text).toBe('one two')

    const next = scriptedModel(['two'])
    const { text } = await new Agent({ id: 'a', heed: recordedHeed(clock).heed, model: [scriptedModel([busy('3600')]), next] }).generate('Go.')
    expect(text).toBe('one two')
    expect(next.callCount).toBe(1)
  })

  it('[G1.4] more often than a model may be asked again is gone on from by the next, and the step after it asks the first', async () => {
    const clock = virtualClock()
    const first = scriptedModel([broken('a'), broken('b'), 'Done.'])
    const second = scriptedModel([{ text: 'c', toolCalls: [{ toolName: 'look' }] }])
    const tools = { look: createTool({ id: 'look', execute: async () => 'seen' }) }
    const agent = new Agent({ id: 'a', heed: recordedHeed(clock).heed, model: [{ model: first, maxRetries: 1 }, second], tools })
    const { steps, text } = await hurried(clock, agent.generate('Go.'))
    expect(steps.map((step) => [step.text, step.finishReason])).toEqual([['a', 'error'], ['b', 'error'], ['c', 'tool-calls'], ['Done.', 'stop']])
    expect([first.callCount, second.callCount, text]).toEqual([3, 1, 'Done.'])
    expect(JSON.stringify(second.calls[0]?.prompt)).toContain('Go on from where it ends')
  })

  it('[G1.4] in a way that can\'t pass is gone on from by the next model at once, also when that was the second', async () => {
    const refused: ScriptedStep = { text: ['one '], errorAfter: { parts: 2, error: { status: 400 } } }
    const models = [scriptedModel([{ error: { status: 401 } }]), scriptedModel([refused]), scriptedModel(['two'])]
    const { text } = await new Agent({ id: 'a', heed: recordedHeed(virtualClock()).heed, model: models }).generate('Go.')
    expect(text).toBe('one two')
    expect(models.map((model) => model.callCount)).toEqual([1, 1, 1])
  })

  it('[G1.5] can be aborted while it is waited for the next', async () => {
    const clock = virtualClock()
    const model = scriptedModel([broken('one'), 'never'])
    const stop = new AbortController()
    const stream = await new Agent({ id: 'a', heed: recordedHeed(clock).heed, model }).stream('Go.', { abortSignal: stop.signal })
    await until(() => clock.pending > 0)
    stop.abort()
    expect(await stream.finishReason).toBe('aborted')
    expect(await stream.text).toBe('one')
    expect([model.callCount, clock.pending]).toEqual([1, 0])
  })

  it('in the middle of a structured answer is read with what follows', async () => {
    const clock = virtualClock()
    const model = scriptedModel([broken('{"city":'), '"Bern"}'])
    const agent = new Agent({ id: 'a', heed: recordedHeed(clock).heed, model })
    const { object } = await hurried(clock, agent.generate('Go.', { structuredOutput: { schema: z.object({ city: z.string() }) } }))
    expect(object).toEqual({ city: 'Bern' })
    expect(model.callCount).toBe(2)
  })

  it('drops calls that were not finished, and those that never got to run', async () => {
    const runs: number[] = []
    const model = scriptedModel([
      { text: 'Look:', toolCalls: [{ toolName: 'look' }, { toolName: 'look', input: { a: 'long enough to come in two' } }], errorAfter: { parts: 9 } },
      'Done.',
    ])
    const tools = { look: createTool({ id: 'look', execute: async () => runs.push(1) }) }
    const stream = await new Agent({ id: 'a', heed: recordedHeed().heed, model, tools }).stream('Go.', {})
    const chunks = await chunksOf(stream)
    // The scripted error is none that may pass.
    expect(typesOf(chunks).at(-1)).toBe('error')
    expect(runs).toEqual([])
    const starts = of(chunks, 'tool-call-input-streaming-start').map((chunk) => chunk.payload.toolCallId)
    const ends = of(chunks, 'tool-call-input-streaming-end').map((chunk) => chunk.payload.toolCallId)
    expect(starts).toHaveLength(2)
    expect(ends).toEqual(starts)
  })

  it('without an end is broken, not finished', async () => {
    const text = (delta: string) => [{ type: 'text-start' as const, id: 't' }, { type: 'text-delta' as const, id: 't', delta }]
    const model = scriptedModel([{ parts: text('half') }, 'and the rest.'])
    const clock = virtualClock()
    const { steps } = await hurried(clock, new Agent({ id: 'a', heed: recordedHeed(clock).heed, model }).generate('Go.'))
    expect(steps.map((step) => step.text)).toEqual(['half', 'and the rest.'])
  })

  it('[G1.4] before it said anything is a failed call', async () => {
    const clock = virtualClock()
    const model = scriptedModel([{ parts: [] }, { parts: [{ type: 'stream-start', warnings: [] }] }, 'Hi.'])
    const stream = await new Agent({ id: 'a', heed: recordedHeed(clock).heed, model }).stream('Go.')
    await clock.runAll()
    expect(await stream.text).toBe('Hi.')
    expect(await stream.steps).toHaveLength(1)
  })
})

describe('patience', () => {
  it('[G1.4] has an end: who asks for more than a minute is passed over', async () => {
    const busy = scriptedModel([{ error: { status: 429, headers: { 'retry-after': '3600' } } }])
    const { text } = await new Agent({ id: 'a', heed: recordedHeed(virtualClock()).heed, model: [busy, scriptedModel(['Hi.'])] }).generate('Go.')
    expect(text).toBe('Hi.')
    expect(busy.callCount).toBe(1)
  })

  it.each([
    ['retry-after-ms', '1500', 1_500],
    ['retry-after', '2', 2_000],
    ['retry-after', 'Thu, 01 Jan 2026 00:00:04 GMT', 4_000],
  ])('[G1.4] understands %s: %s', async (header, value, wait) => {
    const clock = virtualClock()
    const model = scriptedModel([{ error: { status: 429, headers: { [header]: value } } }, 'Hi.'])
    const stream = await new Agent({ id: 'a', heed: recordedHeed(clock).heed, model }).stream('Go.')
    await clock.advance(wait - 1)
    expect(model.callCount).toBe(1)
    await clock.advance(1)
    expect(await stream.text).toBe('Hi.')
  })

  it('is two retries a model by default', async () => {
    const failing = () => scriptedModel([{ error: { status: 500 } }], { loop: true })
    const tries = async (modelSettings?: { maxRetries: number }, maxRetries?: number) => {
      const clock = virtualClock()
      const model = failing()
      const agent = new Agent({ id: 'a', heed: recordedHeed(clock).heed, model: maxRetries === undefined ? model : [{ model, maxRetries }] })
      const stream = await agent.stream('Go.', modelSettings ? { modelSettings } : {})
      await clock.runAll()
      expect(await rejection(stream.result)).toMatchObject({ code: 'provider_error', retryable: true })
      return model.callCount
    }
    expect([await tries(), await tries({ maxRetries: 0 }), await tries({ maxRetries: 1 }), await tries({ maxRetries: 0 }, 3)]).toEqual([3, 1, 2, 4])
  })
})
