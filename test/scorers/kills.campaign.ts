import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { live } from '../crash/one-life.ts'
import { buildProgram } from '../crash/program.ts'
import { shiftMs } from '../watch/killed-process.ts'
import type { Report } from './kills-process.ts'

/** `HEED_SCORE_KILLS=100` runs a longer form. */
const kills = Number(process.env.HEED_SCORE_KILLS || 4)

let folder = ''
let program = ''
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'heed-score-campaign-'))
  program = await buildProgram(folder, undefined, '../scorers/kills-process.ts')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it(`[J4.1] [J4.6] after ${kills} kills between the end of a run and its scores, each finished run has each of its scores once`, { timeout: 3_600_000 }, async () => {
  let [killed, scores, repeated] = [0, 0, 0]
  for (let round = 0; killed < kills; round++) {
    const file = join(folder, `${round}.db`)
    for (let life = 0; life < 3; life++) {
      const { signal } = await live(program, { file, shift: life * shiftMs, killAt: 1 + ((round * 17 + life * 23) % 60) })
      if (signal === 'SIGKILL') killed++
    }
    const { output } = await live(program, { file, shift: 3 * shiftMs, killAt: 0 })
    const report = JSON.parse(output) as Report
    expect(report.wrong).toEqual([])
    scores += report.scores
    repeated += report.repeated
    rmSync(file, { force: true })
  }
  expect(killed).toBeGreaterThanOrEqual(kills)
  if (process.env.HEED_SCORE_KILLS) process.stdout.write(`${killed} kills, ${scores} scores, ${repeated} of them begun more than once\n`)
})
