import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, it, onTestFinished } from 'vitest'

/** A network of one's own needs Linux, and the right to make one. */
const alone = ['-rn', '-n'].find((how) => spawnSync('unshare', [how, 'ip', 'link', 'set', 'lo', 'up']).status === 0)

it.skipIf(alone === undefined)('[H2.4] a peer that is gone without a word is found before the next heartbeat', { timeout: 60_000 }, async () => {
  const child = spawn('unshare', [alone ?? '', process.execPath, join(import.meta.dirname, 'half-open-process.ts')], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const said: Array<{ words: string; at: number }> = []
  for await (const words of createInterface({ input: child.stdout })) said.push({ words, at: performance.now() })
  expect(said.map(({ words }) => words)).toEqual(['watched', 'gone'])
  // The heartbeat of this server comes every 14 s.
  expect((said[1]?.at ?? NaN) - (said[0]?.at ?? NaN)).toBeLessThan(14_000)
})
