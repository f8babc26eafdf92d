import { describe, expect, it } from 'vitest'
import type { StoreDomains } from '../../src/store/contract/storage.ts'
import type { ThreadStore } from '../../src/store/contract/threads.ts'
import type { PostgresStore } from '../../src/store/postgres/index.ts'
import {
  notificationConformance, scheduleConformance, storeConformance, subscriptionConformance, watchConformance, type StoreHarness,
} from '../../src/testing/index.ts'
import { noPostgres, whyNoPostgres } from './server.ts'
import { newPlace } from './stores.ts'

const places = new WeakMap<ThreadStore, Awaited<ReturnType<typeof newPlace>>>()

const harness: StoreHarness = {
  async store() {
    const place = await newPlace()
    const store = place.open()
    places.set(store, place)
    await store.open()
    return store
  },
  async reopen(store) {
    await store.close()
    const place = places.get(store) as Awaited<ReturnType<typeof newPlace>>
    const again: PostgresStore = place.open()
    places.set(again, place)
    await again.open()
    return again
  },
}

async function domain<Name extends keyof StoreDomains>(name: Name): Promise<NonNullable<StoreDomains[Name]>> {
  const store = (await newPlace()).open()
  await store.open()
  return (await store.getStore(name)) as NonNullable<StoreDomains[Name]>
}

describe.skipIf(noPostgres)(`on PostgreSQL${whyNoPostgres}`, () => {
  it.each(storeConformance)('$name', ({ run }) => expect(run(harness)).resolves.toBeUndefined())
  it.each(notificationConformance)('the inbox: $name', ({ run }) => expect(run({ store: () => domain('notifications') })).resolves.toBeUndefined())
  it.each(scheduleConformance)('schedules: $name', ({ run }) => expect(run({ store: () => domain('schedules') })).resolves.toBeUndefined())
  it.each(subscriptionConformance)('subscriptions: $name', ({ run }) => expect(run({ store: () => domain('subscriptions') })).resolves.toBeUndefined())
  it.each(watchConformance)('watches: $name', ({ run }) => expect(run({ store: () => domain('watches') })).resolves.toBeUndefined())
})
