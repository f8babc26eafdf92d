import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Kind, KindResult } from './kind.ts'
import { kinds } from './kinds.ts'
import { buildProgram } from './program.ts'
import { costOf, writePage } from './page.ts'
import { takeoverCost } from './takeover-cost.ts'

const usage = `npm run test:crash -- [--faults 2000] [--minutes 60] [--kinds ${kinds.map(({ name }) => name).join(',')}] [--seed 1]
  [--state .crash/state.json] [--page docs/reliability.md] [--no-page]

Runs processes under faults until there were so many faults and it took so many minutes, and proves that nothing was lost, doubled, stuck
or late. It can be ended at any time: started again with the same numbers it continues. With --faults 0 --minutes 0 it only measures what
a takeover costs. Rounds that break a promise are kept beside the state. At the end the page is written.`

export interface CampaignState extends Wanted {
  rounds: Array<KindResult & { kind: string; seed: number }>
  seconds: number
}

interface Wanted {
  seed: number
  faults: number
  minutes: number
  kinds: string
}

const { values } = parseArgs({
  options: {
    faults: { type: 'string', default: '2000' },
    minutes: { type: 'string', default: '60' },
    kinds: { type: 'string', default: kinds.map(({ name }) => name).join(',') },
    seed: { type: 'string', default: '1' },
    state: { type: 'string', default: '.crash/state.json' },
    page: { type: 'string', default: 'docs/reliability.md' },
    'no-page': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
const print = (line: string) => process.stdout.write(`${line}\n`)
if (values.help) print(usage)
else process.exitCode = await campaign({ faults: Number(values.faults), minutes: Number(values.minutes), seed: Number(values.seed), kinds: values.kinds })

async function campaign(wanted: Wanted): Promise<number> {
  const work = mkdtempSync(join(tmpdir(), 'heed-crash-'))
  try {
    const chosen = await Promise.all(wanted.kinds.split(',').map((name) => prepared(name, work)))
    const state = load(wanted)
    while (!isDone(state)) {
      const began = performance.now()
      const index = state.rounds.length
      const { kind, program } = chosen[index % chosen.length] ?? raise('--kinds names no kind')
      const folder = join(work, `round-${index}`)
      const seed = state.seed * 100_000 + index
      const result = { kind: kind.name, seed, ...(await kind.run({ program, folder, seed })) }
      state.rounds.push(result)
      state.seconds += (performance.now() - began) / 1000
      if (result.violations.length > 0) keep(folder, result)
      rmSync(folder, { recursive: true, force: true })
      save(state)
      print(progress(state))
    }
    const cost = await takeoverCost(await buildProgram(join(work, 'takeover-program')), join(work, 'takeover'))
    const broken = state.rounds.flatMap(({ violations }) => violations)
    if (!values['no-page']) writePage(values.page, state, cost)
    print(costOf(cost))
    print(`${faultsOf(state)} faults, ${broken.length} broken promises, in ${Math.round(state.seconds)} s on ${availableParallelism()} cores`)
    return broken.length === 0 ? 0 : 1
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

async function prepared(name: string, work: string): Promise<{ kind: Kind; program: string }> {
  const kind = kinds.find((known) => known.name === name) ?? raise(`There is no kind '${name}' of rounds.`)
  return { kind, program: await buildProgram(join(work, kind.name), undefined, kind.entry) }
}

function load(wanted: Wanted): CampaignState {
  if (existsSync(values.state)) {
    const state = JSON.parse(readFileSync(values.state, 'utf8')) as CampaignState
    const same = state.seed === wanted.seed && state.faults === wanted.faults && state.minutes === wanted.minutes && state.kinds === wanted.kinds
    if (same && !isDone(state)) {
      print(`continues after round ${state.rounds.length}: ${faultsOf(state)} faults`)
      return state
    }
  }
  return { ...wanted, rounds: [], seconds: 0 }
}

function isDone(state: CampaignState): boolean {
  return faultsOf(state) >= state.faults && state.seconds >= 60 * state.minutes
}

/** In one step, so that an end in the middle leaves the one before. */
function save(state: CampaignState): void {
  mkdirSync(dirname(values.state), { recursive: true })
  writeFileSync(`${values.state}.new`, JSON.stringify(state))
  renameSync(`${values.state}.new`, values.state)
}

function keep(folder: string, { kind, seed, violations }: CampaignState['rounds'][number]): void {
  const kept = join(dirname(values.state), `broken-${kind}-${seed}`)
  mkdirSync(dirname(kept), { recursive: true })
  rmSync(kept, { recursive: true, force: true })
  // Another file system can't be renamed to.
  try {
    renameSync(folder, kept)
    writeFileSync(join(kept, 'violations.json'), JSON.stringify(violations, null, 2))
  } catch (error) {
    print(`the evidence of ${kind} ${seed} could not be kept: ${String(error)}`)
  }
  for (const { promise, what } of violations.slice(0, 10)) print(`  ${promise}: ${what}`)
}

function progress(state: CampaignState): string {
  const share = Math.min(faultsOf(state) / Math.max(state.faults, 1), state.seconds / Math.max(60 * state.minutes, 1), 1)
  const left = share === 0 ? 0 : (state.seconds / share) * (1 - share)
  const last = state.rounds.at(-1)
  const broken = last?.violations.length ?? 0
  return `round ${state.rounds.length} (${last?.kind}): ${broken === 0 ? 'ok' : `${broken} BROKEN`} · ${faultsOf(state)}/${state.faults} faults · ${Math.round(left)} s left`
}

function faultsOf({ rounds }: Pick<CampaignState, 'rounds'>): number {
  return rounds.reduce((sum, { faults }) => sum + Object.values(faults).reduce((all, count) => all + count, 0), 0)
}

function raise(message: string): never {
  throw new Error(message)
}
