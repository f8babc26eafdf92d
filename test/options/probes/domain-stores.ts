import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import type { LibSQLClient, LibSQLDomainOptions } from '../../../src/store/sqlite/index.ts'
import { open, rejects, thread, type Probe } from '../probe.ts'
import { heed, libsql, pg, testing } from '../walked.ts'

const { CompositeStore, InMemoryStore } = heed

const makers = {
  NotificationsLibSQL: (options: LibSQLDomainOptions) => new libsql.NotificationsLibSQL(options),
  SchedulesLibSQL: (options: LibSQLDomainOptions) => new libsql.SchedulesLibSQL(options),
  SubscriptionsLibSQL: (options: LibSQLDomainOptions) => new libsql.SubscriptionsLibSQL(options),
  WatchesLibSQL: (options: LibSQLDomainOptions) => new libsql.WatchesLibSQL(options),
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'heed-domains-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A server that accepts no token. */
async function refusing() {
  const tokens: Array<string | undefined> = []
  const server = createServer((request, response) => {
    tokens.push(request.headers.authorization)
    response.writeHead(401).end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, tokens }
}

const ofStore = Object.entries(makers).map(([name, make]): Probe => ({
  title: `${name}: its database`,
  async run() {
    const file = join(temporaryFolder(), 'domain.db')
    const opened = make({ url: `file:${file}` })
    await opened.open()
    await opened.close()
    expect(existsSync(file)).toBe(true)
    const held = `${file}.held`
    const other = new DatabaseSync(held)
    other.exec('BEGIN EXCLUSIVE')
    await expect(make({ url: `file:${held}`, busyTimeout: 1 }).open()).rejects.toThrow('held by another process')
    other.close()
    const client: LibSQLClient = { transaction: () => Promise.reject(new Error('away')), close() {} }
    await expect(make({ url: 'https://db.example', client }).open()).rejects.toThrow('away')
    const { url, tokens } = await refusing()
    await expect(make({ url, authToken: 'secret' }).open()).rejects.toBeInstanceOf(Error)
    expect(tokens[0]).toBe('Bearer secret')
    for (const [option, value] of Object.entries({ id: 'x', namespace: 'x', retention: { records: '1d' }, ...(name.startsWith('S') && { clock: testing.virtualClock() }) })) {
      const error = await (async () => make({ url: ':memory:', [option]: value }))().catch((thrown: unknown) => thrown)
      expect(error, option).toMatchObject({ code: 'unsupported_option', message: expect.stringContaining(name) as string, details: { option } })
    }
  },
}))

export const domainStores: Probe[] = [
  ...ofStore,
  {
    title: 'the clocks of the stores of notifications and watches',
    async run() {
      const clock = testing.virtualClock(7_000_000)
      const notifications = new libsql.NotificationsLibSQL({ url: ':memory:', clock })
      const watches = new libsql.WatchesLibSQL({ url: ':memory:', clock })
      const storage = new CompositeStore({ default: new InMemoryStore(), domains: { notifications, watches } })
      const { agent } = open({ watches: true, notifications: { deliveryPolicy: { default: 'persist' } } }, undefined, { storage })
      const { record } = await agent.sendNotificationSignal({ source: 'ci', kind: 'k', summary: 's' }, thread)
      const [seen] = await notifications.markNotifications(thread, [record.id], 'seen')
      expect(seen?.seenAt).toEqual(new Date(7_000_000))
      const { id } = await agent.awaitSignal({ description: 'a code', expected_channels: ['sms'] }, thread)
      await (await agent.getMemory()).transferThread({ threadId: thread.threadId, resourceId: 'user-2' })
      expect((await agent.getWatch({ id }))?.endedAt).toEqual(new Date(7_000_000))
    },
  },
  {
    title: 'CompositeStore.prune: what it removes',
    async run() {
      const clock = testing.virtualClock(Date.UTC(2026, 5, 1))
      const made = async () => {
        const store = new CompositeStore({ default: new InMemoryStore({ clock }), retention: { messages: '1d' } })
        onTestFinished(() => store.close())
        const memory = new heed.Memory({ storage: store })
        await memory.createThread(thread)
        await memory.saveMessages({ ...thread, messages: [{ id: 'm-1', role: 'user', content: 'Hi.', createdAt: new Date('2026-01-01') }] })
        return store
      }
      const now = clock.now()
      const store = await made()
      expect(await store.prune({ now: 0 })).toMatchObject({ messages: 0 })
      await expect(store.prune({ now, signal: AbortSignal.abort(new Error('stopped')) })).rejects.toThrow('stopped')
      const pruned: unknown[] = []
      expect(await store.prune({ now: now + 172_800_000, retention: { threads: '1d' }, onPruned: ({ threadIds }) => void pruned.push(...threadIds) })).toMatchObject({ threads: 1 })
      expect(pruned).toEqual([thread.threadId])
      for (const kind of ['messages', 'threads', 'records', 'watches']) await rejects(() => store.prune({ retention: { [kind]: 'soon' } }), kind)
    },
  },
  {
    title: 'PostgresStore: its retention',
    async run() {
      for (const kind of ['messages', 'threads', 'records', 'watches']) await rejects(() => new pg.PostgresStore({ host: 'localhost', retention: { [kind]: 'soon' } }), kind)
    },
  },
]
