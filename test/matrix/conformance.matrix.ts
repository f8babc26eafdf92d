import { describe, expect, it } from 'vitest'
import type { StoreDomains } from '../../src/store/contract/storage.ts'
import type { ThreadStore } from '../../src/store/contract/threads.ts'
import type { SqlStore } from '../../src/store/sql/store.ts'
import { notificationConformance, scheduleConformance, storeConformance, subscriptionConformance, watchConformance, type StoreHarness } from '../../src/testing/index.ts'
import { recallSuite } from '../recall/conformance/suite.ts'
import { kept } from '../memory/kept.ts'
import { sharedPlaceKinds, type Place } from '../thread/places.ts'

// The conformance suites on the engine that HEED_STORES names. The titles begin with the domain, by which the matrix counts.

const [{ make, name }] = sharedPlaceKinds()
const places = new WeakMap<ThreadStore, Place>()

async function openAt(place: Place): Promise<ThreadStore> {
  const store = kept(place.store())
  places.set(store, place)
  await store.open()
  return store
}

const harness: StoreHarness = {
  store: () => openAt(make()),
  // A database in memory ends with its store.
  ...(name !== 'in memory' && {
    async reopen(store: ThreadStore) {
      await store.close()
      return openAt(places.get(store) ?? make())
    },
  }),
}

async function domain<Name extends keyof StoreDomains>(of: Name): Promise<NonNullable<StoreDomains[Name]>> {
  const store = await openAt(make())
  return (await (store as SqlStore).getStore(of)) as NonNullable<StoreDomains[Name]>
}

describe(`on ${name}`, () => {
  it.each(storeConformance)('threads: $name', ({ run }) => expect(run(harness)).resolves.toBeUndefined())
  it.each(notificationConformance)('notifications: $name', ({ run }) => expect(run({ store: () => domain('notifications') })).resolves.toBeUndefined())
  it.each(scheduleConformance)('schedules: $name', ({ run }) => expect(run({ store: () => domain('schedules') })).resolves.toBeUndefined())
  it.each(subscriptionConformance)('subscriptions: $name', ({ run }) => expect(run({ store: () => domain('subscriptions') })).resolves.toBeUndefined())
  it.each(watchConformance)('watches: $name', ({ run }) => expect(run({ store: () => domain('watches') })).resolves.toBeUndefined())
})

recallSuite(`on ${name}`, () => {
  const place = make()
  return { open: () => kept(place.store()) as SqlStore, outlivesStores: true, many: 1_200 }
})
