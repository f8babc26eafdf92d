import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Chance } from '../../src/store/conformance/fixture.ts'
import type { Evidence, Violation } from '../crash/checks/evidence.ts'
import { unheard } from '../crash/checks/watching.ts'
import { readEffects } from '../crash/effects.ts'
import { readJournals, steadyNow } from '../crash/journal.ts'
import { buildProgram, type Fault as Break } from '../crash/program.ts'
import { pause } from '../crash/restless-model.ts'
import { judge } from './checks.ts'
import { Cluster } from './cluster.ts'
import { drawFault, type Place } from './faults.ts'
import { readLedger, unrest } from './ledger.ts'

interface RoundPlan {
  program: string
  folder: string
  seed: number
  /** How many faults. */
  faults: number
  nodes?: number
}

interface RoundResult {
  seed: number
  bus: 'postgres' | 'redis'
  seconds: number
  faults: Record<string, number>
  /** When each began and ended, in microseconds of the clock of the journals, and where. */
  schedule: Array<{ name: string; slot: number; began: number; ended: number }>
  violations: Violation[]
  facts: { sent: number; stored: number; refused: number; unknown: number; steps: number; claims: number; seen: number; snapshots: number }
}

/** For how long everything may take to come to rest after the last fault: three leases, and time for a busy machine. */
const restMs = 60_000

/** The program of a node; with a fault, of one that is broken on purpose. Its packages are those of the project. */
export async function buildNode(folder: string, broken?: Break): Promise<string> {
  mkdirSync(folder, { recursive: true })
  symlinkSync(join(import.meta.dirname, '../../node_modules'), join(folder, 'node_modules'))
  return buildProgram(folder, broken, '../chaos/node.ts')
}

/** Four nodes under load and under faults, then none; then the checks. All is drawn from the seed but the moments at which things happen. */
export async function runRound({ program, folder, seed, faults: wanted, nodes = 4 }: RoundPlan): Promise<RoundResult> {
  const began = performance.now()
  const chance = new Chance(seed)
  const redis = seed % 2 === 1
  mkdirSync(folder, { recursive: true })
  const threads = Array.from({ length: 5 + chance.below(3) }, (_, index) => `t${index}`)
  const cluster = await Cluster.start({ program, folder, nodes, threads, pace: 150, redis }, chance)
  const exit = () => cluster.abandon()
  process.once('exit', exit)
  try {
    await Promise.all(Array.from({ length: nodes }, (_, slot) => cluster.said(slot, 'started')))
    const { counts, schedule } = await harm(cluster, chance, wanted, nodes)
    const problems = await rest(cluster, folder, nodes)
    const evidence: Evidence = { journals: readJournals(folder), effects: readEffects(folder), ledger: await readLedger(cluster.query, cluster.schema) }
    const all = [...problems, ...cluster.problems].map((what) => ({ promise: 'harness', what: `harness: ${what}` }))
    return {
      seed, bus: redis ? 'redis' : 'postgres', seconds: Math.round((performance.now() - began) / 1000), faults: counts, schedule,
      violations: [...all, ...judge(evidence)], facts: factsOf(evidence),
    }
  } finally {
    process.off('exit', exit)
    await cluster.close()
  }
}

/** Each place has its faults one after the other; different places at the same time. */
async function harm(cluster: Cluster, chance: Chance, wanted: number, nodes: number): Promise<{ counts: RoundResult['faults']; schedule: RoundResult['schedule'] }> {
  const schedule: RoundResult['schedule'] = []
  const counts: Record<string, number> = {}
  let left = wanted
  const suffer = async (place: Place, slot: number, restLength: number) => {
    while (left > 0) {
      left -= 1
      const fault = drawFault(chance, place)
      const started = steadyNow()
      const isDone = await fault.act(cluster, chance, slot).catch(() => false)
      schedule.push({ name: fault.name, slot, began: started, ended: steadyNow() })
      if (isDone) counts[fault.name] = (counts[fault.name] ?? 0) + 1
      else left += 1
      await pause(chance.below(restLength))
    }
  }
  await Promise.all([
    ...Array.from({ length: nodes }, (_, slot) => suffer('node', slot, 1_500)), suffer('database', 0, 2_500),
    ...(cluster.redis ? [suffer('redis', 0, 3_000)] : []),
  ])
  return { counts, schedule }
}

/** Nothing fails any more: everything has to come to rest, what is sent now has to be received, and the nodes have to end when they are asked to. */
async function rest(cluster: Cluster, folder: string, nodes: number): Promise<string[]> {
  const problems: string[] = []
  const slots = Array.from({ length: nodes }, (_, slot) => slot)
  cluster.fair()
  await Promise.all(slots.map((slot) => cluster.tell(slot, 'enough')))
  const untilRest = async () => {
    const open = () => unrest(cluster.query, cluster.schema).catch((error: unknown) => [String(error)])
    const until = Date.now() + restMs
    for (;;) {
      const left = await open()
      if (left.length === 0) break
      if (Date.now() > until) return void problems.push(...left.map((what) => `after ${restMs} ms of rest ${what}`))
      await pause(200)
    }
    const alive = new Set(cluster.names)
    const behind = () => unheard({ journals: readJournals(folder) }, (by) => alive.has(by))
    for (const heardBy = Date.now() + 20_000; behind().length > 0 && Date.now() < heardBy;) await pause(500)
  }
  await untilRest()
  const calm = slots.map((slot) => cluster.said(slot, 'calm'))
  await Promise.all(slots.map((slot) => cluster.tell(slot, 'calm')))
  await Promise.all(calm)
  await untilRest()
  await Promise.all(slots.map((slot) => cluster.end(slot, 'stop')))
  return problems
}

function factsOf({ journals }: Evidence): RoundResult['facts'] {
  const all = journals.flatMap(({ notes }) => notes)
  const count = (kind: string) => all.filter(({ note }) => note === kind).length
  const snapshots = all.filter((note) => note.note === 'seen' && note.type === 'data-thread-snapshot').length
  return {
    sent: count('send'), stored: count('stored'), refused: count('refused'), steps: count('asked'), seen: count('seen') - snapshots, snapshots,
    unknown: all.filter((note) => note.note === 'refused' && note.why === 'store_unknown').length,
    claims: all.filter((note) => note.note === 'written' && note.what === 'claim').length,
  }
}
