import { onTestFinished } from 'vitest'
import { Chance } from '../../src/store/conformance/fixture.ts'
import type { StoreDomains } from '../../src/store/contract/storage.ts'
import type { ThreadStore } from '../../src/store/contract/threads.ts'
import type { PostgresStore } from '../../src/store/postgres/index.ts'
import { nameOf } from '../../src/store/postgres/transaction.ts'
import {
  notificationConformance, scheduleConformance, storeConformance, subscriptionConformance, watchConformance, type StoreHarness,
} from '../../src/testing/index.ts'
import { proxyTo } from './proxy.ts'
import { newPlace, sharedURL } from './stores.ts'

/** A case of a conformance suite on a store that loses the connection during its commits. Returns how many were lost. */
interface LostCommitCase {
  name: string
  run(seed: number): Promise<{ before: number; after: number }>
}

const commit = nameOf('COMMIT')

/** Of three commits, one is lost before it reaches the server, one after it did, and one is answered. */
async function losing(seed: number): Promise<{ harness: StoreHarness; lost: { before: number; after: number } }> {
  const chance = new Chance(seed)
  const lost = { before: 0, after: 0 }
  const server = new URL(sharedURL())
  const proxy = await proxyTo(Number(server.port))
  onTestFinished(() => proxy.close())
  proxy.harm = (bytes) => {
    const fate = bytes.includes(commit) ? chance.below(3) : 0
    if (fate === 0) return 'pass'
    lost[fate === 1 ? 'before' : 'after'] += 1
    return fate === 1 ? 'cut before' : 'cut after'
  }
  const connectionString = Object.assign(new URL(server), { port: String(proxy.port) }).href
  const places = new WeakMap<ThreadStore, Awaited<ReturnType<typeof newPlace>>>()
  const opened = async (place: Awaited<ReturnType<typeof newPlace>>) => {
    const store: PostgresStore = place.open({ connectionString })
    places.set(store, place)
    await store.open()
    return store
  }
  const harness: StoreHarness = {
    store: async () => opened(await newPlace()),
    async reopen(store) {
      await store.close()
      return opened(places.get(store) as Awaited<ReturnType<typeof newPlace>>)
    },
  }
  return { harness, lost }
}

interface DomainCase<Domain> {
  name: string
  run(harness: { store(): Promise<Domain> }): Promise<void>
}

function ofDomain<Name extends keyof StoreDomains>(name: Name, cases: ReadonlyArray<DomainCase<NonNullable<StoreDomains[Name]>>>): LostCommitCase[] {
  return cases.map((one) => ({
    name: `${name}: ${one.name}`,
    async run(seed) {
      const { harness, lost } = await losing(seed)
      await one.run({ store: async () => (await ((await harness.store()) as PostgresStore).getStore(name)) as NonNullable<StoreDomains[Name]> })
      return lost
    },
  }))
}

/** Every kind of write is in one of these. */
export const lostCommitCases: LostCommitCase[] = [
  ...storeConformance.map(({ name, run }): LostCommitCase => ({
    name,
    async run(seed) {
      const { harness, lost } = await losing(seed)
      await run(harness)
      return lost
    },
  })),
  ...ofDomain('notifications', notificationConformance),
  ...ofDomain('schedules', scheduleConformance),
  ...ofDomain('subscriptions', subscriptionConformance),
  ...ofDomain('watches', watchConformance),
]
