import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'examples/**/*.test.ts'],
    testTimeout: 30_000,
    reporters: process.env.CI ? ['default', ['json', { outputFile: '.ci/vitest.json' }]] : ['default'],
  },
})
