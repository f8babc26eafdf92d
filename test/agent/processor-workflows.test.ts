import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/agent/agent.ts'
import type { Message } from '../../src/message/message.ts'
import type { Processor } from '../../src/processors/processor.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { createStep, createWorkflow, ProcessorStepSchema } from '../../src/workflow/index.ts'
import { userTexts } from '../thread/said.ts'
import { refuseStrayRejections } from './asking.ts'

const change = (message: Message, from: RegExp, to: string): Message => ({
  ...message,
  content: { ...message.content, parts: message.content.parts.map((part) => (part.type === 'text' ? { ...part, text: part.text.replace(from, to) } : part)) },
})
const replacing = (id: string, from: RegExp, to: string): Processor => ({ id, processInput: ({ messages }) => messages.map((message) => change(message, from, to)) })
const guard: Processor = {
  id: 'guard',
  processInput({ messages, abort }) {
    if (JSON.stringify(messages).includes('forbidden')) abort('Not here.')
    return messages
  },
}
const of = (...processors: Processor[]) => createWorkflow({ id: 'checks', inputSchema: ProcessorStepSchema, outputSchema: ProcessorStepSchema })
  .parallel(processors.map((processor) => createStep(processor))) as unknown as { commit(): ReturnType<typeof series> }
const series = (...processors: Processor[]) => {
  const workflow = createWorkflow({ id: 'series', inputSchema: ProcessorStepSchema, outputSchema: ProcessorStepSchema })
  for (const processor of processors) workflow.then(createStep(processor))
  return workflow.commit()
}

describe('a workflow in a list of processors', () => {
  refuseStrayRejections()

  it('[F3.1] in series, does what the same processors do in the list', async () => {
    const [upper, twice] = [replacing('one', /a/, 'b'), replacing('two', /b/, 'c')]
    for (const inputProcessors of [[upper, twice], [series(upper, twice)], () => [series(upper, twice)]]) {
      const model = scriptedModel(['Hi.'])
      await new Agent({ id: 'a', model, inputProcessors }).generate('a')
      expect(userTexts(model.calls[0])).toEqual(['c'])
    }
    const model = scriptedModel(['Hi.'])
    await new Agent({ id: 'a', model }).generate('a', { inputProcessors: [series(upper, twice) as unknown as Processor] })
    expect(userTexts(model.calls[0])).toEqual(['c'])
  })

  it('[F3.1] in parallel, joins what each of them changed by the ids of the messages', async () => {
    const model = scriptedModel(['Hi.'])
    const first: Processor = { id: 'first', processInput: ({ messages }) => messages.map((message, index) => (index === 0 ? change(message, /one/, '1') : message)) }
    const second: Processor = { id: 'second', processInput: ({ messages }) => messages.map((message, index) => (index === 1 ? change(message, /two/, '2') : message)) }
    await new Agent({ id: 'a', model, inputProcessors: [of(first, second).commit()] }).generate(['one', 'two'])
    expect(userTexts(model.calls[0])).toEqual(['1', '2'])
  })

  it('[F3.1] of an answer sees each chunk, without a run for it', async () => {
    const seen: string[] = []
    const watch = (id: string): Processor => ({ id, processOutputStream({ part }) { if (part.type === 'text-delta') seen.push(`${id} ${part.payload.text}`) } })
    const drop: Processor = { id: 'drop', processOutputStream: ({ part }) => (part.type === 'text-delta' ? { ...part, payload: { ...part.payload, text: '*' } } : part) }
    const { text } = await new Agent({ id: 'a', model: scriptedModel(['secret']), outputProcessors: [of(watch('x'), drop).commit()] }).generate('Go.')
    expect(text).toBe('*'.repeat(seen.length))
    expect(seen.length).toBeGreaterThan(0)
  })

  it('[F3.2] rejects in the name of the processor that rejected', async () => {
    const model = scriptedModel(['Hi.'])
    for (const workflow of [of(guard, replacing('r', /x/, 'y')).commit(), series(guard)]) {
      const result = await new Agent({ id: 'a', model, inputProcessors: [workflow] }).generate('forbidden')
      expect(result).toMatchObject({ finishReason: 'tripwire', tripwire: { reason: 'Not here.', processorId: 'guard' } })
    }
    expect(model.callCount).toBe(0)
  })

  it('[F3.2] fails the run where one of them fails, or two change one message differently', async () => {
    const model = scriptedModel(['Hi.'])
    const broken: Processor = { id: 'broken', processInput: () => Promise.reject(new Error('no')) }
    await expect(new Agent({ id: 'a', model, inputProcessors: [of(broken, guard).commit()] }).generate('a')).rejects.toMatchObject({ code: 'processor_failed' })
    const clash = of(replacing('one', /a/, 'b'), replacing('two', /a/, 'c')).commit()
    await expect(new Agent({ id: 'a', model, inputProcessors: [clash] }).generate('a')).rejects.toMatchObject({ code: 'processor_failed', message: expect.stringContaining('different changes') })
    expect(model.callCount).toBe(0)
  })

  it('[F3.3] is rejected when the agent is made, where it has other steps', () => {
    const plain = createWorkflow({ id: 'plain' }).then(createStep({ id: 'x', execute: () => 1 })).commit()
    const slept = createWorkflow({ id: 'slept', inputSchema: ProcessorStepSchema }).then(createStep(guard)).sleep(1).commit()
    const stateful: Processor = { id: 'stateful', computeStateSignal: () => undefined }
    for (const [workflow, message] of [[plain, "its step 'x' must be made of a processor"], [slept, 'and has sleep'], [series(stateful), 'has computeStateSignal']] as const) {
      expect(() => new Agent({ id: 'a', inputProcessors: [workflow] })).toThrow(message)
    }
    const config = { inputSchema: ProcessorStepSchema }
    const hooked = createWorkflow({ id: 'hooked', ...config, options: { onFinish: () => {} } }).then(createStep(guard)).commit()
    const scheduled = createWorkflow({ id: 'scheduled', ...config, schedule: { cron: '@daily' } }).then(createStep(guard)).commit()
    for (const [workflow, message] of [[hooked, 'remove onFinish'], [scheduled, 'remove schedule']] as const)
      expect(() => new Agent({ id: 'a', inputProcessors: [workflow] })).toThrow(message)
    expect(() => new Agent({ id: 'a', inputProcessors: [{ id: 'foreign', createRun: () => ({}) } as never] })).toThrow('not of heed/workflows')
  })
})
