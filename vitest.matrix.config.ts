import { defineConfig } from 'vitest/config'
import base from './vitest.config.ts'

/** The suites that run on every engine: `npm run test:matrix` runs them on one after the other. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    projects: undefined,
    isolate: false,
    include: ['test/matrix/*.matrix.ts', 'test/{thread,lanes,memory,inbox,schedule,sources}/**/*.test.ts'],
  },
})
