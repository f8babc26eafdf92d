import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { createClient } from 'redis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import type { BusConnection } from '../../src/bus/contract.ts'
import type { BusMessage } from '../../src/bus/message.ts'
import { renewMs } from '../../src/bus/redis/hub.ts'
import { RedisBus, type RedisBusOptions } from '../../src/bus/redis/index.ts'
import { busConformance } from '../../src/testing/index.ts'
import { findProgram, whySkipped } from '../../scripts/programs.ts'
import { RedisServer } from './redis-server.ts'

const found = await findProgram('redis')
const isMissing = 'missing' in found
const why = whySkipped(found)

let server: RedisServer
let buses = 0
beforeAll(async () => {
  if (!isMissing) server = await RedisServer.start()
})
afterAll(() => server?.end())

const mail = (threadId: string): BusMessage => ({ kind: 'mail', threadId })

interface Member {
  connection: BusConnection
  /** The ids of threads that were received, and what else happened, in order. */
  log: string[]
}

const open = new Set<BusConnection>()
afterEach(async () => {
  await Promise.all([...open].map((connection) => connection.close()))
  open.clear()
})

async function connect(id: string, options: RedisBusOptions): Promise<Member> {
  const log: string[] = []
  const connection = await new RedisBus(options).connect({
    namespace: 'one',
    id,
    handler: {
      onMessage: (message) => void log.push('threadId' in message ? message.threadId : message.kind),
      onLoss: () => void log.push('lost'),
      onDisconnect: (error) => void log.push(`disconnected: ${String(error)}`),
      onReconnect: () => void log.push('reconnected'),
      wantsLowLatency: () => true,
    },
  })
  open.add(connection)
  return { connection, log }
}

/** Two processes that know each other, on keys of their own. */
async function pair(more: Partial<RedisBusOptions> = {}) {
  const keyPrefix = `test-${++buses}`
  const options = { url: server.url, keyPrefix, ...more }
  const [a, b] = [await connect('a', options), await connect('b', options)]
  b.connection.send({ kind: 'hello' })
  await expect.poll(() => a.log).toEqual(['hello'])
  a.log.length = 0
  return { a, b, base: `{${keyPrefix}}:`, options }
}

/** Sends until one arrives: the first ones may be lost. Returns its name. */
async function untilHeard(from: Member, to: Member): Promise<string> {
  let name = ''
  for (let attempt = 0; !to.log.includes(name); attempt++) {
    name = `try ${attempt}`
    // As a process does that has lost messages: who hears it knows that it has a peer.
    for (const { connection } of [from, to]) connection.send({ kind: 'hello' })
    from.connection.send(mail(name))
    await Promise.all([from.connection.flush(), to.connection.flush()])
    await to.connection.poll()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return name
}

describe.skipIf(isMissing)(`a bus on Redis${why}`, () => {
  it.each(busConformance)('in a process: $name', async ({ run }) => {
    const keyPrefix = `test-${++buses}`
    const bus = new RedisBus({ url: server.url, keyPrefix })
    await expect(run({ bus: async () => () => bus })).resolves.toBeUndefined()
    expect((await server.keys()).filter((key) => key.includes(`{${keyPrefix}}`))).toEqual([])
  })

  it.each(busConformance)('in several processes: $name', async ({ run }) => {
    const keyPrefix = `test-${++buses}`
    await expect(run({ bus: async () => () => new RedisBus({ url: server.url, keyPrefix }) })).resolves.toBeUndefined()
  })

  it('[B2.1] leaves nothing in Redis that does not expire within a minute', async () => {
    const { a, b, base } = await pair()
    for (let index = 0; index < 200; index++) a.connection.send(mail(`t${index}`), index % 2 ? 'b' : undefined)
    await a.connection.flush()
    await b.connection.poll()
    const keys = (await server.keys()).filter((key) => key.startsWith(base))
    expect(keys.map((key) => key.split(':')[1]).toSorted()).toEqual(['in', 'in', 'members', 'numbers', 'numbers'])
    for (const key of keys) {
      const left = Number(await server.command('PTTL', key))
      expect(left).toBeGreaterThan(0)
      expect(left).toBeLessThanOrEqual(60_000)
    }
  })

  it('[B2.1] [B2.2] keeps no more for a process that does not read than it may, and tells it that messages are missing', async () => {
    const keyPrefix = `test-${++buses}`
    const child = fork(join(import.meta.dirname, 'listener.ts'), [server.url, keyPrefix], { stdio: 'inherit', execArgv: [] })
    const log: string[] = []
    child.on('message', (message: BusMessage) => void log.push('threadId' in message ? message.threadId : message.kind))
    try {
      await expect.poll(() => log, { timeout: 20_000 }).toEqual(['connected'])
      const sender = await connect('sender', { url: server.url, keyPrefix, maxEntries: 3 })
      child.kill('SIGSTOP')
      // Each flush is an entry of its own. The suspended process may have one reply of Redis in its socket.
      for (let index = 0; index < 12; index++) {
        sender.connection.send(mail(`t${index}`))
        await sender.connection.flush()
      }
      const inboxes = (await server.keys()).filter((key) => key.startsWith(`{${keyPrefix}}:in:`))
      const lengths = await Promise.all(inboxes.map(async (key) => Number(await server.command('XLEN', key))))
      expect(Math.max(...lengths)).toBe(3)
      child.kill('SIGCONT')
      await expect.poll(() => log, { timeout: 20_000 }).toContain('t11')
      expect(log).toContain('lost')
      expect(log.slice(-3)).toEqual(['t9', 't10', 't11'])
    } finally {
      const ended = once(child, 'exit')
      if (child.kill('SIGKILL')) await ended
    }
  })

  it('[B2.2] tells a process of an entry that is missing, and of messages that the sender could not send', async () => {
    const { a, b, base } = await pair()
    a.connection.send(mail('one'))
    await a.connection.flush()
    await b.connection.poll()
    const [numbers = ''] = (await server.keys()).filter((key) => key.startsWith(`${base}numbers:`))
    const senders = (await server.command('HKEYS', numbers)) as string[]
    for (const sender of senders) await server.command('HINCRBY', numbers, sender, '1')
    a.connection.send(mail('two'))
    b.connection.send(mail('three'))
    await Promise.all([a.connection.flush(), b.connection.flush()])
    await Promise.all([a.connection.poll(), b.connection.poll()])
    expect([a.log, b.log].flat()).toEqual(expect.arrayContaining(['one', 'lost', 'two', 'three']))
    b.log.length = 0
    // More than may wait to be sent: nothing of it is sent, and the next message says so.
    a.connection.send(mail('x'.repeat(8_000_001)))
    a.connection.send(mail('after'))
    await a.connection.flush()
    await b.connection.poll()
    expect(b.log).toEqual(['lost', 'after'])
  })

  it('[B2.2] continues without a loss after a connection was cut, and does not call onLoss', async () => {
    const { a, b } = await pair()
    const ids = String(await server.command('CLIENT', 'LIST')).split('\n').filter((line) => / cmd=xread /.test(line)).map((line) => /id=(\d+)/.exec(line)?.[1] ?? '')
    for (const id of ids) await server.command('CLIENT', 'KILL', 'ID', id)
    const last = await untilHeard(a, b)
    const heard = b.log.filter((line) => line.startsWith('try'))
    expect(heard).toEqual(heard.toSorted((one, other) => Number(one.slice(4)) - Number(other.slice(4))))
    expect(heard.at(-1)).toBe(last)
    expect(new Set(heard).size).toBe(heard.length)
    expect([...a.log, ...b.log].filter((line) => line.startsWith('disconnected'))).toEqual([])
  })

  it('[B2.2] finds its way back when Redis has lost everything, and says what is lost', async () => {
    const { after } = systemClock
    const timers = vi.spyOn(systemClock, 'after').mockImplementation((ms, run, options) => after(ms === renewMs ? 20 : ms, run, options))
    try {
      const { a, b } = await pair()
      await server.command('FLUSHALL')
      for (const each of [a, b]) await expect.poll(() => each.log, { timeout: 20_000 }).toContain('lost')
      await untilHeard(a, b)
      await untilHeard(b, a)
      expect(a.connection.hasPeers && b.connection.hasPeers).toBe(true)
    } finally {
      timers.mockRestore()
    }
  })

  it('[B2.2] starts an inbox anew that was set back, as by a replica that became primary too early', async () => {
    const { after } = systemClock
    const timers = vi.spyOn(systemClock, 'after').mockImplementation((ms, run, options) => after(ms === renewMs ? 20 : ms, run, options))
    try {
      const { a, b, base } = await pair()
      await untilHeard(a, b)
      for (const inbox of (await server.keys()).filter((key) => key.startsWith(`${base}in:`))) {
        // In one step: the entries that were read are gone, and later ids are below the last one that was read.
        await server.command('EVAL', "redis.call('DEL', KEYS[1]); redis.call('XADD', KEYS[1], '1-1', 'from', 'x'); redis.call('PEXPIRE', KEYS[1], 60000)", '1', inbox)
      }
      for (const each of [a, b]) await expect.poll(() => each.log, { timeout: 20_000 }).toContain('lost')
      await untilHeard(a, b)
    } finally {
      timers.mockRestore()
    }
  })
})

describe.skipIf(isMissing)(`a bus whose Redis fails${why}`, () => {
  it('[B2.2] [B1.7] says once that it is gone, never holds up its caller, and says what is lost when it is back', async () => {
    const own = await RedisServer.start()
    try {
      const options = { url: own.url }
      const [a, b] = [await connect('a', options), await connect('b', options)]
      await untilHeard(a, b)
      await own.kill()
      for (const each of [a, b]) await expect.poll(() => each.log.filter((line) => line.startsWith('disconnected')), { timeout: 20_000 }).toHaveLength(1)
      expect([a.connection.disconnected, a.connection.hasPeers]).toEqual([true, true])
      a.connection.send(mail('into nothing'))
      await Promise.all([a.connection.flush(), a.connection.poll(), b.connection.poll()])
      // A process that starts meanwhile connects as soon as it can.
      const c = await connect('c', options)
      expect(c.log).toEqual([expect.stringMatching(/^disconnected: .*ECONNREFUSED/)])
      await own.run()
      for (const each of [a, b, c]) await expect.poll(() => each.log, { timeout: 20_000 }).toContain('reconnected')
      expect(a.log).toContain('lost')
      await untilHeard(a, b)
      await untilHeard(c, a)
      expect(b.log).not.toContain('into nothing')
      expect(a.log.filter((line) => line.startsWith('disconnected'))).toHaveLength(1)
    } finally {
      await own.end()
    }
  })

  it('[B2.2] gives up on a server that answers nothing, and returns to it', async () => {
    const own = await RedisServer.start()
    try {
      const options = { url: own.url }
      const [a, b] = [await connect('a', options), await connect('b', options)]
      await untilHeard(a, b)
      own.suspend()
      a.connection.send(mail('waits'))
      await a.connection.flush()
      expect(a.connection.disconnected).toBe(true)
      own.resume()
      for (const each of [a, b]) await expect.poll(() => each.connection.disconnected, { timeout: 20_000 }).toBe(false)
      await untilHeard(a, b)
    } finally {
      await own.end()
    }
  })

  it('[B2.4] shows its password neither in an error nor in itself, and works with the right one', async () => {
    const [right, wrong] = ['correct-horse-battery', 'wrong-horse-battery']
    const own = await RedisServer.start('--requirepass', right)
    const url = (password: string) => own.url.replace('//', `//:${password}@`)
    try {
      const refused = await connect('a', { url: url(wrong) })
      expect(refused.log).toEqual([expect.stringContaining('WRONGPASS')])
      expect(refused.log.join()).not.toContain(wrong)
      expect(inspect(new RedisBus({ url: url(right) }), { depth: 9, showHidden: true })).not.toContain(right)
      const [a, b] = [await connect('a', { url: url(right) }), await connect('b', { url: url(right) })]
      await untilHeard(a, b)
      const invalid = () => new RedisBus({ url: `http://:${right}@localhost` })
      expect(invalid).toThrow(expect.objectContaining({ code: 'invalid_argument', message: expect.not.stringContaining(right) }))
    } finally {
      await Promise.all([...open].map((connection) => connection.close()))
      await own.end()
    }
  })
})

describe.skipIf(isMissing)(`the options of a bus on Redis${why}`, () => {
  let client: ReturnType<typeof createClient>
  beforeEach(() => {
    client = createClient({ url: server.url })
    client.on('error', () => {})
  })
  afterEach(() => (client.isOpen ? client.destroy() : undefined))

  it('takes a client of the program, opens connections like it, and leaves it as it is', async () => {
    const keyPrefix = `test-${++buses}`
    const [a, b] = [await connect('a', { client, keyPrefix }), await connect('b', { url: server.url, keyPrefix })]
    await untilHeard(a, b)
    expect(client.isOpen).toBe(false)
  })

  it('keeps processes with different prefixes apart', async () => {
    const [a, b] = [await connect('a', { url: server.url, keyPrefix: `one-${++buses}` }), await connect('b', { url: server.url, keyPrefix: `two-${buses}` })]
    a.connection.send({ kind: 'hello' })
    await a.connection.flush()
    await b.connection.poll()
    expect([b.log, a.connection.hasPeers, b.connection.hasPeers]).toEqual([[], false, false])
  })

  it.each([
    [{}, 'url'],
    [{ url: 'localhost' }, 'url'],
    [{ url: 'redis://:%zz@localhost' }, 'url'],
    [{ url: 'redis://localhost', client: {} }, 'url'],
    [{ client: {} }, 'client'],
    [{ url: 'redis://localhost', keyPrefix: '{x}' }, 'keyPrefix'],
    [{ url: 'redis://localhost', maxEntries: 0 }, 'maxEntries'],
  ])('refuses %j by the name of the option', (options, field) => {
    expect(() => new RedisBus(options as never)).toThrow(expect.objectContaining({ code: 'invalid_argument', details: { field } }))
  })
})
