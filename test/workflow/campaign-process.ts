import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import { Agent, createTool, Heed, isHeedError, silentLogger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/scripted-model.ts'
import { createStep, createWorkflow, type StepContext } from '../../src/workflow/index.ts'
import { shiftedClock } from '../watch/shifted-clock.ts'

/**
 * One process of the campaign of kills. It starts the runs, sends their events and answers their questions, as often as it is started.
 * `killAt`: it kills itself at the so manieth place, before or after a write of the store, or within a step. 0: it goes to the end, and
 * reports what is wrong then. `longer`: the code has one more step at the end.
 */
const { file, shift, killAt, longer } = JSON.parse(process.argv[2] ?? '{}') as { file: string; shift: number; killAt: number; longer: boolean }

export interface Report {
  wrong: string[]
  ends: string[]
  /** How many runs the schedule has started. */
  scheduled: number
}

let places = 0
function reached(): void {
  places += 1
  if (killAt > 0 && places === killAt) process.kill(process.pid, 'SIGKILL')
}

class FragileStore extends LibSQLStore {
  async #around<T>(write: () => Promise<T>): Promise<T> {
    reached()
    const result = await write()
    reached()
    return result
  }

  override accept(...args: Parameters<LibSQLStore['accept']>): ReturnType<LibSQLStore['accept']> {
    return this.#around(() => super.accept(...args))
  }

  override claim(...args: Parameters<LibSQLStore['claim']>): ReturnType<LibSQLStore['claim']> {
    return this.#around(() => super.claim(...args))
  }

  override beginRun(...args: Parameters<LibSQLStore['beginRun']>): ReturnType<LibSQLStore['beginRun']> {
    return this.#around(() => super.beginRun(...args))
  }

  override commitStep(...args: Parameters<LibSQLStore['commitStep']>): ReturnType<LibSQLStore['commitStep']> {
    return this.#around(() => super.commitStep(...args))
  }

  override decide(...args: Parameters<LibSQLStore['decide']>): ReturnType<LibSQLStore['decide']> {
    return this.#around(() => super.decide(...args))
  }
}

const clock = shiftedClock(shift)
const effects = `${file}.effects`

/** A step that leaves a line in a file, which a kill does not take back. */
const step = <const Id extends string>(id: Id, idempotent: boolean, execute: (context: StepContext<number>) => number | Promise<number>) => createStep({
  id, idempotent,
  async execute(context) {
    reached()
    // A step that is called again after an answer takes effect then.
    const value = await execute(context as StepContext<number>)
    appendFileSync(effects, `${idempotent ? 'again' : 'once'} ${context.stepKey}\n`)
    reached()
    return value
  },
})

const plus = (id: string, idempotent = true) => step(id, idempotent, ({ inputData }) => inputData + 1)
const within = createWorkflow({ id: 'within' }).then(plus('first')).then(plus('second')).commit()
const ask = step('ask', true, ({ inputData, resumeData, suspend }) => (resumeData === undefined ? suspend('How much?') : inputData + Number(resumeData)))
/** A tool as a step: it may begin once. */
const count = createTool({
  id: 'count', inputSchema: z.number(),
  execute: (value, { toolCallId }) => {
    reached()
    appendFileSync(effects, `once ${toolCallId}\n`)
    reached()
    return value + 1
  },
})
/** An agent as a step: it pays once, when that is approved, and says whether it knows that it paid. */
const pay = createTool({
  id: 'pay', inputSchema: z.object({ runId: z.string() }), requireApproval: true,
  execute: async ({ runId }) => {
    reached()
    appendFileSync(effects, `paid ${runId}\n`)
    reached()
    return 'it is paid'
  },
})
const clerk = new Agent({
  id: 'clerk', tools: { pay },
  model: scriptedModel(({ prompt }) => {
    reached()
    const text = JSON.stringify(prompt)
    if (!text.includes('tool-result')) return { toolCalls: [{ toolName: 'pay', input: { runId: /Pay for (\w+)/.exec(text)?.[1] ?? '' } }] }
    return text.includes('it is paid') ? 'Paid.' : 'Not known.'
  }),
})
const sum = ({ inputData }: { inputData: unknown }) => Object.values(inputData as Record<string, number>).reduce((total, one) => total + one, 0)

/** Written at least once for each run that ended. */
const told = {
  onStart: () => reached(),
  onFinish({ runId, status }: { runId: string; status: string }) {
    reached()
    appendFileSync(effects, `again ended ${runId} ${status}\n`)
    reached()
  },
}

/** Each occurrence starts one run, whose step begins once. The next life comes later than the next occurrence. */
const often = createWorkflow({ id: 'often', schedule: { id: 'often', cron: '* * * * *', inputData: 0, resourceId: 'ada' }, options: told })
  .then(plus('early')).then(plus('scheduled', false)).commit()

const all = createWorkflow({ id: 'all', options: told })
  .then(plus('begin'))
  .parallel([plus('left'), plus('right', false)])
  .map(sum, { id: 'joined' })
  .branch([[() => true, plus('taken')], [() => false, plus('left-out')]])
  .map(({ inputData }) => [sum({ inputData }), 10, 20], { id: 'list' })
  .foreach(plus('each'), {
    concurrency: () => {
      reached()
      return 2
    },
  })
  .map(({ inputData }) => sum({ inputData }), { id: 'total' })
  .dountil(plus('loop'), ({ iterationCount }) => iterationCount === 3)
  .sleep(5)
  .map(({ getStepResult }) => getStepResult('loop'), { id: 'kept' })
  .waitForEvent('go')
  .map(({ inputData, getStepResult }) => Number(inputData) + Number(getStepResult('kept')), { id: 'gone' })
  .then(ask)
  .then(within)
  .map(({ inputData }) => Number(inputData), { id: 'number' })
  .then(createStep(count))
  .dowhile(plus('again'), ({ iterationCount }) => iterationCount < 2)
  .sleepUntil(() => new Date(clock.now() + 5))
  .map(({ runId }) => ({ prompt: `Pay for ${runId}.` }), { id: 'bill' })
  .then(createStep(clerk))
  .map(({ inputData, getStepResult }) => Number(getStepResult('again')) + (inputData.text === 'Paid.' ? 10_000 : 20_000), { id: 'paid' })
  .then(plus('last', false))
const workflow = (longer ? all.then(plus('added')) : all).commit()
/**
 * begin 1; left and right 2 + 2; taken 5; list 5 + 10 + 20, each one more; loop three times; the event; the answer; within; count; again twice;
 * last. An agent whose tool was interrupted says so: 20,000.
 */
const wanted = 5 + 10 + 20 + 3 + 3 + 100 + 1_000 + 2 + 1 + 2 + 1 + 10_000

const storage = new FragileStore({ url: `file:${file}`, clock })
const schedules = await storage.getStore('schedules')
for (const write of ['addSchedule', 'putSchedule', 'claimSchedules', 'advanceSchedule'] as const) {
  const called = schedules?.[write].bind(schedules) as unknown as (...args: unknown[]) => Promise<unknown>
  Object.assign(schedules ?? {}, {
    [write]: async (...args: unknown[]) => {
      reached()
      const result = await called(...args)
      reached()
      return result
    },
  })
}
const heed = new Heed({ workflows: { all: workflow as never, often }, storage, clock, logger: silentLogger })
/** `d` goes on one step at a time. */
const runIds = ['a', 'b', 'c', 'd']

async function work(runId: string): Promise<string> {
  const run = workflow.createRun({ runId, resourceId: 'ada' })
  const ignored = (error: unknown) => {
    if (!isHeedError(error) || !['run_over', 'run_not_suspended', 'closed'].includes(error.code)) throw error
  }
  const perStep = runId === 'd'
  await run.startAsync({ inputData: 0, perStep })
  await run.sendEvent('go', 100, { id: 'go' }).catch(ignored)
  for (;;) {
    const result = await run.start({ inputData: 0 })
    if (result.status === 'success') {
      // A run that ended before the deploy has not the step that it added.
      const expected = wanted + (result.steps.added ? 1 : 0)
      if (result.result === expected + 10_000) return 'not known'
      return result.result === expected ? 'success' : `success with ${String(result.result)} instead of ${expected}`
    }
    if (result.status === 'failed') return (result.error as { code?: string }).code === 'step_interrupted' ? 'interrupted' : `failed: ${result.error.message}`
    if (result.status === 'paused') {
      await run.resume({ perStep }).catch(ignored)
      continue
    }
    if (result.status !== 'suspended') return result.status
    const { type, threadId } = Object(Object.values(result.suspendPayload)[0]) as { type?: string; threadId?: string }
    if (type !== 'approval') await run.resume({ resumeData: 1_000, perStep }).catch(ignored)
    // One run is decided on the thread of the agent.
    else if (runId === 'b') await clerk.sendToolApproval({ threadId: threadId ?? '', resourceId: 'ada', approved: true }).catch(ignored)
    else await run.resume({ resumeData: { approved: true }, perStep }).catch(ignored)
  }
}

const timer = Promise.withResolvers<void>()
// A process beside one that was killed need not wait for its lease: the next generation has later clocks.
const limit = setTimeout(timer.resolve, killAt > 0 ? 1_500 : 60_000)
await heed.start()
const ends = await Promise.race([Promise.all(runIds.map(work)), timer.promise])
clearTimeout(limit)
/** What is wrong with the runs that the schedule has started. The next occurrence may start one meanwhile: it ends too, and is listed then. */
async function scheduledRuns(): Promise<{ wrong: string[]; ends: string[] }> {
  for (const until = Date.now() + 30_000; ;) {
    await heed.tick({ timeoutMs: 1_000 })
    const [schedule] = await often.listSchedules()
    const { runs } = await often.listWorkflowRuns({ perPage: 1_000 })
    const known = await Promise.all(runs.map(({ runId }) => often.getWorkflowRunById(runId)))
    const wrong = known.flatMap((run) => {
      if (run?.status === 'success' && run.result === 2) return []
      if (run?.status === 'failed' && (run.error as { code?: string }).code === 'step_interrupted') return []
      return [`scheduled run ${String(run?.runId)}: ${String(run?.status)}`]
    })
    // The name of a run has the time of its occurrence.
    if (runs.length === 0 || schedule?.lastRunId !== runs.map(({ runId }) => runId).toSorted().at(-1)) wrong.push(`the last run of the schedule is ${String(schedule?.lastRunId)}, and they are ${runs.map(({ runId }) => runId).join(', ')}`)
    if (wrong.length === 0 || Date.now() > until) return { wrong, ends: runs.map(({ runId, status }) => `${runId} ${status}`) }
  }
}

if (killAt === 0) {
  const scheduled = await scheduledRuns()
  const isTold = (end: string) => readFileSync(effects, 'utf8').includes(`again ended ${end}\n`)
  const statuses = await workflow.listWorkflowRuns()
  const mustTell = [...scheduled.ends, ...statuses.runs.map(({ runId, status }) => `${runId} ${status}`)]
  for (let looks = 0; looks < 100 && !mustTell.every(isTold); looks += 1) await heed.tick({ timeoutMs: 100 })
  const lines = existsSync(effects) ? readFileSync(effects, 'utf8').trim().split('\n') : []
  const at = (kind: string, runId: string) => lines.filter((line) => line.startsWith(`${kind} ${runId}`))
  const twice = lines.filter((line, index) => !line.startsWith('again') && lines.indexOf(line) !== index)
  const ended = ends?.map((end, index) => ({ end, runId: runIds[index] ?? '' })) ?? []
  const wrong = [
    ...(ends ? [] : ['the runs do not end']),
    ...ended.flatMap(({ end, runId }) => (['success', 'not known', 'interrupted'].includes(end) ? [] : [`run ${runId}: ${end}`])),
    ...twice.map((line) => `twice: ${line}`),
    ...scheduled.wrong,
    ...mustTell.flatMap((end) => (isTold(end) ? [] : [`onFinish was not told of ${end}`])),
    // Right, count and last.
    ...ended.flatMap(({ end, runId }) => (end !== 'interrupted' && at('once', `${runId}:`).length !== 3 ? [`run ${runId} lacks an effect`] : [])),
    ...ended.flatMap(({ end, runId }) => (end === 'success' && at('paid', runId).length !== 1 ? [`run ${runId} was not paid`] : [])),
  ]
  process.stdout.write(JSON.stringify({ wrong, ends: ends ?? [], scheduled: scheduled.ends.length } satisfies Report))
}
await heed.close()
