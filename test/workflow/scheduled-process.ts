import { Heed, silentLogger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { createStep, createWorkflow } from '../../src/workflow/index.ts'
import { shiftedClock } from '../watch/shifted-clock.ts'
import { appendFileSync } from 'node:fs'

/**
 * One process of a scheduled workflow whose run also has `onFinish`. `at`: where it kills itself: before the occurrence is sent, with its run
 * started, with the occurrence recorded, or in `onFinish`. Without it, it ends when its runs have.
 */
const { file, shift, at } = JSON.parse(process.argv[2] ?? '{}') as { file: string; shift: number; at?: 'claimed' | 'started' | 'advanced' | 'finish' }
const die = (point: string) => {
  if (point === at) process.kill(process.pid, 'SIGKILL')
}

class FragileStore extends LibSQLStore {
  override async accept(...args: Parameters<LibSQLStore['accept']>): ReturnType<LibSQLStore['accept']> {
    const accepted = await super.accept(...args)
    die('started')
    return accepted
  }
}

const clock = shiftedClock(shift)
const ended = Promise.withResolvers<void>()
const nightly = createWorkflow({
  id: 'nightly', schedule: { id: 'often', cron: '* * * * *', inputData: { n: 1 } },
  options: {
    onFinish({ runId, status }) {
      die('finish')
      appendFileSync(`${file}.effects`, `finish ${runId} ${status}\n`)
      ended.resolve()
    },
  },
}).then(createStep({ id: 'work', execute: ({ runId }) => appendFileSync(`${file}.effects`, `work ${runId}\n`) })).commit()

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
  // Its run has ended: no step of it is interrupted.
  if (args[0].sent && at === 'advanced') {
    await ended.promise
    die(at)
  }
  return advanced
}
await heed.start()
const limit = setTimeout(ended.resolve, at || shift === 0 ? 3_000 : 20_000)
// The first process makes the schedule; the others come later than its next occurrence.
if (shift > 0) await ended.promise
clearTimeout(limit)
do await heed.tick({ timeoutMs: 5_000 })
while (shift > 0 && (await nightly.listActiveWorkflowRuns()).total > 0)
const { runs } = await nightly.listWorkflowRuns()
process.stdout.write(JSON.stringify(runs.map(({ runId, status }) => `${runId} ${status}`)))
await heed.close()
