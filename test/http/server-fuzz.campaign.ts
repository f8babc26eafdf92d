import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { FuzzedServer, fuzzKeys } from './fuzzed.ts'
import { askEverything, seed } from './fuzzing.ts'

/** How long every route is asked. HEED_FUZZ_SECONDS=600 is the campaign, `npm run test:fuzz:server`. */
const seconds = Number(process.env.HEED_FUZZ_SECONDS ?? 5)
const maxStopMs = 250
const maxGrowth = 12 * 1024 * 1024

it('[H4.2] requests of every kind to every route end in no failure, no stop of the event loop and no growth, at a heap of 64 MB', { timeout: (seconds + 120) * 1_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-fuzz-'))
  const server = await FuzzedServer.start(join(folder, 'heed.db'), 64)
  onTestFinished(async () => {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const keys = [fuzzKeys.tenant, fuzzKeys.user, fuzzKeys.tenant, fuzzKeys.operator, fuzzKeys.tenant, undefined]
  let asked = 0
  const ask = (path: string, init: RequestInit = {}) => {
    const key = keys[asked++ % keys.length]
    const headers = { ...(init.headers as Record<string, string>), ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) }
    return fetch(`${server.url}/api${path}`, { ...init, headers })
  }
  // The first round loads what is loaded once, and compiles.
  await askEverything(ask, { runs: 2, seed })
  const before = await server.health()
  const end = performance.now() + seconds * 1_000
  let round = 0
  while (performance.now() < end) await askEverything(ask, { runs: 2, seed: seed + ++round })
  const after = await server.health()
  const told = `${asked} requests, longest stop ${after.longestStopMs.toFixed(0)} ms, heap ${(before.heapUsed / 1e6).toFixed(1)} to ${(after.heapUsed / 1e6).toFixed(1)} MB`
  if (seconds > 60) process.stdout.write(`${told}\n`)
  expect(server.isAlive).toBe(true)
  expect(after.longestStopMs, told).toBeLessThan(maxStopMs)
  expect(after.heapUsed - before.heapUsed, told).toBeLessThan(maxGrowth)
})
