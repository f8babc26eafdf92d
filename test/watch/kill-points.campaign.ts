import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { idle, soon } from '../thread/said.ts'
import { live, shiftMs } from './killed-process.ts'
import { shiftedClock } from './shifted-clock.ts'
import { watching } from './watching.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-watch-kills-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Where the first process is killed, at the how manieth time, and the next ones at the first. */
const points = [['stored', 1], ['claimed', 1], ['judged', 2], ['settled', 1], ['sent', 2], ['confirmed', 1]] as const

/** Three processes start in each test: a limit for a machine that is busy otherwise. */
const timeout = 300_000

describe('processes that are killed between a message and its thread', { timeout }, () => {
  it.each(points)('[V1.20] each result is one signal: killed when it has %s, number %i, and again (case 48)', async (point, nth) => {
    const file = join(folder, `${point}-${nth}.db`)
    expect(await live(file, point, { nth, life: 0 })).toBe('SIGKILL')
    await live(file, point, { nth: 1, life: 1 })
    const toolCalls = ['report_signal', 'complete_task'].map((toolName) => ({ toolName, input: { result: { matched: true } } }))
    const { heed, agent, judging } = watching({ script: () => 'Noted.', judge: () => ({ toolCalls }), file, clock: shiftedClock(2 * shiftMs) })
    await heed.start()
    await soon(async () => (await agent.getWatch({ id: 'one' }))?.reason).toBe('matched')
    await soon(async () => (await agent.getWatch({ id: 'each' }))?.hits).toBe(3)
    await soon(async () => (await heed.tick()).watches).toBe(0)
    const memory = await agent.getMemory()
    const signals = async (threadId: string) => {
      await idle(agent, { threadId, resourceId: 'ada' })
      const { messages } = (await memory?.recall({ threadId, resourceId: 'ada', perPage: false })) ?? { messages: [] }
      return messages.map(({ id }) => id).filter((id) => /^watch(-hit)?:/.test(id)).toSorted()
    }
    await soon(() => signals('one')).toEqual(['watch:one'])
    await soon(() => signals('each')).toEqual(['watch-hit:1:each', 'watch-hit:2:each', 'watch-hit:3:each'])
    expect(await agent.getWatch({ id: 'each' })).toMatchObject({ state: 'open', evaluations: 3, hits: 3 })
    expect(await agent.getWatch({ id: 'one' })).toMatchObject({ state: 'ended', hits: 1 })
    expect(judging.callCount).toBeLessThanOrEqual(4)
  })
})
