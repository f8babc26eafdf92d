import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/agent/agent.ts'
import type { AgentExecutionOptions } from '../../src/run/options.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { chunksOf, recordedHeed, refuseStrayRejections, rejection, turn, typesOf } from './asking.ts'

const tools = { look: createTool({ id: 'look', execute: async () => 'seen' }) }
const twoSteps = () => scriptedModel([{ toolCalls: [{ toolName: 'look' }] }, 'Hi.'])

describe('callbacks', () => {
  refuseStrayRejections()

  it('hear of every chunk, step and end', async () => {
    const heard: string[] = []
    const chunks: string[] = []
    const options: AgentExecutionOptions<never> = {
      onChunk: (chunk) => void chunks.push(chunk.type),
      onStepFinish: (step) => void heard.push(`step ${step.stepNumber} ${step.finishReason}`),
      onFinish: (result) => void heard.push(`finish ${result.text} ${result.steps.length}`),
      onError: () => void heard.push('error'),
      onAbort: () => void heard.push('abort'),
    }
    const stream = await new Agent({ id: 'a', model: twoSteps(), tools }).stream('Go.', options)
    expect(typesOf(await chunksOf(stream))).toEqual(chunks)
    expect(heard).toEqual(['step 0 tool-calls', 'step 1 stop', 'finish Hi. 2'])
    chunks.length = 0
    await new Agent({ id: 'a', model: twoSteps(), tools }).generate('Go.', options)
    expect(chunks[0]).toBe('start')
    expect(chunks.at(-1)).toBe('finish')
  })

  it('of the default options hear as well', async () => {
    const heard: string[] = []
    const defaultOptions = { onChunk: () => void heard.push('chunk'), onFinish: () => void heard.push('finish') }
    await new Agent({ id: 'a', model: scriptedModel(['Hi.']), defaultOptions }).generate('Go.')
    expect(heard.filter((word) => word === 'chunk').length).toBeGreaterThan(5)
    expect(heard.filter((word) => word === 'finish')).toHaveLength(1)
  })

  it('hear of an error, once', async () => {
    const { heed } = recordedHeed()
    const errors: unknown[] = []
    const finished: unknown[] = []
    const agent = new Agent({ id: 'a', heed, model: scriptedModel([{ error: { status: 400, message: 'bad' } }]) })
    const thrown = await rejection(agent.generate('Go.', { onError: ({ error }) => void errors.push(error), onFinish: (result) => void finished.push(result) }))
    expect(errors).toEqual([thrown])
    expect(finished).toEqual([])
  })

  it('hear of an abort, with the steps that were', async () => {
    const stop = new AbortController()
    const heard: unknown[] = []
    const tool = createTool({ id: 'look', execute: async () => stop.abort() })
    const stream = await new Agent({ id: 'a', model: twoSteps(), tools: { look: tool } }).stream('Go.', {
      abortSignal: stop.signal,
      onAbort: ({ steps }) => void heard.push(steps.map((step) => step.toolCalls.length)),
    })
    await stream.consumeStream()
    expect(heard).toEqual([[1]])
  })

  it.each(['throws', 'rejects'] as const)('that fail are logged and do not change the run: each %s', async (how) => {
    const { heed, logged } = recordedHeed()
    const fail = () => {
      if (how === 'throws') throw new Error('callback broke')
      return Promise.reject(new Error('callback broke'))
    }
    const agent = new Agent({ id: 'a', heed, model: twoSteps(), tools })
    const result = await agent.generate('Go.', { onChunk: fail, onStepFinish: fail, onFinish: fail })
    await turn()
    expect(result.text).toBe('Hi.')
    expect(new Set(logged)).toEqual(new Set(["onChunk of agent 'a' failed", "onStepFinish of agent 'a' failed", "onFinish of agent 'a' failed"]))
    const failing = new Agent({ id: 'a', heed, model: scriptedModel([{ error: { status: 400 } }]) })
    expect(await rejection(failing.generate('Go.', { onError: fail }))).toMatchObject({ code: 'provider_error' })
    await turn()
    expect(logged).toContain("onError of agent 'a' failed")
  })

  it('are not waited for', async () => {
    const never = new Promise<void>(() => {})
    const { text } = await new Agent({ id: 'a', model: twoSteps(), tools }).generate('Go.', { onStepFinish: () => never, onFinish: () => never })
    expect(text).toBe('Hi.')
  })
})
