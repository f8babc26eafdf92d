import { appendFileSync, readFileSync } from 'node:fs'
import { Heed, isHeedError, silentLogger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { createStep, createWorkflow } from '../../src/workflow/index.ts'

/** One process of the tests of large runs. It writes what it found as JSON. */
const { file, task, killAt = 0 } = JSON.parse(process.argv[2] ?? '{}') as { file: string; task: 'series' | 'list' | 'ask' | 'answer'; killAt?: number }

const storage = new LibSQLStore({ url: `file:${file}` })
const answer = (value: object) => process.stdout.write(JSON.stringify(value))

/** The bytes that this process has given to the kernel for files. */
const written = () => Number(/^wchar: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])

/** 1,000 steps in series, each with a value of the same length: how many bytes a hundred of them write. */
async function series(): Promise<void> {
  const marks = new Map<number, number>()
  let workflow = createWorkflow({ id: 'series' }) as never as ReturnType<typeof createWorkflow>
  for (let index = 0; index < 1_000; index += 1) {
    const step = createStep({ id: `step-${String(index).padStart(4, '0')}`, execute: () => {
      marks.set(index, written())
      return 'x'.repeat(100)
    } })
    workflow = workflow.then(step as never) as never
  }
  const committed = workflow.commit()
  const heed = new Heed({ workflows: { committed: committed as never }, storage, logger: silentLogger })
  const result = await committed.createRun({ runId: 'r' }).start()
  await heed.close()
  const between = (from: number, to: number) => (marks.get(to) ?? 0) - (marks.get(from) ?? 0)
  answer({ status: result.status, early: between(10, 110), late: between(890, 990) })
}

/** A list of 10,000 elements; `killAt`: the process ends itself in its so manieth element. */
async function list(): Promise<void> {
  let calls = 0
  const each = createStep({ id: 'each', idempotent: true, execute: ({ inputData, stepKey }) => {
    calls += 1
    if (killAt > 0 && calls === killAt) process.kill(process.pid, 'SIGKILL')
    appendFileSync(`${file}.effects`, `${stepKey}\n`)
    return Number(inputData) + 1
  } })
  const sum = createStep({ id: 'sum', execute: ({ inputData }) => (inputData as number[]).reduce((total, one) => total + one, 0) })
  const workflow = createWorkflow({ id: 'list' }).foreach(each as never, { concurrency: 50 }).then(sum as never).commit()
  const heed = new Heed({ workflows: { workflow: workflow as never }, storage, logger: silentLogger })
  const result = await workflow.createRun({ runId: 'r' }).start({ inputData: Array.from({ length: 10_000 }, (_, index) => index) })
  await heed.close()
  answer({ status: result.status, result: result.status === 'success' ? result.result : undefined, calls })
}

const asking = () => createWorkflow({ id: 'asking' }).then(createStep({
  id: 'ask', execute: ({ resumeData, suspend }) => (resumeData === undefined ? suspend('Who?') : (resumeData as string)),
})).then(createStep({
  id: 'then', execute: ({ inputData, stepKey }) => {
    appendFileSync(`${file}.effects`, `${stepKey}\n`)
    return String(inputData)
  },
})).commit()

async function ask(): Promise<void> {
  const workflow = asking()
  const heed = new Heed({ workflows: { workflow }, storage, logger: silentLogger })
  answer(await workflow.createRun({ runId: 'r' }).start())
  await heed.close()
}

/** Waits for a line, and answers the question at the same time as the others. */
async function giveAnswer(): Promise<void> {
  const workflow = asking()
  const heed = new Heed({ workflows: { workflow }, storage, logger: silentLogger })
  await heed.start()
  process.stderr.write('ready\n')
  await new Promise((resolve) => process.stdin.once('data', resolve))
  const told = await workflow.createRun({ runId: 'r' }).resume({ resumeData: String(process.pid) }).then(
    (result) => ({ result: result.status === 'success' ? result.result : result.status }), (error: unknown) => ({ code: isHeedError(error) ? error.code : String(error) }),
  )
  answer({ pid: process.pid, ...told })
  process.stdin.destroy()
  await heed.close()
}

await { series, list, ask, answer: giveAnswer }[task]()
