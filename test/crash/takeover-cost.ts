import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../../src/base/clock.ts'
import { Agent, Heed, silentLogger } from '../../src/index.ts'
import { signalToRow } from '../../src/signals/conversions.ts'
import { messageInputToSignal } from '../../src/signals/normalize.ts'
import { LibSQLStore } from '../../src/store/sqlite/store.ts'
import type { ThreadStore } from '../../src/store/contract/threads.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import type { ChildPlan } from './child.ts'
import { resourceId } from './load.ts'

export interface TakeoverCost {
  /** From the start of the process that takes over to the first chunk, the wait for the lease apart; the median. */
  firstChunkMs: number
  /** Write transactions from its start to the first chunk, by name. */
  transactions: Record<string, number>
  /** Opening and the first look for work, without other threads and with 10,000 idle ones. */
  startMs: { alone: number; among: number }
  /** CPU of the main thread, which does not depend on what else the machine does. */
  startCpuMs: { alone: number; among: number }
}

const idleThreads = 10_000

/** What it costs to go on after a kill. */
export async function takeoverCost(program: string, folder: string, { rounds }: { rounds: number } = { rounds: 9 }): Promise<TakeoverCost> {
  mkdirSync(folder, { recursive: true })
  const takeovers: Array<{ ms: number; transactions: Record<string, number> }> = []
  for (let round = 0; round < rounds; round++) {
    const database = join(folder, `${round}.db`)
    await dieMidway(program, folder, database, round)
    takeovers.push(await takeOver(database))
  }
  const full = join(folder, 'full.db')
  await fill(full)
  await timeToStart(join(folder, 'empty.db'))
  const alone = await repeat(rounds, () => timeToStart(join(folder, 'empty.db')))
  const among = await repeat(rounds, () => timeToStart(full))
  const medians = (measure: 'ms' | 'cpuMs') => ({ alone: median(alone.map((one) => one[measure])), among: median(among.map((one) => one[measure])) })
  return { firstChunkMs: median(takeovers.map(({ ms }) => ms)), transactions: takeovers[0]?.transactions ?? {}, startMs: medians('ms'), startCpuMs: medians('cpuMs') }
}

/** A process that is killed while its model speaks. */
async function dieMidway(program: string, folder: string, database: string, life: number): Promise<void> {
  const plan: ChildPlan = {
    folder, database, slot: 0, life, threads: ['t0'], seed: life + 1, speed: 1, origin: 0, sends: 4, patience: 1, kill: { point: 'model:midway', nth: 1 },
  }
  const child = spawn(process.execPath, ['--no-warnings', program, JSON.stringify(plan)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const [, signal] = (await once(child, 'exit')) as [number | null, string | null]
  if (signal !== 'SIGKILL') throw new Error(`the process that was to die ended with ${String(signal)}`)
}

/** Its lease is over by this clock. */
const later: Clock = {
  now: () => Date.now() + 60_000,
  after(ms, run, options) {
    const timer = setTimeout(run, ms)
    if (options?.background) timer.unref()
    return { cancel: () => clearTimeout(timer) }
  },
}

async function takeOver(database: string): Promise<{ ms: number; transactions: Record<string, number> }> {
  const transactions: Record<string, number> = {}
  const agent = new Agent({ id: 'worker', instructions: 'Work.', model: scriptedModel(() => ({ text: 'Going on.', hang: true })) })
  const store = counted(new LibSQLStore({ url: `file:${database}`, clock: later }), transactions)
  const heed = new Heed({ agents: { worker: agent }, storage: store, clock: later, logger: silentLogger })
  const began = performance.now()
  try {
    // The run is taken over here; a watcher that comes then gets it from its start.
    await heed.start()
    const watcher = await agent.subscribeToThread({ threadId: 't0', resourceId })
    for await (const chunk of watcher.stream) {
      if (chunk.type === 'text-delta') return { ms: performance.now() - began, transactions: { ...transactions } }
    }
    throw new Error('nothing was said')
  } finally {
    await heed.close()
  }
}

const writes = new Set<string | symbol>(['accept', 'claim', 'beginRun', 'commitStep', 'heartbeat'])

function counted(store: ThreadStore, counts: Record<string, number>): ThreadStore {
  return new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      return (...given: unknown[]): unknown => {
        if (writes.has(key)) counts[String(key)] = (counts[String(key)] ?? 0) + 1
        return Reflect.apply(value, target, given)
      }
    },
  })
}

async function fill(database: string): Promise<void> {
  const store = new LibSQLStore({ url: `file:${database}` })
  for (let first = 0; first < idleThreads; first += 500) {
    await store.accept(Array.from({ length: 500 }, (_, index) => {
      const target = { threadId: `idle-${first + index}`, resourceId }
      const signal = messageInputToSignal('Hello.', { id: 's', now: 0, reservedTags: [] })
      return { ...target, agentId: 'worker', id: 's', mode: 'now', ifActive: { behavior: 'persist' }, ifIdle: { behavior: 'persist' }, rows: [signalToRow(signal, target)], runId: 'r', now: 0 }
    }))
  }
  await store.close()
}

async function timeToStart(database: string): Promise<{ ms: number; cpuMs: number }> {
  const agent = new Agent({ id: 'worker', model: scriptedModel([]) })
  const heed = new Heed({ agents: { worker: agent }, storage: new LibSQLStore({ url: `file:${database}` }), logger: silentLogger })
  const began = performance.now()
  const cpu = process.threadCpuUsage()
  await heed.start()
  const { user, system } = process.threadCpuUsage(cpu)
  const ms = performance.now() - began
  await heed.close()
  return { ms, cpuMs: (user + system) / 1_000 }
}

async function repeat<Sample>(times: number, measure: () => Promise<Sample>): Promise<Sample[]> {
  const all: Sample[] = []
  for (let round = 0; round < times; round++) all.push(await measure())
  return all
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}
