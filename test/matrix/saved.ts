import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Engine, Suite } from './cells.ts'
import type { SuiteResult } from './suite.ts'

const run = promisify(execFile)

export interface SavedResult extends SuiteResult {
  engine: Engine
  suite: Suite
  /** The commit, with `+` where files differed from it. */
  version: string
  at: string
}

/** The last result of each suite on each engine, a file each. */
export class Saved {
  readonly version: string
  readonly #folder: string
  readonly #results: Map<string, SavedResult>

  private constructor(version: string, folder: string, results: readonly SavedResult[]) {
    this.version = version
    this.#folder = folder
    this.#results = new Map(results.map((one) => [`${one.suite} ${one.engine}`, one]))
  }

  static async open(root: string): Promise<Saved> {
    const folder = join(root, 'node_modules/.cache/heed-matrix')
    await mkdir(folder, { recursive: true })
    const names = (await readdir(folder)).filter((name) => name.endsWith('.json'))
    const results = await Promise.all(names.map(async (name) => JSON.parse(await readFile(join(folder, name), 'utf8')) as SavedResult))
    const git = async (...args: string[]) => (await run('git', args, { cwd: root })).stdout.trim()
    const changed = await git('status', '--porcelain', '--', 'src', 'test', 'package-lock.json')
    return new Saved(`${(await git('rev-parse', 'HEAD')).slice(0, 8)}${changed === '' ? '' : '+'}`, folder, results)
  }

  get all(): SavedResult[] {
    return [...this.#results.values()]
  }

  /** With all tests and no failure, of this commit or of any. Of files that differ from their commit nothing is known later. */
  isDone(engine: Engine, suite: Suite, ofAnyCommit: boolean): boolean {
    const known = this.#results.get(`${suite} ${engine}`)
    if (known === undefined || known.unknown !== undefined || known.failures.length > 0 || known.version.endsWith('+')) return false
    return ofAnyCommit || known.version === this.version
  }

  async keep(result: SavedResult): Promise<void> {
    this.#results.set(`${result.suite} ${result.engine}`, result)
    const path = join(this.#folder, `${result.suite}.${result.engine}.json`)
    await writeFile(`${path}.part`, JSON.stringify(result, undefined, 2))
    await rename(`${path}.part`, path)
  }
}
