import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { buildProgram } from './program.ts'
import { costOf, writePage } from './page.ts'
import { Round, type RoundResult } from './round.ts'
import { takeoverCost } from './takeover-cost.ts'

const usage = `npm run test:crash -- [--kills 1000] [--stops 200] [--seed 1] [--state .crash/state.json] [--page docs/reliability.md] [--no-page]

Kills and stops processes under load and proves that nothing was lost, doubled, stuck or late. It can be ended at any time: started again
with the same numbers it goes on where it was. With --kills 0 --stops 0 it only says what a takeover costs. Rounds that break a promise are kept beside the state. At the end the page is written.`

/** So many deaths on one database before it is looked at. */
const killsPerRound = 20

export interface CampaignState {
  seed: number
  kills: number
  stops: number
  rounds: RoundResult[]
  seconds: number
}

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '1000' },
    stops: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    state: { type: 'string', default: '.crash/state.json' },
    page: { type: 'string', default: 'docs/reliability.md' },
    'no-page': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
const say = (line: string) => process.stdout.write(`${line}\n`)
if (values.help) say(usage)
else process.exitCode = await campaign({ kills: Number(values.kills), stops: Number(values.stops), seed: Number(values.seed) })

async function campaign(wanted: Pick<CampaignState, 'seed' | 'kills' | 'stops'>): Promise<number> {
  const work = mkdtempSync(join(tmpdir(), 'heed-crash-'))
  try {
    const program = await buildProgram(work)
    const state = load(wanted)
    while (killsOf(state) < state.kills || stopsOf(state) < state.stops) {
      const began = performance.now()
      const index = state.rounds.length
      const left = Math.max(0, state.stops - stopsOf(state))
      const folder = join(work, `round-${index}`)
      const stops = Math.min(left, Math.ceil((killsPerRound * state.stops) / Math.max(state.kills, 1)) + 1)
      const result = await new Round({ program, folder, seed: state.seed * 100_000 + index, slots: 1 + (index % 4), kills: killsPerRound, stops }).run()
      state.rounds.push(result)
      state.seconds += (performance.now() - began) / 1000
      if (result.violations.length > 0) keep(folder, result, index)
      rmSync(folder, { recursive: true, force: true })
      save(state)
      say(progress(state, result))
    }
    const cost = await takeoverCost(program, join(work, 'takeover'))
    const broken = state.rounds.flatMap(({ violations }) => violations)
    if (!values['no-page']) writePage(values.page, state, cost)
    say(costOf(cost))
    say(`${killsOf(state)} kills, ${stopsOf(state)} stops, ${broken.length} broken promises, in ${Math.round(state.seconds)} s on ${availableParallelism()} cores`)
    return broken.length === 0 ? 0 : 1
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function load(wanted: Pick<CampaignState, 'seed' | 'kills' | 'stops'>): CampaignState {
  if (existsSync(values.state)) {
    const state = JSON.parse(readFileSync(values.state, 'utf8')) as CampaignState
    const same = state.seed === wanted.seed && state.kills === wanted.kills && state.stops === wanted.stops
    const done = killsOf(state) >= state.kills && stopsOf(state) >= state.stops
    if (same && !done) {
      say(`going on after round ${state.rounds.length}: ${killsOf(state)} kills, ${stopsOf(state)} stops`)
      return state
    }
  }
  return { ...wanted, rounds: [], seconds: 0 }
}

/** In one step, so that an end in the middle leaves the one before. */
function save(state: CampaignState): void {
  mkdirSync(dirname(values.state), { recursive: true })
  writeFileSync(`${values.state}.new`, JSON.stringify(state))
  renameSync(`${values.state}.new`, values.state)
}

function keep(folder: string, result: RoundResult, index: number): void {
  const kept = join(dirname(values.state), `broken-${result.seed}-${index}`)
  mkdirSync(dirname(kept), { recursive: true })
  rmSync(kept, { recursive: true, force: true })
  // Another file system can't be renamed to.
  try {
    renameSync(folder, kept)
    writeFileSync(join(kept, 'violations.json'), JSON.stringify(result.violations, null, 2))
  } catch (error) {
    say(`the evidence of round ${index} could not be kept: ${String(error)}`)
  }
  for (const { promise, what } of result.violations.slice(0, 10)) say(`  ${promise}: ${what}`)
}

function progress(state: CampaignState, { slots, violations }: RoundResult): string {
  const share = Math.min(1, killsOf(state) / Math.max(state.kills, 1))
  const left = share === 0 ? 0 : (state.seconds / share) * (1 - share)
  const mark = violations.length === 0 ? 'ok' : `${violations.length} BROKEN`
  return `round ${state.rounds.length} (${slots} at once): ${mark} · ${killsOf(state)}/${state.kills} kills, ${stopsOf(state)}/${state.stops} stops · ${Math.round(left)} s left`
}

function killsOf({ rounds }: Pick<CampaignState, 'rounds'>): number {
  return rounds.reduce((sum, { kills }) => sum + Object.values(kills).reduce((all, count) => all + count, 0), 0)
}

function stopsOf({ rounds }: Pick<CampaignState, 'rounds'>): number {
  return rounds.reduce((sum, { stops }) => sum + stops, 0)
}
