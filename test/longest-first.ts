import { readFileSync } from 'node:fs'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Where tests start processes and browsers, wait for leases, or run cases that are listed elsewhere: the size of a file says little there. */
const longFolders = /\/test\/(?:browser|cluster|crash|http|openapi|package|schedule|store|watch)\/|\/src\/(?:recall|store)\//
const starts = /\b(?:spawn|fork|execFile)\b/

/** The longest campaigns, longest first. */
const longest = [
  'crash/kills', 'cli/create', 'crash/mutants/decisions', 'postgres/conformance', 'store/client', 'cli/dev', 'cluster/cluster', 'browser/threads',
  'cli/reloads', 'crash/mutants/faults', 'redis/processes', 'chaos/chaos',
].map((name) => `/test/${name}.campaign.ts`)

function placeOf(moduleId: string): number {
  const place = longest.findIndex((name) => moduleId.endsWith(name))
  return place < 0 ? longest.length : place
}

/** Begins with the files that take longest, so that none of them is left alone at the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isLong = new Set(sorted.filter(({ moduleId }) => (
      placeOf(moduleId) < longest.length || longFolders.test(moduleId) || starts.test(readFileSync(moduleId, 'utf8'))
    )))
    const first = [...isLong].toSorted((one, other) => placeOf(one.moduleId) - placeOf(other.moduleId))
    return [...first, ...sorted.filter((file) => !isLong.has(file))]
  }
}
