import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url))

export default defineConfig({
  // Examples import the package by its name, as users do; tests run them on the sources.
  resolve: {
    alias: [
      { find: /^heed$/, replacement: source('index.ts') },
      { find: /^heed\/ai-sdk$/, replacement: source('client/ai-sdk/index.ts') },
      { find: /^heed\/client$/, replacement: source('client/index.ts') },
      { find: /^heed\/embed$/, replacement: source('embed/index.ts') },
      { find: /^heed\/libsql$/, replacement: source('store/sqlite/index.ts') },
      { find: /^heed\/processors$/, replacement: source('processors/index.ts') },
      { find: /^heed\/react$/, replacement: source('client/react/index.ts') },
      { find: /^heed\/server$/, replacement: source('http/server.ts') },
      { find: /^heed\/sources$/, replacement: source('sources/index.ts') },
      { find: /^heed\/testing$/, replacement: source('testing/index.ts') },
    ],
  },
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'examples/**/*.test.ts'],
    testTimeout: 30_000,
    // The check of MUSTs reads ids from titles, which the names of conformance cases are part of.
    taskTitleValueFormatTruncate: 0,
    // A third of the time is waiting for processes, browsers and disks: even one core has room for two.
    maxWorkers: 2,
    // What is waited for comes; a busy machine only makes it come later.
    expect: { poll: { timeout: 20_000 } },
    reporters: process.env.CI ? ['default', ['json', { outputFile: '.ci/vitest.json' }]] : ['default'],
  },
})
