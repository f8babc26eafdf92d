import { DatabaseSync } from 'node:sqlite'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Heed } from '../../src/heed/heed.ts'
import { RequestContext } from '../../src/run/request-context.ts'
import { silentLogger } from '../../src/base/logger.ts'
import type { Storage } from '../../src/store/contract/storage.ts'
import { InMemoryStore } from '../../src/store/sqlite/in-memory.ts'
import { LibSQLStore } from '../../src/store/sqlite/store.ts'
import { newFile } from '../new-file.ts'
import { virtualClock } from '../../src/testing/virtual-clock.ts'
import type { Clock } from '../../src/base/clock.ts'
import { cloneStep, createStep, createWorkflow, type Workflow } from '../../src/workflow/index.ts'

const number = z.object({ n: z.number() })
const add = createStep({ id: 'add', inputSchema: number, outputSchema: number, execute: async ({ inputData }) => ({ n: inputData.n + 1 }) })
const ask = createStep({
  id: 'ask', inputSchema: number, outputSchema: number, suspendSchema: z.object({ question: z.string() }), resumeSchema: number,
  execute({ inputData, resumeData, suspend }) {
    if (!resumeData) return suspend({ question: `How much after ${inputData.n}?` })
    return { n: inputData.n + resumeData.n }
  },
})

const open: Heed[] = []
/** A process with these workflows on a storage. */
function processWith(storage: Storage, workflows: Record<string, Workflow<string, never, unknown, unknown, unknown>>, clock?: Clock) {
  const heed = new Heed({ storage, workflows, ...(clock ? { clock } : {}) })
  open.push(heed)
  return heed
}
const sums = () => createWorkflow({ id: 'sums', inputSchema: number, outputSchema: number }).then(add).then(ask).then(cloneStep(add, { id: 'last' })).commit()
type Sums = ReturnType<typeof sums>
const on = (heed: Heed, key = 'sums') => heed.getWorkflow(key) as unknown as Sums

afterEach(async () => {
  await Promise.all(open.splice(0).map((heed) => heed.close()))
})

describe('a run in a storage', () => {
  it('[F4.1] suspends in one process and is resumed in another, of which the first answer counts', async () => {
    const file = newFile()
    const storage = () => new LibSQLStore({ url: `file:${file}` })
    const first = processWith(storage(), { sums: sums() })
    const run = on(first).createRun({ runId: 'r1', resourceId: 'u1' })
    expect(await run.start({ inputData: { n: 1 } })).toMatchObject({ status: 'suspended', suspended: ['1'], suspendPayload: { 1: { question: 'How much after 2?' } } })
    await first.close()
    const [second, third] = [processWith(storage(), { sums: sums() }), processWith(storage(), { sums: sums() })]
    const answers = await Promise.allSettled([second, third].map((heed) => on(heed).createRun({ runId: 'r1', resourceId: 'u1' }).resume({ resumeData: { n: 10 } })))
    expect(answers.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(answers.find(({ status }) => status === 'fulfilled')).toMatchObject({ value: { status: 'success', result: { n: 13 }, steps: { ask: { resumePayload: { n: 10 } } } } })
    expect(answers.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'run_not_suspended' } })
  })

  it('[F4.2] started twice with one id is one run, also from two processes, and is not reached by another resource', async () => {
    const storage = new InMemoryStore()
    let executed = 0
    const counted = () => createWorkflow({ id: 'sums', inputSchema: number, outputSchema: number }).then(createStep({ id: 'once', inputSchema: number, outputSchema: number, execute: () => ({ n: ++executed }) })).commit()
    const heeds = [processWith(storage, { sums: counted() }), processWith(storage, { sums: counted() })]
    const results = await Promise.all([...heeds, ...heeds].map((heed) => on(heed).createRun({ runId: 'same', resourceId: 'u1' }).start({ inputData: { n: 0 } })))
    expect(results.map((result) => (result.status === 'success' ? result.result : result.status))).toEqual(Array.from({ length: 4 }, () => ({ n: 1 })))
    const other = on(heeds[0] as Heed)
    await expect(other.createRun({ runId: 'same', resourceId: 'u2' }).start({ inputData: { n: 0 } })).rejects.toMatchObject({ code: 'thread_forbidden' })
    await expect(other.getWorkflowRunById('same', { resourceId: 'u2' })).rejects.toMatchObject({ code: 'thread_forbidden' })
    expect(await other.getWorkflowRunById('unknown')).toBeNull()
  })

  it('[F4.3] sleeps by a schedule of the store: another process wakes it', async () => {
    const clock = virtualClock()
    const file = newFile()
    const storage = () => new LibSQLStore({ url: `file:${file}`, clock })
    const sleepy = () => createWorkflow({ id: 'sums', inputSchema: number, outputSchema: number }).then(add).sleep(600_000).then(cloneStep(add, { id: 'last' })).commit()
    const first = processWith(storage(), { sums: sleepy() }, clock)
    await on(first).createRun({ runId: 'r1' }).startAsync({ inputData: { n: 1 } })
    await expect.poll(async () => (await on(first).getWorkflowRunById('r1'))?.status).toBe('waiting')
    await first.close()
    const second = processWith(storage(), { sums: sleepy() }, clock)
    await second.start()
    const done = on(second).createRun({ runId: 'r1' }).start({ inputData: { n: 99 } })
    await clock.advance(601_000)
    expect(await done).toMatchObject({ status: 'success', result: { n: 3 }, input: { n: 1 } })
  })

  it('[F4.3] sleeps for 40 days, longer than a timer lasts, while processes come and go', async () => {
    const clock = virtualClock()
    const file = newFile()
    const storage = () => new LibSQLStore({ url: `file:${file}`, clock })
    const days = (count: number) => count * 86_400_000
    const sleepy = () => createWorkflow({ id: 'sums', inputSchema: number, outputSchema: number }).then(add).sleep(days(40)).then(cloneStep(add, { id: 'last' })).commit()
    const first = processWith(storage(), { sums: sleepy() }, clock)
    await on(first).createRun({ runId: 'r1' }).startAsync({ inputData: { n: 1 } })
    await expect.poll(async () => (await on(first).getWorkflowRunById('r1'))?.status).toBe('waiting')
    const due = (await on(first).getWorkflowRunById('r1'))?.path.at(-1)?.dueAt
    await first.close()
    await clock.advance(days(25))
    const second = processWith(storage(), { sums: sleepy() }, clock)
    await second.start()
    await clock.advance(10_000)
    expect(await on(second).getWorkflowRunById('r1')).toMatchObject({ status: 'waiting', path: [{ stepId: 'add' }, { dueAt: due }] })
    await second.close()
    await clock.advance(days(15) - 20_000)
    const third = processWith(storage(), { sums: sleepy() }, clock)
    await third.start()
    const done = on(third).createRun({ runId: 'r1' }).start({ inputData: { n: 99 } })
    expect(await on(third).getWorkflowRunById('r1')).toMatchObject({ status: 'waiting' })
    await clock.advance(10_001)
    expect(await done).toMatchObject({ status: 'success', result: { n: 3 } })
  })

  it('[F1.8] counts the attempts of a step over restarts, and waits for the next one as long as it said', async () => {
    const clock = virtualClock()
    const file = newFile()
    const storage = () => new LibSQLStore({ url: `file:${file}`, clock })
    const counts: number[] = []
    const flaky = () => createWorkflow({ id: 'sums', retryConfig: { attempts: 2, delay: 60_000 } }).then(createStep({
      id: 'flaky',
      execute: ({ retryCount }) => {
        counts.push(retryCount)
        throw new Error('no')
      },
    })).commit()
    const first = processWith(storage(), { sums: flaky() }, clock)
    await on(first).createRun({ runId: 'r1' }).startAsync()
    await expect.poll(async () => (await on(first).getWorkflowRunById('r1'))?.status).toBe('waiting')
    await first.close()
    const second = processWith(storage(), { sums: flaky() }, clock)
    await second.start()
    await clock.advance(59_000)
    expect(counts).toEqual([0])
    await clock.advance(2_000)
    await expect.poll(() => counts).toEqual([0, 1])
    await expect.poll(async () => (await on(second).getWorkflowRunById('r1'))?.status).toBe('waiting')
    await second.close()
    const third = processWith(storage(), { sums: flaky() }, clock)
    await third.start()
    const done = on(third).createRun({ runId: 'r1' }).start()
    await clock.advance(61_000)
    expect(await done).toMatchObject({ status: 'failed', error: { message: 'no' }, steps: { flaky: { attempts: 3 } } })
    expect(counts).toEqual([0, 1, 2])
  })

  it('[F1.12] begins again from a step with its request context, in another process', async () => {
    const file = newFile()
    const tenants = () => createWorkflow({ id: 'sums' }).then(createStep({ id: 'tenant', execute: ({ requestContext }) => requestContext.get('tenant') ?? null })).commit()
    const first = processWith(new LibSQLStore({ url: `file:${file}` }), { sums: tenants() })
    await on(first).createRun({ runId: 'r1' }).start({ requestContext: new RequestContext({ tenant: 'acme' }) })
    await first.close()
    const second = processWith(new LibSQLStore({ url: `file:${file}` }), { sums: tenants() })
    expect(await on(second).createRun({ runId: 'r1' }).timeTravel({ step: 'tenant' })).toMatchObject({ status: 'success', result: 'acme' })
  })

  it('[F1.17] checks what a workflow within it gets and gives once, also where another process goes on', async () => {
    const file = newFile()
    let made = 0
    const counted = number.transform(({ n }) => ({ n: n + 100, made: ++made }))
    const within = () => createWorkflow({ id: 'inner', inputSchema: counted, outputSchema: number }).then(ask).commit()
    const outer = () => createWorkflow({ id: 'sums', inputSchema: number, outputSchema: counted }).then(within()).commit()
    const first = processWith(new LibSQLStore({ url: `file:${file}` }), { sums: outer() })
    expect(await on(first).createRun({ runId: 'r1' }).start({ inputData: { n: 1 } })).toMatchObject({ status: 'suspended' })
    await first.close()
    const second = processWith(new LibSQLStore({ url: `file:${file}` }), { sums: outer() })
    expect(await on(second).createRun({ runId: 'r1' }).resume({ resumeData: { n: 1 } })).toMatchObject({ status: 'success', result: { n: 202, made: 2 } })
  })

  it('[F1.18] is deleted while it runs: its step is aborted, and who waits for it gets an error', async () => {
    const aborted = Promise.withResolvers<void>()
    const began = Promise.withResolvers<void>()
    const endless = createWorkflow({ id: 'sums' }).then(createStep({
      id: 'endless',
      execute: ({ abortSignal }) => new Promise((_resolve, reject) => {
        began.resolve()
        abortSignal.addEventListener('abort', () => {
          aborted.resolve()
          reject(abortSignal.reason as Error)
        })
      }),
    })).commit()
    const heed = processWith(new InMemoryStore(), { sums: endless })
    const waiting = on(heed).createRun({ runId: 'r1' }).start()
    const rejected = expect(waiting).rejects.toMatchObject({ code: 'not_found' })
    await began.promise
    expect(await on(heed).deleteWorkflowRunById('r1')).toBe(true)
    await Promise.all([rejected, aborted.promise])
  })

  it('[F4.12] stores large values whole and leaves them out of its chunks, which say so; values above 16 MiB fail their step', async () => {
    const file = newFile()
    const value = { text: 'é'.repeat(100_000), list: Array.from({ length: 5_000 }, (_, index) => ({ index, name: `n${index}` })) }
    const large = () => createWorkflow({ id: 'sums' }).then(createStep({ id: 'make', execute: () => value }))
      .then(createStep({ id: 'keep', execute: ({ inputData, resumeData, suspend }) => (resumeData === undefined ? suspend(inputData) : inputData) })).commit()
    const first = processWith(new LibSQLStore({ url: `file:${file}` }), { sums: large() })
    const run = on(first).createRun({ runId: 'r1' })
    const chunks = []
    for await (const chunk of run.stream({} as never).fullStream) chunks.push(chunk)
    const told = chunks.filter(({ payload }) => payload.omitted !== undefined).map(({ type, payload }) => [type, payload.omitted])
    expect(told).toEqual([['workflow-step-result', ['output']], ['workflow-step-start', ['payload']], ['workflow-step-suspended', ['suspendPayload']]])
    expect(Buffer.byteLength(JSON.stringify(chunks))).toBeLessThan(10_000)
    await first.close()
    const second = processWith(new LibSQLStore({ url: `file:${file}` }), { sums: large() })
    const next = on(second).createRun({ runId: 'r1' })
    expect(await next.status()).toMatchObject({ suspendPayload: { 1: value } })
    expect(await next.resume({ resumeData: 1 })).toMatchObject({ status: 'success', result: value })
    for await (const chunk of next.observe()) expect(chunk).toMatchObject({ type: 'workflow-snapshot', payload: { finalWorkflowResult: null, omitted: ['finalWorkflowResult'] } })
    const huge = createWorkflow({ id: 'huge' }).then(createStep({ id: 'huge', execute: () => 'x'.repeat(16 * 1024 * 1024) })).commit()
    expect(await huge.createRun().start()).toMatchObject({ status: 'failed', error: { code: 'step_output_invalid', message: expect.stringContaining('at most 16777216') as string } })
  })

  it('[F4.4] receives an event that came early, once, and is cancelled while it waits', async () => {
    const storage = new InMemoryStore()
    const gate = Promise.withResolvers<void>()
    const hold = createStep({ id: 'hold', inputSchema: number, outputSchema: number, execute: ({ inputData }) => gate.promise.then(() => inputData) })
    const waiting = createWorkflow({ id: 'sums', inputSchema: number, outputSchema: number }).then(hold).waitForEvent('paid', { schema: number }).waitForEvent('paid', { schema: number }).commit()
    const heed = processWith(storage, { sums: waiting })
    const run = on(heed).createRun({ runId: 'r1' })
    await run.startAsync({ inputData: { n: 1 } })
    await run.sendEvent('paid', { n: 7 }, { id: 'e1' })
    await run.sendEvent('paid', { n: 8 }, { id: 'e1' })
    gate.resolve()
    await expect.poll(async () => (await run.status())?.status).toBe('waiting')
    expect((await run.status())?.path.map(({ path, output }) => [path, output])).toEqual([['0', { n: 1 }], ['1', { n: 7 }], ['2', undefined]])
    await run.cancel()
    expect(await run.status()).toMatchObject({ status: 'canceled' })
    await expect(run.sendEvent('paid', { n: 9 })).rejects.toMatchObject({ code: 'run_over' })
  })

  it('[F4.5] is listed and deleted, and is no conversation of its resource', async () => {
    const storage = new InMemoryStore()
    const heed = processWith(storage, { sums: sums() })
    for (const [runId, resourceId] of [['r1', 'u1'], ['r2', 'u1'], ['r3', 'u2']] as const) await on(heed).createRun({ runId, resourceId }).start({ inputData: { n: 1 } })
    await on(heed).createRun({ runId: 'r1', resourceId: 'u1' }).resume({ resumeData: { n: 1 } })
    const ids = async (query: Parameters<Sums['listWorkflowRuns']>[0]) => (await on(heed).listWorkflowRuns(query)).runs.map(({ runId }) => runId)
    expect(await ids({})).toEqual(['r3', 'r2', 'r1'])
    expect(await ids({ resourceId: 'u1', status: 'suspended' })).toEqual(['r2'])
    expect(await on(heed).listWorkflowRuns({ page: 1, perPage: 2 })).toMatchObject({ total: 3, runs: [{ runId: 'r1', status: 'success' }] })
    expect((await storage.listThreads({ resourceId: 'u1', parentId: null, limit: 10 })).threads).toEqual([])
    expect(await on(heed).deleteWorkflowRunById('r1', { resourceId: 'u1' })).toBe(true)
    expect(await on(heed).getWorkflowRunById('r1')).toBeNull()
    expect(await ids({})).toEqual(['r3', 'r2'])
  })

  it('[F4.6] goes on after a deploy that added a step behind, and is parked by one that has another step at a recorded place', async () => {
    const file = newFile()
    const storage = () => new LibSQLStore({ url: `file:${file}` })
    const first = processWith(storage(), { sums: sums() })
    for (const runId of ['r1', 'r2']) await on(first).createRun({ runId }).start({ inputData: { n: 1 } })
    await first.close()
    const longer = createWorkflow({ id: 'sums', inputSchema: number, outputSchema: number }).then(add).then(ask).then(cloneStep(add, { id: 'last' })).then(cloneStep(add, { id: 'added' })).commit()
    const second = processWith(storage(), { sums: longer })
    expect(await on(second).createRun({ runId: 'r1' }).resume({ resumeData: { n: 10 } })).toMatchObject({ status: 'success', result: { n: 14 } })
    await second.close()
    const renamed = createWorkflow({ id: 'sums', inputSchema: number, outputSchema: number }).then(cloneStep(add, { id: 'plus' })).then(ask).commit()
    const third = processWith(storage(), { sums: renamed })
    expect(await on(third).createRun({ runId: 'r2' }).resume({ resumeData: { n: 10 } })).toMatchObject({ status: 'parked', error: { code: 'workflow_changed', details: { path: '0' } } })
    await third.close()
    const fourth = processWith(storage(), { sums: sums() })
    expect(await on(fourth).createRun({ runId: 'r2' }).restart()).toMatchObject({ status: 'success', result: { n: 13 } })
  })

  it('[F4.7] is watched by its chunks: each is published when what it says is stored', async () => {
    const storage = new InMemoryStore()
    const heed = processWith(storage, { sums: sums() })
    const run = on(heed).createRun({ runId: 'r1' })
    const types: string[] = []
    const stream = run.stream({ inputData: { n: 1 } })
    for await (const chunk of stream.fullStream) {
      types.push(chunk.type)
      if (chunk.type === 'workflow-step-result') expect((await run.status())?.path).toContainEqual(expect.objectContaining({ stepId: chunk.payload.id, status: 'success' }))
    }
    expect(types).toEqual(['workflow-start', 'workflow-step-start', 'workflow-step-result', 'workflow-step-finish', 'workflow-step-start', 'workflow-step-suspended', 'workflow-suspended'])
    expect(await stream.result).toMatchObject({ status: 'suspended' })
    const resumed = run.resumeStream({ resumeData: { n: 1 } })
    const later: string[] = []
    for await (const chunk of resumed.fullStream) later.push(chunk.type)
    expect(later.at(-1)).toBe('workflow-finish')
    expect(await resumed.result).toMatchObject({ status: 'success' })
  })
})

describe('a run whose process is gone', () => {
  it('[F4.9] goes on in the next one: what had ended does not run again, what had begun runs again if it is idempotent and fails if not', async () => {
    const file = newFile()
    const executed: string[] = []
    const never = Promise.withResolvers<never>()
    const workflow = (idempotent: boolean, hangs: boolean) => {
      const step = (id: string) => createStep({
        id, idempotent, inputSchema: number, outputSchema: number,
        execute({ inputData, stepKey, retryCount }) {
          executed.push(`${stepKey} ${retryCount}`)
          return hangs && id === 'second' ? never.promise : { n: inputData.n + 1 }
        },
      })
      return createWorkflow({ id: 'sums', inputSchema: number, outputSchema: number }).then(step('first')).then(step('second')).commit()
    }
    for (const idempotent of [true, false]) {
      const runId = String(idempotent)
      const first = processWith(new LibSQLStore({ url: `file:${file}` }), { sums: workflow(idempotent, true) })
      await on(first).createRun({ runId }).startAsync({ inputData: { n: 0 } })
      await expect.poll(() => executed).toContain(`${runId}:0:1 0`)
      // In the middle of the second step.
      await first.close()
      const second = processWith(new LibSQLStore({ url: `file:${file}` }), { sums: workflow(idempotent, false) })
      const result = await on(second).createRun({ runId }).start({ inputData: { n: 0 } })
      if (idempotent) expect(result).toMatchObject({ status: 'success', result: { n: 2 } })
      else expect(result).toMatchObject({ status: 'failed', error: { code: 'step_interrupted', message: expect.stringContaining("'second'") as string } })
      await second.close()
    }
    expect(executed).toEqual(['true:0:0 0', 'true:0:1 0', 'true:0:1 1', 'false:0:0 0', 'false:0:1 0'])
  })
})

it('[F4.10] a run whose processes ended ten times is parked: it is not listed as running, its callers know, and restart() continues it', async () => {
  const file = newFile()
  const never = Promise.withResolvers<never>()
  const workflow = (hangs: boolean) => createWorkflow({ id: 'sums', inputSchema: number, outputSchema: number })
    .then(add).then(createStep({ id: 'slow', idempotent: true, inputSchema: number, outputSchema: number, execute: ({ inputData }) => (hangs ? never.promise : { n: inputData.n + 1 }) })).commit()
  const first = processWith(new LibSQLStore({ url: `file:${file}` }), { sums: workflow(true) })
  await on(first).createRun({ runId: 'r1' }).startAsync({ inputData: { n: 1 } })
  await expect.poll(async () => (await on(first).getWorkflowRunById('r1'))?.steps.slow?.status).toBe('running')
  await first.close()
  const database = new DatabaseSync(file, { timeout: 60_000 })
  database.exec('UPDATE heed_runs SET attempts = 10')
  database.close()
  const second = new Heed({ storage: new LibSQLStore({ url: `file:${file}` }), workflows: { sums: workflow(false) }, logger: silentLogger })
  open.push(second)
  const run = on(second).createRun({ runId: 'r1' })
  expect(await run.start({ inputData: { n: 1 } })).toMatchObject({ status: 'parked', error: { code: 'run_parked' } })
  expect([(await on(second).listWorkflowRuns({ status: 'running' })).total, (await on(second).listWorkflowRuns({ status: 'parked' })).total]).toEqual([0, 1])
  expect(await run.restart()).toMatchObject({ status: 'success', result: { n: 3 } })
})

it('[F1.11] the chunks of a run in memory are streamed, from its start to its end', async () => {
  const run = sums().createRun()
  const types: string[] = []
  const stream = run.stream({ inputData: { n: 1 } })
  for await (const chunk of stream.fullStream) types.push(chunk.type)
  expect(types).toEqual(['workflow-start', 'workflow-step-start', 'workflow-step-result', 'workflow-step-finish', 'workflow-step-start', 'workflow-step-suspended', 'workflow-suspended'])
  const rest: string[] = []
  for await (const chunk of run.resumeStream({ resumeData: { n: 1 } }).fullStream) rest.push(chunk.type)
  expect(rest.at(-1)).toBe('workflow-finish')
  // Streamed again, the same run publishes nothing more.
  for await (const chunk of run.stream({ inputData: { n: 1 } }).fullStream) expect(chunk).toBeUndefined()
  for await (const chunk of run.observe()) expect(chunk).toMatchObject({ type: 'workflow-snapshot', payload: { workflowStatus: 'success' } })
})
