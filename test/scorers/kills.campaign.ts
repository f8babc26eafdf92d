import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { below, live } from '../crash/one-life.ts'
import { buildProgram } from '../crash/program.ts'
import { shiftMs } from '../watch/killed-process.ts'
import type { Plan, Report } from './kills-process.ts'

/** `HEED_SCORE_KILLS=200 HEED_SCORED_RUNS=200` runs a longer form; docs/reliability.md has its last result. */
const kills = Number(process.env.HEED_SCORE_KILLS || 4)
/** How many runs each file has. */
const count = Number(process.env.HEED_SCORED_RUNS || 12)
/** How often the processes of one file are killed, all of them each time. */
const generations = 2

let folder = ''
let program = ''
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'heed-score-campaign-'))
  program = await buildProgram(folder, undefined, '../scorers/kills-process.ts')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it.each([1, 4])(`[J4.1] [J4.2] [J4.6] [J4.7] ${kills} kills, %i processes at once: each run of a sample has one score of its scorer, and no other run has one`, { timeout: 3_600_000 }, async (processes) => {
  const total = { killed: 0, runs: 0, scores: 0, repeated: 0 }
  for (let round = 0; total.killed < kills; round++) {
    const file = join(folder, `${processes}-${round}.db`)
    for (let generation = 0; generation < generations; generation++) {
      const ended = await Promise.all(Array.from({ length: processes }, (_, nth) => {
        const plan: Plan = { file, shift: generation * shiftMs, killAt: 1 + below((12 * count) / processes, round * 101 + generation * 11 + nth * 7), count, nth, processes }
        return live(program, plan)
      }))
      total.killed += ended.filter(({ signal }) => signal === 'SIGKILL').length
    }
    const { output } = await live(program, { file, shift: generations * shiftMs, killAt: 0, count } satisfies Plan)
    const report = JSON.parse(output) as Report
    expect(report.wrong).toEqual([])
    for (const key of ['runs', 'scores', 'repeated'] as const) total[key] += report[key]
    rmSync(file, { force: true })
  }
  expect(total.killed).toBeGreaterThanOrEqual(kills)
  if (process.env.HEED_SCORE_KILLS) process.stdout.write(`${processes} at once: ${JSON.stringify(total)}\n`)
})
