import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { busConformance, type BusHarness } from './conformance.ts'
import type { Bus } from './contract.ts'
import { connectTo, LibSQLBus } from './libsql/bus.ts'
import { Hub } from './libsql/hub.ts'
import { LocalBus } from './local.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-bus-'))
afterAll(() => rmSync(folder, { recursive: true }))
let count = 0

const local: BusHarness = {
  async bus() {
    const bus = new LocalBus()
    return () => bus
  },
}

const oneProcess: BusHarness = {
  async bus() {
    const path = join(folder, `${count++}.db`)
    return () => new LibSQLBus(async () => path)
  },
}

/** Each connection has a hub of its own, as in a process of its own. */
const processes: BusHarness = {
  async bus() {
    const path = join(folder, `${count++}.db-bus`)
    return (): Bus => ({ connect: (options) => connectTo(new Hub(path), options, () => {}) })
  },
}

/** A mutant of a bus that ignores the namespace. */
function withoutNamespaces(harness: BusHarness): BusHarness {
  return {
    async bus() {
      const access = await harness.bus()
      return () => ({ connect: (options) => access().connect({ ...options, namespace: 'the only one' }) })
    },
  }
}

describe('every bus', () => {
  it.each(busConformance)('in a process: $name', ({ run }) => expect(run(local)).resolves.toBeUndefined())
  it.each(busConformance)('beside a file, in a process: $name', ({ run }) => expect(run(oneProcess)).resolves.toBeUndefined())
  it.each(busConformance)('beside a file, in several processes: $name', ({ run }) => expect(run(processes)).resolves.toBeUndefined())
})

const kinds = [
  { name: 'in a process', harness: local },
  { name: 'beside a file', harness: oneProcess },
  { name: 'beside a file, in several processes', harness: processes },
]
const [about, others] = [true, false].map((wanted) => busConformance.filter(({ name }) => name.startsWith('[B1.8]') === wanted))

describe.each(kinds)('a bus that ignores the namespace, $name', ({ harness }) => {
  it.each(about ?? [])('fails: $name', async ({ run }) => {
    await expect(run(withoutNamespaces(harness))).rejects.toMatchObject({ code: 'ERR_ASSERTION' })
  })

  it.each(others ?? [])('passes: $name', ({ run }) => expect(run(withoutNamespaces(harness))).resolves.toBeUndefined())
})
