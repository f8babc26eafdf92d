import { existsSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'

/** Where a test run in CI writes its results (`vitest.config.ts`). */
export const resultsPath = '.ci/vitest.json'

/** The same for the campaigns (`vitest.campaigns.config.ts`), and for those of Studio on the package (`vitest.package.config.ts`). */
const otherPaths = ['.ci/campaigns.json', '.ci/studio.json']

/** How the title of a test cites a MUST. */
export const citation = /\[([A-Z]+\d+(?:\.\d+)?)\]/g

/** The tests of a run that cite MUSTs. */
export interface TestResults {
  passed: Set<string>
  /** By the MUST: the tests that did not run. Their titles say why. */
  skipped: Map<string, string[]>
  failed: Map<string, string[]>
  skippedTests: number
}

interface VitestReport {
  testResults: Array<{ name: string; assertionResults: Array<{ fullName: string; status: string }> }>
}

/** The results of the last test run at `root`; undefined when there is none. */
export function readResults(root: string): TestResults | undefined {
  if (!existsSync(join(root, resultsPath))) return undefined
  const results: TestResults = { passed: new Set(), skipped: new Map(), failed: new Map(), skippedTests: 0 }
  const reports = [resultsPath, ...otherPaths].map((path) => join(root, path)).filter((path) => existsSync(path))
  const files = reports.flatMap((path) => (JSON.parse(readFileSync(path, 'utf8')) as VitestReport).testResults)
  for (const file of files) {
    for (const { fullName, status } of file.assertionResults) {
      const ids = new Set(Array.from(fullName.matchAll(citation), ([, id]) => id ?? ''))
      if (ids.size === 0) continue
      if (status !== 'passed' && status !== 'failed') results.skippedTests += 1
      for (const id of ids) add(results, id, status, `${relative(root, resolve(root, file.name))} > ${fullName.trim()}`)
    }
  }
  return results
}

function add(results: TestResults, id: string, status: string, name: string): void {
  if (status === 'passed') {
    results.passed.add(id)
    return
  }
  const list = status === 'failed' ? results.failed : results.skipped
  list.set(id, [...(list.get(id) ?? []), name])
}
