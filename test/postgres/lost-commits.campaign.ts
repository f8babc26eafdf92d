import { beforeAll, describe, expect, it } from 'vitest'
import { lostCommitCases } from './lost-commits.ts'
import { noPostgres, whyNoPostgres } from './server.ts'
import { useSharedServer } from './stores.ts'

beforeAll(useSharedServer)

// HEED_LOST_COMMITS=1 runs all of them.
const every = Number(process.env.HEED_LOST_COMMITS ?? 12)

describe.skipIf(noPostgres)(`connections that are lost during commits${whyNoPostgres}`, () => {
  it.each(lostCommitCases.filter((_, index) => index % every === every - 1))('[Q2.1] leave each write done once, and its result true: $name', async ({ name, run }) => {
    await expect(run(name.length + every)).resolves.toBeDefined()
  }, 60_000)
})
