import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, it, onTestFinished } from 'vitest'
import { findProgram, whySkipped } from '../../scripts/programs.ts'

const ip = await findProgram('ip')
/** How `unshare` makes a network namespace here. It needs Linux, and the right to make one. */
const alone = 'path' in ip ? ['-rn', '-n'].find((how) => spawnSync('unshare', [how, ip.path, 'link', 'set', 'lo', 'up']).status === 0) : undefined
const why = alone === undefined ? whySkipped('missing' in ip ? ip : { missing: 'unshare can make no network namespace here' }) : ''

it.skipIf(alone === undefined)(`[H2.4] a client that is gone without closing its connection is found before the next heartbeat${why}`, async () => {
  const child = spawn('unshare', [alone ?? '', process.execPath, join(import.meta.dirname, 'half-open-process.ts')], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const said: Array<{ words: string; at: number }> = []
  for await (const words of createInterface({ input: child.stdout })) said.push({ words, at: performance.now() })
  expect(said.map(({ words }) => words)).toEqual(['watched', 'gone'])
  // The heartbeat of this server comes every 16 s; the probes take 11.
  expect((said[1]?.at ?? NaN) - (said[0]?.at ?? NaN)).toBeLessThan(16_000)
})
