import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Chance } from '../../../src/store/conformance/fixture.ts'
import type { Violation } from '../checks/evidence.ts'
import { readEffects } from '../effects.ts'
import { readJournals } from '../journal.ts'
import type { KillPlan, KillPoint } from '../kill-points.ts'
import type { KindPlan, KindResult } from '../kind.ts'
import { readLedger, unrest } from '../ledger.ts'
import { pause } from '../restless-model.ts'
import { notes } from '../checks/evidence.ts'
import { judge } from './checks.ts'
import type { ChildPlan } from './child.ts'
import { resourceId, type Focus } from './office.ts'
import { readTruth, type DecisionEvidence } from './truth.ts'

/** What the round of a kind may be narrowed to. */
export interface RoundSize {
  slots: number
  /** How many processes are killed or closed. */
  ends: number
  sends: number
  aborts: number
  losses: number
  /** How all of them end; as they please where it is absent. */
  only?: 'close' | KillPoint
  focus?: Focus
}

export const wholeRound: RoundSize = { slots: 2, ends: 14, sends: 3, aborts: 8, losses: 8 }

/** Ten seconds of a lease are these many milliseconds. */
const leaseMs = 800
const quietMs = 60_000
/** A process that was asked to end and has not ended by then hangs: its own deadline is five seconds of its clock. */
const closeMs = 15_000

const points: readonly KillPoint[] = ['decide:before', 'decide:after', 'suspend:before', 'suspend:after', 'started:before', 'started:after', 'tool:begun', 'tool:done']

type Fate = { kind: 'point'; kill: KillPlan } | { kind: 'begin'; nth: number } | { kind: 'after'; what: 'close' | 'kill'; nth: number } | { kind: 'random'; after: number }

/** One database, processes that ask and decide and end in the middle of it; then a time of quiet, and a look at what is left. */
export class DecisionRound {
  readonly #plan: KindPlan
  readonly #size: RoundSize
  readonly #chance: Chance
  readonly #database: string
  readonly #threads: string[]
  readonly #origin = Date.now()
  readonly #children = new Set<ChildProcess>()
  readonly #lives: number[]
  readonly #problems: Violation[] = []
  readonly #faults: Record<string, number> = {}
  #endsLeft: number

  constructor(plan: KindPlan, size: RoundSize) {
    this.#plan = plan
    this.#size = size
    this.#chance = new Chance(plan.seed)
    this.#database = join(plan.folder, 'heed.db')
    this.#threads = Array.from({ length: 3 + this.#chance.below(3) }, (_, index) => `t${index}`)
    this.#lives = Array.from({ length: size.slots }, () => 0)
    this.#endsLeft = size.ends
  }

  async run(): Promise<KindResult> {
    const { folder } = this.#plan
    mkdirSync(folder, { recursive: true })
    const killAll = () => {
      for (const child of this.#children) child.kill('SIGKILL')
    }
    process.once('exit', killAll)
    try {
      await Promise.all(this.#lives.map((_, slot) => this.#fire(slot)))
      await this.#quiet()
    } finally {
      killAll()
      process.off('exit', killAll)
    }
    const evidence: DecisionEvidence = {
      journals: readJournals(folder), effects: readEffects(folder), ledger: readLedger(this.#database), truth: readTruth(this.#database, resourceId),
    }
    this.#countNoted(evidence)
    return { faults: this.#faults, violations: [...this.#problems, ...judge(evidence)], facts: factsOf(evidence) }
  }

  /** Lives and ends in one place for a process. */
  async #fire(slot: number): Promise<void> {
    while (this.#endsLeft > 0) {
      this.#endsLeft--
      const fate = this.#fate()
      const child = this.#start(slot, {
        sends: this.#size.sends, patience: 3, aborts: this.#size.aborts, losses: this.#size.losses,
        ...(fate.kind === 'point' ? { kill: fate.kill } : fate.kind === 'after' ? { after: { what: fate.what, nth: fate.nth } } : fate.kind === 'begin' ? { closeAtBegin: fate.nth } : {}),
      })
      await this.#meet(child, fate, slot)
    }
  }

  #fate(): Fate {
    const chance = this.#chance
    const { only } = this.#size
    if (only === 'close') return { kind: 'begin', nth: 1 + chance.below(4) }
    if (only !== undefined) return { kind: 'point', kill: { point: only, nth: 1 + chance.below(2) } }
    switch (chance.below(8)) {
      case 0:
        return { kind: 'random', after: chance.below(1_200) }
      case 1:
        return { kind: 'begin', nth: 1 + chance.below(4) }
      case 2:
        return { kind: 'after', what: 'close', nth: 1 + chance.below(3) }
      case 3:
        return { kind: 'after', what: 'kill', nth: 1 + chance.below(3) }
      default:
        return { kind: 'point', kill: { point: chance.pick(points), nth: 1 + chance.below(3) } }
    }
  }

  async #meet(child: ChildProcess, fate: Fate, slot: number): Promise<void> {
    const gone = once(child, 'exit') as Promise<[number | null, string | null]>
    // What is not reached in this time is not reached at all.
    await Promise.race([gone, pause(fate.kind === 'random' ? fate.after : 3_000)])
    const closing = fate.kind === 'begin' || (fate.kind === 'after' && fate.what === 'close')
    const hasEnded = () => child.exitCode !== null || child.signalCode !== null
    if (closing && !hasEnded()) {
      child.send('stop', () => {})
      await Promise.race([gone, pause(closeMs)])
      if (!hasEnded()) this.#problems.push({ promise: 'R11.4', what: `closes: process ${slot}.${(this.#lives[slot] ?? 1) - 1} was closed and still runs after ${closeMs} ms` })
    }
    const byParent = !hasEnded() && child.kill('SIGKILL')
    const [code, signal] = await gone
    if (closing ? code !== 0 && !byParent : signal !== 'SIGKILL') {
      this.#problems.push({ promise: 'harness', what: `ended: process ${slot}.${(this.#lives[slot] ?? 1) - 1} (${JSON.stringify(fate)}) ended by itself with ${code ?? signal}` })
    }
    this.#count(fate.kind === 'begin' ? 'close as a call begins' : closing ? 'close after a decision' : byParent || fate.kind === 'random' ? 'kill random' : fate.kind === 'point' ? `kill ${fate.kill.point}` : 'kill after a decision')
  }

  #count(fault: string, times = 1): void {
    if (times > 0) this.#faults[fault] = (this.#faults[fault] ?? 0) + times
  }

  #countNoted(evidence: DecisionEvidence): void {
    for (const { when } of notes(evidence, 'lost')) this.#count(`answer lost ${when} the write`)
    this.#count('abort', notes(evidence, 'aborts').length)
    const first = new Map<string, string>()
    for (const { click, by } of notes(evidence, 'decides')) if (first.has(click)) this.#count(first.get(click) === by ? 'decision repeated at once' : 'decision repeated after an end')
    else first.set(click, by)
  }

  #start(slot: number, more: Pick<ChildPlan, 'sends' | 'patience' | 'aborts' | 'losses' | 'kill' | 'after' | 'closeAtBegin'>): ChildProcess {
    const life = this.#lives[slot] ?? 0
    this.#lives[slot] = life + 1
    const { folder, program } = this.#plan
    const plan: ChildPlan = {
      folder, database: this.#database, slot, life, threads: this.#threads, seed: this.#chance.below(2 ** 31), speed: 10_000 / leaseMs, origin: this.#origin,
      ...(this.#size.focus ? { focus: this.#size.focus } : {}), ...more,
    }
    const child = spawn(process.execPath, ['--no-warnings', program, JSON.stringify(plan)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    let said = ''
    child.stderr?.on('data', (text: Buffer) => {
      said = `${said}${text.toString()}`.slice(-2_000)
    })
    this.#children.add(child)
    child.once('close', () => {
      this.#children.delete(child)
      if (said !== '') this.#problems.push({ promise: 'harness', what: `quietChildren: process ${slot}.${life} said: ${said}` })
    })
    return child
  }

  /** Nothing fails any more: everything is decided and comes to rest, and the processes end when they are asked to. */
  async #quiet(): Promise<void> {
    const children = this.#lives.map((_, slot) => this.#start(slot, { sends: 0, patience: 1, aborts: 0, losses: 0 }))
    const gone = children.map((child) => once(child, 'exit'))
    await Promise.all(children.map((child, index) => Promise.race([once(child, 'message'), gone[index]])))
    const database = new DatabaseSync(this.#database, { readOnly: true, timeout: 5_000 })
    try {
      const until = Date.now() + quietMs
      while (unrest(database).length > 0 && Date.now() < until) await pause(30)
      for (const what of unrest(database)) this.#problems.push({ promise: 'R5.4', what: `rests: after ${quietMs} ms of quiet ${what}` })
    } finally {
      database.close()
    }
    const limit = setTimeout(() => children.forEach((child) => child.kill('SIGKILL')), closeMs)
    for (const child of children) if (child.connected) child.send('stop', () => {})
    for (const [code, signal] of await Promise.all(gone)) {
      if (code !== 0) this.#problems.push({ promise: 'R11.4', what: `closes: a process that was asked to end ended with ${String(code ?? signal)}` })
    }
    clearTimeout(limit)
  }
}

function factsOf(evidence: DecisionEvidence): Record<string, number> {
  const calls = evidence.truth.calls
  const is = (state: string) => calls.filter(({ outcomes }) => outcomes[0]?.state === state).length
  return {
    signals: notes(evidence, 'stored').length,
    decisions: notes(evidence, 'decides').length,
    accepted: notes(evidence, 'decided').length,
    refused: notes(evidence, 'undecided').length,
    calls: calls.length,
    'calls of agents below': calls.filter(({ tool }) => tool.startsWith('agent-')).length,
    results: is('result'),
    denied: is('output-denied'),
    'interrupted or stopped': is('output-error'),
    effects: evidence.effects.filter(({ phase }) => phase === 'begun').length,
  }
}
