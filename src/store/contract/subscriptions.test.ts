import { afterEach, describe, expect, it } from 'vitest'
import { subscriptionConformance, type SubscriptionHarness } from '../conformance/subscriptions.ts'
import { LibSQLStore } from '../sqlite/index.ts'
import { InMemoryStore } from '../sqlite/in-memory.ts'
import type { SubscriptionStore } from './subscriptions.ts'

const opened: Array<{ close(): Promise<void> }> = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()))
})

function harness(make: () => LibSQLStore | InMemoryStore): SubscriptionHarness {
  return {
    async store() {
      const store = make()
      opened.push(store)
      return (await store.getStore('subscriptions')) as SubscriptionStore
    },
  }
}

const libsql = harness(() => new LibSQLStore({ url: ':memory:' }))
const memory = harness(() => new InMemoryStore())

describe('every store of subscriptions', () => {
  it.each(subscriptionConformance)('libSQL: $name', ({ run }) => expect(run(libsql)).resolves.toBeUndefined())
  it.each(subscriptionConformance)('in memory: $name', ({ run }) => expect(run(memory)).resolves.toBeUndefined())
})
