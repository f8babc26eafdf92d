import type { Bus } from '../contract.ts'

/** How the suite gets at the bus it tries. */
export interface BusHarness {
  /** A fresh one, with nobody on it. Seats on any of its answers hear each other; each may be another connection. */
  bus(): Promise<() => Bus>
}

/** One promise, tried. The ids in brackets are those of the protocol. */
export interface BusCase {
  name: string
  run(harness: BusHarness): Promise<void>
}
