import { configureGlobal } from 'fast-check'

/**
 * Properties are tested with the same values in each run, so that a failure repeats. `npm run test:properties` sets how many other values
 * each property is tested with.
 */
const runs = process.env.HEED_PROPERTY_RUNS
configureGlobal(runs === undefined ? { seed: 42 } : { numRuns: Number(runs) })
