import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildProgram } from '../crash/program.ts'
import { together } from './peace.ts'

// The short form of `npm run test:cluster`: the same processes and checks, for seconds.
describe('processes on one file', () => {
  let folder = ''
  let program = ''
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'heed-peace-'))
    program = await buildProgram(folder)
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it.each([2, 4])('[R1.4] [A4.2] [W2.2] never run a thread twice, take what others accept at the next boundary, and see the same log: %i of them', async (count) => {
    const { violations, elsewhere, sent } = await together({ program, folder: join(folder, `${count}`), count, ms: 4_000, sends: 150, seed: count })
    expect(violations).toEqual([])
    expect(sent).toBeGreaterThan(100)
    expect(elsewhere).toBeGreaterThan(10)
  })
})
