import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/agent/agent.ts'
import { hasToolCall, stepCountIs } from '../../src/run/options.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { rejection } from './asking.ts'

const tools = {
  look: createTool({ id: 'look', execute: async () => 'seen' }),
  done: createTool({ id: 'done', execute: async () => 'ok' }),
}
const looking = () => scriptedModel([{ text: 'Hm.', toolCalls: [{ toolName: 'look' }] }], { loop: true })

describe('a run ends', () => {
  it('after maxSteps model calls, with the results of the last step in it', async () => {
    const model = looking()
    const result = await new Agent({ id: 'a', model, tools }).generate('Go.', { maxSteps: 3 })
    expect(model.callCount).toBe(3)
    expect(result.finishReason).toBe('tool-calls')
    expect(result.steps.map((step) => step.toolResults.length)).toEqual([1, 1, 1])
    expect(result.text).toBe('Hm.')
  })

  it('after 20 by default', async () => {
    const model = looking()
    await new Agent({ id: 'a', model, tools }).generate('Go.')
    expect(model.callCount).toBe(20)
  })

  it('when stopWhen holds, or one of several', async () => {
    const counted = looking()
    await new Agent({ id: 'a', model: counted, tools }).generate('Go.', { stopWhen: stepCountIs(2) })
    expect(counted.callCount).toBe(2)
    const called = scriptedModel(({ index }) => ({ toolCalls: [{ toolName: index === 3 ? 'done' : 'look' }] }))
    const result = await new Agent({ id: 'a', model: called, tools }).generate('Go.', { stopWhen: [stepCountIs(9), hasToolCall('done')] })
    expect(called.callCount).toBe(4)
    expect(result.finishReason).toBe('tool-calls')
  })

  it('when a function of the steps says so, also later', async () => {
    const model = looking()
    const seen: number[] = []
    await new Agent({ id: 'a', model, tools }).generate('Go.', {
      stopWhen: async ({ steps }) => {
        seen.push(steps.length)
        return steps.at(-1)?.stepNumber === 1
      },
    })
    expect(seen).toEqual([1, 2])
    expect(model.callCount).toBe(2)
  })

  it('is not asked to stop after the last answer', async () => {
    const asked: number[] = []
    await new Agent({ id: 'a', model: scriptedModel(['Hi.']), tools }).generate('Go.', { stopWhen: ({ steps }) => asked.push(steps.length) > 99 })
    expect(asked).toEqual([])
  })

  it('fails when a stop condition does', async () => {
    const agent = new Agent({ id: 'a', model: looking(), tools })
    expect(await rejection(agent.generate('Go.', { stopWhen: () => Promise.reject(new Error('no idea')) }))).toMatchObject({ message: 'no idea' })
  })
})
