import { defineConfig } from 'vitest/config'
import base from './vitest.config.ts'

/** Short campaigns: many processes under faults, and builds that are broken on purpose. `npm test` leaves them out. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    projects: undefined,
    // Most of the time is waiting for leases and for processes that start.
    maxWorkers: 5,
    maxConcurrency: 2,
    include: ['test/**/*.campaign.ts'],
    reporters: process.env.CI ? ['default', ['json', { outputFile: '.ci/campaigns.json' }]] : ['default'],
  },
})
