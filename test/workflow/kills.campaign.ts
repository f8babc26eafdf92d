import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { below, live } from '../crash/one-life.ts'
import { buildProgram } from '../crash/program.ts'
import { shiftMs } from '../watch/killed-process.ts'
import type { Report } from './campaign-process.ts'

/** `HEED_WORKFLOW_KILLS=300` runs the long form; docs/reliability.md has its last result. */
const kills = Number(process.env.HEED_WORKFLOW_KILLS || 4)
/** The round that begins: the places of the kills follow from its number, so that parts of a long form differ. */
const firstRound = Number(process.env.HEED_WORKFLOW_ROUND || 0)
/** How often the processes of one file are killed, all of them each time. */
const generations = 3

describe('processes that are killed anywhere in the runs of a workflow', { timeout: 3_600_000 }, () => {
  let folder = ''
  let program = ''
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'heed-workflow-campaign-'))
    program = await buildProgram(folder, undefined, '../workflow/campaign-process.ts')
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it.each([1, 3])(`[F4.9] ${kills} kills, %i processes at once: each run ends once with its result, and steps that are not idempotent begin once`, async (processes) => {
    let killed = 0
    const wrong: string[] = []
    const ends: string[] = []
    let scheduled = 0
    const count = (end: string) => ends.filter((one) => one === end).length
    // After each round, so that one that is stopped early has told what it found.
    const tell = (rounds: number) => process.env.HEED_WORKFLOW_KILLS && process.stdout.write(
      `${processes} at once, rounds ${firstRound} to ${firstRound + rounds - 1}: ${killed} kills, ${wrong.length} wrong, ${count('success')} runs with their result, ${count('not known')} whose agent was interrupted in its tool, ${count('interrupted')} interrupted, ${scheduled} started by the schedule\n`,
    )
    for (let round = firstRound; killed < kills; round += 1) {
      const file = join(folder, `${processes}-${round}.db`)
      // Every other file gets a deploy that added a step.
      const longer = (generation: number) => round % 2 === 1 && generation > 0
      for (let generation = 0; generation < generations; generation += 1) {
        const ended = await Promise.all(Array.from({ length: processes }, (_, nth) => {
          const seed = round * 101 + generation * 11 + nth * 7 + processes
          return live(program, { file, shift: generation * shiftMs, killAt: 1 + below(generation === 0 ? 450 : 220, seed), longer: longer(generation) })
        }))
        killed += ended.filter(({ signal }) => signal === 'SIGKILL').length
      }
      const { output } = await live(program, { file, shift: generations * shiftMs, killAt: 0, longer: longer(generations) })
      const report = JSON.parse(output) as Report
      const found = report.wrong.map((text) => `${file}: ${text}`)
      wrong.push(...found)
      ends.push(...report.ends)
      scheduled += report.scheduled
      rmSync(file, { force: true })
      tell(round - firstRound + 1)
      for (const text of found) process.stdout.write(`wrong: ${text}\n`)
    }
    expect(wrong).toEqual([])
    expect(killed).toBeGreaterThanOrEqual(kills)
  })
})
