import { Heed, silentLogger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { createStep, createWorkflow } from '../../src/workflow/index.ts'
import { shiftedClock } from '../watch/shifted-clock.ts'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'

/**
 * One process of a scheduled workflow whose run also has `onFinish`. `at`: where it kills itself: before the occurrence is sent, with its run
 * started, with the occurrence recorded and its run over, in `onFinish`, or between what `onFinish` did and the commit that says that it has
 * returned. Without it, it ends when its runs have, and `onFinish` was called for each.
 */
const { file, shift, at } = JSON.parse(process.argv[2] ?? '{}') as { file: string; shift: number; at?: 'claimed' | 'started' | 'advanced' | 'finish' | 'told' }
const die = (point: string) => {
  if (point === at) process.kill(process.pid, 'SIGKILL')
}

class FragileStore extends LibSQLStore {
  override async accept(...args: Parameters<LibSQLStore['accept']>): ReturnType<LibSQLStore['accept']> {
    const accepted = await super.accept(...args)
    die('started')
    return accepted
  }

  override async commitStep(...args: Parameters<LibSQLStore['commitStep']>): ReturnType<LibSQLStore['commitStep']> {
    if (isTold) die('told')
    const committed = await super.commitStep(...args)
    if (isTold && committed.ended) over.resolve()
    return committed
  }
}

const clock = shiftedClock(shift)
/** `onFinish` of a run was called. */
let isTold = false
/** It has returned, and that is stored: no process calls it again. */
const over = Promise.withResolvers<void>()
const effects = `${file}.effects`
const nightly = createWorkflow({
  id: 'nightly', schedule: { id: 'often', cron: '* * * * *', inputData: { n: 1 } },
  options: {
    onFinish({ runId, status }) {
      die('finish')
      appendFileSync(effects, `finish ${runId} ${status}\n`)
      isTold = true
    },
  },
}).then(createStep({ id: 'work', execute: ({ runId }) => appendFileSync(effects, `work ${runId}\n`) })).commit()

const storage = new FragileStore({ url: `file:${file}`, clock })
const heed = new Heed({ workflows: { nightly }, storage, clock, logger: silentLogger })
const store = (await storage.getStore('schedules'))!
const [claim, advance] = [store.claimSchedules.bind(store), store.advanceSchedule.bind(store)]
store.claimSchedules = async (...args) => {
  const claimed = await claim(...args)
  if (claimed.length > 0) die('claimed')
  return claimed
}
store.advanceSchedule = async (...args) => {
  const advanced = await advance(...args)
  // Its run is over: no step and no hook of it is interrupted.
  if (args[0].sent && at === 'advanced') {
    await over.promise
    die(at)
  }
  return advanced
}
await heed.start()
// The first process makes the schedule; the others come later than its next occurrence, and one with `at` until it is killed there.
const limit = setTimeout(() => process.exit(1), 40_000)
if (at) await new Promise(() => {})
if (shift > 0) await over.promise
async function isOver(): Promise<boolean> {
  await heed.tick({ timeoutMs: 5_000 })
  if ((await nightly.listActiveWorkflowRuns()).total > 0) return false
  const lines = existsSync(effects) ? readFileSync(effects, 'utf8') : ''
  return (await nightly.listWorkflowRuns()).runs.every(({ runId }) => lines.includes(`finish ${runId} `))
}
while (shift > 0 && !(await isOver()));
clearTimeout(limit)
const { runs } = await nightly.listWorkflowRuns()
process.stdout.write(JSON.stringify(runs.map(({ runId, status }) => `${runId} ${status}`)))
await heed.close()
