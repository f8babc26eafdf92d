import { afterAll, describe, expect, it, vi } from 'vitest'
import type { StoreDomains } from '../../src/store/contract/storage.ts'
import { Transaction } from '../../src/store/postgres/transaction.ts'
import { twoWriters, type Engine, type Tried } from '../store/two-writers.ts'
import { noPostgres, whyNoPostgres } from './server.ts'
import { newPlace } from './stores.ts'

const places = new Map<string, ReturnType<typeof newPlace>>()

/** The path of a file names a database here. */
const open = (path: string) => {
  const place = places.get(path) ?? newPlace()
  places.set(path, place)
  return async (domain: Tried) => (await (await place).open().getStore(domain)) as StoreDomains[Tried]
}
const postgres: Engine = { first: open, second: open }

describe.skipIf(noPostgres)(`two writers on PostgreSQL${whyNoPostgres}`, () => {
  it.each(twoWriters)('$name', ({ run }) => expect(run(postgres)).resolves.toBeUndefined())
})

describe.skipIf(noPostgres)(`a build that takes no locks${whyNoPostgres}`, () => {
  afterAll(() => vi.restoreAllMocks())

  it('fails with two writers', async () => {
    const { execute } = Transaction.prototype
    vi.spyOn(Transaction.prototype, 'execute').mockImplementation(function (this: Transaction, trip) {
      const statements = trip.statements.map((one) => (one.kind === 'lock' ? { ...one, sql: 'SELECT 1', args: [] } : one))
      return execute.call(this, { ...trip, statements })
    })
    let failed: string | undefined
    for (const { name, run } of twoWriters) {
      await run(postgres).catch(() => (failed = name))
      if (failed !== undefined) break
    }
    expect(failed).toBeDefined()
  })
})
