import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { buildNode, runRound } from './round.ts'

const usage = `npm run test:chaos -- [--faults 500] [--seed 1] [--round 60] [--keep .chaos]

Rounds of four nodes on one PostgreSQL under faults, until there were so many; every other round has Redis as its bus.
A round that breaks an invariant is kept with its journals. Prints the seed of each round; --round: the faults of one.`

const { values } = parseArgs({ options: {
  faults: { type: 'string', default: '500' }, seed: { type: 'string', default: '1' }, round: { type: 'string', default: '60' },
  keep: { type: 'string', default: '.chaos' }, help: { type: 'boolean', default: false },
} })
const print = (line: string) => process.stdout.write(`${line}\n`)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
if (values.help) print(usage)
else process.exitCode = await run(Number(values.faults), Number(values.seed), Number(values.round))

async function run(wanted: number, first: number, perRound: number): Promise<number> {
  const work = mkdtempSync(join(tmpdir(), 'heed-chaos-'))
  const totals: Record<string, number> = {}
  const facts: Record<string, number> = {}
  let [done, broken, seconds] = [0, 0, 0]
  try {
    const program = await buildNode(join(work, 'program'))
    for (let seed = first; done < wanted; seed++) {
      const folder = join(work, `round-${seed}`)
      const result = await runRound({ program, folder, seed, faults: perRound })
      for (const [name, count] of Object.entries(result.faults)) totals[name] = (totals[name] ?? 0) + count
      for (const [name, count] of Object.entries(result.facts)) facts[name] = (facts[name] ?? 0) + count
      done += Object.values(result.faults).reduce((sum, count) => sum + count, 0)
      seconds += result.seconds
      broken += result.violations.length
      print(`seed ${seed} (${result.bus}): ${result.violations.length === 0 ? 'ok' : `${result.violations.length} BROKEN`}, ${done}/${wanted} faults, ${result.seconds} s, ${JSON.stringify(result.facts)}`)
      for (const { promise, what } of result.violations.slice(0, 10)) print(`  ${promise}: ${what}`)
      if (result.violations.length > 0) keep(folder, result)
      rmSync(folder, { recursive: true, force: true })
    }
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
  for (const [name, count] of Object.entries(totals).toSorted()) print(`  ${String(count).padStart(4)}  ${name}`)
  print(JSON.stringify(facts))
  print(`${done} faults from seed ${first} on, ${broken} broken invariants, in ${seconds} s`)
  return broken === 0 ? 0 : 1
}

function keep(folder: string, result: { seed: number }): void {
  const kept = join(values.keep, `broken-${result.seed}`)
  rmSync(kept, { recursive: true, force: true })
  mkdirSync(values.keep, { recursive: true })
  try {
    renameSync(folder, kept)
    writeFileSync(join(kept, 'result.json'), JSON.stringify(result, null, 2))
  } catch (error) {
    print(`the evidence could not be kept: ${String(error)}`)
  }
}
