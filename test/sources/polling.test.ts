import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { Agent, Heed, InMemoryStore, silentLogger, type NotificationPriority } from '../../src/index.ts'
import { SignalProvider, type SourceEvent } from '../../src/sources/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'

class Builds extends SignalProvider {
  readonly id = 'builds'
  override readonly pollInterval = 60_000
  readonly #asked: string[]
  readonly #name: string

  constructor(name: string, asked: string[]) {
    super()
    this.#name = name
    this.#asked = asked
  }

  override async poll(subscriptions: readonly { externalId: string }[]): Promise<SourceEvent[]> {
    this.#asked.push(this.#name)
    return subscriptions.map(({ externalId }) => ({ id: `build-${this.#asked.length}`, externalIds: [externalId], notification: { kind: 'build', summary: `Build ${this.#asked.length}` } }))
  }
}

it('[E1.6] is polled by one process at a time, and by none without a subscription', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const clock = virtualClock()
  const asked: string[] = []
  const policy: Partial<Record<NotificationPriority, 'persist'>> = { medium: 'persist' }
  const start = async (name: string) => {
    const source = new Builds(name, asked)
    const agent = new Agent({ id: 'guide', model: scriptedModel([]), notifications: { deliveryPolicy: { priorities: policy } } })
    const heed = new Heed({ agents: { agent }, sources: [source], storage: new LibSQLStore({ url: `file:${join(folder, 'heed.db')}` }), clock, logger: silentLogger })
    onTestFinished(() => heed.close())
    await heed.start()
    return source
  }
  const one = await start('one')
  await start('two')
  await clock.advance(60_000)
  expect(asked).toEqual([])
  await one.subscribe({ threadId: 't1', resourceId: 'user-1', agentId: 'guide', externalId: 'main' })
  let minutes = 0
  await expect.poll(async () => {
    await clock.advance(60_000)
    minutes++
    return asked.length
  }).toBeGreaterThanOrEqual(3)
  expect(asked.length).toBeLessThanOrEqual(minutes)
})

it('[R11.4] is not waited for beyond five seconds at a close, also where it can\'t be stopped', async () => {
  const [clock, storage] = [virtualClock(), new InMemoryStore()]
  const waits = Promise.withResolvers<void>()
  let isStuck = false
  const defaultOptions = () => (isStuck ? (waits.resolve(), new Promise<never>(() => {})) : {})
  const agent = new Agent({ id: 'guide', model: scriptedModel([]), defaultOptions })
  const source = new Builds('one', [])
  const heed = new Heed({ agents: { agent }, sources: [source], storage, clock, logger: silentLogger })
  await heed.start()
  await source.subscribe({ threadId: 't1', resourceId: 'user-1', agentId: 'guide', externalId: 'main' })
  isStuck = true
  await Promise.all([clock.advance(60_000), waits.promise])
  const closing = heed.close()
  await clock.advance(5_000)
  await closing
  await expect(storage.getThread({ threadId: 't1' })).rejects.toMatchObject({ code: 'closed' })
})

it('closes the storages of a Heed whose source fails to stop, and says why', async () => {
  const storage = new InMemoryStore()
  class Stuck extends Builds {
    override stop(): Promise<void> {
      return Promise.reject(new Error('no way to stop'))
    }
  }
  const agent = new Agent({ id: 'guide', model: scriptedModel([]) })
  const heed = new Heed({ agents: { agent }, sources: [new Stuck('one', [])], storage, logger: silentLogger })
  await heed.start()
  await expect(heed.close()).rejects.toThrow('no way to stop')
  await expect(storage.getThread({ threadId: 't1' })).rejects.toMatchObject({ code: 'closed' })
})
