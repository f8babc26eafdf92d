import type { StoreWriterCase } from '../case.ts'
import { acceptanceWriterCases } from './acceptance.ts'
import { runWriterCases } from './runs.ts'
import { threadWriterCases } from './threads.ts'

/**
 * What every `ThreadStore` guarantees when two connections write at the same time, as cases for any test runner. They need a harness
 * with `another`:
 *
 *     for (const { name, run } of storeWriterConformance) it(name, () => run(harness))
 */
export const storeWriterConformance: StoreWriterCase[] = [...acceptanceWriterCases, ...runWriterCases, ...threadWriterCases]
