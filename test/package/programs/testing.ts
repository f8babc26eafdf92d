import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Agent, InMemoryStore } from 'heed'
import { WebhookSignals } from 'heed/sources'
import {
  notificationConformance, providerServer, scheduleConformance, scriptedModel, storeConformance, subscriptionConformance, virtualClock,
} from 'heed/testing'

const domain = async <T>(store: Promise<T | undefined | null>): Promise<T> => {
  const found = await store
  assert.ok(found)
  return found
}

describe('InMemoryStore keeps what every store keeps', () => {
  for (const { name, run } of storeConformance) test(name, () => run({ store: async () => new InMemoryStore() }))
  const notifications = { store: () => domain(new InMemoryStore().getStore('notifications')) }
  for (const { name, run } of notificationConformance) test(name, () => run(notifications))
  const schedules = { store: () => domain(new InMemoryStore().getStore('schedules')) }
  for (const { name, run } of scheduleConformance) test(name, () => run(schedules))
  const subscriptions = { store: () => domain(new InMemoryStore().getStore('subscriptions')) }
  for (const { name, run } of subscriptionConformance) test(name, () => run(subscriptions))
})

test('a source is refused by name where its secret is too short', () => {
  assert.throws(() => new WebhookSignals({ id: 'shop', secret: 'short' }), { code: 'invalid_argument' })
})

test('scripted models, a server of a provider and a clock for tests', async () => {
  const clock = virtualClock()
  const before = clock.now()
  await clock.advance(5)
  assert.equal(clock.now() - before, 5)
  assert.equal((await new Agent({ id: 'guide', model: scriptedModel(['Hello.']) }).generate('Hi.')).text, 'Hello.')
  const server = await providerServer({ script: ['Hello.'] })
  assert.match(server.url, /^http:/)
  await server.close()
})
