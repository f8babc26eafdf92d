import { afterEach, describe, expect, it } from 'vitest'
import { notificationConformance, type NotificationHarness } from '../conformance/notifications/notifications.ts'
import { NotificationsLibSQL } from '../sqlite/index.ts'
import { InMemoryStore } from '../sqlite/in-memory.ts'
import type { NotificationStore } from './notifications.ts'

const opened: Array<{ close(): Promise<void> }> = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()))
})

const libsql: NotificationHarness = {
  async store() {
    const store = new NotificationsLibSQL({ url: ':memory:' })
    opened.push(store)
    return store
  },
}
const memory: NotificationHarness = {
  async store() {
    const store = new InMemoryStore()
    opened.push(store)
    return (await store.getStore('notifications')) as NotificationStore
  },
}

describe('every inbox', () => {
  it.each(notificationConformance)('libSQL: $name', ({ run }) => expect(run(libsql)).resolves.toBeUndefined())
  it.each(notificationConformance)('in memory: $name', ({ run }) => expect(run(memory)).resolves.toBeUndefined())
})
