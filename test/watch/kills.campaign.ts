import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { below, live } from '../crash/one-life.ts'
import { buildProgram } from '../crash/program.ts'
import { shiftMs } from './killed-process.ts'
import type { Report } from './campaign-process.ts'

/** `HEED_WATCH_KILLS=500` runs the long form; docs/reliability.md has its last result. */
const kills = Number(process.env.HEED_WATCH_KILLS || 12)
/** How often the processes of one file are killed, all of them each time. */
const generations = 3

describe('processes that are killed anywhere between a message and its thread', { timeout: 3_600_000 }, () => {
  let folder = ''
  let program = ''
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'heed-watch-campaign-'))
    program = await buildProgram(folder, undefined, '../watch/campaign-process.ts')
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it.each([1, 4])(`[V1.20] ${kills} kills, %i processes at once: each watch wakes its thread once, and open watches stay open`, async (processes) => {
    let killed = 0
    const wrong: string[] = []
    for (let round = 0; killed < kills; round += 1) {
      const file = join(folder, `${processes}-${round}.db`)
      for (let generation = 0; generation < generations; generation += 1) {
        const ends = await Promise.all(Array.from({ length: processes }, (_, nth) => {
          const seed = round * 101 + generation * 11 + nth * 7 + processes
          return live(program, { file, shift: generation * shiftMs, killAt: 1 + below(80, seed) })
        }))
        killed += ends.filter(({ signal }) => signal === 'SIGKILL').length
      }
      const { output } = await live(program, { file, shift: generations * shiftMs, killAt: 0 })
      wrong.push(...(JSON.parse(output) as Report).wrong.map((text) => `${file}: ${text}`))
      rmSync(file, { force: true })
    }
    expect(wrong).toEqual([])
    expect(killed).toBeGreaterThanOrEqual(kills)
    if (process.env.HEED_WATCH_KILLS) process.stdout.write(`${processes} at once: ${killed} kills\n`)
  })
})
