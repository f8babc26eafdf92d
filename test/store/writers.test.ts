import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@libsql/client'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import {
  notificationWriterConformance, scheduleWriterConformance, storeConformance, storeWriterConformance, subscriptionWriterConformance,
} from '../../src/testing/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/store.ts'
import type { StoreDomains } from '../../src/store/contract/storage.ts'
import { newMeeting, takeNoLocks, type Meeting } from './no-locks.ts'
import { SecondConnection } from './second-connection.ts'
import { unlockedClient } from './unlocked-client.ts'

type Tried = 'memory' | 'notifications' | 'schedules' | 'subscriptions'

/** How a database file is opened the first and the second time. */
interface Engine {
  first(path: string): (domain: Tried) => Promise<StoreDomains[Tried]>
  second(path: string): (domain: Tried) => Promise<StoreDomains[Tried]>
}

const folder = mkdtempSync(join(tmpdir(), 'heed-writers-'))
let files = 0
const threads: SecondConnection[] = []
const closing: Array<() => Promise<unknown>> = []
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()))
})
afterAll(async () => {
  await Promise.all(threads.map((thread) => thread.end()))
  rmSync(folder, { recursive: true })
})

function opened(store: LibSQLStore): (domain: Tried) => Promise<StoreDomains[Tried]> {
  closing.push(() => store.close())
  return async (domain) => (await store.getStore(domain)) as StoreDomains[Tried]
}

/** Stores of one more thread, which is started when it is first needed and ends with the tests. */
function inThread(meeting?: Meeting): (path: string) => (domain: Tried) => Promise<StoreDomains[Tried]> {
  let thread: SecondConnection | undefined
  return (path) => {
    if (!thread) threads.push(thread = new SecondConnection({ ...(meeting && { meeting }) }))
    const { store } = thread
    const url = `file:${path}`
    closing.push(() => store(url, 'memory').close())
    return async (domain) => store(url, domain)
  }
}

const file: Engine = { first: (path) => opened(new LibSQLStore({ url: `file:${path}` })), second: inThread() }

/** What a server would be asked is asked of a file here, which has a write-ahead log as a server's. */
function through(path: string): (domain: Tried) => Promise<StoreDomains[Tried]> {
  const url = `file:${path}`
  const connected = createClient({ url })
  const logged = connected.execute('PRAGMA journal_mode = WAL')
  const open = opened(new LibSQLStore({ url, client: connected }))
  return async (domain) => {
    await logged
    return open(domain)
  }
}
const client: Engine = { first: through, second: through }

function unlocked(path: string): (domain: Tried) => Promise<StoreDomains[Tried]> {
  const { client: connected, counted } = unlockedClient(path)
  const open = opened(new LibSQLStore({ url: `file:${path}`, client: connected }))
  return async (domain) => counted(await open(domain))
}
const unlockedClients: Engine = { first: unlocked, second: unlocked }

const shared = newMeeting()
const unlockedFile: Engine = { first: inThread({ shared, thread: 0 }), second: inThread({ shared, thread: 1 }) }

interface Harness<Store> {
  store(): Promise<Store>
  another(store: Store): Promise<Store>
}

function harness<Domain extends Tried>({ first, second }: Engine, domain: Domain): Harness<StoreDomains[Domain]> {
  const paths = new Map<unknown, string>()
  return {
    async store() {
      const path = join(folder, `${files++}.db`)
      const store = await first(path)(domain)
      paths.set(store, path)
      await store.open()
      return store as StoreDomains[Domain]
    },
    async another(store) {
      const other = await second(paths.get(store) ?? '')(domain)
      await other.open()
      return other as StoreDomains[Domain]
    },
  }
}

interface Case {
  name: string
  run(engine: Engine): Promise<void>
}

interface CaseOf<Domain extends Tried> {
  name: string
  run(harness: Harness<StoreDomains[Domain]>): Promise<void>
}

function casesOf<Domain extends Tried>(domain: Domain, cases: ReadonlyArray<CaseOf<Domain>>): Case[] {
  return cases.map(({ name, run }) => ({ name, run: (engine) => run(harness(engine, domain)) }))
}

const twoWriters = [
  ...casesOf('memory', storeWriterConformance),
  ...casesOf('notifications', notificationWriterConformance),
  ...casesOf('schedules', scheduleWriterConformance),
  ...casesOf('subscriptions', subscriptionWriterConformance),
]
/** Each of these calls is one statement, which is atomic by itself, or has the result of a serial order also without a lock. */
const rightWithoutLocks = [
  '[R1.6] a thread that is deleted while a signal is sent to it is gone with all of it, or new with that signal alone',
  '[R1.2] [R5.4] [R1.6] concurrent heartbeats are stored, and no thread of a live process is listed as orphaned or claimed',
  '[R1.2] [R5.4] [R1.6] a process that returns during a takeover keeps its lease or is fenced',
  '[R11.1] [R1.1] [R1.6] a thread that is deleted and created again during a commit rejects the commits of its former run',
  '[N4.1] [R1.6] a watcher that reads while both write sees every record',
  '[E1.3] [R1.6] a subscription that both make is one row with the metadata of both',
  '[E1.1] [R1.6] a delivery that both record is recorded, and neither call fails',
]

/** Without the ids: a store without locks proves no promise. */
function unproved<One extends { name: string }>(cases: readonly One[]): One[] {
  return cases.map((one) => ({ ...one, name: one.name.replaceAll(/\[[A-Z]\d+\.\d+\] /g, '') }))
}

const needsLocks = twoWriters.filter(({ name }) => !rightWithoutLocks.includes(name))
const needsNone = twoWriters.filter(({ name }) => rightWithoutLocks.includes(name))

describe('two writers', () => {
  it.each(twoWriters)('of a file: $name', ({ run }) => expect(run(file)).resolves.toBeUndefined())
  it.each(twoWriters)('through a client: $name', ({ run }) => expect(run(client)).resolves.toBeUndefined())

  it('do not exist for a database in memory: the cases fail as not applicable', async () => {
    const alone = { store: async () => new LibSQLStore({ url: ':memory:' }) }
    for (const { run } of storeWriterConformance) {
      // @ts-expect-error -- the type rejects a harness without `another` too.
      await expect(run(alone)).rejects.toMatchObject({ cause: { message: expect.stringContaining('not applicable') } })
    }
  })
})

describe('a store that reads before it locks', () => {
  describe('with one writer', () => {
    let locksAgain: () => void
    beforeAll(() => {
      locksAgain = takeNoLocks()
    })
    afterAll(() => locksAgain())
    const alone = { store: harness(file, 'memory').store }
    it.each(unproved(storeConformance))('passes: $name', ({ run }) => expect(run(alone)).resolves.toBeUndefined())
  })

  it.each(unproved(twoWriters))('of a file fails with two writers: $name', async ({ run }) => {
    await expect(run(unlockedFile)).rejects.toThrow(/seed/)
  })
  it.each(unproved(needsLocks))('through a client fails with two writers: $name', async ({ run }) => {
    await expect(run(unlockedClients)).rejects.toThrow(/seed/)
  })
  it('names each case that needs no lock as it is named', () => expect(needsNone).toHaveLength(rightWithoutLocks.length))
  it.each(unproved(needsNone))('through a client needs no lock for this: $name', async ({ run }) => {
    await expect(run(unlockedClients)).resolves.toBeUndefined()
  })
})
