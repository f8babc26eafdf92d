import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { browserEntries, entriesOf, expectedExports, workersOf } from '../../scripts/checks/entries.ts'
import { sourceFiles } from '../../scripts/checks/source.ts'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

describe('the entry points of the package', () => {
  it('are those of "paths" in tsconfig.json: package.json exports them and nothing else', () => {
    const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: unknown }
    expect(exports).toEqual(expectedExports(entriesOf(root)))
  })

  it('name browser entries that are there', () => {
    expect(entriesOf(root).map(({ name }) => name)).toEqual(expect.arrayContaining([...browserEntries]))
  })

  it('and every file that is opened as a thread is a worker that the build knows', () => {
    const workers = new Set(workersOf(root).map(({ name }) => name))
    const opened = sourceFiles(root, 'src').filter(({ path }) => !path.endsWith('.test.ts')).flatMap(({ text }) =>
      [...text.matchAll(/(?:openWorker|siblingOf|WorkerCalls)\(import\.meta\.url, '([^']+)'/g)].map(([, name]) => name))
    expect(opened.length).toBeGreaterThan(0)
    expect(opened.filter((name) => !workers.has(name ?? ''))).toEqual([])
    expect([...workers].toSorted()).toEqual([...new Set(opened)].toSorted())
  })
})
