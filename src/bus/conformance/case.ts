import type { Bus } from '../contract.ts'

/** How the suite makes the bus that it checks. */
export interface BusHarness {
  /**
   * A new bus without connections. The function returns the bus; each call may return another access to it, as another process would have.
   */
  bus(): Promise<() => Bus>
}

/** Checks one promise. The ids in brackets are those of PROTOCOL.md. */
export interface BusCase {
  name: string
  run(harness: BusHarness): Promise<void>
}
