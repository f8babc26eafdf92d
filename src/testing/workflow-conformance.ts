import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent } from '../agent/agent.ts'
import type { RunLike, RunOutcome, WorkflowLike } from '../agent/workflows.ts'
import { checkNames } from '../base/arguments.ts'
import { isHeedError } from '../base/errors.ts'
import { silentLogger } from '../base/logger.ts'
import { Heed } from '../heed/heed.ts'
import type { Storage } from '../store/contract/storage.ts'
import { scriptedModel } from './scripted-model.ts'

/** The workflows of the suite, each from `{ n: number }`. */
export interface ConformingWorkflows {
  /** Gives `{ n: n + 1 }`. Its step calls `effect(runId)` once. */
  adds: WorkflowLike
  /** Suspends with `{ question: 'How much?' }`; resumed with `{ n }`, it gives the sum of both numbers. */
  asks: WorkflowLike
  /** Fails with an error whose message is `No money.` */
  fails: WorkflowLike
  /** Waits for longer than the suite takes. */
  waits: WorkflowLike
}

/** Makes the workflows under test. */
export interface WorkflowHarness {
  /**
   * The workflows as a process makes them when it starts: each call returns new objects of the same engine and the same runs. `effect` is
   * what a step of `adds` calls, with the id of its run.
   */
  workflows(effect: (runId: string) => void): ConformingWorkflows | Promise<ConformingWorkflows>
  /** The storage of the agent that calls the workflows. */
  storage(): Storage | Promise<Storage>
}

/** One guarantee as a test. The ids in brackets are those of PROTOCOL.md. */
export interface WorkflowCase {
  name: string
  run(harness: WorkflowHarness): Promise<void>
}

interface Fixture extends ConformingWorkflows {
  /** The runs in which `adds` took effect. */
  effects: string[]
  again(): Promise<ConformingWorkflows>
}

async function open(harness: WorkflowHarness): Promise<Fixture> {
  const effects: string[] = []
  const make = async () => harness.workflows((runId) => effects.push(runId))
  return { ...(await make()), effects, again: make }
}

const newRun = (workflow: WorkflowLike): RunLike => workflow.createRun({ runId: `run-${randomUUID()}`, resourceId: 'resource-1' })
const input = (n: number) => ({ inputData: { n } })

function assertJSON(outcome: RunOutcome): void {
  const { result } = outcome
  assert.deepEqual(result === undefined ? undefined : JSON.parse(JSON.stringify(result)), result, 'a result is JSON')
}

/** The only step that waits, and what it asks. */
function questionOf(outcome: RunOutcome | null): { path: string; payload: unknown } {
  assert.equal(outcome?.status, 'suspended')
  const [path, ...more] = outcome.suspended ?? []
  assert.ok(path !== undefined && more.length === 0, 'a run that is suspended names the step that waits')
  return { path, payload: outcome.suspendPayload?.[path] }
}

/** How long an engine may take to show what it has done. */
const longestMs = 30_000

/** Reads the run until this holds: an engine need not publish what it does. */
async function untilStatus(run: RunLike, holds: (outcome: RunOutcome | null) => boolean): Promise<void> {
  for (const until = performance.now() + longestMs; performance.now() < until; await sleep(10)) if (holds(await run.status())) return
  assert.fail(`the run is ${(await run.status())?.status ?? 'unknown'} after ${longestMs} ms`)
}

const cases: WorkflowCase[] = [
  {
    name: '[F5.8] start() resolves with the result, as JSON; status() is null before and the same after',
    async run(harness) {
      const { adds, effects } = await open(harness)
      const run = newRun(adds)
      assert.equal(await run.status(), null)
      const outcome = await run.start(input(1))
      assert.deepEqual([outcome.status, outcome.result], ['success', { n: 2 }])
      assertJSON(outcome)
      const { status, result } = (await run.status()) ?? {}
      assert.deepEqual([status, result], ['success', { n: 2 }])
      assert.equal(effects.length, 1)
    },
  },
  {
    name: '[F5.8] started again under one id, at once, later and by another process, it is one run with the first input',
    async run(harness) {
      const { adds, effects, again } = await open(harness)
      const runId = `run-${randomUUID()}`
      const other = await again()
      const runs = [adds, adds, other.adds].map((workflow) => workflow.createRun({ runId, resourceId: 'resource-1' }))
      const first = await Promise.all(runs.map((run) => run.start(input(1))))
      const later = await runs[2]?.start(input(50))
      assert.deepEqual([...first, later].map((outcome) => outcome?.result), Array.from({ length: 4 }, () => ({ n: 2 })))
      assert.deepEqual(effects, [runId])
    },
  },
  {
    name: '[F5.8] a run that fails is an outcome with its error, and no rejection',
    async run(harness) {
      const { fails } = await open(harness)
      const run = newRun(fails)
      for (const outcome of [await run.start(input(1)), await run.status(), await run.start(input(1))]) {
        assert.equal(outcome?.status, 'failed')
        assert.match(outcome.error instanceof Error ? outcome.error.message : JSON.stringify(outcome.error), /No money\./)
      }
    },
  },
  {
    name: '[F5.8] a run that asks is suspended until it is resumed, also started again and by another process',
    async run(harness) {
      const { asks, again } = await open(harness)
      const runId = `run-${randomUUID()}`
      const run = asks.createRun({ runId, resourceId: 'resource-1' })
      assert.deepEqual(questionOf(await run.start(input(1))).payload, { question: 'How much?' })
      questionOf(await run.start(input(1)))
      const elsewhere = (await again()).asks.createRun({ runId, resourceId: 'resource-1' })
      const { path } = questionOf(await elsewhere.status())
      const outcome = await elsewhere.resume({ step: path, resumeData: { n: 10 } })
      assert.deepEqual([outcome.status, outcome.result], ['success', { n: 11 }])
      assert.deepEqual((await run.start(input(1))).result, { n: 11 })
    },
  },
  {
    name: '[F5.8] of two answers at once one counts, and the other is rejected with run_not_suspended, as every later one',
    async run(harness) {
      const { asks } = await open(harness)
      const run = newRun(asks)
      const { path } = questionOf(await run.start(input(1)))
      const answers = await Promise.allSettled([10, 20].map((n) => run.resume({ step: path, resumeData: { n } })))
      const done = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value.result] : []))
      assert.equal(done.length, 1, 'one answer counts')
      assert.deepEqual(done[0], answers[0]?.status === 'fulfilled' ? { n: 11 } : { n: 21 })
      const refused = answers.flatMap((answer): unknown[] => (answer.status === 'rejected' ? [answer.reason] : []))
      refused.push(await run.resume({ resumeData: { n: 30 } }).then(() => undefined, (error: unknown) => error))
      for (const error of refused) assert.equal(isHeedError(error) ? error.code : error, 'run_not_suspended')
    },
  },
  {
    name: '[F5.8] cancel() ends a run, whose callers get that; it has no effect on one that has ended',
    async run(harness) {
      const { waits, adds } = await open(harness)
      const run = newRun(waits)
      const started = run.start(input(1))
      await untilStatus(run, (outcome) => outcome !== null)
      await run.cancel()
      await untilStatus(run, (outcome) => outcome?.status === 'canceled')
      assert.equal((await started).status, 'canceled')
      await run.cancel()
      const ended = newRun(adds)
      await ended.start(input(1))
      await ended.cancel()
      assert.equal((await ended.status())?.status, 'success')
    },
  },
  {
    name: '[F5.8] as a tool of an agent it answers the model, suspends the call, and is an error where it fails',
    async run(harness) {
      const { adds, asks, fails } = await open(harness)
      const call = (name: string) => ({ toolCalls: [{ toolName: `workflow-${name}`, toolCallId: name, input: { inputData: { n: 1 } } }] })
      const model = scriptedModel([call('adds'), call('fails'), call('asks'), 'Done.'])
      const agent = new Agent({ id: 'caller', model, workflows: { adds, asks, fails } })
      const heed = new Heed({ agents: { agent }, storage: await harness.storage(), logger: silentLogger })
      try {
        const { runId, suspended } = await agent.generate('Go.', { memory: { thread: 'thread-1', resource: 'resource-1' } })
        const read = (index: number) => JSON.stringify(model.calls[index]?.prompt.at(-1))
        assert.match(read(1), /"result":\{"n":2\}/)
        assert.match(read(2), /ended as failed: No money\./)
        assert.deepEqual(suspended.map(({ payload }) => (payload as { payload: unknown }).payload), [{ question: 'How much?' }])
        const stream = await agent.resumeStream({ n: 10 }, { runId })
        assert.equal(await stream.text, 'Done.')
        assert.match(read(3), /"result":\{"n":11\}/)
      } finally {
        await heed.close()
      }
    },
  },
]

/**
 * What every workflow promises that an agent is given, Heed's own or another engine's, as cases for any test runner.
 *
 *     for (const { name, run } of workflowConformance(harness)) it(name, () => run(harness))
 */
export function workflowConformance(harness: WorkflowHarness): WorkflowCase[] {
  checkNames('workflowConformance()', harness, ['workflows', 'storage'])
  return cases
}
