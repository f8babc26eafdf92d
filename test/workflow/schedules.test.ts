import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Heed } from '../../src/heed/heed.ts'
import { silentLogger } from '../../src/base/logger.ts'
import type { Clock } from '../../src/base/clock.ts'
import { LibSQLStore } from '../../src/store/sqlite/store.ts'
import { InMemoryStore } from '../../src/store/sqlite/in-memory.ts'
import { virtualClock } from '../../src/testing/virtual-clock.ts'
import { cloneWorkflow, createStep, createWorkflow, type WorkflowSchedule } from '../../src/workflow/index.ts'
import { live } from '../crash/one-life.ts'
import { newFile } from '../new-file.ts'

const open: Heed[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((heed) => heed.close()))
})

const number = z.object({ n: z.number() })
type Schedule = WorkflowSchedule<{ n: number }, unknown>
function nightly(schedule: Schedule | readonly Schedule[] | undefined, execute: (runId: string, n: number) => void = () => {}) {
  const work = createStep({
    id: 'work', inputSchema: number, stateSchema: z.any(),
    execute: ({ runId, inputData, state, requestContext }) => {
      execute(runId, inputData.n)
      return { state, tenant: requestContext.get('tenant') ?? null }
    },
  })
  return createWorkflow({ id: 'nightly', inputSchema: number, ...(schedule ? { schedule } : {}) }).then(work as never).commit()
}
/** A process with this workflow on a file. */
function processWith(workflow: ReturnType<typeof nightly>, file: string, clock: Clock) {
  const heed = new Heed({ storage: new LibSQLStore({ url: `file:${file}`, clock }), workflows: { nightly: workflow as never }, clock, logger: silentLogger })
  open.push(heed)
  return heed
}
const minute = 60_000
/** Ten seconds before a minute. */
const begin = Date.UTC(2026, 0, 1, 8, 59, 50)

describe('a schedule of a workflow', () => {
  it('[F4.13] starts one run for each occurrence, with what it has, in whichever of two processes', async () => {
    const clock = virtualClock(begin)
    const file = newFile()
    const begun: string[] = []
    const make = () => nightly(
      { id: 'hourly', cron: '0 * * * *', timezone: 'UTC', inputData: { n: 7 }, initialState: { s: 1 }, requestContext: { tenant: 'acme' }, metadata: { why: 'report' }, resourceId: 'acme' },
      (runId, n) => begun.push(`${runId} ${n}`),
    )
    const [one, two] = [make(), make()]
    await Promise.all([processWith(one, file, clock), processWith(two, file, clock)].map((heed) => heed.start()))
    expect(await two.listSchedules()).toEqual([{
      id: 'hourly', cron: '0 * * * *', timezone: 'UTC', inputData: { n: 7 }, metadata: { why: 'report' }, resourceId: 'acme', status: 'active', nextAt: new Date('2026-01-01T09:00:00Z'),
    }])
    await clock.advance(20_000)
    await expect.poll(() => begun).toEqual(['schedule:hourly:2026-01-01T09:00:00.000Z 7'])
    const read = () => one.getWorkflowRunById('schedule:hourly:2026-01-01T09:00:00.000Z', { resourceId: 'acme' })
    await expect.poll(async () => (await read())?.status).toBe('success')
    expect(await read()).toMatchObject({ input: { n: 7 }, state: { s: 1 }, result: { state: { s: 1 }, tenant: 'acme' } })
    await clock.advance(60 * minute)
    await expect.poll(() => begun).toEqual(['schedule:hourly:2026-01-01T09:00:00.000Z 7', 'schedule:hourly:2026-01-01T10:00:00.000Z 7'])
    await expect.poll(async () => (await one.listSchedules())[0]?.lastRunId).toBe('schedule:hourly:2026-01-01T10:00:00.000Z')
    expect(await one.listSchedules()).toMatchObject([{ nextAt: new Date('2026-01-01T11:00:00Z'), lastAt: new Date('2026-01-01T10:00:00Z') }])
    expect((await two.listWorkflowRuns()).total).toBe(2)
  })

  it('[F4.13] an id of a scheduled run is for schedules alone', async () => {
    const workflow = nightly({ cron: '0 9 * * *', inputData: { n: 1 } })
    const clock = virtualClock(begin)
    await processWith(workflow, newFile(), clock).start()
    const runId = 'schedule:default:2026-01-01T09:00:00.000Z'
    await expect(workflow.createRun({ runId }).start({ inputData: { n: 9 } })).rejects.toMatchObject({ code: 'invalid_argument' })
    await workflow.createRun({ runId: 'other' }).start({ inputData: { n: 9 } })
    await expect(workflow.createRun({ runId: 'other' }).timeTravel({ step: 'work', runId })).rejects.toMatchObject({ code: 'invalid_argument' })
    await clock.advance(20_000)
    await expect.poll(async () => (await workflow.getWorkflowRunById(runId))?.status).toBe('success')
    // Of one that exists, start() tells what became of it.
    expect(await workflow.createRun({ runId }).start({ inputData: { n: 9 } })).toMatchObject({ status: 'success', input: { n: 1 } })
  })

  it('[F4.14] becomes in the store what it is in the code: changed, removed, and unchanged with its next occurrence', async () => {
    const clock = virtualClock(begin)
    const file = newFile()
    const listed = async (schedule: Schedule | readonly Schedule[] | undefined) => {
      const workflow = nightly(schedule)
      const heed = processWith(workflow, file, clock)
      await heed.start()
      const found = await workflow.listSchedules()
      await heed.close()
      return found.map(({ id, cron, inputData, nextAt, resourceId }) => [id, cron, inputData, nextAt?.toISOString(), ...(resourceId ? [resourceId] : [])])
    }
    const a = { id: 'a', cron: '0 10 * * *', timezone: 'UTC', inputData: { n: 1 } }
    const b = { id: 'b', cron: '0 11 * * *', timezone: 'UTC', inputData: { n: 2 } }
    expect(await listed([a, b])).toEqual([['a', '0 10 * * *', { n: 1 }, '2026-01-01T10:00:00.000Z'], ['b', '0 11 * * *', { n: 2 }, '2026-01-01T11:00:00.000Z']])
    // At 11:30 both are due: the next start sends them, and keeps what is as it was.
    expect(await listed([{ ...a, inputData: { n: 5 } }, b])).toEqual([['a', '0 10 * * *', { n: 5 }, '2026-01-01T10:00:00.000Z'], ['b', '0 11 * * *', { n: 2 }, '2026-01-01T11:00:00.000Z']])
    expect(await listed({ ...b, resourceId: 'acme' })).toEqual([['b', '0 11 * * *', { n: 2 }, '2026-01-01T11:00:00.000Z', 'acme']])
    expect(await listed([{ ...b, cron: '30 11 * * *' }])).toEqual([['b', '30 11 * * *', { n: 2 }, '2026-01-01T11:30:00.000Z']])
    expect(await listed(undefined)).toEqual([])
  })

  it('[F4.14] that is removed starts nothing any more, and one that is as it was sends what was due while no process ran', async () => {
    const clock = virtualClock(begin)
    const file = newFile()
    const begun: string[] = []
    const every = { cron: '0 * * * *', timezone: 'UTC', inputData: { n: 1 } }
    const first = processWith(nightly([{ ...every, id: 'kept' }, { ...every, id: 'gone' }], (runId) => begun.push(runId)), file, clock)
    await first.start()
    await first.close()
    await clock.advance(90 * minute)
    await processWith(nightly({ ...every, id: 'kept' }, (runId) => begun.push(runId)), file, clock).start()
    await expect.poll(() => begun).toEqual(['schedule:kept:2026-01-01T09:00:00.000Z'])
    await clock.advance(40 * minute)
    await expect.poll(() => begun).toEqual(['schedule:kept:2026-01-01T09:00:00.000Z', 'schedule:kept:2026-01-01T11:00:00.000Z'])
  })

  it('[F4.14] is made by tick() too, for processes that do not stay', async () => {
    const clock = virtualClock(begin)
    const file = newFile()
    const begun: string[] = []
    const make = () => processWith(nightly({ cron: '0 * * * *', timezone: 'UTC', inputData: { n: 1 } }, (runId) => begun.push(runId)), file, clock)
    const first = make()
    await first.tick()
    await first.close()
    await clock.advance(minute)
    expect(await make().tick()).toMatchObject({ schedules: 1 })
    expect(begun).toEqual(['schedule:default:2026-01-01T09:00:00.000Z'])
  })

  it('[F4.14] that can\'t be is rejected: when the workflow is made, or when its Heed starts', async () => {
    const wrong: Array<[unknown, string]> = [
      [{ cron: 'often' }, 'cron'], [{ cron: '* * * * *', timezone: 'Nowhere/City' }, 'timeZone'], [{ cron: 1 }, 'without a cron'], [[{ cron: '@daily' }, { cron: '@hourly' }], 'each needs an id'],
      [[{ id: 'a', cron: '@daily' }, { id: 'a', cron: '@hourly' }], "two schedules 'a'"], [{ cron: '@daily', every: 5 }, "has no 'every'"], [{ cron: '@daily', id: 'x'.repeat(200) }, 'at most 190'],
      [{ cron: '@daily', metadata: 7 }, 'metadata'], [{ cron: '@daily', initialState: [] }, 'initialState'], [{ cron: '@daily', resourceId: '' }, 'resourceId'],
    ]
    for (const [schedule, message] of wrong) expect(() => nightly(schedule as never)).toThrow(message)
    for (const schedule of [{ inputData: { n: 'x' } }, {}])
      await expect(processWith(nightly({ cron: '@daily', ...schedule } as never), newFile(), virtualClock(begin)).start()).rejects.toMatchObject({ code: 'invalid_argument', message: expect.stringContaining("The input of workflow 'nightly'") as string })
    const strict = createWorkflow({ id: 'nightly', requestContextSchema: z.object({ tenant: z.string() }), schedule: { cron: '@daily' } }).then(createStep({ id: 'any', execute: () => 1 })).commit()
    await expect(processWith(strict as never, newFile(), virtualClock(begin)).start()).rejects.toMatchObject({ code: 'invalid_request_context' })
    const noSchedules = { getStore: (domain: string) => (domain === 'schedules' ? undefined : memory.getStore(domain as never)), supports: { threads: true } }
    const memory = new InMemoryStore()
    const heed = new Heed({ storage: noSchedules as never, workflows: { nightly: nightly({ cron: '@daily', inputData: { n: 1 } }) as never }, logger: silentLogger })
    open.push(heed)
    await expect(heed.start()).rejects.toMatchObject({ code: 'unsupported_option' })
    expect(await cloneWorkflow(nightly({ cron: '@daily', inputData: { n: 1 } }), { id: 'alone' }).listSchedules()).toEqual([])
  })
})

// Killed between what the hook did and the commit that says that it has returned, it is called again.
it.each([['claimed', 1], ['started', 1], ['advanced', 1], ['finish', 1], ['told', 2]] as const)(
  '[F4.13] [F4.15] a process that is killed where its occurrence is %s: the run is started once, ends once, and onFinish has done its work %i times', { timeout: 60_000 }, async (at, told) => {
    const file = newFile()
    const program = join(import.meta.dirname, 'scheduled-process.ts')
    expect(await live(program, { file, shift: 0 })).toEqual({ signal: null, output: '[]' })
    expect((await live(program, { file, shift: 2 * minute, at })).signal).toBe('SIGKILL')
    const { output } = await live(program, { file, shift: 2 * minute + 200_000 })
    const runs = JSON.parse(output) as string[]
    const lines = readFileSync(`${file}.effects`, 'utf8').trim().split('\n')
    const first = runs.at(-1)?.split(' ')[0] ?? ''
    expect(runs.filter((run) => !/^schedule:often:.* success$/.test(run))).toEqual([])
    expect(lines.filter((line) => line === `work ${first}`)).toHaveLength(1)
    expect(lines.filter((line) => line === `finish ${first} success`)).toHaveLength(told)
    expect(new Set(runs).size).toBe(runs.length)
  },
)

describe('the hooks of a stored run', () => {
  const word = z.string()
  const hooked = (calls: string[], gate?: { finish?: Promise<void> }) => createWorkflow({
    id: 'nightly', inputSchema: word, outputSchema: word,
    options: {
      onStart: ({ inputData }) => {
        calls.push(`start ${inputData}`)
        if (inputData === 'refused') throw new Error('not today')
      },
      onFinish: async (ended) => {
        calls.push(`finish ${ended.status} ${ended.status === 'success' ? ended.result : ''} ${String(ended.resourceId)} ${ended.requestContext.get('tenant') ?? ''}`)
        await gate?.finish
        throw new Error('no matter')
      },
      onError: ({ status, error }) => void calls.push(`error ${status} ${error.message}`),
    },
  }).then(createStep({
    id: 'ask', inputSchema: word, outputSchema: word, resumeSchema: word,
    execute: ({ inputData, resumeData, suspend }) => (inputData === 'fail' ? Promise.reject(new Error('broken')) : inputData === 'ask' && resumeData === undefined ? suspend() : `${inputData}!`),
  })).commit()

  it('[F4.15] onFinish is called for every run that ends, onError for those that fail, when the end is stored; their errors change nothing', async () => {
    const calls: string[] = []
    const errors: string[] = []
    const workflow = hooked(calls)
    const heed = new Heed({ storage: new InMemoryStore(), workflows: { workflow }, logger: { ...silentLogger, error: (text: string) => errors.push(text) } })
    open.push(heed)
    expect(await workflow.createRun({ resourceId: 'u1' }).start({ inputData: 'good' })).toMatchObject({ status: 'success', result: 'good!' })
    expect(await workflow.createRun().start({ inputData: 'fail' })).toMatchObject({ status: 'failed', error: { message: 'broken' } })
    expect(await workflow.createRun().start({ inputData: 'refused' })).toMatchObject({ status: 'failed', error: { message: 'not today' }, path: [] })
    const run = workflow.createRun()
    await run.start({ inputData: 'ask' })
    await run.cancel()
    await expect.poll(() => calls).toEqual([
      'start good', 'finish success good! u1 ', 'start fail', 'finish failed  workflow:nightly ', 'error failed broken', 'start refused', 'finish failed  workflow:nightly ', 'error failed not today',
      'start ask', 'finish canceled  workflow:nightly ',
    ])
    await expect.poll(() => errors).toEqual(Array.from({ length: 4 }, () => 'onFinish of a workflow failed'))
    expect((await workflow.listWorkflowRuns({ status: 'running' })).total).toBe(0)
  })

  it('[F4.15] [F1.21] a process that closes in onFinish leaves it to the next one, which calls it again; onStart is not called again', async () => {
    const file = newFile()
    const calls: string[] = []
    const never = Promise.withResolvers<void>().promise
    const first = new Heed({ storage: new LibSQLStore({ url: `file:${file}` }), workflows: { workflow: hooked(calls, { finish: never }) }, logger: silentLogger })
    open.push(first)
    const run = first.getWorkflow('workflow').createRun({ runId: 'r1', resourceId: 'u1' })
    expect(await run.start({ inputData: 'good' })).toMatchObject({ status: 'success' })
    await expect.poll(() => calls).toEqual(['start good', 'finish success good! u1 '])
    await first.close()
    const second = new Heed({ storage: new LibSQLStore({ url: `file:${file}` }), workflows: { workflow: hooked(calls) }, logger: silentLogger })
    open.push(second)
    await second.start()
    await expect.poll(() => calls).toEqual(['start good', 'finish success good! u1 ', 'finish success good! u1 '])
    await second.close()
    const third = new Heed({ storage: new LibSQLStore({ url: `file:${file}` }), workflows: { workflow: hooked(calls) }, logger: silentLogger })
    open.push(third)
    await third.start()
    expect(await third.getWorkflow('workflow').getWorkflowRunById('r1')).toMatchObject({ status: 'success', result: 'good!' })
    expect(calls).toHaveLength(3)
  })
})

it('[F1.22] a run that is paused in one process goes on in the next, by two that resume it once', async () => {
  const file = newFile()
  const begun: string[] = []
  const steps = () => {
    const step = (id: string) => createStep({ id, inputSchema: z.number(), outputSchema: z.number(), execute: ({ inputData }) => (begun.push(id), inputData + 1) })
    return createWorkflow({ id: 'nightly', inputSchema: z.number(), outputSchema: z.number() }).then(step('a')).then(step('b')).sleep(1).then(step('c')).commit()
  }
  const process = () => {
    const heed = new Heed({ storage: new LibSQLStore({ url: `file:${file}` }), workflows: { steps: steps() }, logger: silentLogger })
    open.push(heed)
    return heed
  }
  const first = process()
  expect(await first.getWorkflow('steps').createRun({ runId: 'r1' }).start({ inputData: 0, perStep: true })).toMatchObject({ status: 'paused' })
  expect((await first.getWorkflow('steps').listWorkflowRuns({ status: 'paused' })).total).toBe(1)
  await first.close()
  const both = [process(), process()]
  await Promise.all(both.map((heed) => heed.start()))
  expect(begun).toEqual(['a'])
  const answers = await Promise.allSettled(both.map((heed) => heed.getWorkflow('steps').createRun({ runId: 'r1' }).resume({ perStep: true })))
  expect(answers.map((answer) => (answer.status === 'fulfilled' ? answer.value.status : (answer.reason as { code: string }).code)).toSorted()).toEqual(['paused', 'run_not_suspended'])
  expect(await both[0]!.getWorkflow('steps').createRun({ runId: 'r1' }).resume()).toMatchObject({ status: 'success', result: 3 })
  expect(begun).toEqual(['a', 'b', 'c'])
})

it('[F4.7] the chunks of a run are a ReadableStream too, from a cursor on', async () => {
  const workflow = createWorkflow({ id: 'nightly', inputSchema: z.number() }).then(createStep({ id: 'a', execute: () => 1 })).then(createStep({ id: 'b', execute: () => 2 })).commit()
  open.push(new Heed({ storage: new InMemoryStore(), workflows: { workflow: workflow as never }, logger: silentLogger }))
  const run = workflow.createRun()
  const whole = run.observeStream()
  const types: string[] = []
  const cursors: string[] = []
  await run.startAsync({ inputData: 1 })
  for await (const { type, cursor } of whole) {
    types.push(type)
    cursors.push(cursor ?? '')
  }
  expect([types[0], types.at(-1), types.length]).toEqual(['workflow-start', 'workflow-finish', 8])
  const stream = run.observeStream({ after: cursors[5] ?? '' })
  const reader = stream.getReader()
  expect((await reader.read()).value?.type).toMatch(/workflow-(step-finish|snapshot)/)
  await reader.cancel()
  expect(() => run.observeStream({ from: 1 } as never)).toThrow("has no 'from'")
})

it('[F4.16] parked runs are restarted together, and runs that go on by themselves are listed', async () => {
  const file = newFile()
  const step = (id: string) => createStep({ id, inputSchema: z.number(), outputSchema: z.number(), resumeSchema: z.number(), execute: ({ inputData, resumeData, suspend }) => (resumeData === undefined ? suspend() : inputData + resumeData) })
  const workflow = (id: string) => createWorkflow({ id: 'nightly', inputSchema: z.number() }).then(step(id)).waitForEvent('go').commit()
  const process = (id: string) => {
    const heed = new Heed({ storage: new LibSQLStore({ url: `file:${file}` }), workflows: { steps: workflow(id) }, logger: silentLogger })
    open.push(heed)
    return heed.getWorkflow('steps')
  }
  const first = process('old')
  for (const runId of ['r1', 'r2', 'r3']) await first.createRun({ runId, resourceId: runId === 'r3' ? 'u3' : 'u1' }).start({ inputData: 1 })
  await open.splice(0)[0]?.close()
  const renamed = process('new')
  for (const runId of ['r1', 'r2', 'r3']) expect(await renamed.createRun({ runId }).resume({ resumeData: 1 })).toMatchObject({ status: 'parked' })
  // Where they are parked again, each is tried once.
  const times = async () => (await renamed.listWorkflowRuns({ status: 'parked' })).runs.map(({ updatedAt }) => updatedAt.getTime())
  const before = await times()
  expect(await renamed.restartAllActiveWorkflowRuns()).toEqual({ runIds: ['r3', 'r2', 'r1'] })
  await expect.poll(async () => (await times()).filter((time, index) => time !== before[index])).toHaveLength(3)
  await open.splice(0)[0]?.close()
  const again = process('old')
  expect(await again.restartAllActiveWorkflowRuns({ resourceId: 'u1' })).toEqual({ runIds: ['r2', 'r1'] })
  await expect.poll(async () => (await again.listActiveWorkflowRuns()).runs.map(({ runId, status }) => `${runId} ${status}`)).toEqual(['r2 waiting', 'r1 waiting'])
  expect((await again.listActiveWorkflowRuns({ resourceId: 'u3' })).total).toBe(0)
})
