import { readFileSync } from 'node:fs'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Where tests start processes and browsers, wait for leases, or run cases that are listed elsewhere: the size of a file says little there. */
const longFolders = /\/test\/(?:browser|cluster|crash|http|openapi|package|schedule|store|watch)\/|\/src\/(?:recall|store)\//
const starts = /\b(?:spawn|fork|execFile)\b/

/** Begins with the files that take longest, so that none of them is left alone at the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isLong = new Set(sorted.filter(({ moduleId }) => longFolders.test(moduleId) || starts.test(readFileSync(moduleId, 'utf8'))))
    return [...isLong, ...sorted.filter((file) => !isLong.has(file))]
  }
}
