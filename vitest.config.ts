import { existsSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { entriesOf } from './scripts/checks/entries.ts'
import { LongestFirst } from './test/longest-first.ts'

// Examples import the package by its name, as users do; tests run them on the sources.
const root = import.meta.dirname
const alias = entriesOf(root).map(({ specifier, source }) => ({ find: new RegExp(`^${specifier}$`), replacement: join(root, source) }))

/**
 * Files that replace a module with `vi.mock`, which does not replace what an earlier file of the same worker loaded, that count the calls
 * of a class, which the other files of a worker call too, or that stop the timers of a worker, which what earlier files left may wait for.
 */
const mocking = [
  'src/run/loop/loop.test.ts', 'src/store/sql/plans.test.ts', 'src/store/sql/recent-rows.test.ts', 'src/store/sql/recent-threads.test.ts',
  'src/testing/virtual-clock.test.ts', 'test/cluster/alone.test.ts',
]

/** The tests open thousands of databases: in memory where the machine has a file system for it, so that none waits for a disk. */
const folder = join(hasRoom('/dev/shm') ? '/dev/shm' : tmpdir(), `heed-tests-${process.pid}`)

export default defineConfig({
  resolve: { alias },
  test: {
    // The limits only end a test that hangs; a busy machine delays the event that a test waits for.
    testTimeout: 300_000,
    hookTimeout: 180_000,
    // The check of MUSTs reads ids from titles, which the names of conformance cases are part of.
    taskTitleValueFormatTruncate: 0,
    // Half of the time is waiting for processes, browsers and leases: two cores have room for four.
    maxWorkers: 4,
    // Where options are taken away, many probes wait for what does not happen.
    expect: { poll: { timeout: process.env.HEED_EACH_OPTION === undefined ? 200_000 : 10_000, interval: 20 } },
    reporters: process.env.CI ? ['default', ['json', { outputFile: '.ci/vitest.json' }]] : ['default'],
    // TMPDIR is made and removed by `globalSetup`.
    // Child processes of the tests load the sources: without the cache each one strips the types of some 500 files first.
    env: { TMPDIR: folder, NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/heed-tests') },
    sequence: { sequencer: LongestFirst },
    globalSetup: 'test/global-setup.ts',
    setupFiles: 'test/setup.ts',
    projects: [
      {
        extends: true,
        // Loading the sources again for each file would take longer than most files' tests.
        test: { name: 'heed', isolate: false, include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'examples/**/*.test.ts'], exclude: mocking },
      },
      { extends: true, test: { name: 'mocking', include: mocking } },
    ],
  },
})

function hasRoom(path: string): boolean {
  if (!existsSync(path)) return false
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize > 2 ** 31
}
