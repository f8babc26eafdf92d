import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Heed } from '../../../src/index.ts'
import { Chance } from '../../../src/store/conformance/fixture.ts'
import type { ThreadStore } from '../../../src/store/contract/threads.ts'
import { LibSQLStore } from '../../../src/store/sqlite/store.ts'
import { LiveThread } from '../../../src/thread/stream/live.ts'
import { EffectFile } from '../effects.ts'
import { fastClock, messageClock } from '../fast-clock.ts'
import { JournalWriter, readJournals } from '../journal.ts'
import { KillSwitch, underFire, type KillPlan } from '../kill-points.ts'
import { resourceId } from '../load.ts'
import { seenOf, Watcher } from '../watcher.ts'
import { agentsOf, type Version } from './agents.ts'
import { Client, type Op } from './client.ts'

/** What the parent tells a process when it starts it. */
export interface LivesPlan {
  folder: string
  database: string
  slot: number
  life: number
  threads: string[]
  seed: number
  /** How many times as fast as the system's its clock runs, counted from `origin`; 0: only messages cause anything, no sweep does. */
  speed: number
  origin: number
  /** How many things it does by itself; then it only decides and watches. */
  ops: number
  version: Version
  holdMs: number
  calls: string[]
  /** One of so many runs is aborted while its end is being stored; 0: none. */
  abortEnds: number
  kill?: KillPlan
}

/** What the parent asks of a process; it answers with the same word, or with `number` and what it was asked for by. */
export type Order = 'calm' | 'tell' | 'stop' | { number: number; op: Op }

const plan = JSON.parse(process.argv[2] ?? '') as LivesPlan
const { slot, life, folder, threads } = plan
const before = readJournals(folder).filter((journal) => journal.slot === slot && journal.life < life)
const journal = new JournalWriter(folder, slot, life)
const effects = new EffectFile(folder, slot, life, plan.database)
const kill = new KillSwitch(plan.kill)
const chance = new Chance(plan.seed)
journal.write({ note: 'up', pid: process.pid })
process.once('disconnect', () => process.exit())

const { publish } = LiveThread.prototype
LiveThread.prototype.publish = function (chunk) {
  publish.call(this, chunk)
  journal.write({ note: 'said', thread: this.threadId, ...seenOf(chunk) })
}

const trouble = (message: string, fields?: object) => journal.write({ note: 'trouble', what: `${message} ${JSON.stringify(fields ?? {})}` })
const clock = plan.speed === 0 ? messageClock(plan.origin) : fastClock(plan.speed, plan.origin)
const files = new LibSQLStore({ url: `file:${plan.database}`, clock })
const agents = agentsOf(plan.version, { chance, journal, effects, kill, holdMs: plan.holdMs, calls: plan.calls })
const heed = new Heed({ agents, storage: abortedAtEnds(underFire(files, kill, journal)), clock, logger: { debug() {}, info() {}, warn: trouble, error: trouble } })
const client = new Client({
  agents, files, chance, journal, name: `${slot}.${life}`, threads,
  backups: () => readdirSync(folder).filter((name) => name.endsWith('.backup')).map((name) => join(folder, name)),
  newBackup: (name) => join(folder, `${name}.backup`),
})
const watchers = threads.map((threadId) => new Watcher(agents.worker, journal, `${slot}/${threadId}`, { threadId, resourceId }, lastCursor(threadId)))

process.on('message', (order: Order) => {
  if (order === 'calm') void client.act(8, 'calm').then(() => process.send?.('calm'))
  else if (order === 'tell') void client.tellOpen().then(() => process.send?.('tell'))
  else if (order === 'stop') void stop()
  else void client.perform(order.op).then((answer) => process.send?.({ number: order.number, answer }))
})
await heed.start()
process.send?.('started')
const allWatch = Promise.all(watchers.map((watcher) => watcher.begun)).then(() => process.send?.('watching'))
await Promise.all([
  allWatch,
  client.act(plan.ops, 'storm'),
  client.decide(plan.ops === 0 ? 1 : 3),
  ...watchers.map((watcher) => watcher.watch(() => (plan.ops === 0 ? Infinity : 20 + chance.below(200)))),
])

async function stop(): Promise<void> {
  journal.write({ note: 'stopping' })
  client.stop()
  for (const watcher of watchers) watcher.stop()
  await heed.close()
  journal.write({ note: 'closed' })
  process.disconnect()
}

/** A store at whose commits of ends, some, the run is aborted: once or twice, and with a wish to clear what is pending or without. */
function abortedAtEnds(store: ThreadStore): ThreadStore {
  const commitStep: ThreadStore['commitStep'] = (fence, commit) => {
    if (commit.end && commit.end.status !== 'suspended' && plan.abortEnds > 0 && chance.below(plan.abortEnds) === 0) {
      void client.perform({ do: 'abort', thread: fence.threadId, clear: chance.below(3) > 0, times: 1 + chance.below(2) })
    }
    return store.commitStep(fence, commit)
  }
  return new Proxy(store, { get: (target, key) => (key === 'commitStep' ? commitStep : (Reflect.get(target, key) as unknown)) })
}

function lastCursor(threadId: string): string | undefined {
  const seen = before.flatMap(({ notes }) => notes).findLast((note) => note.note === 'seen' && note.thread === threadId)
  return seen?.note === 'seen' ? seen.cursor : undefined
}
