import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { connectTo } from '../../src/bus/postgres/bus.ts'
import type { NotifyClient } from '../../src/bus/postgres/client.ts'
import { Hub } from '../../src/bus/postgres/hub.ts'
import type { Bus, BusMessage } from '../../src/index.ts'
import { connectClient } from '../../src/store/postgres/sessions.ts'
import { busConformance, type BusHarness } from '../../src/testing/index.ts'
import { sharedServer, noPostgres, whyNoPostgres } from './server.ts'
import { inDatabase } from './stores.ts'

const connect = async () => (await connectClient({ connectionString: await sharedServer() })) as unknown as NotifyClient

/** Namespaces of the tests are of one server: each test has its own. */
let tests = 0
const harness: BusHarness = {
  async bus() {
    const test = `test ${process.pid} ${tests++} `
    return (): Bus => ({
      connect: (options) => connectTo(new Hub(connect), { ...options, namespace: test + options.namespace }, () => {}),
    })
  },
}

describe.skipIf(noPostgres)(`the bus of PostgreSQL${whyNoPostgres}`, () => {
  it.each(busConformance)('$name', ({ run }) => expect(run(harness)).resolves.toBeUndefined())

  it('sends one statement at a time on the connection that listens, however many members join at once: the driver will not queue them', async () => {
    let [open, most] = [0, 0]
    const counted = async () => {
      const client = await connect()
      const query = client.query.bind(client)
      client.query = async (...given) => {
        most = Math.max(most, (open += 1))
        return query(...given).finally(() => (open -= 1))
      }
      return client
    }
    let clients = 0
    // The first connection listens, the second sends.
    const hub = new Hub(() => ((clients += 1) === 1 ? counted() : connect()))
    const members = await Promise.all(['a', 'b', 'c'].map((name) => connectTo(hub, {
      namespace: `test ${process.pid} ${name}`, id: name, handler: { onMessage() {}, onLoss() {}, wantsLowLatency: () => true },
    }, () => {})))
    await Promise.all(members.map((member) => member.close()))
    await hub.close()
    expect(most).toBe(1)
  })

  it('[Q3.2] reports what could not be sent, and attempts to connect that failed', async () => {
    const failures: string[] = []
    const refused = () => Promise.reject(new Error('no way'))
    const named = async () => (await connectClient({ connectionString: await sharedServer(), application_name: 'failing' })) as unknown as NotifyClient
    let connecting = named
    const bus = await connectTo(new Hub(() => connecting()), {
      namespace: `test ${process.pid} failing`, id: 'one',
      handler: { onMessage() {}, onLoss() {}, wantsLowLatency: () => true, onFailure: (error) => void failures.push(String(error)) },
    }, () => {})
    onTestFinished(() => bus.close())
    connecting = refused
    await inDatabase((query) => query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'failing'`))
    await vi.waitFor(() => {
      bus.send({ kind: 'mail', threadId: 't' })
      expect(failures.join('\n')).toMatch(/could not be opened again: no way[\s\S]*could not be sent: no way|could not be sent: no way[\s\S]*could not be opened again: no way/)
    }, { timeout: 20_000 })
    expect(failures.length).toBeLessThan(20)
  })

  it('[Q3.1] reports a lost connection, connects again, and says that messages may be missing', async () => {
    const access = await harness.bus()
    const received: BusMessage[] = []
    const told: string[] = []
    const one = await access().connect({
      namespace: 'n', id: 'one',
      handler: {
        onMessage: (message) => void received.push(message), onLoss: () => void told.push('lost'), wantsLowLatency: () => true,
        onDisconnect: () => void told.push('disconnected'), onReconnect: () => void told.push('reconnected'),
      },
    })
    const two = await access().connect({ namespace: 'n', id: 'two', handler: { onMessage() {}, onLoss() {}, wantsLowLatency: () => true } })
    onTestFinished(async () => void (await Promise.all([one.close(), two.close()])))
    await inDatabase((query) => query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' OR query LIKE '%pg_advisory_lock_shared%' AND pid <> pg_backend_pid()`))
    await vi.waitFor(() => expect(told).toContain('lost'), { timeout: 20_000 })
    expect(told.slice(0, 1)).toEqual(['disconnected'])
    expect(told.indexOf('reconnected')).toBeLessThan(told.lastIndexOf('lost'))
    await vi.waitFor(async () => {
      two.send({ kind: 'mail', threadId: 'again' })
      await two.flush()
      await one.poll()
      expect(received).toContainEqual({ kind: 'mail', threadId: 'again' })
    }, { timeout: 20_000 })
  })
})
