import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { buildProgram } from './program.ts'
import { takeoverCost } from './takeover-cost.ts'

it('[R5.2] a takeover costs four write transactions, and idle threads are not looked at', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-takeover-'))
  try {
    const { transactions, startMs } = await takeoverCost(await buildProgram(folder), join(folder, 'takeover'), { rounds: 3 })
    expect(transactions).toEqual({ heartbeat: 1, claim: 2, beginRun: 1 })
    // 10,000 threads that were read one by one would take a hundred times as long.
    expect(startMs.among).toBeLessThan(20 * startMs.alone + 200)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
