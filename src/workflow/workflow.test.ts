import { setImmediate } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { RequestContext } from '../run/request-context.ts'
import { virtualClock } from '../testing/virtual-clock.ts'
import { cloneStep, cloneWorkflow, createStep, createWorkflow } from './index.ts'
import { MemoryPlace } from './place/memory-place.ts'
import { WorkflowRun } from './run.ts'

const number = z.object({ n: z.number() })
const add = createStep({ id: 'add', inputSchema: number, outputSchema: number, execute: async ({ inputData }) => ({ n: inputData.n + 1 }) })
const double = createStep({ id: 'double', inputSchema: number, outputSchema: number, execute: ({ inputData }) => ({ n: inputData.n * 2 }) })

describe('the steps of a workflow in memory', () => {
  it('[F1.1] run one after the other, each with what the one before it gave', async () => {
    const workflow = createWorkflow({ id: 'sum', inputSchema: number, outputSchema: number }).then(add).then(double).commit()
    const result = await workflow.createRun().start({ inputData: { n: 3 } })
    expect(result).toMatchObject({ status: 'success', result: { n: 8 }, steps: { add: { output: { n: 4 } }, double: { payload: { n: 4 } } } })
  })

  it('[F1.2] run beside each other in parallel(), and give their outputs by their ids', async () => {
    const workflow = createWorkflow({ id: 'both', inputSchema: number }).parallel([add, double]).commit()
    expect(await workflow.createRun().start({ inputData: { n: 3 } })).toMatchObject({ result: { add: { n: 4 }, double: { n: 6 } } })
  })

  it('[F1.3] of branch() run where their conditions are true, which are asked once; with `first` only the first of them', async () => {
    let asked = 0
    const branches = [
      [() => ++asked > 0, add],
      [({ inputData }: { inputData: { n: number } }) => inputData.n > 1, double],
      [() => false, cloneStep(add, { id: 'never' })],
    ] as const
    const all = createWorkflow({ id: 'all', inputSchema: number }).branch(branches).commit()
    expect(await all.createRun().start({ inputData: { n: 3 } })).toMatchObject({ result: { add: { n: 4 }, double: { n: 6 } } })
    expect(asked).toBe(1)
    const first = createWorkflow({ id: 'first', inputSchema: number }).branch(branches, { first: true }).commit()
    expect((await first.createRun().start({ inputData: { n: 3 } })) as { result: unknown }).toMatchObject({ status: 'success', result: { add: { n: 4 } } })
    expect(await first.createRun().start({ inputData: { n: 3 } })).not.toHaveProperty('result.double')
  })

  it('[F1.4] of foreach() run for each element, so many at a time, and give a list in the order of the elements', async () => {
    let running = 0
    let most = 0
    const slow = createStep({
      id: 'slow', inputSchema: z.number(), outputSchema: z.number(),
      async execute({ inputData }) {
        most = Math.max(most, ++running)
        await Promise.resolve()
        running--
        return inputData * 10
      },
    })
    const workflow = createWorkflow({ id: 'each', inputSchema: z.array(z.number()) }).foreach(slow, { concurrency: 2 }).commit()
    expect(await workflow.createRun().start({ inputData: [1, 2, 3, 4, 5] })).toMatchObject({ result: [10, 20, 30, 40, 50] })
    expect(most).toBe(2)
    expect(await workflow.createRun().start({ inputData: [] })).toMatchObject({ status: 'success', result: [] })
  })

  it('[F1.5] of dowhile() and dountil() run again with what they gave, as their conditions say', async () => {
    const seen: number[] = []
    const until = createWorkflow({ id: 'until', inputSchema: number }).dountil(add, ({ inputData, iterationCount }) => {
      seen.push(iterationCount)
      return inputData.n >= 5
    }).commit()
    const result = await until.createRun().start({ inputData: { n: 2 } })
    expect(result).toMatchObject({ result: { n: 5 } })
    expect(result.path.map(({ path }) => path)).toEqual(['0#0', '0#1', '0#2'])
    expect(seen).toEqual([1, 2, 3])
    const loop = createWorkflow({ id: 'while', inputSchema: number }).dowhile(add, ({ inputData }) => inputData.n < 1).commit()
    expect(await loop.createRun().start({ inputData: { n: 2 } })).toMatchObject({ result: { n: 3 } })
  })

  it('[F1.6] get what map() makes: by a function, or field by field', async () => {
    const sum = createStep({ id: 'sum', inputSchema: z.object({ a: z.number(), b: z.number(), who: z.string() }), outputSchema: z.string(), execute: ({ inputData }) => `${inputData.who} ${inputData.a + inputData.b}` })
    const workflow = createWorkflow({ id: 'mapped', inputSchema: number, outputSchema: z.string() })
      .then(add)
      .map({ a: { step: add, path: 'n' }, b: { fn: ({ getInitData }) => (getInitData<{ n: number }>()).n }, who: { value: 'total' } })
      .then(sum)
      .map(({ inputData }) => inputData.toUpperCase())
      .commit()
    expect(await workflow.createRun().start({ inputData: { n: 3 } })).toMatchObject({ result: 'TOTAL 7' })
  })

  it('[F1.7] are steps of a workflow within, and of one that is used in parallel', async () => {
    const inner = createWorkflow({ id: 'inner', inputSchema: number, outputSchema: number }).then(add).then(double).commit()
    const outer = createWorkflow({ id: 'outer', inputSchema: number }).then(inner).parallel([cloneWorkflow(inner, { id: 'again' }), add]).commit()
    const result = await outer.createRun().start({ inputData: { n: 1 } })
    expect(result).toMatchObject({ result: { again: { n: 10 }, add: { n: 5 } } })
    expect(result.path.map(({ path }) => path)).toEqual(['0/0', '0/1', '1.0/0', '1.0/1', '1.1'])
  })

  it('[F1.17] are within schemas of the workflow: what it gives, and what one within it gets and gives, is checked and made by them', async () => {
    const loose = (id: string) => createStep({ id, execute: ({ inputData }) => inputData }) as never
    const inner = createWorkflow({ id: 'inner', inputSchema: z.object({ n: z.number().min(1), by: z.number().default(7) }), outputSchema: z.object({ n: z.number().max(5).transform((n) => `${n}`) }) })
      .then(loose('in')).commit()
    const outer = createWorkflow({ id: 'outer', inputSchema: number, outputSchema: z.object({ n: z.string(), all: z.boolean().default(true) }) }).then(inner as never).commit()
    const done = await outer.createRun().start({ inputData: { n: 2 } })
    expect(done).toMatchObject({ status: 'success', result: { n: '2', all: true }, steps: { 'inner.in': { payload: { n: 2, by: 7 } } } })
    expect(await outer.createRun().start({ inputData: { n: 0 } }))
      .toMatchObject({ status: 'failed', path: [], error: { code: 'step_input_invalid', message: expect.stringContaining("The input of workflow 'inner'") } })
    expect(await outer.createRun().start({ inputData: { n: 6 } }))
      .toMatchObject({ status: 'failed', error: { code: 'step_output_invalid', message: expect.stringContaining("The output of workflow 'inner'") } })
    const wrong = createWorkflow({ id: 'wrong', inputSchema: number, outputSchema: z.object({ s: z.string() }) }).then(loose('any')).commit()
    expect(await wrong.createRun().start({ inputData: { n: 1 } }))
      .toMatchObject({ status: 'failed', error: { code: 'step_output_invalid', message: expect.stringContaining("The output of workflow 'wrong'") }, steps: { any: { status: 'success' } } })
  })

  it('[F1.8] are tried again as often as they or the workflow say, and not after an error that would repeat', async () => {
    const counts: number[] = []
    const flaky = createStep({
      id: 'flaky', retries: 2, outputSchema: z.string(),
      execute({ retryCount }) {
        counts.push(retryCount)
        if (retryCount < 2) throw new Error('not yet')
        return 'done'
      },
    })
    const workflow = createWorkflow({ id: 'retried' }).then(flaky).commit()
    expect(await workflow.createRun().start()).toMatchObject({ status: 'success', result: 'done', steps: { flaky: { attempts: 3 } } })
    expect(counts).toEqual([0, 1, 2])
    const wrong = createStep({ id: 'wrong', inputSchema: number, retries: 5, execute: () => 1 })
    const failing = createWorkflow({ id: 'failing' }).then(wrong as never).commit()
    const failed = await failing.createRun().start({ inputData: { n: 'x' } as never })
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'step_input_invalid' }, steps: { wrong: { attempts: 1 } } })
  })

  it('[F1.9] share a state whose changes the next step reads; two that change one key beside each other fail', async () => {
    const set = (id: string, key: 'a' | 'b', value: number) => createStep({
      id, stateSchema: z.object({ a: z.number().optional(), b: z.number().optional() }), execute: ({ setState }) => setState({ [key]: value }),
    })
    const read = createStep({ id: 'read', stateSchema: z.object({ a: z.number(), b: z.number() }), execute: ({ state }) => state.a + state.b })
    const stateSchema = z.object({ a: z.number(), b: z.number() })
    const workflow = createWorkflow({ id: 'stateful', stateSchema }).parallel([set('one', 'a', 1), set('two', 'b', 2)]).then(read as never).commit()
    expect(await workflow.createRun().start({ initialState: { a: 0, b: 0 } })).toMatchObject({ status: 'success', result: 3, state: { a: 1, b: 2 } })
    const clash = createWorkflow({ id: 'clash', stateSchema }).parallel([set('one', 'a', 1), set('two', 'a', 2)]).commit()
    expect(await clash.createRun().start()).toMatchObject({ status: 'failed', error: { code: 'workflow_state_conflict', message: expect.stringContaining("'a'") } })
  })

  it('[F1.10] end the run with bail(), cancel it with abort(), and fail it with an error that names them', async () => {
    const bails = createStep({ id: 'bails', execute: ({ bail }) => bail({ early: true }) })
    const ended = createWorkflow({ id: 'bailing' }).then(bails as never).then(createStep({ id: 'after', execute: () => { throw new Error('reached') } })).commit()
    expect(await ended.createRun().start()).toMatchObject({ status: 'success', result: { early: true } })
    const aborts = createWorkflow({ id: 'aborting' }).then(createStep({ id: 'aborts', execute: ({ abort }) => abort() })).commit()
    expect(await aborts.createRun().start()).toMatchObject({ status: 'canceled' })
    const throws = createWorkflow({ id: 'throwing' }).then(createStep({ id: 'throws', execute: () => { throw new TypeError('no') } })).commit()
    expect(await throws.createRun().start()).toMatchObject({ status: 'failed', error: { code: 'step_failed', message: 'no', details: { name: 'TypeError' } } })
  })

  it('[F1.11] suspend with a payload and go on with resumeData, of which the first answer counts', async () => {
    const ask = createStep({
      id: 'ask', resumeSchema: z.object({ ok: z.boolean() }), suspendSchema: z.object({ question: z.string() }), outputSchema: z.string(),
      execute({ resumeData, suspendData, suspend }) {
        if (!resumeData) return suspend({ question: 'Sure?' }, { resumeLabel: 'sure' })
        return `${suspendData?.question} ${resumeData.ok}`
      },
    })
    const workflow = createWorkflow({ id: 'asking' }).then(ask).commit()
    const run = workflow.createRun()
    expect(await run.start()).toMatchObject({ status: 'suspended', suspended: ['0'], suspendPayload: { 0: { question: 'Sure?' } }, resumeLabels: { sure: '0' } })
    await expect(run.resume({ resumeData: { ok: 'yes' } })).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(run.resume({ step: 'other', resumeData: { ok: true } })).rejects.toMatchObject({ code: 'run_not_suspended' })
    const answers = await Promise.allSettled([run.resume({ label: 'sure', resumeData: { ok: true } }), run.resume({ resumeData: { ok: false } })])
    expect(answers).toMatchObject([{ status: 'fulfilled', value: { status: 'success', result: 'Sure? true' } }, { status: 'rejected', reason: { code: 'run_not_suspended' } }])
    await expect(run.resume({ resumeData: { ok: true } })).rejects.toMatchObject({ code: 'run_not_suspended' })
  })

  it('[F1.12] begin again from a step as a new run that keeps what was before it, also beside it', async () => {
    const counts = { a: 0, b: 0, c: 0 }
    const count = (id: 'a' | 'b' | 'c') => createStep({ id, inputSchema: z.any(), outputSchema: z.number(), execute: () => ++counts[id] })
    const workflow = createWorkflow({ id: 'again' }).parallel([count('a'), count('b')]).then(count('c')).commit()
    const run = workflow.createRun()
    await run.start()
    const again = await run.timeTravel({ step: 'a' })
    expect(again).toMatchObject({ status: 'success', result: 2 })
    expect(counts).toEqual({ a: 2, b: 1, c: 2 })
    expect(again.runId).not.toBe(run.runId)
    await expect(run.timeTravel({ step: 'unknown' })).rejects.toMatchObject({ code: 'invalid_argument' })
  })

  it('[F1.12] begin again with the request context of the first run, unless the caller passes another', async () => {
    const tenant = createStep({ id: 'tenant', outputSchema: z.string(), execute: ({ requestContext }) => String(requestContext.get('tenant')) })
    const workflow = createWorkflow({ id: 'again' }).then(tenant).commit()
    const run = workflow.createRun()
    await run.start({ requestContext: new RequestContext({ tenant: 'acme' }) })
    expect(await run.timeTravel({ step: 'tenant' })).toMatchObject({ result: 'acme' })
    expect(await run.timeTravel({ step: 'tenant', requestContext: new RequestContext({ tenant: 'other' }) })).toMatchObject({ result: 'other' })
    const stream = run.timeTravelStream({ step: 'tenant', runId: 'streamed' })
    const types: string[] = []
    for await (const { type } of stream.fullStream) types.push(type)
    expect([types, (await stream.result).runId, stream.runId]).toEqual([['workflow-start', 'workflow-step-start', 'workflow-step-result', 'workflow-step-finish', 'workflow-finish'], 'streamed', 'streamed'])
    expect(await stream.result).toMatchObject({ status: 'success', result: 'acme' })
    const none = run.timeTravelStream({ step: 'unknown' })
    await expect(none.result).rejects.toMatchObject({ code: 'invalid_argument' })
  })

  it('[F1.19] are not begun with a request context that the workflow does not take', async () => {
    const begun = vi.fn()
    const workflow = createWorkflow({ id: 'tenants', requestContextSchema: z.object({ tenant: z.string() }) }).then(createStep({ id: 'any', execute: begun })).commit()
    await expect(workflow.createRun().start()).rejects.toMatchObject({ code: 'invalid_request_context' })
    await expect(workflow.createRun().startAsync({ requestContext: new RequestContext({ tenant: 1 }) })).rejects.toMatchObject({ code: 'invalid_request_context' })
    expect(begun).not.toHaveBeenCalled()
    const run = workflow.createRun()
    expect(await run.start({ requestContext: new RequestContext({ tenant: 'acme' }) })).toMatchObject({ status: 'success' })
    await expect(run.timeTravel({ step: 'any', requestContext: new RequestContext() })).rejects.toMatchObject({ code: 'invalid_request_context' })
    expect(await run.timeTravel({ step: 'any' })).toMatchObject({ status: 'success' })
    expect(() => createWorkflow({ id: 'x', requestContextSchema: 7 as never })).toThrow('requestContextSchema of workflow')
  })

  it('[F1.18] have a signal of their own, which aborts when they end, also where it is read later', async () => {
    const contexts: Array<{ abortSignal: AbortSignal }> = []
    const early: AbortSignal[] = []
    const keeps = createStep({ id: 'keeps', execute: (context) => void contexts.push(context) })
    const reads = createStep({ id: 'reads', execute: ({ abortSignal }) => void early.push(abortSignal) })
    const workflow = createWorkflow({ id: 'signals' }).then(keeps as never).then(reads as never).commit()
    expect(await workflow.createRun().start()).toMatchObject({ status: 'success' })
    expect([contexts[0]?.abortSignal.aborted, early[0]?.aborted]).toEqual([true, true])
  })

  it('[F1.18] are aborted when their run is deleted: its callers get an error, and a run without one ends nothing', async () => {
    const aborted = vi.fn()
    const began = Promise.withResolvers<void>()
    const endless = createStep({
      id: 'endless',
      execute: ({ abortSignal }) => new Promise((_resolve, reject) => {
        abortSignal.addEventListener('abort', () => {
          aborted()
          reject(abortSignal.reason as Error)
        })
        began.resolve()
      }),
    })
    const workflow = createWorkflow({ id: 'endless-run' }).then(endless).commit()
    const rejections = vi.fn()
    process.on('unhandledRejection', rejections)
    onTestFinished(() => void process.off('unhandledRejection', rejections))
    const run = workflow.createRun({ runId: 'r1' })
    await run.startAsync()
    await began.promise
    expect(await workflow.deleteWorkflowRunById('r1')).toBe(true)
    expect(await run.status()).toBeNull()
    const other = workflow.createRun({ runId: 'r2' })
    const waiting = other.start()
    await expect.poll(() => other.status()).toMatchObject({ steps: { endless: { status: 'running' } } })
    await workflow.deleteWorkflowRunById('r2')
    await expect(waiting).rejects.toMatchObject({ code: 'aborted' })
    await setImmediate()
    expect([aborted.mock.calls.length, rejections.mock.calls]).toEqual([2, []])
  })
})

describe('waiting', () => {
  function place(workflow: ReturnType<typeof sleeper>, clock = virtualClock()) {
    const memory = new MemoryPlace(() => workflow.graph, clock)
    let id = 0
    return { clock, run: new WorkflowRun(workflow.graph, memory, { runId: 'run' }, () => String(++id)) }
  }
  const sleeper = () => createWorkflow({ id: 'sleeper', inputSchema: number }).sleep(40 * 86_400_000).then(add).commit()

  it('[F1.13] sleeps as long as it says, also longer than a timer lasts', async () => {
    const { clock, run } = place(sleeper())
    const done = run.start({ inputData: { n: 1 } })
    await clock.advance(39 * 86_400_000)
    expect(await run.status()).toMatchObject({ status: 'waiting' })
    await clock.advance(2 * 86_400_000)
    expect(await done).toMatchObject({ status: 'success', result: { n: 2 } })
  })

  it('[F1.14] ends a wait with an event, also one that came before it; an unknown one, one twice and a late one change nothing', async () => {
    const gate = Promise.withResolvers<void>()
    const before = createStep({ id: 'before', execute: () => gate.promise })
    const workflow = createWorkflow({ id: 'events' }).then(before).waitForEvent('paid', { schema: z.object({ sum: z.number() }) }).commit()
    const run = workflow.createRun()
    const done = run.start()
    await run.sendEvent('paid', { sum: 1 }, { id: 'one' })
    await run.sendEvent('paid', { sum: 2 }, { id: 'one' })
    await expect(run.sendEvent('lost', {})).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(run.sendEvent('paid', { sum: 'x' })).rejects.toMatchObject({ code: 'invalid_argument' })
    gate.resolve()
    expect(await done).toMatchObject({ status: 'success', result: { sum: 1 } })
    await expect(run.sendEvent('paid', { sum: 3 })).rejects.toMatchObject({ code: 'run_over' })
  })

  it('[F1.15] fails with event_timeout when no event comes in time, and is cancelled at once while it waits', async () => {
    const workflow = () => createWorkflow({ id: 'late', inputSchema: number }).waitForEvent('paid', { timeoutMs: 1_000 }).commit() as never
    const { clock, run } = place(workflow())
    const done = run.start({ inputData: { n: 1 } })
    await clock.advance(1_001)
    expect(await done).toMatchObject({ status: 'failed', error: { code: 'event_timeout' } })
    const other = place(workflow())
    await other.run.startAsync({ inputData: { n: 1 } })
    await other.run.cancel()
    expect(await other.run.status()).toMatchObject({ status: 'canceled' })
  })
})

describe('the definition of a workflow', () => {
  it('[F1.16] rejects at commit(), by name, what is wrong with it', () => {
    const wrong: Array<[() => unknown, string]> = [
      [() => createWorkflow({ id: 'empty' }).commit(), "'empty' has no step"],
      [() => createWorkflow({ id: 'twice', inputSchema: number }).then(add).then(add).commit(), "two steps 'add'"],
      [() => createWorkflow({ id: 'same', inputSchema: number }).parallel([add, add]).commit(), "two steps 'add'"],
      [() => createWorkflow({ id: 'none' }).parallel([]).commit(), 'at least one step'],
      [() => createWorkflow({ id: 'late', inputSchema: number }).then(add).commit().then(double as never), 'is committed'],
      [() => createWorkflow({ id: 'open', inputSchema: number }).then(add).createRun(), 'is not committed'],
      [() => createWorkflow({ id: 'x' }).then({} as never), 'then() needs a step'],
      [() => createWorkflow({ id: 'x' }).then((() => 1) as never), 'was awaited'],
      [() => createWorkflow({ id: 'x/y' }), 'one of . / [ ]'],
      [() => createWorkflow({} as never), 'needs an id'],
      [() => createWorkflow({ id: 'x', schedule: {} } as never), 'has a schedule without a cron'],
      [() => createWorkflow({ id: 'x', options: { autoRestartActiveRuns: true } } as never), "has no 'autoRestartActiveRuns': another process always continues"],
      [() => createStep({ id: 'x' } as never), 'has no execute'],
      [() => createStep({ id: 'x', execute: () => 1, scorer: {} } as never), "has no 'scorer'"],
      [() => createWorkflow({ id: 'x' }).map({ a: {} } as never), "'a' must have one of"],
    ]
    for (const [make, message] of wrong) expect(make).toThrow(message)
  })
})
