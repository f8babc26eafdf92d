import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { Kind } from '../kind.ts'
import { buildProgram } from '../program.ts'

const rounds = 8

/** Tests that the rounds of a kind find each build that is broken on purpose. */
export function testMutants(kind: Kind): void {
  // Processes of a round mostly wait for leases: the rounds of two builds take little more time than those of one.
  describe(`the checker of ${kind.name}`, { concurrent: true }, () => {
    const work = mkdtempSync(join(tmpdir(), 'heed-mutants-'))
    afterAll(() => rmSync(work, { recursive: true, force: true }))

    const mutants = Object.entries(kind.mutants).map(([name, mutant], index) => ({ name, index, ...mutant }))
    // CI has time for every eighth; `npm run test:mutants` builds all of them.
    const tested = process.env.HEED_MUTANTS === 'all' ? mutants : mutants.filter(({ slow }) => !slow).filter((_, nth) => nth % 8 === 0).filter(({ rare }) => !rare)
    it.each(tested)('finds a build that $name', async ({ index, fault, finds, run = kind.run }) => {
      const folder = join(work, `${index}`)
      mkdirSync(folder)
      const program = await buildProgram(folder, fault, kind.entry)
      const found = new Set<string>()
      // Where a fault falls is chance: one round may miss what a broken build does, all of them can't.
      for (let round = 0; round < rounds && !finds.some((check) => found.has(check)); round++) {
        const seed = 200 + 2 * index + 100 * round
        const { violations } = await run({ program, folder: join(folder, `round-${round}`), seed })
        for (const { what } of violations) found.add(what.slice(0, what.indexOf(':')))
      }
      expect(finds.filter((check) => found.has(check))).not.toEqual([])
    }, 480_000)
  })
}
