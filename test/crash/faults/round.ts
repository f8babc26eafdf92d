import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, copyFileSync, existsSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Chance } from '../../../src/store/conformance/fixture.ts'
import type { Violation } from '../checks/evidence.ts'
import { unheard } from '../checks/watching.ts'
import { readEffects } from '../effects.ts'
import { readJournals, steadyNow } from '../journal.ts'
import type { KillPoint } from '../kill-points.ts'
import type { KindPlan, KindResult } from '../kind.ts'
import { readLedger, unrest } from '../ledger.ts'
import { pause } from '../restless-model.ts'
import type { StoreRule } from './broken-store.ts'
import { judgeFaults, type FaultEvidence, type FaultSpan } from './checks.ts'
import type { Command, FaultChildPlan } from './child.ts'
import { MachineClock } from './machine.ts'

/** What happens to the store, one after the other. */
export const storeFaults = ['full', 'locked', 'gone', 'slow sync', 'clock back', 'clock forward', 'clock of one', 'commits fail', 'heartbeats fail'] as const
/** What happens to a process, one after the other, at the same time. */
export const processFaults = ['kill', 'kill at a point', 'kill after a decision', 'stop', 'close', 'block', 'exhaust', 'exhaust at open', 'exhaust at flush', 'commit and send fail', 'abort at the end'] as const

type StoreFaultName = (typeof storeFaults)[number]
type ProcessFaultName = (typeof processFaults)[number]

/** Ten seconds of a lease are these many milliseconds. */
const leaseMs = 600
const speed = 10_000 / leaseMs
const hour = 3_600_000
/** After so long without a fault something hangs. */
const hangMs = 30_000
/**
 * The disk of a round, in MB. Each process copies the log back after 32 MB of its own writes, so that the logs of three of them fit, with room
 * for those of processes that were killed: only the fault fills it.
 */
const diskMb = 192
const points: readonly KillPoint[] = ['accept:after', 'claim:after', 'takeover:after', 'begin:after', 'started:after', 'boundary:before', 'end:before', 'end:after', 'decide:after', 'beat:after', 'tool:done']

export interface FaultRoundPlan extends KindPlan {
  slots: number
  store: readonly StoreFaultName[]
  process: readonly ProcessFaultName[]
  /** Begins with a time in which the claims of one thread fail. */
  sweep?: boolean
  /** How long commits fail, in milliseconds. By chance up to 1,800 otherwise. */
  commitsFailMs?: number
}

interface Slot {
  child: ChildProcess
  gone: Promise<unknown[]>
  started: Promise<unknown>
}

/** One database on a small disk, some processes, and faults of both; then a time without faults, in which no process is restarted. */
export class FaultRound {
  readonly #plan: FaultRoundPlan
  readonly #chance: Chance
  readonly #disk: string
  readonly #database: string
  readonly #threads: string[]
  readonly #origin = Date.now()
  readonly #clock: MachineClock
  readonly #slots: Slot[] = []
  readonly #lives: number[]
  readonly #problems: Violation[] = []
  readonly #spans: FaultSpan[] = []
  readonly #counts: Record<string, number> = {}
  readonly #children = new Set<ChildProcess>()
  #mounted = false
  /** Until then the database is away: a process that opened it now would make another. */
  #away: Promise<void> | undefined

  constructor(plan: FaultRoundPlan) {
    this.#plan = plan
    this.#chance = new Chance(plan.seed)
    this.#disk = join(plan.folder, 'disk')
    this.#database = join(this.#disk, 'heed.db')
    this.#threads = Array.from({ length: 4 + this.#chance.below(3) }, (_, index) => `t${index}`)
    this.#lives = Array.from({ length: plan.slots }, () => 0)
    mkdirSync(this.#disk, { recursive: true })
    this.#clock = new MachineClock(join(plan.folder, 'clock'), plan.slots)
  }

  async run(): Promise<KindResult> {
    const end = () => this.#end()
    process.once('exit', end)
    let evidence: FaultEvidence
    try {
      this.#mount()
      await Promise.all(this.#lives.map((_, slot) => this.#start(slot)))
      if (this.#plan.sweep) await this.#sweepPast()
      await Promise.all([this.#breakStore(), this.#breakProcesses()])
      await this.#quiet()
      const { folder } = this.#plan
      evidence = { journals: readJournals(folder), effects: readEffects(folder), ledger: readLedger(this.#database), spans: this.#spans }
      if (this.#mounted) keepDatabase(this.#database, folder)
      writeFileSync(join(folder, 'spans.json'), JSON.stringify(this.#spans))
    } finally {
      this.#end()
      process.off('exit', end)
    }
    const notes = evidence.journals.flatMap((journal) => journal.notes)
    const count = (note: string) => notes.filter((one) => one.note === note).length
    const blocked = count('loopBlocked')
    return {
      faults: { ...this.#counts, ...(blocked > 0 ? { block: blocked } : {}) },
      violations: [...this.#problems, ...judgeFaults(evidence)],
      facts: { sent: count('send'), stored: count('stored'), refused: count('refused'), steps: count('asked'), effects: evidence.effects.filter(({ phase }) => phase === 'begun').length },
    }
  }

  #end(): void {
    for (const child of this.#children) child.kill('SIGKILL')
    if (this.#mounted) execFileSync('umount', ['-l', this.#disk])
    this.#mounted = false
  }

  /** A disk of its own, which can be filled. Where none can be mounted, the store answers as if it were full. */
  #mount(): void {
    if (process.getuid?.() !== 0) return
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${diskMb}m`, 'tmpfs', this.#disk], { stdio: 'ignore' })
      this.#mounted = true
    } catch {
      // Not allowed here.
    }
  }

  // Faults of the store

  async #breakStore(): Promise<void> {
    for (const name of this.#plan.store) {
      await pause(100 + this.#chance.below(250))
      const from = steadyNow()
      await this.#storeFault(name)
      this.#count(name)
      this.#spans.push({ fault: name, from, to: steadyNow() })
    }
  }

  /** Begins and ends one fault. */
  async #storeFault(name: StoreFaultName): Promise<void> {
    const chance = this.#chance
    switch (name) {
      case 'full': return this.#full(300 + chance.below(900))
      case 'locked': return this.#locked(100 + chance.below(900))
      case 'gone': return this.#gone(300 + chance.below(600))
      case 'slow sync': return this.#during({ do: 'sync', ms: 100 + chance.below(leaseMs) }, { do: 'sync', ms: 0 }, 900)
      case 'clock back': return this.#clock.step(-hour)
      case 'clock forward': return this.#clock.step(hour)
      case 'clock of one': return this.#skew(chance.below(this.#plan.slots), 300 + chance.below(600))
      case 'commits fail': return this.#failing({ methods: ['commitStep'], lost: false }, this.#plan.commitsFailMs ?? 300 + chance.below(1_500))
      case 'heartbeats fail': return this.#failing({ methods: ['heartbeat'], lost: false }, leaseMs * 2 + chance.below(leaseMs))
    }
  }

  async #skew(slot: number, ms: number): Promise<void> {
    this.#clock.skew(slot, this.#chance.pick([-hour, hour]))
    await pause(ms)
    this.#clock.skew(slot, 0)
  }

  async #full(ms: number): Promise<void> {
    if (!this.#mounted) return this.#failing({ methods: ['accept', 'commitStep', 'heartbeat', 'claim'], lost: false }, ms)
    const path = join(this.#disk, 'filler')
    const file = openSync(path, 'w')
    try {
      for (const size of [2 ** 20, 65_536, 4_096, 1]) fill(file, size)
      await pause(ms)
    } finally {
      closeSync(file)
      rmSync(path)
    }
  }

  async #locked(ms: number): Promise<void> {
    const other = new DatabaseSync(this.#database, { timeout: 5_000 })
    try {
      other.exec('BEGIN IMMEDIATE')
      await pause(ms)
      other.exec('ROLLBACK')
    } finally {
      other.close()
    }
  }

  /** No process may be about to open the file, and none opens it meanwhile. */
  async #gone(ms: number): Promise<void> {
    const back = Promise.withResolvers<void>()
    this.#away = back.promise
    await Promise.all(this.#slots.map(({ started }) => started))
    renameSync(this.#database, `${this.#database}.away`)
    const from = steadyNow()
    await pause(ms)
    this.#spans.push({ fault: 'away', from, to: steadyNow() })
    renameSync(`${this.#database}.away`, this.#database)
    this.#away = undefined
    back.resolve()
  }

  #failing(rule: StoreRule, ms: number): Promise<void> {
    return this.#during({ do: 'fail', rule }, { do: 'mend' }, ms)
  }

  async #during(begin: Command, end: Command, ms: number): Promise<void> {
    for (const { child } of this.#slots) tell(child, begin)
    await pause(ms)
    for (const { child } of this.#slots) tell(child, end)
  }

  // Faults of processes

  async #breakProcesses(): Promise<void> {
    for (const name of this.#plan.process) {
      await pause(100 + this.#chance.below(300))
      const slot = this.#chance.below(this.#plan.slots)
      const from = steadyNow()
      await this.#processFault(name, slot)
      if (name !== 'block') this.#count(name)
      this.#spans.push({ fault: name, from, to: steadyNow(), slot })
    }
  }

  async #processFault(name: ProcessFaultName, slot: number): Promise<void> {
    const chance = this.#chance
    const { child } = this.#slotAt(slot)
    switch (name) {
      case 'kill': return this.#kill(slot)
      case 'kill at a point': return this.#killAt(slot, { kill: { point: chance.pick(points), nth: 1 + chance.below(3) } })
      case 'kill after a decision': return this.#killAt(slot, { killAfterDecision: true })
      case 'stop':
        child.kill('SIGSTOP')
        await pause(Math.ceil(leaseMs * (1.1 + chance.below(100) / 100)))
        return void child.kill('SIGCONT')
      case 'close': return this.#close(slot)
      case 'block': return tell(child, { do: 'block', ms: Math.ceil(leaseMs * (1.1 + chance.below(100) / 100)) })
      case 'exhaust':
        tell(child, { do: 'exhaust' })
        await pause(200 + chance.below(500))
        return tell(child, { do: 'free' })
      case 'exhaust at open': return this.#kill(slot, { exhaust: 'open' })
      case 'exhaust at flush': return this.#kill(slot, { exhaust: 'flush' })
      case 'commit and send fail': return tell(child, { do: 'fail', rule: { methods: ['commitStep', 'accept'], times: 1, lost: chance.below(2) === 0 } })
      case 'abort at the end': return tell(child, { do: 'abortAtEnd' })
    }
  }

  async #kill(slot: number, more: Partial<FaultChildPlan> = {}): Promise<void> {
    const { child, gone } = this.#slotAt(slot)
    child.kill('SIGKILL')
    await gone
    await this.#start(slot, more)
  }

  async #killAt(slot: number, point: Partial<FaultChildPlan>): Promise<void> {
    await this.#kill(slot, { ...point, patience: 1 })
    // A point that isn't reached in this time is not reached at all.
    await Promise.race([this.#slotAt(slot).gone, pause(1_200)])
    await this.#kill(slot)
  }

  async #close(slot: number): Promise<void> {
    const { child, gone, started } = this.#slotAt(slot)
    await started
    tell(child, { do: 'stop' })
    await this.#ended(slot, child, gone)
    await this.#start(slot)
  }

  /** A process that was asked to end does so. */
  async #ended(slot: number, child: ChildProcess, gone: Promise<unknown[]>): Promise<void> {
    if (await within(hangMs, gone)) return
    this.#problem('closes', `process ${this.#name(slot)} was asked to end and did not within ${hangMs} ms`)
    child.kill('SIGKILL')
    await gone
  }

  async #start(slot: number, more: Partial<FaultChildPlan> = {}): Promise<void> {
    while (this.#away) await this.#away
    const life = this.#lives[slot] ?? 0
    this.#lives[slot] = life + 1
    const { folder, program } = this.#plan
    const plan: FaultChildPlan = {
      folder, database: this.#database, clock: join(folder, 'clock'), slot, life, threads: this.#threads, seed: this.#chance.below(2 ** 31), speed, origin: this.#origin, sends: 1_000, patience: 3, ...more,
    }
    const command = [process.execPath, '--no-warnings', program, JSON.stringify(plan)]
    const child = spawn('sh', ['-c', 'ulimit -n 256; exec "$0" "$@"', ...command], {
      // Its file can't be read without a descriptor.
      env: { ...process.env, NODE_EXTRA_CA_CERTS: undefined }, stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    let said = ''
    child.stderr?.on('data', (text: Buffer) => {
      said = `${said}${text.toString()}`.slice(-2_000)
    })
    this.#children.add(child)
    child.once('close', (code, signal) => {
      this.#children.delete(child)
      if (code !== 0 && signal !== 'SIGKILL') this.#problem('harness', `process ${slot}.${life} ended by itself with ${String(code ?? signal)}`)
      if (said !== '') this.#problem('harness', `process ${slot}.${life} said: ${said}`)
    })
    const gone = once(child, 'exit')
    const started = Promise.race([told(child, 'started'), gone])
    this.#slots[slot] = { child, gone, started }
    if (!(await within(hangMs, started))) this.#problem('opens', `process ${slot}.${life} did not open the store within ${hangMs} ms`)
  }

  /** All processes die in the middle of their work. The claims of one thread fail: the next processes take over the others all the same. */
  async #sweepPast(): Promise<void> {
    const [first = ''] = this.#threads
    await pause(400 + this.#chance.below(200))
    for (const { child } of this.#slots) child.kill('SIGKILL')
    const from = steadyNow()
    const rule: StoreRule = { methods: ['claim'], thread: first, lost: false }
    await Promise.all(this.#slots.map((_, slot) => this.#kill(slot, { sends: 0, patience: 1, rule })))
    await this.#atRest('sweepsPast', (what) => !what.startsWith(`${first} `))
    await Promise.all(this.#slots.map((_, slot) => this.#kill(slot)))
    this.#count('claims of one thread fail')
    this.#spans.push({ fault: 'claims of one thread fail', from, to: steadyNow() })
  }

  // Time without faults

  /** Every process that lives gets ready, works, and ends when it is asked to. */
  async #quiet(): Promise<void> {
    for (const [slot, { child, gone }] of this.#slots.entries()) {
      if (child.exitCode === null && child.signalCode === null) continue
      await gone
      await this.#start(slot)
    }
    for (const word of ['settled', 'calm'] as const) {
      await Promise.all(this.#slots.map(async ({ child, gone }, slot) => {
        const answer = Promise.race([told(child, word), gone])
        tell(child, { do: word === 'settled' ? 'settle' : 'calm' })
        if (!(await within(hangMs, answer))) this.#problem('heals', `process ${this.#name(slot)} is not ${word} ${hangMs} ms after the last fault`)
      }))
      await this.#atRest('heals')
    }
    await this.#heard()
    for (const { child } of this.#slots) tell(child, { do: 'stop' })
    await Promise.all(this.#slots.map(({ child, gone }, slot) => this.#ended(slot, child, gone)))
  }

  async #atRest(check: string, counts: (what: string) => boolean = () => true): Promise<void> {
    // What hangs once hangs again.
    if (this.#problems.some(({ what }) => what.startsWith(check))) return
    const database = new DatabaseSync(this.#database, { readOnly: true, timeout: 5_000 })
    try {
      const open = () => unrest(database).filter(counts)
      for (const until = Date.now() + hangMs; open().length > 0 && Date.now() < until;) await pause(30)
      for (const what of open()) this.#problem(check, `after ${hangMs} ms without faults ${what}`)
    } finally {
      database.close()
    }
  }

  /** Watchers in processes that live have seen all that was published. */
  async #heard(): Promise<void> {
    const alive = new Set(this.#lives.map((_, slot) => this.#name(slot)))
    const behind = () => unheard({ journals: readJournals(this.#plan.folder) }, (by) => alive.has(by))
    for (const until = Date.now() + hangMs / 2; behind().length > 0 && Date.now() < until;) await pause(100)
    for (const { watcher, by, last, chunk } of behind()) this.#problem('seesAll', `${watcher} in ${by} saw nothing after ${last}: ${chunk.cursor} (${chunk.type}) was published by ${chunk.by}`)
  }

  #slotAt(slot: number): Slot {
    const found = this.#slots[slot]
    if (!found) throw new Error(`there is no process ${slot}`)
    return found
  }

  #name(slot: number): string {
    return `${slot}.${(this.#lives[slot] ?? 1) - 1}`
  }

  #count(name: string): void {
    this.#counts[name] = (this.#counts[name] ?? 0) + 1
  }

  #problem(check: string, what: string): void {
    this.#problems.push({ promise: check === 'harness' ? 'harness' : 'R5.4', what: `${check}: ${what}` })
  }
}

function tell(child: ChildProcess, command: Command): void {
  if (child.connected) child.send(command, () => {})
}

/** Resolves when a process sends a word. */
function told(child: ChildProcess, word: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  child.on('message', (message) => {
    if (message === word) resolve()
  })
  return promise
}

/** Whether something happens before a limit that only ends a hang. */
async function within(ms: number, event: Promise<unknown>): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<false>()
  const timer = setTimeout(() => resolve(false), ms)
  try {
    return await Promise.race([event.then(() => true), promise])
  } finally {
    clearTimeout(timer)
  }
}

/** The rows of a database that was not closed are in its log. */
function keepDatabase(database: string, folder: string): void {
  for (const end of ['', '-wal']) if (existsSync(database + end)) copyFileSync(database + end, join(folder, `heed.db${end}`))
}

/** Writes pieces of a size until there is no space for another. */
function fill(file: number, size: number): void {
  try {
    for (const piece = new Uint8Array(size); ;) writeSync(file, piece)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}
