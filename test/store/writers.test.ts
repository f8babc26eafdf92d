import { describe, expect, it } from 'vitest'
import { LibSQLStore } from '../../src/store/sqlite/store.ts'
import { storeWriterConformance } from '../../src/testing/index.ts'
import { file, twoWriters } from './two-writers.ts'

describe('two writers', () => {
  it.each(twoWriters)('of a file: $name', ({ run }) => expect(run(file)).resolves.toBeUndefined())

  it('do not exist for a database in memory: the cases fail as not applicable', async () => {
    const alone = { store: async () => new LibSQLStore({ url: ':memory:' }) }
    for (const { run } of storeWriterConformance) {
      // @ts-expect-error -- the type rejects a harness without `another` too.
      await expect(run(alone)).rejects.toMatchObject({ cause: { message: expect.stringContaining('not applicable') } })
    }
  })
})
