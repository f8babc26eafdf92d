import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { kinds } from './kinds.ts'
import { buildProgram } from './program.ts'
import { Round } from './round.ts'

// The short form of `npm run test:crash`: the same processes, faults and checks, with fixed seeds.
describe('processes that are killed and stopped under load', () => {
  let folder = ''
  let program = ''
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'heed-crash-'))
    program = await buildProgram(folder)
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it.each([
    { seed: 101, slots: 1, kills: 10, stops: 0 },
    { seed: 102, slots: 2, kills: 16, stops: 4 },
  ])('[R5.4] [R5.5] [R1.5] leave nothing lost, doubled, stuck or late: $slots at once, $kills kills, $stops stops', async (plan) => {
    const result = await new Round({ ...plan, program, folder: join(folder, `${plan.seed}`) }).run()
    expect(result.violations).toEqual([])
    expect(Object.values(result.kills).reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(plan.kills)
    expect(result.facts.stored).toBeGreaterThan(plan.kills)
  })
})

const others = kinds.filter(({ name }) => name !== 'load')

describe.each(others)('$name', (kind) => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-crash-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it.each([1])('keeps every promise under its faults: seed %i', async (seed) => {
    const program = await buildProgram(folder, undefined, kind.entry)
    const { violations, faults } = await kind.run({ program, folder: join(folder, `${seed}`), seed })
    expect(violations).toEqual([])
    expect(Object.values(faults).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0)
  }, 240_000)
})
