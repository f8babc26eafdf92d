import type { LanguageModelV4 } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/agent/agent.ts'
import { HeedError } from '../../src/base/errors.ts'
import type { Processor } from '../../src/processors/processor.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { chunksOf, of, recordedHeed, refuseStrayRejections, rejection, typesOf } from './asking.ts'

/** A model that throws this instead of answering. */
function throwing(error: unknown): LanguageModelV4 {
  return Object.assign(scriptedModel([]), {
    doStream: async () => {
      throw error
    },
  })
}

function unreadable(): Error {
  const getter = { get: (): never => { throw new Error('not even this') } }
  return Object.defineProperties(new Error(), { message: getter, name: getter, statusCode: getter })
}

describe.each(['closed', 'fenced'] as const)('an error of a foreign package with the code %s', (code) => {
  refuseStrayRejections()
  const error = () => new HeedError(code, 'something else was closed')

  it('ends the run like any other when a model throws it', async () => {
    const stream = await new Agent({ id: 'a', heed: recordedHeed().heed, model: throwing(error()) }).stream('Go.')
    expect(of(await chunksOf(stream), 'error')).toMatchObject([{ payload: { error: { code, message: 'something else was closed' } } }])
    expect(await rejection(stream.result)).toMatchObject({ code })
  })

  it.each(['processInput', 'processInputStep', 'processOutputStream', 'processOutputStep', 'processOutputResult'] as const)('is a failure of the processor whose %s throws it', async (hook) => {
    const processor: Processor = { id: 'p', [hook]: () => { throw error() } }
    const agent = new Agent({ id: 'a', heed: recordedHeed().heed, model: scriptedModel(['Hi.']), inputProcessors: [processor], outputProcessors: [processor] })
    const stream = await agent.stream('Go.')
    expect(typesOf(await chunksOf(stream)).at(-1)).toBe('error')
    expect(await rejection(stream.result)).toMatchObject({ code: 'processor_failed', message: expect.stringContaining('something else was closed') })
  })

  it('is reported to the model when a tool throws it', async () => {
    const t = createTool({ id: 't', execute: () => Promise.reject(error()) })
    const { text, toolResults } = await new Agent({ id: 'a', model: scriptedModel([{ toolCalls: [{ toolName: 't' }] }, 'Done.']), tools: { t } }).generate('Go.')
    expect([text, toolResults[0]?.isError]).toEqual(['Done.', true])
  })
})

describe('an error that can\'t be read', () => {
  refuseStrayRejections()

  it('ends the run like any other when a model throws it, also in the middle', async () => {
    const { heed } = recordedHeed()
    const stream = await new Agent({ id: 'a', heed, model: throwing(unreadable()) }).stream('Go.')
    expect(of(await chunksOf(stream), 'error')).toMatchObject([{ payload: { error: { code: 'provider_error' } } }])
    const broken = scriptedModel([{ parts: [{ type: 'text-delta', id: 't', delta: 'a' }, { type: 'error', error: unreadable() }] }])
    expect(await rejection(new Agent({ id: 'a', heed, model: broken }).generate('Go.'))).toMatchObject({ code: 'stream_broken' })
  })

  it('is a failure of the processor that throws it', async () => {
    const processor: Processor = { id: 'p', processInput: () => { throw unreadable() } }
    const agent = new Agent({ id: 'a', heed: recordedHeed().heed, model: scriptedModel(['Hi.']), inputProcessors: [processor] })
    expect(await rejection(agent.generate('Go.'))).toMatchObject({ code: 'processor_failed' })
  })

  it('ends the run when a condition throws it', async () => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 't' }] }, 'never'])
    const agent = new Agent({ id: 'a', heed: recordedHeed().heed, model, tools: { t: createTool({ id: 't', execute: async () => 1 }) } })
    const stream = await agent.stream('Go.', { stopWhen: () => { throw unreadable() } })
    expect(typesOf(await chunksOf(stream)).at(-1)).toBe('error')
    expect(await rejection(stream.result)).toMatchObject({ message: expect.any(String) })
  })

  it('of a callback is logged', async () => {
    const { heed, logged } = recordedHeed()
    const { text } = await new Agent({ id: 'a', heed, model: scriptedModel(['Hi.']) }).generate('Go.', { onFinish: () => { throw unreadable() } })
    expect(text).toBe('Hi.')
    expect(logged).toContainEqual(expect.stringContaining('onFinish'))
  })
})
