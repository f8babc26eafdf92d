import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findProgram, whySkipped } from '../../scripts/programs.ts'
import { noPostgres, whyNoPostgres } from '../postgres/server.ts'
import { buildNode, runRound } from './round.ts'

const redis = await findProgram('redis')

// The short form of `npm run test:chaos`: the same nodes, faults and checks, with a fixed seed.
describe('four nodes on PostgreSQL under faults of nodes, networks and servers', () => {
  let folder = ''
  let program = ''
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'heed-chaos-'))
    program = await buildNode(join(folder, 'program'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it.skipIf(noPostgres || 'missing' in redis)(`[Q4.1] lose and double nothing, keep the order, and miss no chunk${whyNoPostgres}${whySkipped(redis)}`, async () => {
    const { violations, faults, facts } = await runRound({ program, folder: join(folder, 'round'), seed: 1, faults: 40 })
    expect(violations).toEqual([])
    expect(Object.values(faults).reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(40)
    expect(facts.stored).toBeGreaterThan(20)
  }, 300_000)
})
