import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { Heed, HeedError, InMemoryStore, silentLogger, type RunLike, type RunOutcome, type WorkflowLike } from '../../src/index.ts'
import { workflowConformance, type ConformingWorkflows, type WorkflowHarness } from '../../src/testing/index.ts'
import { createStep, createWorkflow } from '../../src/workflow/index.ts'

const number = z.object({ n: z.number() })

/** The workflows of the suite with Heed's own steps. */
function own(effect: (runId: string) => void) {
  const make = <const Id extends string>(id: Id) => createWorkflow({ id, inputSchema: number, outputSchema: number })
  const add = createStep({
    id: 'add', inputSchema: number, outputSchema: number,
    execute({ inputData, runId }) {
      effect(runId)
      return { n: inputData.n + 1 }
    },
  })
  const ask = createStep({
    id: 'ask', inputSchema: number, outputSchema: number, resumeSchema: number,
    execute: ({ inputData, resumeData, suspend }) => (resumeData ? { n: inputData.n + resumeData.n } : suspend({ question: 'How much?' })),
  })
  const fail = createStep({ id: 'fail', inputSchema: number, outputSchema: number, execute: () => Promise.reject(new Error('No money.')) })
  return { adds: make('adds').then(add).commit(), asks: make('asks').then(ask).commit(), fails: make('fails').then(fail).commit(), waits: make('waits').sleep(3_600_000).commit() }
}

/** One set of workflows in this process: memory is of a process. */
function inMemory(): WorkflowHarness {
  let made: ConformingWorkflows | undefined
  let counted: (runId: string) => void = () => {}
  return {
    storage: () => new InMemoryStore(),
    workflows(effect) {
      counted = effect
      return (made ??= own((runId) => counted(runId)))
    },
  }
}

/** Each set of workflows belongs to a Heed of its own, on one storage. */
function onThreads(): WorkflowHarness {
  const storage = new InMemoryStore()
  return {
    storage: () => storage,
    workflows(effect) {
      const workflows = own(effect)
      const heed = new Heed({ workflows, storage, logger: silentLogger })
      onTestFinished(() => heed.close())
      return workflows
    },
  }
}

describe.each([['in memory', inMemory], ['on threads of a storage', onThreads]])('workflows of Heed %s', (_, harness) => {
  it.each(workflowConformance(harness()))('$name', async ({ run }) => {
    await expect(run(harness())).resolves.toBeUndefined()
  })
})

describe('an engine that breaks a promise', () => {
  type Break = Partial<{ [Name in keyof RunLike]: (run: RunLike) => RunLike[Name] }>
  /** What is wrong, and the cases that say so, by their first words. */
  const broken: Array<[string, Break, RegExp]> = [
    ['rejects where a run fails', { start: (run) => async (args) => { const outcome = await run.start(args); if (outcome.status === 'failed') throw outcome.error; return outcome } }, /run that fails|tool of an agent/],
    ['knows a run that was not started', { status: (run) => async () => (await run.status()) ?? { status: 'pending' } }, /status\(\) is null|cancel/],
    ['gives a result that is no JSON', { start: (run) => async (args) => { const outcome = await run.start(args); return outcome.status === 'success' ? { ...outcome, result: { ...(outcome.result as object), at: new Date(0) } } : outcome } }, /start\(\) resolves/],
    ['takes a second answer', { resume: (run) => (args) => run.resume(args).catch(() => run.start()) }, /two answers/],
    ['rejects it with an error of its own', { resume: (run) => (args) => run.resume(args).catch((error: unknown) => { throw new Error(String(error)) }) }, /two answers/],
    ['says not what it asks', { start: (run) => async (args) => withoutQuestion(await run.start(args)) }, /run that asks|tool of an agent/],
    ['does not cancel', { cancel: (run) => async () => { if ((await run.status())?.status === 'waiting') throw new Error('It can not.') } }, /cancel/],
    ['ends a run that has ended', { cancel: (run) => async () => { const outcome = await run.status(); if (outcome?.status === 'success') throw new HeedError('run_over', 'It has ended.'); await run.cancel() } }, /cancel/],
  ]
  function withoutQuestion(outcome: RunOutcome): RunOutcome {
    return outcome.status === 'suspended' ? { ...outcome, suspendPayload: {} } : outcome
  }
  const altered = (workflow: WorkflowLike, change: Break): WorkflowLike => ({
    id: workflow.id, inputSchema: workflow.inputSchema,
    createRun(options) {
      const run = workflow.createRun(options)
      const plain: RunLike = { start: (args) => run.start(args), resume: (args) => run.resume(args), cancel: () => run.cancel(), status: () => run.status() }
      return { ...plain, ...Object.fromEntries(Object.entries(change).map(([name, make]) => [name, (make as (run: RunLike) => unknown)(plain)])) }
    },
  })

  it.each(broken)('[F5.8] that %s is named by the suite', async (_, change, named) => {
    const good = inMemory()
    const harness: WorkflowHarness = {
      storage: good.storage,
      async workflows(effect) {
        const { adds, asks, fails, waits } = await good.workflows(effect)
        return { adds: altered(adds, change), asks: altered(asks, change), fails: altered(fails, change), waits: altered(waits, change) }
      },
    }
    const failed: string[] = []
    for (const { name, run } of workflowConformance(harness).filter((one) => named.test(one.name))) {
      await run(harness).catch(() => failed.push(name))
    }
    expect(failed.filter((name) => named.test(name))).not.toEqual([])
  })

  it('[F5.8] that starts a run each time is named by the suite', async () => {
    const good = own(() => {})
    let effects: (runId: string) => void = () => {}
    let count = 0
    const harness: WorkflowHarness = {
      storage: () => new InMemoryStore(),
      workflows(effect) {
        effects = effect
        const adds: WorkflowLike = { id: 'adds', inputSchema: number, createRun: ({ runId }) => {
          let last: RunLike | undefined
          return {
            start(args) {
              effects(runId)
              last = good.adds.createRun({ runId: `${runId}-${(count += 1)}` })
              return last.start(args as never)
            },
            resume: () => Promise.reject(new Error('It asks nothing.')), cancel: async () => {}, status: async () => (await last?.status()) ?? null,
          }
        } }
        return { ...good, adds }
      },
    }
    const named = workflowConformance(harness).filter(({ name }) => name.includes('it is one run'))
    expect(named).toHaveLength(1)
    await expect(named[0]?.run(harness)).rejects.toThrow('Expected values to be')
  })

  it('[F5.8] a harness with an unknown part is refused by name', () => {
    expect(() => workflowConformance({ ...inMemory(), clock: 1 } as never)).toThrow("'clock'")
  })
})
