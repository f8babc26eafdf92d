import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { idle, soon } from '../thread/said.ts'
import { shiftedClock } from '../watch/shifted-clock.ts'
import { answering } from './answering.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-reply-kills-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Longer than every claim and lease: what the process before had taken is due. */
const shiftMs = 200_000

/** How the process ended. */
async function live(file: string, point: string, { nth, life }: { nth: number; life: number }): Promise<string> {
  const given = [file, point, String(nth), String(life * shiftMs), ...(life === 0 ? ['first'] : [])]
  const child = spawn(process.execPath, [join(import.meta.dirname, 'reply-process.ts'), ...given], { stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  if (code !== null && code !== 0) throw new Error(`The process failed with ${code}: ${errors}`)
  return signal ?? 'done'
}

/** Where the first process is killed, at the how manieth time, and the next one at the first. */
const points = [
  ['stored', 1], ['annotated', 2], ['claimed', 1], ['before ask', 2], ['after ask', 1], ['run', 2], ['before answer', 1], ['after answer', 2], ['send', 1], ['provider', 2], ['after send', 1],
] as const

/** Three processes start in each test: a limit for a machine that is busy otherwise. */
const timeout = 300_000

describe('processes that are killed between a message and its reply', { timeout }, () => {
  it.each(points)('[V3.13] [V3.16] each message is one run and one reply: killed at %j, number %i, and again (case 48)', async (point, nth) => {
    const file = join(folder, `${point.replace(' ', '-')}.db`)
    expect(await live(file, point, { nth, life: 0 })).toBe('SIGKILL')
    await live(file, point, { nth: 1, life: 1 })
    const { agent, heed, sent, replies } = answering({ file, script: () => 'Answer in the last life.', clock: shiftedClock(2 * shiftMs) })
    await heed.start()
    await soon(async () => (await replies()).map(({ state }) => state)).toEqual(['sent', 'sent', 'sent'])
    const all = await replies()
    const scope = { threadId: all[0]?.threadId ?? '', resourceId: 'ada' }
    await idle(agent, scope)
    const runs = await agent.threads().store.listRuns({ threadId: scope.threadId })
    expect(runs.map(({ runId, status }) => [runId, status]).toReversed()).toEqual(all.map(({ inboundId }) => [inboundId, 'finished']))
    const { messages } = await (await agent.getMemory()).recall({ ...scope, perPage: false })
    expect(messages.filter(({ role }) => role === 'signal').map(({ id }) => id)).toEqual(all.map(({ inboundId }) => inboundId))
    expect(messages.filter(({ role }) => role === 'assistant').length).toBe(3)
    const before = readSent(`${file}.sent`)
    for (const { id, text = '' } of all) {
      const texts = [...before.filter(([key]) => key === id).map(([, one]) => one), ...sent.filter(({ idempotencyKey }) => idempotencyKey === id).map((one) => one.text)]
      expect(texts.length).toBeGreaterThanOrEqual(1)
      expect(new Set(texts)).toEqual(new Set([text]))
    }
  })
})

function readSent(path: string): Array<[string, string]> {
  try {
    return readFileSync(path, 'utf8').split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as [string, string])
  } catch {
    // It was killed before it sent anything.
    return []
  }
}
