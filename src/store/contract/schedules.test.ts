import { afterEach, describe, expect, it } from 'vitest'
import { scheduleConformance, type ScheduleHarness } from '../conformance/schedules.ts'
import { LibSQLStore } from '../sqlite/index.ts'
import { InMemoryStore } from '../sqlite/in-memory.ts'
import type { ScheduleStore } from './schedules.ts'

const opened: Array<{ close(): Promise<void> }> = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()))
})

function harness(make: () => LibSQLStore | InMemoryStore): ScheduleHarness {
  return {
    async store() {
      const store = make()
      opened.push(store)
      return (await store.getStore('schedules')) as ScheduleStore
    },
  }
}

const libsql = harness(() => new LibSQLStore({ url: ':memory:' }))
const memory = harness(() => new InMemoryStore())

describe('every store of schedules', () => {
  it.each(scheduleConformance)('libSQL: $name', ({ run }) => expect(run(libsql)).resolves.toBeUndefined())
  it.each(scheduleConformance)('in memory: $name', ({ run }) => expect(run(memory)).resolves.toBeUndefined())
})
