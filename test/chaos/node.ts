import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { Heed, type Agent } from '../../src/index.ts'
import { systemClock, type Clock } from '../../src/base/clock.ts'
import { isHeedError } from '../../src/base/errors.ts'
import { RedisBus } from '../../src/bus/redis/index.ts'
import { Chance } from '../../src/store/conformance/fixture.ts'
import { PostgresStore } from '../../src/store/postgres/index.ts'
import { LiveThread } from '../../src/thread/stream/live.ts'
import type { EffectCall } from '../crash/effects.ts'
import { JournalWriter, readJournals, steadyNow, type Journal } from '../crash/journal.ts'
import { KillSwitch, underFire } from '../crash/kill-points.ts'
import { Load, resourceId } from '../crash/load.ts'
import { pause } from '../crash/restless-model.ts'
import { seenOf } from '../crash/watcher.ts'
import { worker } from '../crash/workers.ts'

/** What the parent tells a node when it starts it. */
export interface NodePlan {
  folder: string
  slot: number
  life: number
  seed: number
  threads: string[]
  /** The database and, where it is the bus, Redis: both behind the network of this node. */
  database: string
  schema: string
  redis?: string
  sends: number
  pace: number
  /** By how many milliseconds the clock of this node is wrong. */
  skew: number
}

const plan = JSON.parse(process.argv[2] ?? '') as NodePlan
const { slot, life, folder, threads } = plan
const before = readJournals(folder).filter((journal) => journal.slot === slot && journal.life < life)
const journal = new JournalWriter(folder, slot, life)
const chance = new Chance(plan.seed)
journal.write({ note: 'up', pid: process.pid })
process.once('disconnect', () => process.exit())

let skew = plan.skew
const clock: Clock = { ...systemClock, now: () => systemClock.now() + skew }
const trouble = (message: string, fields?: object) => journal.write({ note: 'trouble', what: `${message} ${JSON.stringify(fields ?? {})}` })
const kill = new KillSwitch()
const effectFile = openSync(join(folder, `${slot}-${life}.effects`), 'a')
const effect = (phase: 'begun' | 'done') => (call: EffectCall) =>
  void writeSync(effectFile, `${JSON.stringify({ at: steadyNow(), phase, by: `${slot}.${life}`, ...call })}\n`)
// Each node has another address of the database: without a namespace they would not be one cluster.
const database = new PostgresStore({ connectionString: plan.database, schemaName: plan.schema, max: 4, namespace: 'chaos' })
const store = underFire(database, kill, journal)
const agent: Agent = worker(chance, journal, { begun: effect('begun'), done: effect('done') }, kill)
const heed = new Heed({
  agents: { worker: agent }, storage: store, clock, logger: { debug() {}, info() {}, warn: trouble, error: trouble },
  ...(plan.redis !== undefined && { bus: new RedisBus({ url: plan.redis }) }),
})
const load = new Load({ agent, chance, journal, name: `${slot}.${life}`, threads, before, pace: plan.pace })
let stopped = false
let leave: Array<() => void> = []

noteWhatIsSaid()
process.on('message', (what) => {
  if (what === 'calm') void calm()
  else if (what === 'enough') load.enough()
  else if (what === 'stop') void stop()
  else if (typeof what === 'object' && what !== null && 'jump' in what) skew += Number(what.jump)
})
process.once('SIGTERM', () => void stop(5_000))
await started()
process.send?.('started')
const watching = threads.map((threadId) => watch(threadId, lastCursor(before, threadId)))
await Promise.all([load.send(plan.sends), load.decide(2), ...watching])

/** The database may be unreachable when the process starts: it then starts again until it is stopped. */
async function started(): Promise<void> {
  while (!stopped) {
    const failure = await heed.start().then(() => undefined, (error: unknown) => error)
    if (failure === undefined) return
    journal.write({ note: 'trouble', what: `start: ${String(failure)}` })
    await pause(200)
  }
}

async function calm(): Promise<void> {
  journal.write({ note: 'calm' })
  await load.calmly(4)
  process.send?.('calm')
}

async function stop(drainMs = 0): Promise<void> {
  if (stopped) return
  stopped = true
  journal.write({ note: 'stopping' })
  load.stop()
  for (const one of leave) one()
  await heed.close({ drainMs })
  journal.write({ note: 'closed' })
  closeSync(effectFile)
  if (process.connected) process.disconnect()
}

/** Reads a thread, leaves after some chunks or where the stream fails, and comes back with the cursor. */
async function watch(threadId: string, from: string | undefined): Promise<void> {
  const watcher = `${slot}/${threadId}`
  for (let after = from; !stopped;) {
    const since = steadyNow()
    try {
      const subscription = await agent.subscribeToThread({ threadId, resourceId, ...(after === undefined ? {} : { after }) })
      journal.write({ note: 'watching', watcher, thread: threadId, since, ...(after === undefined ? {} : { after }) })
      const end = () => subscription.unsubscribe()
      leave.push(end)
      let left = 20 + chance.below(200)
      for await (const chunk of subscription.stream) {
        const seen = seenOf(chunk)
        after = seen.cursor
        journal.write({ note: 'seen', watcher, thread: threadId, ...seen })
        if (--left === 0) break
      }
      end()
      leave = leave.filter((one) => one !== end)
    } catch (error) {
      if (!isHeedError(error) || (!error.retryable && error.code !== 'closed')) throw error
      await pause(100)
    }
  }
}

/** Records each chunk with its place, in the process that publishes it. */
function noteWhatIsSaid(): void {
  const { publish } = LiveThread.prototype
  LiveThread.prototype.publish = function (chunk) {
    publish.call(this, chunk)
    journal.write({ note: 'said', thread: this.threadId, ...seenOf(chunk) })
  }
}

function lastCursor(journals: readonly Journal[], threadId: string): string | undefined {
  const seen = journals.flatMap(({ notes }) => notes).findLast((note) => note.note === 'seen' && note.thread === threadId)
  return seen?.note === 'seen' ? seen.cursor : undefined
}
