import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { entriesOf } from './scripts/checks/entries.ts'

// Examples import the package by its name, as users do; tests run them on the sources.
const root = import.meta.dirname
const alias = entriesOf(root).map(({ specifier, source }) => ({ find: new RegExp(`^${specifier}$`), replacement: join(root, source) }))

export default defineConfig({
  resolve: { alias },
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
