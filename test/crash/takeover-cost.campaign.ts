import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { buildProgram } from './program.ts'
import { takeoverCost } from './takeover-cost.ts'

it('[R5.2] a takeover costs at most four write transactions, and idle threads are not read', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-takeover-'))
  try {
    const { transactions, startCpuMs } = await takeoverCost(await buildProgram(folder), join(folder, 'takeover'), { rounds: 3 })
    // The sweep of the start and the regular one may both find the thread: the second claims nothing.
    const { claim, ...others } = transactions
    expect(others).toEqual({ heartbeat: 1, beginRun: 1 })
    expect([1, 2]).toContain(claim)
    // 10,000 threads that were read one by one would take a hundred times as long.
    expect(startCpuMs.among).toBeLessThan(20 * startCpuMs.alone + 200)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
