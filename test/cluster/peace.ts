import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { ChildPlan } from '../crash/child.ts'
import { judge, type Evidence, type Violation } from '../crash/checks/index.ts'
import { notes } from '../crash/checks/evidence.ts'
import { entries, nextBoundary, oneRun } from '../crash/checks/peace.ts'
import { unheard } from '../crash/checks/watching.ts'
import { readEffects } from '../crash/effects.ts'
import { readJournals } from '../crash/journal.ts'
import { readLedger, unrest } from '../crash/ledger.ts'
import { pause } from '../crash/restless-model.ts'

/** So many threads are sent to at a time, for so long. */
const present = 6
const setMs = 5_000

/** The result of several processes on one file without kills and faults. */
export interface PeaceResult {
  count: number
  seconds: number
  violations: Violation[]
  sent: number
  runs: number
  elsewhere: number
  /** In milliseconds: from acceptance in one process to the boundary in another, and how much of it is not the step that was under way. */
  entered: Spread
  beyond: Spread
  /** From the publication of a chunk in one process to its receipt in another. */
  heard: Spread
}

interface Spread {
  p50: number
  p99: number
}

interface PeacePlan {
  /** The bundled child. */
  program: string
  folder: string
  count: number
  ms: number
  /** On a busy machine they work longer, until so many sends were made. */
  sends?: number
  seed: number
}

/** Lets processes work on one file, all of them sending, running, deciding and watching, and looks at what they noted. */
export async function together({ program, folder, count, ms, sends = 0, seed }: PeacePlan): Promise<PeaceResult> {
  mkdirSync(folder, { recursive: true })
  const database = join(folder, 'heed.db')
  const began = Date.now()
  const threads = Array.from({ length: present * Math.ceil(ms / setMs) }, (_, index) => `t${index}`)
  const problems: Violation[] = []
  const children = Array.from({ length: count }, (_, slot) => {
    const plan: ChildPlan = {
      folder, database, slot, life: 0, threads, seed: seed * 1_000 + slot, speed: 1, origin: began, sends: 1_000_000_000, patience: 2,
      peace: { threads: present, ms: setMs, pace: 30 * count },
    }
    return spawn(process.execPath, ['--no-warnings', program, JSON.stringify(plan)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  })
  const gone = children.map((child) => once(child, 'exit'))
  try {
    await Promise.all(children.map((child, index) => Promise.race([word(child, 'watching'), gone[index]])))
    for (const child of children) child.send('begin')
    await Promise.race([pause(ms), ...gone])
    const last = Date.now() + 60_000
    while (notes({ journals: readJournals(folder) }, 'send').length < sends && Date.now() < last) await pause(250)
    for (const child of children) child.send('enough')
    const db = new DatabaseSync(database, { readOnly: true, timeout: 5_000 })
    const until = Date.now() + 60_000
    while (unrest(db).length > 0 && Date.now() < until) await pause(100)
    db.close()
    while (unheard({ journals: readJournals(folder) }, () => true).length > 0 && Date.now() < until) await pause(500)
    for (const child of children) child.send('stop', () => {})
    for (const [code, signal] of await Promise.all(gone)) if (code !== 0) problems.push({ promise: 'harness', what: `a process ended with ${String(code ?? signal)}` })
  } finally {
    for (const child of children) child.kill('SIGKILL')
  }
  const evidence: Evidence = { journals: readJournals(folder), effects: readEffects(folder), ledger: readLedger(database) }
  return resultOf(count, (Date.now() - began) / 1000, evidence, [...problems, ...judge(evidence), ...oneRun(evidence), ...nextBoundary(evidence)])
}

function resultOf(count: number, seconds: number, evidence: Evidence, violations: Violation[]): PeaceResult {
  const elsewhere = entries(evidence).filter(({ accepted, entered }) => accepted.by !== entered.by)
  const waits = elsewhere.map(({ accepted, entered, drains }) => {
    const wait = (entered.at - accepted.at) / 1000
    const before = drains.findLast(({ at }) => at < entered.began)?.at ?? accepted.at
    return { wait, beyond: Math.max(0, wait - (entered.began - before) / 1000) }
  })
  const said = new Map(notes(evidence, 'said').map(({ thread, cursor, at, by }) => [`${thread} ${cursor}`, { at, by }]))
  const heard = notes(evidence, 'seen').flatMap(({ thread, cursor, at, by, type }) => {
    const first = said.get(`${thread} ${cursor}`)
    return first && first.by !== by && type !== 'data-thread-snapshot' ? [(at - first.at) / 1000] : []
  })
  return {
    count, seconds, violations,
    sent: notes(evidence, 'send').length,
    runs: evidence.ledger.threads.reduce((sum, { runs }) => sum + runs.length, 0),
    elsewhere: elsewhere.length,
    entered: spread(waits.map(({ wait }) => wait)),
    beyond: spread(waits.map(({ beyond }) => beyond)),
    heard: spread(heard),
  }
}

function spread(all: readonly number[]): Spread {
  const sorted = all.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return { p50: at(0.5), p99: at(0.99) }
}

function word(child: ChildProcess, wanted: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  child.on('message', (message) => {
    if (message === wanted) resolve()
  })
  return promise
}
