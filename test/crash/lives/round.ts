import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Chance } from '../../../src/store/conformance/fixture.ts'
import { LibSQLStore } from '../../../src/store/sqlite/store.ts'
import { unheard } from '../checks/watching.ts'
import type { Violation } from '../checks/evidence.ts'
import { readEffects } from '../effects.ts'
import { JournalWriter, readJournals } from '../journal.ts'
import type { KindPlan, KindResult } from '../kind.ts'
import { killPoints, type KillPlan, type KillPoint } from '../kill-points.ts'
import { readLedger, unrest } from '../ledger.ts'
import { resourceId } from '../load.ts'
import { pause } from '../restless-model.ts'
import { leaseMs } from '../round.ts'
import { versions, type Version } from './agents.ts'
import { judge } from './checks.ts'
import type { LivesPlan } from './child.ts'
import type { LivesEvidence } from './evidence.ts'
import { hangMs, Process } from './processes.ts'
import { installLog, readLog } from './store-log.ts'

interface StormSize {
  slots: number
  /** How many processes live one after the other or beside each other, before the quiet time. */
  processes: number
  /** Whether processes are killed and stopped; else each is closed after a while. */
  kills: boolean
}

const speed = 10_000 / leaseMs
const quietMs = 60_000
const hearingMs = 10_000
const points: readonly KillPoint[] = killPoints.filter((point) => !['open', 'migrate', 'checkpoint', 'resign:before'].includes(point))

type Fate =
  | { kind: 'point'; kill: KillPlan }
  | { kind: 'random' | 'close'; after: number }
  | { kind: 'sleep'; after: number; length: number }

/** One database and its processes, with what both kinds of rounds need. */
class LivesRound {
  readonly plan: KindPlan
  readonly chance: Chance
  readonly database: string
  readonly threads = ['t0', 't1', 't2']
  readonly problems: Violation[] = []
  readonly faults: Record<string, number> = {}
  readonly #origin = Date.now()
  readonly #lives: number[] = []
  readonly #processes = new Set<Process>()
  readonly #journal: JournalWriter
  readonly #program: LibSQLStore

  constructor(plan: KindPlan) {
    mkdirSync(plan.folder, { recursive: true })
    this.plan = plan
    this.chance = new Chance(plan.seed)
    this.database = join(plan.folder, 'heed.db')
    this.#journal = new JournalWriter(plan.folder, 90, 0)
    this.#program = new LibSQLStore({ url: `file:${this.database}` })
  }

  /** Makes the database, runs the round, and judges what is left of it. */
  async run(round: () => Promise<void>): Promise<KindResult> {
    const killAll = () => {
      for (const process of this.#processes) process.signal('SIGKILL')
    }
    // One that is stopped would not notice that its parent is gone.
    process.once('exit', killAll)
    try {
      await this.#program.open()
      installLog(this.database)
      await round()
    } finally {
      killAll()
      await Promise.all([...this.#processes].map(({ gone }) => gone))
      process.off('exit', killAll)
      await this.#program.close()
      this.#journal.close()
    }
    const evidence = this.evidence()
    return { faults: this.#allFaults(evidence), violations: [...this.problems, ...judge(evidence)], facts: factsOf(evidence) }
  }

  evidence(): LivesEvidence {
    const { folder } = this.plan
    return { journals: readJournals(folder), effects: readEffects(folder), ledger: readLedger(this.database), log: readLog(this.database) }
  }

  count(fault: string): void {
    this.faults[fault] = (this.faults[fault] ?? 0) + 1
  }

  start(slot: number, more: Pick<LivesPlan, 'ops' | 'speed' | 'holdMs' | 'calls' | 'abortEnds'> & { version?: Version; kill?: KillPlan }): Process {
    const life = this.#lives[slot] ?? 0
    this.#lives[slot] = life + 1
    const { folder, program } = this.plan
    const plan: LivesPlan = {
      folder, database: this.database, slot, life, threads: this.threads, seed: this.chance.below(2 ** 31), origin: this.#origin, version: 'whole', ...more,
    }
    const process = new Process(program, plan, this.problems)
    this.#processes.add(process)
    void process.gone.then(() => this.#processes.delete(process))
    return process
  }

  /** A program without a Heed deletes a thread: no message tells of it. */
  async deleteSilently(thread: string): Promise<void> {
    this.#journal.write({ note: 'ending', thread })
    const done = await this.#program.deleteThread({ threadId: thread, resourceId })
    this.#journal.write({ note: 'ended', thread, done })
    if (done) this.count('delete without a message')
  }

  /** Waits until nothing runs or waits, and every watcher that lives has seen all chunks. */
  async rest(): Promise<void> {
    const db = new DatabaseSync(this.database, { readOnly: true, timeout: 5_000 })
    try {
      const until = Date.now() + quietMs
      while (unrest(db).length > 0 && Date.now() < until) await pause(30)
      for (const what of unrest(db)) this.problems.push({ promise: 'R5.4', what: `nothingStuck: after ${quietMs} ms of quiet ${what}` })
    } finally {
      db.close()
    }
    await this.heard()
  }

  async heard(): Promise<void> {
    const alive = new Set([...this.#processes].map(({ name }) => name))
    const heardBy = Date.now() + hearingMs
    const behind = () => unheard({ journals: readJournals(this.plan.folder) }, (by) => alive.has(by)).filter(({ watcher }) => !watcher.includes('#'))
    while (behind().length > 0 && Date.now() < heardBy) await pause(50)
  }

  #allFaults({ journals }: LivesEvidence): Record<string, number> {
    const faults = { ...this.faults }
    for (const { slot, notes } of journals) {
      if (slot === 90) continue
      for (const note of notes) {
        const name = note.note === 'ended' && note.done ? (note.thread === undefined ? 'restore' : 'delete') : note.note === 'abort-answered' && note.aborted ? 'abort' : undefined
        if (name !== undefined) faults[name] = (faults[name] ?? 0) + 1
      }
    }
    return faults
  }
}

/** Processes that send, abort, delete, restore and copy, and are killed, stopped, closed and replaced by those of other versions. */
export class Storm extends LivesRound {
  readonly #size: StormSize
  readonly #versions: Version[] = []
  #left: number

  constructor(plan: KindPlan, size: StormSize) {
    super(plan)
    this.#size = size
    this.#left = size.processes
  }

  storm(): Promise<KindResult> {
    return this.run(async () => {
      const slots = Array.from({ length: this.#size.slots }, (_, slot) => slot)
      let over = false
      const program = this.#deleteNowAndThen(() => over)
      await Promise.all(slots.map((slot) => this.#fire(slot)))
      over = true
      await program
      await this.#quiet(slots)
    })
  }

  async #deleteNowAndThen(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await pause(500 + this.chance.below(1_000))
      if (!isOver() && this.#size.kills) await this.deleteSilently(this.chance.pick(this.threads))
    }
  }

  async #fire(slot: number): Promise<void> {
    while (this.#left-- > 0) {
      const fate = this.#fate()
      const version = this.chance.below(2) === 0 ? 'whole' : this.chance.pick(versions)
      if (this.#versions[slot] !== undefined && this.#versions[slot] !== version) this.count('deploy')
      this.#versions[slot] = version
      const process = this.start(slot, { ...stormPlan, ops: 30 + this.chance.below(30), version, ...(fate.kind === 'point' ? { kill: fate.kill } : {}) })
      await this.#meet(process, fate)
    }
  }

  #fate(): Fate {
    const { chance } = this
    const after = 300 + chance.below(900)
    const drawn = chance.below(10)
    if (!this.#size.kills || drawn < 2) return { kind: 'close', after }
    if (drawn < 4) return { kind: 'sleep', after, length: Math.ceil(leaseMs * (1.1 + chance.below(100) / 100)) }
    if (drawn < 6) return { kind: 'random', after }
    return { kind: 'point', kill: { point: chance.pick(points), nth: 1 + chance.below(4) } }
  }

  async #meet(process: Process, fate: Fate): Promise<void> {
    await process.said('started')
    const wait = (ms: number) => Promise.race([process.gone, pause(ms)])
    if (fate.kind === 'point') {
      await wait(1_000)
      const own = !process.alive
      process.signal('SIGKILL')
      this.count(own ? `kill ${fate.kill.point}` : 'kill random')
      await process.gone
      return
    }
    await wait(fate.after)
    if (fate.kind === 'sleep' && process.signal('SIGSTOP')) {
      await pause(fate.length)
      if (process.signal('SIGCONT')) this.count('stop')
      await wait(300)
    }
    if (fate.kind === 'close') {
      if (await process.close()) this.count('close')
      return
    }
    if (process.signal('SIGKILL')) this.count('kill random')
    await process.gone
  }

  /** No process is killed any more: everything comes to rest, and the processes end when they are asked to. */
  async #quiet(slots: readonly number[]): Promise<void> {
    const processes = slots.map((slot) => this.start(slot, { ...stormPlan, ops: 0, abortEnds: 0 }))
    await Promise.all(processes.map((process) => process.said('watching')))
    await this.rest()
    for (const process of processes) process.send('calm')
    await Promise.all(processes.map((process) => process.said('calm')))
    await this.rest()
    for (const process of processes) process.send('tell')
    await Promise.all(processes.map((process) => process.said('tell')))
    await Promise.all(processes.map((process) => process.close()))
  }
}

const stormPlan = { speed, holdMs: 400, calls: ['look', 'order', 'order', 'sign', 'ask', 'hold', 'hold'], abortEnds: 6 }

/** Processes whose clocks hardly move, so that messages alone cause what happens: what one does to a thread, the others have to follow. */
export class Still extends LivesRound {
  #abortEnds = 0

  /** `abortEnds`: one of so many runs is aborted while its end is stored; 0: none. */
  still(scenes: readonly Scene[], abortEnds = 0): Promise<KindResult> {
    this.#abortEnds = abortEnds
    return this.run(async () => {
      const processes = [0, 1, 2].map((slot) => this.#begin(slot))
      await Promise.all(processes.map((process) => process.said('watching')))
      await processes[0]?.ask({ do: 'send', thread: 't0', kind: 'persist' })
      await processes[1]?.ask({ do: 'backup' })
      for (const scene of scenes) await this.#play(scene, processes)
      await this.#settle(processes)
      for (const process of processes) process.send('tell')
      await Promise.all(processes.map((process) => process.said('tell')))
      await this.heard()
      await Promise.all(processes.map((process) => process.close()))
    })
  }

  #begin(slot: number): Process {
    return this.start(slot, { speed: 0, holdMs: 10 * hangMs, calls: ['hold'], ops: 0, abortEnds: this.#abortEnds })
  }

  async #play(scene: Scene, processes: Process[]): Promise<void> {
    const [one, other] = this.chance.shuffle(processes) as [Process, Process]
    const { thread, slot } = await this.#held(one)
    const holder = processes.find(({ plan }) => plan.slot === slot) ?? one
    const from = this.#releases(thread)
    if (scene === 'delete') await other.ask({ do: 'delete', thread })
    if (scene === 'restore') await other.ask({ do: 'restore' })
    if (scene === 'abort') {
      for (const kind of ['queue', 'queue'] as const) await other.ask({ do: 'send', thread, kind })
      await this.chance.pick([one, other]).ask({ do: 'abort', thread, clear: this.chance.below(2) === 0, times: 2 })
    }
    if (scene === 'replace' || scene === 'replace and close') {
      // No message tells of the deletion: the next send to the process that runs the former thread does.
      await this.deleteSilently(thread)
      await holder.ask({ do: 'send', thread, kind: 'message' })
    }
    if (scene === 'replace and close') {
      if (await holder.close()) this.count('close')
      const next = this.#begin(slot)
      processes[processes.indexOf(holder)] = next
      await next.said('watching')
      return
    }
    await this.#until('formerEnds', `${scene}: the tool of ${thread} in ${holder.name} was not aborted`, () => this.#releases(thread) > from)
  }

  /** Sends to threads until a tool holds one of them. */
  async #held(sender: Process): Promise<{ thread: string; slot: number }> {
    const before = readEffects(this.plan.folder).length
    const until = Date.now() + hangMs
    for (let sends = 0; Date.now() < until; sends++) {
      const thread = this.chance.pick(this.threads)
      // Runs that were taken over from closed processes may hold all threads: nothing more begins there until one ends.
      if (sends >= this.threads.length) await sender.ask({ do: 'abort', thread, clear: true })
      await sender.ask({ do: 'send', thread, kind: 'message' })
      for (let looks = 0; looks < 10; looks++) {
        await pause(20)
        const begun = readEffects(this.plan.folder).slice(before).find(({ phase, tool }) => phase === 'begun' && tool === 'hold')
        if (begun) return { thread: begun.thread, slot: Number(begun.by.split('.')[0]) }
      }
    }
    this.problems.push({ promise: 'R11.2', what: `nothingHangs: ${sender.name} sent for ${hangMs} ms and no run began` })
    return { thread: 't0', slot: 0 }
  }

  #releases(thread: string): number {
    return readJournals(this.plan.folder).flatMap(({ notes }) => notes).filter((note) => note.note === 'let-go' && note.thread === thread).length
  }

  async #until(check: string, what: string, isTrue: () => boolean): Promise<void> {
    for (const until = Date.now() + hangMs; !isTrue(); await pause(30)) {
      if (Date.now() < until) continue
      this.problems.push({ promise: 'R11.2', what: `${check}: ${what} in ${hangMs} ms` })
      return
    }
  }

  /** Aborts what holds until all is at rest. */
  async #settle(processes: readonly Process[]): Promise<void> {
    const db = new DatabaseSync(this.database, { readOnly: true, timeout: 5_000 })
    try {
      for (const until = Date.now() + quietMs; unrest(db).length > 0 && Date.now() < until; await pause(30)) {
        for (const thread of this.threads) await this.chance.pick(processes).ask({ do: 'abort', thread, clear: true })
      }
      for (const what of unrest(db)) this.problems.push({ promise: 'R5.4', what: `nothingStuck: after ${quietMs} ms of aborts ${what}` })
    } finally {
      db.close()
    }
  }
}

export const scenes = ['delete', 'restore', 'abort', 'replace', 'replace and close'] as const
export type Scene = (typeof scenes)[number]

function factsOf({ journals, log }: LivesEvidence): Record<string, number> {
  const notes = journals.flatMap((journal) => journal.notes)
  const count = (...names: string[]) => notes.filter(({ note }) => names.includes(note)).length
  return {
    sent: count('send'), stored: count('stored'), lives: log.filter(({ what }) => what === 'thread').length, aborts: count('abort'), calls: count('called'),
    copies: count('cloned'), steps: count('asked'), seen: count('seen'),
    replaced: notes.filter((note) => note.note === 'seen' && note.reason === 'replaced').length,
  }
}
