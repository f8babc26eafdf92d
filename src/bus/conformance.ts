import { busCases, type BusCase } from './conformance/cases.ts'

export type { BusCase, BusHarness } from './conformance/cases.ts'

/**
 * What every `Bus` promises, as cases for any test runner:
 *
 *     for (const { name, run } of busConformance) it(name, () => run(harness))
 */
export const busConformance: BusCase[] = [...busCases]
