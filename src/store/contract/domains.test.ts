import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { copyEmptyFile } from '../../../test/store/empty-database.ts'
import { notificationConformance } from '../conformance/notifications/notifications.ts'
import { scheduleConformance } from '../conformance/schedules.ts'
import { subscriptionConformance } from '../conformance/subscriptions.ts'
import { watchConformance } from '../conformance/watches.ts'
import { LibSQLStore } from '../sqlite/index.ts'
import type { StoreDomains } from './storage.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-domains-'))
let files = 0
const opened: LibSQLStore[] = []

afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

// A database in memory is the same store: all other tests run on it.
const engines = {
  'on a file': () => new LibSQLStore({ url: `file:${copyEmptyFile(join(folder, `${++files}.db`))}` }),
}

describe.each(Object.entries(engines))('the stores beside threads, %s', (_, open) => {
  async function store<Domain extends keyof StoreDomains>(domain: Domain): Promise<StoreDomains[Domain]> {
    const storage = open()
    opened.push(storage)
    return (await storage.getStore(domain)) as StoreDomains[Domain]
  }

  const notifications = { store: () => store('notifications') }
  it.each(notificationConformance)('notifications: $name', ({ run }) => expect(run(notifications)).resolves.toBeUndefined())

  const schedules = { store: () => store('schedules') }
  it.each(scheduleConformance)('schedules: $name', ({ run }) => expect(run(schedules)).resolves.toBeUndefined())

  const subscriptions = { store: () => store('subscriptions') }
  it.each(subscriptionConformance)('subscriptions: $name', ({ run }) => expect(run(subscriptions)).resolves.toBeUndefined())

  const watches = { store: () => store('watches') }
  it.each(watchConformance)('watches: $name', ({ run }) => expect(run(watches)).resolves.toBeUndefined())
})
