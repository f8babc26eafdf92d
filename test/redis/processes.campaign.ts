import { existsSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findProgram, whySkipped } from '../../scripts/programs.ts'
import { memberWith, sweepingMember, type Member } from '../cluster/cluster.ts'
import { newFile } from '../new-file.ts'
import { isType, soon } from '../thread/said.ts'
import { kept } from '../thread/transcript.ts'
import { RedisServer } from './redis-server.ts'

const found = await findProgram('redis')
const isMissing = 'missing' in found

let server: RedisServer
beforeAll(async () => {
  if (!isMissing) server = await RedisServer.start()
})
afterAll(() => server?.end())

const resourceId = 'user-1'
const log = async (of: Member) => (await of.ask('log', 'log')) ?? []

describe.skipIf(isMissing)(`processes on a file that are connected by Redis${whySkipped(found)}`, () => {
  it('[B2.3] reach each other by it: steering, the live stream and an abort from another process', async () => {
    const file = newFile()
    const [a, b] = await Promise.all([memberWith(file, { HEED_REDIS: server.url }), memberWith(file, { HEED_REDIS: server.url })])
    const thread = { resourceId, threadId: 'thread-1' }
    await b.ask('subscribe', 'log', thread)
    const { runId } = await a.ask('send', 'one tool wait door', thread)
    await soon(async () => (await log(b)).some(isType('tool-call'))).toBe(true)
    const { id } = await b.ask('send', 'two hang', thread)
    await a.ask('open', 'door')
    expect(await b.ask('outcome', id)).toEqual({ action: 'delivered', runId, step: 1 })
    await soon(async () => JSON.stringify(await log(b)).includes('and ')).toBe(true)
    expect(await b.ask('abortRun', thread)).toEqual({ aborted: true, runId })
    await soon(async () => (await log(b)).some(isType('abort'))).toBe(true)
    expect((await log(b)).some(isType('data-thread-snapshot'))).toBe(false)
    const warnings = [...(await a.ask('warnings')), ...(await b.ask('warnings'))]
    // On a busy machine the start of a process may take longer than a run waits for it.
    expect([warnings.filter(({ message }) => !message.startsWith('the bus does not answer')), existsSync(`${file}-bus`)]).toEqual([[], false])
  })

  it.each([
    ['is killed', async () => {
      await server.kill()
      return () => server.run()
    }],
    ['loses all its data', async () => void (await server.command('FLUSHALL'))],
    ['cuts all connections', async () => void (await server.command('CLIENT', 'KILL', 'TYPE', 'normal'))],
    ['answers nothing for a while', async () => {
      server.suspend()
      return async () => server.resume()
    }],
  ])('[B2.3] complete everything when Redis %s in the middle of their runs, and reach each other again', async (_, fail) => {
    const file = newFile()
    const [a, b] = await Promise.all([sweepingMember(file, { HEED_REDIS: server.url }), sweepingMember(file, { HEED_REDIS: server.url })])
    const threads = ['t1', 't2', 't3'].map((threadId) => ({ resourceId, threadId }))
    for (const thread of threads) {
      await a.ask('send', `one tool wait door-${thread.threadId}`, thread)
      await soon(async () => (await a.ask('activeRun', thread))?.status).toBe('running')
    }
    const repair = await fail()
    const sent = await Promise.all(threads.map((thread) => b.ask('send', 'two say 3', thread)))
    for (const thread of threads) await a.ask('open', `door-${thread.threadId}`)
    for (const { id } of sent) expect(await b.ask('outcome', id)).toMatchObject({ action: 'delivered', step: 1 })
    // A thread that only one of them knows of is found by the other, too.
    const other = { resourceId, threadId: 't4' }
    const { id } = await b.ask('send', 'three say 3', other)
    expect(await b.ask('outcome', id)).toMatchObject({ action: 'woke' })
    for (const thread of [...threads, other]) await soon(async () => a.ask('activeRun', thread)).toBeNull()
    for (const { threadId } of threads) {
      const history = kept(await a.ask('recall', threadId))
      expect(history.filter((line) => line.startsWith('signal'))).toHaveLength(2)
      expect(history.at(-1)).toBe('text two-0 two-1 two-2 ')
    }
    await repair?.()
    // An abort needs the bus.
    await a.ask('send', 'four hang', other)
    await soon(async () => (await b.ask('activeRun', other))?.status).toBe('running')
    await soon(async () => b.ask('abortRun', other).then(({ aborted }) => aborted, ({ code }: { code: string }) => code)).toBe(true)
  })
})
