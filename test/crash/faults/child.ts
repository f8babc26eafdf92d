import { isHeedError } from '../../../src/base/errors.ts'
import { createHandler } from '../../../src/http/server.ts'
import { Heed } from '../../../src/index.ts'
import { Chance } from '../../../src/store/conformance/fixture.ts'
import { LibSQLStore } from '../../../src/store/sqlite/store.ts'
import { LiveThread } from '../../../src/thread/stream/live.ts'
import { EffectFile } from '../effects.ts'
import { JournalWriter, readJournals, steadyNow, type Journal } from '../journal.ts'
import { KillSwitch, underFire, type KillPlan, type KillPoint } from '../kill-points.ts'
import { Load, resourceId } from '../load.ts'
import { mark, pause } from '../restless-model.ts'
import { seenOf, Watcher } from '../watcher.ts'
import { worker } from '../workers.ts'
import { BrokenStore, type StoreRule } from './broken-store.ts'
import { clocksOf, Descriptors, slowSyncs } from './machine.ts'

/** What the parent gives a process when it starts it. */
export interface FaultChildPlan {
  /** For journals and effects: another disk than the database's, which may be full. */
  folder: string
  database: string
  /** The file of the machine's clock. */
  clock: string
  slot: number
  life: number
  threads: string[]
  seed: number
  speed: number
  origin: number
  sends: number
  /** One of so many looks decides a call that waits. */
  patience: number
  kill?: KillPlan
  /** It dies when a run begins that a decision continues, before it is stored that its calls begin. */
  killAfterDecision?: boolean
  /** The process has no file descriptors left when it opens the store, or when it flushes for the first time. */
  exhaust?: 'open' | 'flush'
  /** How the store fails from the start on. */
  rule?: StoreRule
}

/** What the parent asks of a process that runs. */
export type Command =
  | { do: 'block' | 'sync'; ms: number }
  | { do: 'fail'; rule: StoreRule }
  | { do: 'exhaust' | 'free' | 'mend' | 'abortAtEnd' | 'settle' | 'calm' | 'stop' }

/** A tool holds the event loop where the parent asks for it. */
class BlockingSwitch extends KillSwitch {
  blockMs = 0
  #decided = false

  override at(point: KillPoint): void {
    if (point === 'tool:begun' && this.blockMs > 0) {
      const ms = this.blockMs
      this.blockMs = 0
      journal.write({ note: 'loopBlocked', ms })
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
    }
    this.#decided ||= point === 'decide:after'
    if (plan.killAfterDecision && this.#decided && point === 'begin:after') process.kill(process.pid, 'SIGKILL')
    super.at(point)
  }
}

const plan = JSON.parse(process.argv[2] ?? '') as FaultChildPlan
const { slot, life, folder, threads } = plan
const before = readJournals(folder).filter((journal) => journal.slot === slot && journal.life < life)
const journal = new JournalWriter(folder, slot, life)
const effects = new EffectFile(folder, slot, life, plan.database)
const kill = new BlockingSwitch(plan.kill)
const chance = new Chance(plan.seed)
const descriptors = new Descriptors()
const setSyncMs = slowSyncs()
journal.write({ note: 'up', pid: process.pid })
process.once('disconnect', () => process.exit())

const trouble = (message: string, fields?: object) => journal.write({ note: 'trouble', what: `${message} ${JSON.stringify(fields ?? {})}` })
const clocks = clocksOf(plan.clock, slot, plan.speed, plan.origin)
noteWhatIsSaid()
const broken = new BrokenStore(journal)
if (plan.rule) broken.add(plan.rule)
const inner = new LibSQLStore({ url: `file:${plan.database}`, clock: clocks.machine, busyTimeout: 300 })
const store = broken.wrap(underFire(inner, kill, journal))
const agent = worker(chance, journal, effects, kill)
const heed = new Heed({ agents: { worker: agent }, storage: store, clock: clocks.own, logger: { debug() {}, info() {}, warn: trouble, error: trouble } })
const handler = createHandler(heed, { auth: 'local' })
const load = new Load({ agent, chance, journal, name: `${slot}.${life}`, threads, before, pace: 60 })
const watchers = threads.map((threadId) => new Watcher(agent, journal, `${slot}/${threadId}`, { threadId, resourceId }, lastCursor(before, threadId)))
let stopped = false

process.on('message', (command: Command) => {
  switch (command.do) {
    case 'block': return void (kill.blockMs = command.ms)
    case 'sync': return setSyncMs(command.ms)
    case 'fail': return broken.add(command.rule)
    case 'mend': return broken.mend()
    case 'exhaust': return descriptors.exhaust()
    case 'free': return descriptors.free()
    case 'abortAtEnd': return abortAtEnd()
    case 'settle': return void settle()
    case 'calm': return void calm()
    case 'stop': return void stop()
  }
})
await open()
process.send?.('started')
await Promise.all([
  load.send(plan.sends),
  load.decide(plan.patience),
  probeAgain(),
  ...watchers.map((watcher) => watch(watcher)),
])

/** Opens the store, again and again while it can't be opened. */
async function open(): Promise<void> {
  if (plan.exhaust === 'open') descriptors.exhaust()
  for (;;) {
    try {
      await heed.start()
      break
    } catch (error) {
      if (!isHeedError(error)) throw error
      trouble(`the store does not open: ${error.code} ${error.message}`)
      descriptors.free()
      await pause(20)
    }
  }
  descriptors.free()
  effects.open()
  if (plan.exhaust !== 'flush') return
  descriptors.exhaust()
  void pause(300).then(() => descriptors.free())
}

/** Returns after each failure of the store, with the cursor of what it saw last. */
async function watch(watcher: Watcher): Promise<void> {
  while (!stopped) {
    try {
      return await watcher.watch(() => Infinity)
    } catch (error) {
      if (!isHeedError(error)) throw error
      await pause(20)
    }
  }
}

async function isReady(): Promise<boolean> {
  const began = steadyNow()
  const { status } = await handler(new Request('http://localhost/api/ready'))
  journal.write({ note: 'readiness', ready: status === 200, began })
  return status === 200
}

async function probeAgain(): Promise<void> {
  while (!stopped) {
    await isReady()
    await pause(40)
  }
}

/** Tells the parent when this process is ready. */
async function settle(): Promise<void> {
  load.enough()
  while (!(await isReady())) await pause(20)
  process.send?.('settled')
}

async function calm(): Promise<void> {
  journal.write({ note: 'calm' })
  await load.calmly(4)
  process.send?.('calm')
}

/** While the end of the next run is being stored, a signal is queued, and the run is aborted with all that is pending. */
function abortAtEnd(): void {
  broken.onEnd = async (threadId, runId) => {
    broken.onEnd = undefined
    const queued = `${slot}.${life}.end-${runId}`
    journal.write({ note: 'send', thread: threadId, id: queued, kind: 'queue' })
    const receipt = agent.queueMessage({ contents: `Do ${mark(threadId, queued)}.`, id: queued }, { threadId, resourceId })
    void receipt.outcome.then(({ action, reason }) => journal.write({ note: 'outcome', thread: threadId, id: queued, action, ...(reason === undefined ? {} : { reason }) }))
    try {
      await receipt.stored
    } catch (error) {
      return journal.write({ note: 'refused', thread: threadId, id: queued, why: isHeedError(error) ? error.code : String(error) })
    }
    journal.write({ note: 'stored', thread: threadId, id: queued })
    journal.write({ note: 'endAbort', thread: threadId, run: runId, queued })
    agent.abortRun({ threadId, resourceId, clearPendingSignals: true, expectedRunId: runId }).then(
      ({ aborted }) => journal.write({ note: 'endAbortAnswer', thread: threadId, run: runId, aborted }),
      (error: unknown) => trouble(`abort: ${String(error)}`),
    )
    // The abort reaches the host before the commit is answered.
    await pause(10)
  }
}

async function stop(): Promise<void> {
  stopped = true
  journal.write({ note: 'stopping' })
  load.stop()
  for (const watcher of watchers) watcher.stop()
  try {
    await heed.close()
  } catch (error) {
    if (!isHeedError(error)) throw error
    trouble(`close: ${error.code} ${error.message}`)
  }
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

function lastCursor(journals: readonly Journal[], threadId: string): string | undefined {
  const seen = journals.flatMap(({ notes }) => notes).findLast((note) => note.note === 'seen' && note.thread === threadId)
  return seen?.note === 'seen' ? seen.cursor : undefined
}
