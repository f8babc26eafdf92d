import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LibSQLStore } from '../../src/store/sqlite/store.ts'
import type { StoreDomains } from '../../src/store/contract/storage.ts'
import { storeConformance } from '../../src/testing/index.ts'
import { newMeeting, takeNoLocks } from './no-locks.ts'
import { client, file, harness, inThread, opened, twoWriters, type Engine, type Tried } from './two-writers.ts'
import { unlockedClient } from './unlocked-client.ts'

function unlocked(path: string): (domain: Tried) => Promise<StoreDomains[Tried]> {
  const { client: connected, counted } = unlockedClient(path)
  const open = opened(new LibSQLStore({ url: `file:${path}`, client: connected }))
  return async (domain) => counted(await open(domain))
}
const unlockedClients: Engine = { first: unlocked, second: unlocked }

const shared = newMeeting()
const unlockedFile: Engine = { first: inThread({ shared, thread: 0 }), second: inThread({ shared, thread: 1 }) }

/** Each of these calls is one statement, which is atomic by itself, or has the result of a serial order also without a lock. */
const rightWithoutLocks = [
  '[R1.6] a thread that is deleted while a signal is sent to it is gone with all of it, or new with that signal alone',
  '[R1.2] [R5.4] [R1.6] concurrent heartbeats are stored, and no thread of a live process is listed as orphaned or claimed',
  '[R1.2] [R5.4] [R1.6] a process that returns during a takeover keeps its lease or is fenced',
  '[R11.1] [R1.1] [R1.6] a thread that is deleted and created again during a commit rejects the commits of its former run',
  '[N4.1] [R1.6] a watcher that reads while both write sees every record',
  '[E1.3] [R1.6] a subscription that both make is one row with the metadata of both',
  '[E1.1] [R1.6] a delivery that both record is recorded, and neither call fails',
  '[V3.13] [R1.6] two messages of a thread that are annotated at once are asked in their order',
]

/** Without the ids: a store without locks proves no promise. */
function unproved<One extends { name: string }>(cases: readonly One[]): One[] {
  return cases.map((one) => ({ ...one, name: one.name.replaceAll(/\[[A-Z]\d+\.\d+\] /g, '') }))
}

const needsLocks = twoWriters.filter(({ name }) => !rightWithoutLocks.includes(name))
const needsNone = twoWriters.filter(({ name }) => rightWithoutLocks.includes(name))

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

describe('two writers through a client', () => {
  it.each(twoWriters)('$name', ({ run }) => expect(run(client)).resolves.toBeUndefined())
})
