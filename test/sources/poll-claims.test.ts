import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { Agent, Heed, silentLogger, type Logger } from '../../src/index.ts'
import { SignalProvider, type PollAnswer, type PollContext, type SourceEvent, type ToldOfEvent } from '../../src/sources/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, virtualClock, type VirtualClock } from '../../src/testing/index.ts'
import { persist, thread } from './listening.ts'

type Poll = (context: PollContext) => Promise<readonly SourceEvent[] | PollAnswer>

class Builds extends SignalProvider {
  readonly id = 'builds'
  override readonly pollInterval = 1_000
  readonly #poll: Poll

  constructor(poll: Poll) {
    super()
    this.#poll = poll
  }

  override poll(_: readonly unknown[], context: PollContext) {
    return this.#poll(context)
  }
}

const event = (id: string, more: Partial<ToldOfEvent> = {}): SourceEvent => ({ id, externalIds: ['main'], notification: { kind: 'build', summary: `Build ${id}`, ...more } })

/** Several processes on one file, with one clock. */
async function processes(polls: readonly Poll[], logger: Logger = silentLogger) {
  const folder = mkdtempSync(join(tmpdir(), 'heed-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const url = `file:${join(folder, 'heed.db')}`
  const clock = virtualClock()
  const heeds = polls.map((poll) => {
    const source = new Builds(poll)
    const agent = new Agent({ id: 'guide', model: scriptedModel([]), notifications: persist })
    const heed = new Heed({ agents: { agent }, sources: [source], storage: new LibSQLStore({ url }), clock, logger })
    onTestFinished(() => heed.close())
    return { heed, source }
  })
  await heeds[0]?.source.subscribe({ ...thread, agentId: 'guide', externalId: 'main' })
  for (const { heed } of heeds) await heed.start()
  const store = await new LibSQLStore({ url }).getStore('notifications')
  onTestFinished(() => store?.close())
  const inbox = async () => ((await store?.listNotifications({ ...thread, limit: 100 }))?.notifications ?? []).map(({ id }) => id).toSorted()
  return { clock, heeds, inbox }
}

/** Time goes on until it is so. */
async function until(clock: VirtualClock, isSo: () => boolean | Promise<boolean>, step = 1_000): Promise<void> {
  await expect.poll(async () => (await clock.advance(step), isSo())).toBe(true)
}

it('[E1.6] is polled by no other process during a poll, however long that takes, and again after it', async () => {
  let running = 0
  let most = 0
  let asked = 0
  let answer = () => {}
  const slow: Poll = async () => {
    asked++
    most = Math.max(most, ++running)
    await new Promise<void>((resolve) => (answer = resolve))
    running--
    return []
  }
  const { clock } = await processes([slow, slow])
  await until(clock, () => asked === 1)
  // Many intervals, and longer than a turn that no process renews.
  for (let second = 0; second < 120; second++) await clock.advance(1_000)
  expect([asked, most]).toEqual([1, 1])
  answer()
  await until(clock, () => asked === 2)
  expect(most).toBe(1)
  answer()
})

it('[E1.6] is given up after ten minutes: its signal aborts, and a process polls again', async () => {
  const signals: AbortSignal[] = []
  const told: unknown[] = []
  const stuck: Poll = ({ signal }) => {
    signals.push(signal)
    return new Promise(() => {})
  }
  const { clock, heeds } = await processes([stuck, stuck], { ...silentLogger, error: (message, fields) => void told.push([message, fields]) })
  await until(clock, () => signals.length === 1)
  await until(clock, () => signals.length === 2, 10_000)
  expect([signals[0]?.aborted, signals[1]?.aborted]).toEqual([true, false])
  expect(told).toMatchObject([['a source could not be polled', { source: 'builds' }]])
  // Neither is waited for when all is closed.
  for (const { heed } of heeds) await heed.close()
  expect(signals.every(({ aborted }) => aborted)).toBe(true)
})

it('[E1.3] an event that is wrong in itself keeps none of the others from being delivered', async () => {
  let asked = 0
  const { clock, inbox } = await processes([async () => (asked++ === 0 ? [event('1', { kind: '' }), event('2'), event('3')] : [])])
  await until(clock, async () => (await inbox()).length === 2)
  expect(await inbox()).toEqual(['builds:2', 'builds:3'])
})

it('[E1.9] goes on in whichever process where the last turn ended, and not before its events are stored', async () => {
  const cursors: unknown[] = []
  const builds = ['1', '2', '3', '4']
  const poll: Poll = async ({ cursor }) => {
    const from = typeof cursor === 'number' ? cursor : 0
    cursors.push(from)
    return { events: builds.slice(from, from + 2).map((id) => event(id)), cursor: Math.min(builds.length, from + 2) }
  }
  const { clock, heeds, inbox } = await processes([poll, poll])
  for (const { source } of heeds) {
    const { deliver } = source
    let failures = 1
    source.deliver = (given) => (given.id === '3' && failures-- > 0 ? Promise.reject(new Error('the disk is full')) : deliver.call(source, given))
  }
  await until(clock, async () => (await inbox()).length === 4 && cursors.at(-1) === 4)
  expect(await inbox()).toEqual(['builds:1', 'builds:2', 'builds:3', 'builds:4'])
  // What was not stored is asked for again.
  expect(cursors.filter((from) => from === 0)).toHaveLength(1)
  expect(cursors.filter((from) => from === 2).length).toBeGreaterThanOrEqual(2)
  // One process ends; the other notices it by itself.
  await heeds[0]?.heed.close()
  const before = cursors.length
  await until(clock, () => cursors.length > before)
  expect(cursors.at(-1)).toBe(4)
})
