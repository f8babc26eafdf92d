import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { RequestContext } from '../run/request-context.ts'
import { createTool } from '../run/tools/tool.ts'
import { Agent } from '../agent/agent.ts'
import { scriptedModel } from '../testing/scripted-model.ts'
import type { WorkflowChunk } from './chunk.ts'
import { cloneStep, createStep, createWorkflow, mapVariable } from './index.ts'

const number = z.object({ n: z.number() })
const plus = <const Id extends string>(id: Id) => createStep({ id, inputSchema: number, outputSchema: number, execute: ({ inputData }) => ({ n: inputData.n + 1 }) })
const ask = createStep({
  id: 'ask', inputSchema: z.number(), outputSchema: z.number(), resumeSchema: z.object({ by: z.number() }), suspendSchema: z.object({ of: z.number() }),
  execute: ({ inputData, resumeData, suspendData, suspend }) => (resumeData ? inputData + resumeData.by + (suspendData?.of ?? 0) * 100 : suspend({ of: inputData }, { resumeLabel: `of-${inputData}` })),
})

async function chunksOf(stream: AsyncIterable<WorkflowChunk>): Promise<WorkflowChunk[]> {
  const chunks: WorkflowChunk[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return chunks
}

describe('a list', () => {
  const times = createStep({ id: 'times', inputSchema: z.number(), outputSchema: z.number(), execute: async ({ inputData }) => inputData * 10 })

  it('[F1.20] runs as many elements at a time as a function says, which is asked once', async () => {
    let [running, most, asked] = [0, 0, 0]
    const slow = createStep({
      id: 'slow', inputSchema: z.number(),
      async execute() {
        most = Math.max(most, ++running)
        await Promise.resolve()
        running--
      },
    })
    const workflow = (answer: unknown) => createWorkflow({ id: 'computed', inputSchema: z.array(z.number()) }).foreach(slow, {
      concurrency: ({ inputData, requestContext }) => {
        asked++
        expect(inputData).toEqual([1, 2, 3, 4, 5])
        return (requestContext.get('most') ?? answer) as number
      },
    }).commit()
    const run = workflow(2).createRun()
    expect(await run.start({ inputData: [1, 2, 3, 4, 5], requestContext: new RequestContext({ most: 3 }) })).toMatchObject({ status: 'success' })
    expect([most, asked]).toEqual([3, 1])
    for (const answer of [0, 1.5, 'two']) {
      most = 0
      const failed = await workflow(answer).createRun().start({ inputData: [1, 2, 3, 4, 5] })
      expect(failed).toMatchObject({ status: 'failed', error: { code: 'invalid_argument', message: expect.stringContaining('concurrency of foreach()') as string } })
      expect(most).toBe(0)
    }
    // A run that begins again within the list keeps the answer.
    asked = 0
    expect(await run.timeTravel({ step: '0[3]' })).toMatchObject({ status: 'success' })
    expect(asked).toBe(0)
  })

  it('[F1.26] tells of each element once, how many are done and of how many', async () => {
    const workflow = createWorkflow({ id: 'told', inputSchema: z.array(z.number()) }).foreach(times, { concurrency: 2 }).foreach(ask, { concurrency: 3 }).commit()
    const run = workflow.createRun()
    const told = (chunks: WorkflowChunk[]) => chunks.filter(({ type }) => type === 'workflow-step-progress').map(({ payload }) => payload)
    const first = told(await chunksOf(run.stream({ inputData: [1, 2, 3] }).fullStream))
    expect(first.slice(0, 3)).toEqual([1, 2, 3].map((n) => ({ id: 'times', completedCount: n, totalCount: 3, currentIndex: n - 1, iterationStatus: 'success', iterationOutput: n * 10 })))
    expect(first.slice(3)).toEqual([0, 1, 2].map((currentIndex) => ({ id: 'ask', completedCount: 0, totalCount: 3, currentIndex, iterationStatus: 'suspended' })))
    const rest = told(await chunksOf(run.resumeStream({ forEachIndex: 1, resumeData: { by: 1 } }).fullStream))
    expect(rest).toEqual([{ id: 'ask', completedCount: 1, totalCount: 3, currentIndex: 1, iterationStatus: 'success', iterationOutput: 2_021 }])
    const fails = createWorkflow({ id: 'fails', inputSchema: z.array(z.number()) }).foreach(createStep({ id: 'fail', execute: () => Promise.reject(new Error('no')) })).commit()
    expect(told(await chunksOf(fails.createRun().stream({ inputData: [1, 2] }).fullStream))).toEqual([{ id: 'fail', completedCount: 0, totalCount: 2, currentIndex: 0, iterationStatus: 'failed' }])
  })

  it('[F1.25] is resumed by the number of an element, and steps by id, name, path and label', async () => {
    const each = createWorkflow({ id: 'each', inputSchema: z.array(z.number()) }).foreach(ask, { concurrency: 9 }).commit()
    const run = each.createRun()
    expect(await run.start({ inputData: [1, 2, 3] })).toMatchObject({ suspended: ['0[0]', '0[1]', '0[2]'] })
    await expect(run.resume({ resumeData: { by: 1 } })).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(run.resume({ step: 'ask', forEachIndex: 3, resumeData: { by: 1 } })).rejects.toMatchObject({ code: 'run_not_suspended' })
    expect(await run.resume({ step: 'ask', forEachIndex: 1, resumeData: { by: 1 } })).toMatchObject({ suspended: ['0[0]', '0[2]'] })
    expect(await run.resume({ label: 'of-1', resumeData: { by: 1 } })).toMatchObject({ suspended: ['0[2]'] })
    expect(await run.resume({ step: ask, resumeData: { by: 1 } })).toMatchObject({ status: 'success', result: [102, 203, 304] })
    const inner = createWorkflow({ id: 'inner', inputSchema: z.number(), outputSchema: z.number() }).then(ask).commit()
    const outer = createWorkflow({ id: 'outer', inputSchema: z.number() }).parallel([inner, ask]).commit()
    for (const step of [['inner', 'ask'], 'inner.ask', '0.0/0']) {
      const nested = outer.createRun()
      await nested.start({ inputData: 1 })
      expect(await nested.resume({ step, resumeData: { by: 1 } })).toMatchObject({ suspended: ['0.1'] })
    }
  })
})

describe('a run that goes on one step at a time', () => {
  const ids = (result: { path: Array<{ stepId: string; status: string }> }) => result.path.filter(({ status }) => status === 'success').map(({ stepId }) => stepId)

  it('[F1.22] is paused behind each step, also beside each other, and goes on by resume(), of which the first counts', async () => {
    const workflow = createWorkflow({ id: 'steps', inputSchema: number, outputSchema: number })
      .then(plus('a')).parallel([plus('b'), plus('c')]).map(({ inputData }) => inputData.c).then(plus('d')).commit()
    const run = workflow.createRun()
    const first = await run.start({ inputData: { n: 0 }, perStep: true })
    expect([first.status, ids(first)]).toEqual(['paused', ['a']])
    const answers = await Promise.allSettled([run.resume({ perStep: true }), run.resume({ perStep: true })])
    expect(answers.map((answer) => (answer.status === 'fulfilled' ? answer.value.status : (answer.reason as { code: string }).code))).toEqual(['paused', 'run_not_suspended'])
    expect(ids((await run.status())!)).toEqual(['a', 'b'])
    await expect(run.resume({ step: 'b', resumeData: 1 })).rejects.toMatchObject({ code: 'run_not_suspended' })
    expect(ids(await run.resume({ perStep: true }))).toEqual(['a', 'b', 'c'])
    expect(await run.resume({ perStep: true })).toMatchObject({ status: 'success', result: { n: 3 } })
    await expect(run.resume()).rejects.toMatchObject({ code: 'run_not_suspended' })
    const rest = workflow.createRun()
    await rest.start({ inputData: { n: 0 }, perStep: true })
    expect(await rest.resume()).toMatchObject({ status: 'success', result: { n: 3 } })
    await expect(workflow.createRun().start({ inputData: { n: 0 }, perStep: 1 as never })).rejects.toMatchObject({ code: 'invalid_argument' })
  })

  it('[F1.22] waits for an answer as any, and pauses behind the step that got it; it is cancelled while it is paused', async () => {
    const workflow = createWorkflow({ id: 'asks', inputSchema: z.number() }).then(ask).then(cloneStep(ask, { id: 'again' })).commit()
    const run = workflow.createRun()
    expect(await run.start({ inputData: 1, perStep: true })).toMatchObject({ status: 'suspended', suspended: ['0'] })
    expect(await run.resume({ resumeData: { by: 1 }, perStep: true })).toMatchObject({ status: 'paused', steps: { ask: { output: 102 } } })
    expect(await run.resume({ perStep: true })).toMatchObject({ status: 'suspended', suspended: ['1'] })
    expect(await run.resume({ resumeData: { by: 1 }, perStep: true })).toMatchObject({ status: 'success' })
    const other = workflow.createRun()
    await other.start({ inputData: 1 })
    expect(await other.resume({ resumeData: { by: 1 }, perStep: true })).toMatchObject({ status: 'paused' })
    await other.cancel()
    expect(await other.status()).toMatchObject({ status: 'canceled' })
    const third = workflow.createRun()
    await third.start({ inputData: 1, perStep: true })
    // Without perStep, it goes on to its end.
    expect(await third.resume({ resumeData: { by: 1 } })).toMatchObject({ status: 'suspended', suspended: ['1'] })
  })

  it('[F1.22] is paused behind a step that was tried again, and not between its attempts', async () => {
    let tried = 0
    const flaky = createStep({ id: 'flaky', retries: 2, inputSchema: number, outputSchema: number, execute: ({ inputData }) => (++tried < 3 ? Promise.reject(new Error('no')) : inputData) })
    const workflow = createWorkflow({ id: 'flaky', inputSchema: number, retryConfig: { delay: 5 } }).parallel([flaky, plus('b')]).commit()
    const run = workflow.createRun()
    expect(ids(await run.start({ inputData: { n: 1 }, perStep: true }))).toEqual(['flaky'])
    expect([tried, (await run.status())?.status]).toEqual([3, 'paused'])
  })

  it('[F1.22] does so by every method that starts, resumes or begins again', async () => {
    const workflow = createWorkflow({ id: 'steps', inputSchema: number, outputSchema: number }).then(plus('a')).then(plus('b')).then(plus('c')).commit()
    const run = workflow.createRun()
    await run.startAsync({ inputData: { n: 0 }, perStep: true })
    await expect.poll(async () => (await run.status())?.status).toBe('paused')
    expect((await run.resumeStream({ perStep: true }).result).stepExecutionPath).toEqual(['a', 'b'])
    await run.resumeAsync()
    expect(await run.start({ inputData: { n: 0 } })).toMatchObject({ status: 'success', result: { n: 3 } })
    expect(await workflow.createRun().stream({ inputData: { n: 0 }, perStep: true }).status).toBe('paused')
    const travelled = run.timeTravelStream({ step: 'b', perStep: true, context: { a: { status: 'success', payload: { n: 8 }, output: { n: 9 }, startedAt: 1, endedAt: 2 } } })
    expect(await travelled.result).toMatchObject({ status: 'paused', steps: { a: { payload: { n: 8 }, startedAt: 1, endedAt: 2 }, b: { output: { n: 10 } } } })
    const asks = createWorkflow({ id: 'asks', inputSchema: z.array(z.number()) }).foreach(ask, { concurrency: 2 }).then(cloneStep(ask, { id: 'never' }) as never).commit()
    const list = asks.createRun()
    await list.start({ inputData: [1, 2] })
    expect(await list.timeTravelStream({ step: '0[1]', resumeData: { by: 1 }, perStep: true }).result).toMatchObject({ status: 'paused' })
    await list.resumeAsync({ forEachIndex: 0, resumeData: { by: 1 } })
    await expect.poll(async () => (await list.status())?.steps.ask?.status).toBe('suspended')
    await list.resumeAsync({ forEachIndex: 1, resumeData: { by: 1 }, perStep: true })
    await expect.poll(async () => (await list.status())?.status).toBe('paused')
  })

  it('[F1.26] publishes that it is paused; its stream ends there', async () => {
    const run = createWorkflow({ id: 'steps', inputSchema: number }).then(plus('a')).then(plus('b')).commit().createRun()
    const stream = run.stream({ inputData: { n: 0 }, perStep: true })
    expect((await chunksOf(stream.fullStream)).map(({ type }) => type)).toEqual(['workflow-start', 'workflow-step-start', 'workflow-step-result', 'workflow-step-finish', 'workflow-paused'])
    expect(await stream.status).toBe('paused')
  })
})

describe('the stream of a run', () => {
  it('[F1.24] ends at a suspension, or with closeOnSuspend: false at the end of the run', async () => {
    const run = createWorkflow({ id: 'asks', inputSchema: z.number() }).then(ask).commit().createRun()
    const whole = run.stream({ inputData: 1, closeOnSuspend: false })
    const types: string[] = []
    const suspended = Promise.withResolvers<void>()
    const reading = (async () => {
      for await (const { type } of whole.fullStream) {
        types.push(type)
        if (type === 'workflow-suspended') suspended.resolve()
      }
    })()
    await suspended.promise
    await run.resume({ resumeData: { by: 1 } })
    await reading
    expect([types.filter((type) => type === 'workflow-suspended' || type === 'workflow-finish'), await whole.status, await whole.result]).toMatchObject([['workflow-suspended', 'workflow-finish'], 'success', { result: 102 }])
    expect(await whole.usage).toBeUndefined()
    expect(() => run.stream({ inputData: 1, closeOnSuspend: 'no' as never })).toThrow('closeOnSuspend')
    const observed: string[] = []
    for await (const { type } of run.observeStream()) observed.push(type)
    expect(observed).toEqual(['workflow-snapshot'])
  })

  it('[F1.24] has what the agents of the steps took', async () => {
    const agent = new Agent({ id: 'poet', model: scriptedModel(['A verse.']) })
    const stream = createWorkflow({ id: 'poem' }).map(() => ({ prompt: 'Write.' })).agent(agent).commit().createRun().stream()
    await chunksOf(stream.fullStream)
    expect(await stream.usage).toMatchObject({ totalTokens: expect.any(Number) as number })
  })
})

describe('a run that begins again', () => {
  const workflow = () => createWorkflow({ id: 'way', inputSchema: number }).then(plus('a')).then(plus('b')).map(({ inputData }) => inputData.n).then(ask).commit()

  it('[F1.23] calls the step with resumeData, as one that was resumed with what it had asked', async () => {
    const run = workflow().createRun()
    await run.start({ inputData: { n: 1 } })
    expect(await run.timeTravel({ step: 'ask', resumeData: { by: 1 } })).toMatchObject({ status: 'success', result: 304 })
    expect(await run.timeTravel({ step: 'ask', inputData: 7, resumeData: { by: 1 } })).toMatchObject({ result: 308 })
    // What the map made of the recorded output counts no longer.
    expect(await run.timeTravel({ step: 'ask', context: { b: { output: { n: 50 } } }, resumeData: { by: 1 } })).toMatchObject({ result: 351, steps: { ask: { payload: 50 } } })
    await expect(run.timeTravel({ step: 'ask', resumeData: { by: 'x' } })).rejects.toMatchObject({ code: 'invalid_argument' })
    expect(await run.status()).toMatchObject({ status: 'suspended' })
  })

  it('[F1.23] takes what earlier steps have given from context, also where the run has not come so far', async () => {
    const run = workflow().createRun()
    await run.start({ inputData: { n: 1 } })
    const other = await run.timeTravel({ step: 'b', context: { a: { output: { n: 40 } } } })
    expect(other).toMatchObject({ status: 'suspended', steps: { a: { output: { n: 40 } }, b: { payload: { n: 40 } } }, suspendPayload: { 3: { of: 41 } } })
    const fails = createStep({ id: 'a', inputSchema: number, outputSchema: number, execute: () => Promise.reject(new Error('no')) })
    const failing = createWorkflow({ id: 'failing', inputSchema: number }).then(fails).then(plus('b')).branch([[() => false, plus('c')], [() => true, plus('d')]]).map(() => ({ n: 5 })).then(plus('e')).commit()
    const failed = failing.createRun()
    expect(await failed.start({ inputData: { n: 1 } })).toMatchObject({ status: 'failed' })
    await expect(failed.timeTravel({ step: 'b' })).rejects.toMatchObject({ code: 'invalid_argument', message: expect.stringContaining("'a' before it has none") as string })
    expect(await failed.timeTravel({ step: 'b', context: { a: { status: 'success', payload: { n: 1 }, output: { n: 2 }, startedAt: 1, endedAt: 2 } } }))
      .toMatchObject({ status: 'success', steps: { a: { payload: { n: 1 }, startedAt: 1, endedAt: 2 }, b: { output: { n: 3 } } } })
    // Into a branch that its condition would not choose.
    const context = { a: { output: { n: 2 } }, b: { output: { n: 3 } } }
    expect((await failed.timeTravel({ step: 'c', context })).stepExecutionPath).toEqual(['a', 'b', 'c', 'e'])
    await expect(failed.timeTravel({ step: 'e', context })).rejects.toMatchObject({ message: expect.stringContaining("'c|d' before it has none") as string })
    expect(await failed.timeTravel({ step: 'e', context: { ...context, d: { output: { n: 4 } } } })).toMatchObject({ status: 'success', result: { n: 6 } })
    const wrong: Array<Record<string, unknown>> = [{ e: { output: 1 } }, { none: { output: 1 } }, { a: { status: 'failed' } }, { a: 1 }, { a: { output: 1, startedAt: 'x' } }]
    for (const given of wrong) await expect(failed.timeTravel({ step: 'b', context: given as never })).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(failed.timeTravel({ step: 'b', context: { a: { outputs: 1 } as never } })).rejects.toMatchObject({ code: 'unsupported_option' })
  })

  it('[F1.23] begins in a workflow within, by the name of its step', async () => {
    const inner = createWorkflow({ id: 'inner', inputSchema: number, outputSchema: number }).then(plus('a')).then(plus('b')).commit()
    const fails = createStep({ id: 'first', inputSchema: number, outputSchema: number, execute: () => Promise.reject(new Error('no')) })
    const run = createWorkflow({ id: 'outer', inputSchema: number }).then(fails).then(inner).commit().createRun()
    await run.start({ inputData: { n: 1 } })
    const context = { first: { output: { n: 5 } }, 'inner.a': { output: { n: 10 } } }
    expect(await run.timeTravel({ step: ['inner', 'b'], context })).toMatchObject({ status: 'success', result: { n: 11 } })
    await expect(run.timeTravel({ step: 'inner.b', context: { first: { output: { n: 5 } } } })).rejects.toMatchObject({ message: expect.stringContaining("'a' before it has none") as string })
  })

  it('[F1.22] goes on one step at a time', async () => {
    const run = workflow().createRun()
    await run.start({ inputData: { n: 1 } })
    const again = await run.timeTravel({ step: 'a', perStep: true })
    expect([again.status, again.stepExecutionPath]).toEqual(['paused', ['a']])
  })
})

describe('the description of a workflow', () => {
  it('[F1.27] is in its description, its records and its chunks', async () => {
    const about = { description: 'Why', metadata: { team: 'a' } }
    const tool = createTool({ id: 'lookup', inputSchema: number, outputSchema: number, execute: async (given) => given })
    const agent = new Agent({ id: 'poet', model: scriptedModel(['A verse.', '{"n":9}']) })
    const prompted = (id: string) => ({ id, ...about })
    const workflow = createWorkflow({ id: 'described', inputSchema: number, ...about })
      .tool(tool, { id: 'looked', ...about })
      .parallel([plus('a')], { id: 'both', ...about })
      .map(({ inputData }) => inputData.a)
      .branch([[() => true, cloneStep(plus('a'), { id: 'b' })]], { id: 'one', ...about })
      .map(() => [1], { id: 'listed', ...about })
      .foreach(createStep({ id: 'each', inputSchema: z.number(), outputSchema: z.number(), metadata: { of: 'each' }, description: 'Each', execute: ({ inputData }) => inputData }), { id: 'all', ...about })
      .map(() => ({ n: 1 }), prompted('counted'))
      .dowhile(plus('c'), () => false, { id: 'while', ...about }).dountil(plus('d'), () => true, { id: 'until', ...about })
      .sleep(0, { id: 'nap', ...about }).sleepUntil(new Date(0), { id: 'night', ...about })
      .map(() => ({ prompt: 'Write.' }))
      .agent(agent, { id: 'writes', ...about })
      .map(() => ({ prompt: 'Count.' }))
      .agent(agent, { structuredOutput: { schema: number } })
      .commit()
    const { steps } = workflow.describe()
    expect(steps.map(({ type, id, description }) => [type, id, description])).toEqual([
      ['step', 'looked', 'Why'], ['parallel', 'both', 'Why'], ['map', 'map-2', undefined], ['branch', 'one', 'Why'], ['map', 'listed', 'Why'], ['foreach', 'all', 'Why'], ['map', 'counted', 'Why'], ['loop', 'while', 'Why'],
      ['loop', 'until', 'Why'], ['sleep', 'nap', 'Why'], ['sleepUntil', 'night', 'Why'], ['map', 'map-11', undefined], ['step', 'writes', 'Why'], ['map', 'map-13', undefined], ['step', 'poet', undefined],
    ])
    expect(steps.filter(({ metadata }) => metadata !== undefined)).toHaveLength(11)
    expect(steps[5]?.steps).toEqual([{ type: 'step', id: 'each', description: 'Each', metadata: { of: 'each' } }])
    const stream = workflow.createRun().stream({ inputData: { n: 1 } })
    const finished = (await chunksOf(stream.fullStream)).filter(({ type }) => type === 'workflow-step-finish').map(({ payload }) => payload)
    expect(finished).toContainEqual({ id: 'each', metadata: { of: 'each' } })
    const result = await stream.result
    expect(result).toMatchObject({ status: 'success', result: { n: 9 }, steps: { each: { metadata: { of: 'each' } }, looked: { metadata: { team: 'a' } } } })
    expect(result.steps.a).not.toHaveProperty('metadata')
    expect(result.stepExecutionPath).toEqual(['looked', 'a', 'b', 'each', 'c', 'd', 'writes', 'poet'])
    expect(() => createWorkflow({ id: 'x' }).sleep(1, { id: 'a/b' })).toThrow('id of sleep()')
    expect(() => createWorkflow({ id: 'x' }).waitForEvent('go', { id: 'a' } as never)).toThrow('called without an id')
    expect(createWorkflow({ id: 'x' }).waitForEvent('go', about).commit().describe().steps).toEqual([{ type: 'event', id: 'go', ...about }])
  })
})

describe('a field of a map', () => {
  it('[F1.28] is what its schema makes of it, and fails the run by its name otherwise', async () => {
    const tier = mapVariable({ requestContextPath: 'tier', schema: z.string().transform((text) => text.length) })
    const mapped = createWorkflow({ id: 'mapped', inputSchema: number }).map({
      tier, n: { initData: true, path: 'n', schema: z.number().max(5) }, fixed: { value: 7, schema: z.number() }, made: { fn: () => 'x', schema: z.literal('x') },
    }).commit()
    const requestContext = new RequestContext({ tier: 'gold' })
    expect(await mapped.createRun().start({ inputData: { n: 3 }, requestContext })).toMatchObject({ result: { tier: 4, n: 3, fixed: 7, made: 'x' } })
    expect(await mapped.createRun().start({ inputData: { n: 6 }, requestContext })).toMatchObject({ status: 'failed', error: { code: 'step_input_invalid', message: expect.stringContaining("Field 'n' of map()") as string } })
    expect(() => mapVariable({ value: 1, path: 'x' } as never)).toThrow("has no 'path'")
    expect(() => mapVariable({} as never)).toThrow('must have one of')
    expect(() => createWorkflow({ id: 'x' }).map({ a: { initData: mapped } } as never)).toThrow('must be true')
  })
})

describe('a workflow that is called when its runs start and end', () => {
  it('[F1.21] may refuse a run before its first step, and is called once', async () => {
    const begun = vi.fn(() => 1)
    const seen: unknown[] = []
    const workflow = createWorkflow({
      id: 'guarded', inputSchema: number, stateSchema: z.object({ s: z.number() }),
      options: {
        async onStart({ inputData, state, runId, workflowId, resourceId, requestContext }) {
          seen.push([inputData, state, runId, workflowId, resourceId, requestContext.get('tenant')])
          if (inputData.n > 5) throw new TypeError('too much')
        },
      },
    }).then(createStep({ id: 'any', execute: begun, inputSchema: number, outputSchema: z.number() })).then(ask).commit()
    const run = workflow.createRun({ runId: 'r1', resourceId: 'u1' })
    expect(await run.start({ inputData: { n: 1 }, initialState: { s: 2 }, requestContext: new RequestContext({ tenant: 'acme' }) })).toMatchObject({ status: 'suspended' })
    await run.resume({ resumeData: { by: 1 } })
    expect(seen).toEqual([[{ n: 1 }, { s: 2 }, 'r1', 'guarded', 'u1', 'acme']])
    begun.mockClear()
    const refused = await workflow.createRun().start({ inputData: { n: 6 } })
    expect(refused).toMatchObject({ status: 'failed', error: { message: 'too much', details: { name: 'TypeError' } }, path: [] })
    expect(begun).not.toHaveBeenCalled()
  })

  it('[F4.15] receives the end of a run in memory, and errors of it change nothing', async () => {
    const told: unknown[] = []
    const errors = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => errors.mockRestore())
    const workflow = createWorkflow({
      id: 'told', inputSchema: z.boolean(),
      options: {
        onFinish({ status, runId, workflowId, steps }) {
          told.push(['finish', status, runId, workflowId, Object.keys(steps)])
          throw new Error('ignored')
        },
        onError: ({ status, error }) => void told.push(['error', status, error.message]),
      },
    }).then(createStep({ id: 'any', inputSchema: z.boolean(), execute: ({ inputData }) => (inputData ? 1 : Promise.reject(new Error('no'))) })).commit()
    expect(await workflow.createRun({ runId: 'r1' }).start({ inputData: true })).toMatchObject({ status: 'success', result: 1 })
    expect(await workflow.createRun({ runId: 'r2' }).start({ inputData: false })).toMatchObject({ status: 'failed' })
    await expect.poll(() => told).toEqual([['finish', 'success', 'r1', 'told', ['any']], ['finish', 'failed', 'r2', 'told', ['any']], ['error', 'failed', 'no']])
  })
})

it('[F1.29] options of other engines are rejected with what takes their place', async () => {
  const workflow = createWorkflow({ id: 'own' }).then(createStep({ id: 'any', execute: () => 1 })).commit()
  const run = workflow.createRun()
  await expect(run.start({ outputOptions: { includeState: true } } as never)).rejects.toMatchObject({ code: 'unsupported_option', message: expect.stringContaining('always has state') as string })
  await run.start()
  await expect(run.timeTravel({ step: 'any', nestedStepsContext: {} } as never)).rejects.toMatchObject({ code: 'unsupported_option', message: expect.stringContaining("'workflow.step'") as string })
  await expect(run.resume({ requestContext: {} } as never)).rejects.toMatchObject({ code: 'unsupported_option', message: expect.stringContaining('started with') as string })
  const instead: Record<string, unknown> = { shouldPersistSnapshot: 'stored step by step', pruneSnapshot: 'deleteWorkflowRunById', autoRestartActiveRuns: 'another process' }
  for (const [name, message] of Object.entries(instead))
    expect(() => createWorkflow({ id: 'x', options: { [name]: true } } as never)).toThrow(expect.objectContaining({ code: 'unsupported_option', message: expect.stringContaining(String(message)) as string }) as Error)
  expect(() => createWorkflow({ id: 'x', type: 'processor' } as never)).toThrow('recognized by its steps')
})

it('[F4.16] a run is read with the fields that are named, and without the steps of workflows within', async () => {
  const inner = createWorkflow({ id: 'inner', inputSchema: number, outputSchema: number }).then(plus('a')).commit()
  const workflow = createWorkflow({ id: 'outer', inputSchema: number, outputSchema: number }).then(inner).then(plus('b')).commit()
  await workflow.createRun({ runId: 'r1' }).start({ inputData: { n: 1 } })
  expect(await workflow.getWorkflowRunById('r1', { fields: ['status', 'result', 'error'] })).toEqual({ status: 'success', result: { n: 3 } })
  expect(Object.keys((await workflow.getWorkflowRunById('r1'))?.steps ?? {})).toEqual(['inner.a', 'b'])
  expect(Object.keys((await workflow.getWorkflowRunById('r1', { withNestedWorkflows: false }))?.steps ?? {})).toEqual(['b'])
  await expect(workflow.getWorkflowRunById('r1', { fields: ['none' as never] })).rejects.toMatchObject({ code: 'invalid_argument' })
  await expect(workflow.getWorkflowRunById('r1', { withNestedWorkflows: 'no' as never })).rejects.toMatchObject({ code: 'invalid_argument' })
  expect(await workflow.getWorkflowRunById('none', { fields: ['status'] })).toBeNull()
})
