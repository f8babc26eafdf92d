import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Chance } from '../../src/store/conformance/fixture.ts'
import { migrations, versionOf } from '../../src/store/sqlite/migrations.ts'
import type { ChildPlan } from './child.ts'
import { judge, type Evidence, type Violation } from './checks/index.ts'
import { killPoints, type KillPlan } from './kill-points.ts'
import { unheard } from './checks/watching.ts'
import { readEffects } from './effects.ts'
import { readJournals, type Noted } from './journal.ts'
import { readLedger, unrest } from './ledger.ts'
import { pause } from './restless-model.ts'

interface RoundPlan {
  /** The bundled child. */
  program: string
  /** For this round's database and journals. */
  folder: string
  seed: number
  /** How many processes are at work at once. */
  slots: number
  kills: number
  stops: number
}

interface RoundResult {
  seed: number
  slots: number
  /** By point; `random` are those that the parent chose the instant of. */
  kills: Record<string, number>
  stops: number
  retired: number
  violations: Violation[]
  facts: RoundFacts
}

interface RoundFacts {
  sent: number
  stored: number
  effects: number
  steps: number
  takeovers: number
  interrupted: number
  parked: number
  seen: number
  snapshots: number
}

/** A process reaches some points far less often than others, or once. */
const points = killPoints.filter((point) => point !== 'migrate').flatMap((point) => (point === 'open' || point === 'resign:before' ? [point] : [point, point]))

/** Ten seconds of a lease are these many milliseconds. */
export const leaseMs = 600
const speed = 10_000 / leaseMs
const quietMs = 60_000
/** For how long watchers that hear nothing are waited for: more than the checks allow them. */
const hearingMs = 10_000

type Fate =
  | { kind: 'point'; kill: KillPlan }
  | { kind: 'random'; after: number }
  | { kind: 'sleep'; after: number; length: number; rest: number }
  | { kind: 'retire'; after: number }

/** One database, some processes, many deaths; then a time of quiet, and a look at what is left. */
export class Round {
  readonly #plan: RoundPlan
  readonly #chance: Chance
  readonly #database: string
  readonly #threads: string[]
  readonly #origin = Date.now()
  readonly #children = new Set<ChildProcess>()
  readonly #lives: number[]
  readonly #problems: Violation[] = []
  readonly #kills: Record<string, number> = {}
  #killsLeft: number
  #stopsLeft: number
  #stops = 0
  #retired = 0

  constructor(plan: RoundPlan) {
    this.#plan = plan
    this.#chance = new Chance(plan.seed)
    this.#database = join(plan.folder, 'heed.db')
    this.#threads = Array.from({ length: 4 + this.#chance.below(4) }, (_, index) => `t${index}`)
    this.#lives = Array.from({ length: plan.slots }, () => 0)
    this.#killsLeft = plan.kills
    this.#stopsLeft = plan.stops
  }

  async run(): Promise<RoundResult> {
    const { folder, seed, slots } = this.#plan
    mkdirSync(folder, { recursive: true })
    const killAll = () => {
      for (const child of this.#children) child.kill('SIGKILL')
    }
    // One that is stopped wouldn't notice that its parent is gone.
    process.once('exit', killAll)
    try {
      await this.#migrate()
      await Promise.all(Array.from({ length: slots }, (_, slot) => this.#fire(slot)))
      await this.#quiet()
    } finally {
      killAll()
      process.off('exit', killAll)
    }
    const evidence: Evidence = { journals: readJournals(folder), effects: readEffects(folder), ledger: readLedger(this.#database) }
    return { seed, slots, kills: this.#kills, stops: this.#stops, retired: this.#retired, violations: [...this.#problems, ...judge(evidence)], facts: factsOf(evidence) }
  }

  /** Every other round begins with processes that are killed while they run the migrations of a new file. */
  async #migrate(): Promise<void> {
    if (this.#plan.seed % 2 === 0) return
    // Before and after each statement: the begin, every step, and the commit.
    const moments = 2 * (2 + migrations.length)
    for (let deaths = 0; deaths < 3 && this.#killsLeft > 0 && this.#version() === 0; deaths++) {
      const kill: KillPlan = { point: 'migrate', nth: 1 + this.#chance.below(moments) }
      const child = this.#start(0, { sends: 0, patience: 1, kill })
      const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
      this.#killsLeft--
      if (signal === 'SIGKILL') this.#kills.migrate = (this.#kills.migrate ?? 0) + 1
      else this.#problems.push({ promise: 'harness', what: `a process that was to die in a migration (${kill.nth}) ended with ${code ?? signal}` })
      const left = this.#version()
      if (left !== 0 && left !== migrations.length) this.#problems.push({ promise: 'A1.2', what: `a death at ${kill.nth} left version ${left} of a migration from 0` })
    }
  }

  #version(): number {
    const database = new DatabaseSync(this.#database, { timeout: 60_000 })
    try {
      return versionOf(database)
    } finally {
      database.close()
    }
  }

  /** Lives and deaths in one place for a process. */
  async #fire(slot: number): Promise<void> {
    while (this.#killsLeft > 0 || this.#stopsLeft > 0) {
      const fate = this.#fate()
      const child = this.#start(slot, { sends: 10 + this.#chance.below(20), patience: 3, ...(fate.kind === 'point' ? { kill: fate.kill } : {}) })
      const gone = once(child, 'exit')
      const ended = await this.#meet(child, fate, gone)
      if (ended.signal === 'SIGKILL') {
        const point = fate.kind === 'point' && !ended.byParent ? fate.kill.point : 'random'
        this.#kills[point] = (this.#kills[point] ?? 0) + 1
      } else if (fate.kind === 'retire' && ended.code === 0) this.#retired++
      else this.#problems.push({ promise: 'harness', what: `process ${slot}.${(this.#lives[slot] ?? 1) - 1} (${JSON.stringify(fate)}) ended by itself with ${ended.code ?? ended.signal}` })
    }
  }

  #fate(): Fate {
    const chance = this.#chance
    if (this.#stopsLeft > 0 && (this.#killsLeft <= 0 || chance.below(this.#killsLeft + this.#stopsLeft) < this.#stopsLeft)) {
      this.#stopsLeft--
      this.#killsLeft--
      return { kind: 'sleep', after: 50 + chance.below(400), length: Math.ceil(leaseMs * (1.1 + chance.below(100) / 100)), rest: 100 + chance.below(400) }
    }
    if (chance.below(12) === 0) return { kind: 'retire', after: 100 + chance.below(500) }
    this.#killsLeft--
    if (chance.below(5) === 0) return { kind: 'random', after: chance.below(900) }
    const point = chance.pick(points)
    return { kind: 'point', kill: { point, nth: point === 'resign:before' ? 1 : 1 + chance.below(3) } }
  }

  async #meet(child: ChildProcess, fate: Fate, gone: Promise<unknown[]>): Promise<{ code: number | null; signal: string | null; byParent: boolean }> {
    let byParent = false
    const kill = () => {
      byParent = child.kill('SIGKILL')
    }
    const started = Promise.race([once(child, 'message'), gone])
    // A point that isn't reached in this time is not reached at all.
    const limit = setTimeout(kill, 8_000)
    try {
      if (fate.kind === 'point') {
        await started
        if (fate.kill.point === 'resign:before') await Promise.race([gone, pause(100).then(() => child.send('stop', () => {}))])
        await Promise.race([gone, pause(1_500)])
        if (child.exitCode === null && child.signalCode === null) kill()
      } else {
        // Some die before they are up.
        if (fate.kind !== 'random' || fate.after > 200) await started
        await Promise.race([gone, pause(fate.after)])
        if (fate.kind === 'sleep') await this.#sleep(child, fate, gone)
        if (fate.kind === 'retire') child.send('stop', () => {})
        else kill()
      }
      const [code, signal] = await gone
      return { code: code as number | null, signal: signal as string | null, byParent }
    } finally {
      clearTimeout(limit)
    }
  }

  async #sleep(child: ChildProcess, { length, rest }: Extract<Fate, { kind: 'sleep' }>, gone: Promise<unknown[]>): Promise<void> {
    child.kill('SIGSTOP')
    await pause(length)
    if (child.exitCode === null && child.signalCode === null && child.kill('SIGCONT')) this.#stops++
    await Promise.race([gone, pause(rest)])
  }

  #start(slot: number, more: Pick<ChildPlan, 'sends' | 'patience' | 'kill'>): ChildProcess {
    const life = this.#lives[slot] ?? 0
    this.#lives[slot] = life + 1
    const { folder, program } = this.#plan
    const plan: ChildPlan = { folder, database: this.#database, slot, life, threads: this.#threads, seed: this.#chance.below(2 ** 31), speed, origin: this.#origin, ...more }
    const child = spawn(process.execPath, ['--no-warnings', program, JSON.stringify(plan)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    let said = ''
    child.stderr?.on('data', (text: Buffer) => {
      said = `${said}${text.toString()}`.slice(-2_000)
    })
    this.#children.add(child)
    child.once('close', () => {
      this.#children.delete(child)
      if (said !== '') this.#problems.push({ promise: 'harness', what: `process ${slot}.${life} said: ${said}` })
    })
    return child
  }

  /** No process dies any more: everything has to come to rest, and the processes have to end when they are asked to. */
  async #quiet(): Promise<void> {
    const children = Array.from({ length: this.#plan.slots }, (_, slot) => this.#start(slot, { sends: 0, patience: 1 }))
    const gone = children.map((child) => once(child, 'exit'))
    await Promise.all(children.map((child, index) => Promise.race([said(child, 'watching'), gone[index]])))
    const database = new DatabaseSync(this.#database, { readOnly: true, timeout: 5_000 })
    try {
      await this.#rest(database)
      const calm = children.map((child, index) => Promise.race([said(child, 'calm'), gone[index]]))
      for (const child of children) if (child.connected) child.send('calm', () => {})
      await Promise.all(calm)
      await this.#rest(database)
    } finally {
      database.close()
    }
    const limit = setTimeout(() => children.forEach((child) => child.kill('SIGKILL')), 20_000)
    for (const child of children) if (child.connected) child.send('stop', () => {})
    for (const [code, signal] of await Promise.all(gone)) {
      if (code !== 0) this.#problems.push({ promise: 'harness', what: `a process that was asked to end ended with ${String(code ?? signal)}` })
    }
    clearTimeout(limit)
  }

  /** Waits until nothing runs or waits and every watcher that lives has seen all chunks. The checks find a watcher that never does. */
  async #rest(database: DatabaseSync): Promise<void> {
    const until = Date.now() + quietMs
    while (unrest(database).length > 0 && Date.now() < until) await pause(30)
    for (const what of unrest(database)) this.#problems.push({ promise: 'R5.4', what: `after ${quietMs} ms of quiet ${what}` })
    const alive = new Set(this.#lives.map((lives, slot) => `${slot}.${lives - 1}`))
    const heardBy = Date.now() + hearingMs
    const behind = () => unheard({ journals: readJournals(this.#plan.folder) }, (by) => alive.has(by))
    while (behind().length > 0 && Date.now() < heardBy) await pause(50)
  }
}

/** Resolves when a process says a word. */
function said(child: ChildProcess, word: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  child.on('message', (message) => {
    if (message === word) resolve()
  })
  return promise
}

function factsOf({ journals, effects, ledger }: Evidence): RoundFacts {
  const notes = journals.flatMap((journal) => journal.notes)
  const count = (kind: Noted['note']) => notes.filter(({ note }) => note === kind).length
  const rows = ledger.threads.flatMap((thread) => thread.rows)
  const runs = ledger.threads.flatMap((thread) => thread.runs)
  const snapshots = notes.filter((note) => note.note === 'seen' && note.type === 'data-thread-snapshot').length
  return {
    sent: count('send'),
    stored: count('stored'),
    effects: effects.filter(({ phase }) => phase === 'begun').length,
    steps: count('asked'),
    takeovers: notes.filter((note) => note.note === 'written' && note.what === 'claim').length,
    interrupted: rows.flatMap((row) => row.calls).filter(({ state }) => state === 'output-error').length,
    parked: runs.filter(({ status }) => status === 'parked').length,
    seen: count('seen') - snapshots,
    snapshots,
  }
}
