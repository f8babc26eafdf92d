import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { busConformance, type BusHarness } from './conformance.ts'
import { LibSQLBus } from './libsql/bus.ts'
import { Exchange } from './libsql/exchange.ts'
import type { Bus } from './contract.ts'
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

/** Each seat has a connection of its own, as in processes of their own. */
const apart: BusHarness = {
  async bus() {
    const path = join(folder, `${count++}.db-bus`)
    return (): Bus => ({
      async join(member, listener) {
        const exchange = new Exchange(path)
        await exchange.add(member, listener)
        return {
          get company() {
            return exchange.company
          },
          say: (message, to) => exchange.say(member, message, to),
          settle: () => exchange.settle(),
          listen: () => exchange.listen(),
          leave: () => exchange.close(),
        }
      },
    })
  },
}

describe('every bus', () => {
  it.each(busConformance)('in a process: $name', ({ run }) => expect(run(local)).resolves.toBeUndefined())
  it.each(busConformance)('beside a file, in a process: $name', ({ run }) => expect(run(oneProcess)).resolves.toBeUndefined())
  it.each(busConformance)('beside a file, apart: $name', ({ run }) => expect(run(apart)).resolves.toBeUndefined())
})
