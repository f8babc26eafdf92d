import { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { Heed } from '../../src/index.ts'
import { Chance } from '../../src/store/conformance/chance.ts'
import { LibSQLStore } from '../../src/store/libsql/store.ts'
import { fastClock } from './fast-clock.ts'
import { JournalWriter, readJournals, type Journal } from './journal.ts'
import { KillSwitch, underFire, type KillPlan } from './kill-points.ts'
import { Load, resourceId } from './load.ts'
import { pause } from './restless-model.ts'
import { Watcher } from './watcher.ts'
import { worker } from './workers.ts'

/** What the parent tells a process when it starts it. */
export interface ChildPlan {
  folder: string
  database: string
  slot: number
  life: number
  threads: string[]
  seed: number
  /** How many times as fast as the system's this process's clock runs, counted from `origin`. */
  speed: number
  origin: number
  /** How many signals it sends; then it only decides and watches. */
  sends: number
  /** One of so many looks decides a call that waits. */
  patience: number
  /** What a send counts as confirmed by. */
  confirm?: 'stored' | 'accepted'
  kill?: KillPlan
}

const plan = JSON.parse(process.argv[2] ?? '') as ChildPlan
const { slot, life, folder, threads } = plan
const before = readJournals(folder).filter((journal) => journal.slot === slot && journal.life < life)
const journal = new JournalWriter(folder, slot, life)
const kill = new KillSwitch(plan.kill)
const chance = new Chance(plan.seed)
journal.write({ note: 'up', pid: process.pid })
process.once('disconnect', () => process.exit())

const trouble = (message: string, fields?: object) => journal.write({ note: 'trouble', what: `${message} ${JSON.stringify(fields ?? {})}` })
const clock = fastClock(plan.speed, plan.origin)
if (plan.kill?.point === 'open') dieWhileOpening()
const store = underFire(new LibSQLStore({ url: `file:${plan.database}`, clock }), kill, journal)
const agent = worker(chance, journal, kill)
const heed = new Heed({ agents: { worker: agent }, storage: store, clock, logger: { debug() {}, info() {}, warn: trouble, error: trouble } })
const load = new Load({ agent, chance, journal, name: `${slot}.${life}`, threads, before, confirm: plan.confirm })
const watchers = threads.map((threadId) => new Watcher(agent, journal, `${slot}/${threadId}`, { threadId, resourceId }, lastCursor(before, threadId)))

process.once('message', () => void stop())
await heed.start()
process.send?.('started')
if (plan.kill?.point === 'checkpoint') dieInCheckpoint(plan.kill.nth)
await Promise.all([
  load.send(plan.sends),
  load.decide(plan.patience),
  ...watchers.map((watcher) => watcher.watch(() => 20 + chance.below(200))),
])

async function stop(): Promise<void> {
  load.stop()
  for (const watcher of watchers) watcher.stop()
  await heed.close()
  journal.write({ note: 'closed' })
  process.disconnect()
}

function lastCursor(journals: readonly Journal[], threadId: string): string | undefined {
  const seen = journals.flatMap(({ notes }) => notes).findLast((note) => note.note === 'seen' && note.thread === threadId)
  return seen?.note === 'seen' ? seen.cursor : undefined
}

/** At one of the statements that make or migrate the tables. */
function dieWhileOpening(): void {
  const { exec } = DatabaseSync.prototype
  DatabaseSync.prototype.exec = function (text) {
    kill.at('open')
    exec.call(this, text)
    kill.at('open')
  }
}

/** The store's own worker copies the log while this process works; somewhere in there it dies. */
function dieInCheckpoint(times: number): void {
  const extension = import.meta.url.endsWith('.ts') ? '../../src/store/libsql/checkpoint-worker.ts' : './checkpoint-worker.js'
  const copier = new Worker(new URL(extension, import.meta.url), { workerData: { path: plan.database } })
  const go = async () => {
    for (let left = 3 * times; ; left--) {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      copier.postMessage(chance.below(2) === 0 ? 'copy' : 'renew')
      if (left === 0) break
      await pause(30)
    }
    // Spins, so that death can come within a fraction of a millisecond.
    for (const until = performance.now() + chance.below(200) / 100; performance.now() < until;) { /* the worker is at it */ }
    process.kill(process.pid, 'SIGKILL')
  }
  void go()
}
