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

// All of them with `npm run test:mutants`: most take a minute or more. CI has time for those that do harm without other faults.
describe('the checker of chaos', () => {
  const work = mkdtempSync(join(tmpdir(), 'heed-chaos-mutants-'))
  afterAll(() => rmSync(work, { recursive: true, force: true }))
  const isAll = process.env.HEED_MUTANTS === 'all'

  it.skipIf(noPostgres || 'missing' in redis).each(mutants.filter(({ quick }) => isAll || quick))(`finds a build that $name${whyNoPostgres}${whySkipped(redis)}`, async ({ name, fault, finds, quick }) => {
    const program = await buildNode(join(work, name.replaceAll(' ', '-')), fault)
    const found = new Set<string>()
    for (let round = 0; round < rounds && !finds.some((check) => found.has(check)); round++) {
      // Even seeds: notifications of PostgreSQL are the bus.
      const plan = { program, folder: join(work, `${name}-${round}`), seed: 2 + 2 * round }
      const { violations } = await runRound(quick ? { ...plan, faults: 2, nodes: 2 } : { ...plan, faults: 40 })
      for (const { what } of violations) found.add(what.slice(0, what.indexOf(':')))
    }
    expect(finds.filter((check) => found.has(check))).not.toEqual([])
  }, 600_000)
})
