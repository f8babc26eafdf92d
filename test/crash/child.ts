import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { Heed } from '../../src/index.ts'
import { Chance } from '../../src/store/conformance/fixture.ts'
import { LibSQLStore } from '../../src/store/sqlite/store.ts'
import { LiveThread } from '../../src/thread/stream/live.ts'
import { EffectFile } from './effects.ts'
import { fastClock } from './fast-clock.ts'
import { JournalWriter, readJournals, type Journal } from './journal.ts'
import { KillSwitch, underFire, type KillPlan } from './kill-points.ts'
import { Load, resourceId } from './load.ts'
import { pause } from './restless-model.ts'
import { seenOf, Watcher } from './watcher.ts'
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
  /** No process dies, for long: so many threads at a time are sent to, each set for so long, and every chunk has to arrive as it is published. */
  peace?: { threads: number; ms: number; pace: number }
}

const plan = JSON.parse(process.argv[2] ?? '') as ChildPlan
const { slot, life, folder, threads } = plan
const before = readJournals(folder).filter((journal) => journal.slot === slot && journal.life < life)
const journal = new JournalWriter(folder, slot, life)
const effects = new EffectFile(folder, slot, life, plan.database)
const kill = new KillSwitch(plan.kill)
const chance = new Chance(plan.seed)
journal.write({ note: 'up', pid: process.pid })
process.once('disconnect', () => process.exit())

const trouble = (message: string, fields?: object) => journal.write({ note: 'trouble', what: `${message} ${JSON.stringify(fields ?? {})}` })
const clock = fastClock(plan.speed, plan.origin)
if (plan.kill?.point === 'open') dieWhileOpening()
if (plan.kill?.point === 'migrate') dieWhileMigrating()
noteWhatIsSaid()
noteStalls(200)
const store = underFire(new LibSQLStore({ url: `file:${plan.database}`, clock }), kill, journal)
const agent = worker(chance, journal, effects, kill)
const heed = new Heed({ agents: { worker: agent }, storage: store, clock, logger: { debug() {}, info() {}, warn: trouble, error: trouble } })
const load = new Load({ agent, chance, journal, name: `${slot}.${life}`, threads, before, confirm: plan.confirm, ...peaceful(plan) })
const watchers = threads.map((threadId) => new Watcher(agent, journal, `${slot}/${threadId}`, { threadId, resourceId }, lastCursor(before, threadId)))

process.on('message', (what) => {
  if (what === 'calm') void calm()
  else if (what === 'enough') load.enough()
  else if (what === 'stop') void stop()
})
await heed.start()
process.send?.('started')
if (plan.kill?.point === 'checkpoint') dieInCheckpoint(plan.kill.nth)
const allWatch = Promise.all(watchers.map((watcher) => watcher.begun)).then(() => process.send?.('watching'))
const begin = plan.peace ? once(process, 'message').then(() => journal.write({ note: 'calm' })) : Promise.resolve()
await Promise.all([
  allWatch,
  begin.then(() => load.send(plan.sends)),
  load.decide(plan.patience),
  ...watchers.map((watcher) => watcher.watch(() => (plan.sends === 0 || plan.peace ? Infinity : 20 + chance.below(200)))),
])

async function calm(): Promise<void> {
  journal.write({ note: 'calm' })
  await load.calmly(8)
  process.send?.('calm')
}

async function stop(): Promise<void> {
  journal.write({ note: 'stopping' })
  load.stop()
  for (const watcher of watchers) watcher.stop()
  await heed.close()
  journal.write({ note: 'closed' })
  effects.close()
  process.disconnect()
}

/** The process that runs a thread gives each chunk its place: that is the log that every watcher's is compared with. */
function noteWhatIsSaid(): void {
  const { publish } = LiveThread.prototype
  LiveThread.prototype.publish = function (chunk) {
    publish.call(this, chunk)
    journal.write({ note: 'said', thread: this.threadId, ...seenOf(chunk) })
  }
}

/** Every set of threads has its time, the same in all processes: a thread that is sent to for minutes has prompts without end. */
function peaceful({ peace, threads: all, origin: from }: ChildPlan): { present?(): string[]; pace?: number } {
  if (!peace) return {}
  const sets = Math.ceil(all.length / peace.threads)
  const present = () => {
    const first = Math.min(sets - 1, Math.floor((Date.now() - from) / peace.ms)) * peace.threads
    return all.slice(first, first + peace.threads)
  }
  return { present, pace: peace.pace }
}

function lastCursor(journals: readonly Journal[], threadId: string): string | undefined {
  const seen = journals.flatMap(({ notes }) => notes).findLast((note) => note.note === 'seen' && note.thread === threadId)
  return seen?.note === 'seen' ? seen.cursor : undefined
}

/** Half a lease without a moment is as good as a sleep. */
function noteStalls(ms: number): void {
  let last = performance.now()
  setInterval(() => {
    const now = performance.now()
    if (now - last > ms) journal.write({ note: 'stalled', ms: Math.round(now - last) })
    last = now
  }, ms / 4).unref()
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

/** Before or after one of the statements of the migration. */
function dieWhileMigrating(): void {
  const { exec } = DatabaseSync.prototype
  let migrating = false
  DatabaseSync.prototype.exec = function (text) {
    migrating ||= text === 'BEGIN IMMEDIATE'
    if (migrating) kill.at('migrate')
    exec.call(this, text)
    if (migrating) kill.at('migrate')
    if (text.endsWith('COMMIT')) migrating = false
  }
}

/** The store's own worker copies the log while this process works; somewhere in there it dies. */
function dieInCheckpoint(times: number): void {
  const extension = import.meta.url.endsWith('.ts') ? '../../src/store/sqlite/checkpoint-worker.ts' : './checkpoint-worker.js'
  const copier = new Worker(new URL(extension, import.meta.url), { workerData: { path: plan.database } })
  const go = async () => {
    for (let left = 3 * times; ; left--) {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
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
