import { defineConfig } from 'vitest/config'
import base from './vitest.config.ts'

/**
 * Short campaigns: several processes or a browser under kills, stops and faults, random input, and builds that are broken on purpose.
 * `npm test` leaves them out.
 */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    projects: undefined,
    isolate: false,
    // Most of the time is waiting for leases and for processes that start.
    maxWorkers: 5,
    maxConcurrency: 2,
    include: ['test/**/*.campaign.ts'],
    reporters: process.env.CI ? ['default', ['json', { outputFile: '.ci/campaigns.json' }]] : ['default'],
  },
})
