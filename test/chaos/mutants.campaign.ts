import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { findProgram, whySkipped } from '../../scripts/programs.ts'
import { noPostgres, whyNoPostgres } from '../postgres/server.ts'
import { mutants } from './mutants.ts'
import { buildNode, runRound } from './round.ts'

const redis = await findProgram('redis')
const rounds = 6

// With `npm run test:mutants` alone: each takes a minute or more.
describe.runIf(process.env.HEED_MUTANTS === 'all')('the checker of chaos', () => {
  const work = mkdtempSync(join(tmpdir(), 'heed-chaos-mutants-'))
  afterAll(() => rmSync(work, { recursive: true, force: true }))

  it.skipIf(noPostgres || 'missing' in redis).each(mutants)(`finds a build that $name${whyNoPostgres}${whySkipped(redis)}`, async ({ name, fault, finds }) => {
    const program = await buildNode(join(work, name.replaceAll(' ', '-')), fault)
    const found = new Set<string>()
    for (let round = 0; round < rounds && !finds.some((check) => found.has(check)); round++) {
      // Even seeds: notifications of PostgreSQL are the bus.
      const { violations } = await runRound({ program, folder: join(work, `${name}-${round}`), seed: 2 + 2 * round, faults: 40 })
      for (const { what } of violations) found.add(what.slice(0, what.indexOf(':')))
    }
    expect(finds.filter((check) => found.has(check))).not.toEqual([])
  }, 600_000)
})
