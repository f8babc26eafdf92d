import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { domainOf, folderOf, type Domain, type Engine, type Suite } from './cells.ts'

export interface Count {
  passed: number
  failed: number
  skipped: number
}

/** What a suite found on an engine. */
export interface SuiteResult {
  counts: Partial<Record<Domain, Count>>
  /** `why` is the first line of `details`. */
  failures: Array<{ test: string; why: string; details: string }>
  /** The titles of tests that were skipped, which have the reason. */
  skipped: string[]
  /** The tests that took longest, with their seconds. */
  slowest: string[]
  seconds: number
  /** Why there are no counts. */
  unknown?: string
}

interface Report {
  testResults: Array<{
    name: string; message?: string
    assertionResults: Array<{ status: string; fullName: string; title: string; duration?: number | null; failureMessages?: string[] }>
  }>
}

/** Runs one suite in a process group of its own, which ends with it. */
export async function runSuite(root: string, engine: Engine, suite: Suite, { minutes, workers }: { minutes: number; workers: string }): Promise<SuiteResult> {
  const folder = mkdtempSync(join(tmpdir(), 'heed-matrix-'))
  const began = performance.now()
  try {
    const output = join(folder, 'results.json')
    const vitest = join(root, 'node_modules/vitest/vitest.mjs')
    const args = [
      vitest, 'run', '--config', 'vitest.matrix.config.ts', `--maxWorkers=${workers}`, '--reporter=json', `--outputFile=${output}`, folderOf(suite),
    ]
    const child = spawn(process.execPath, args, {
      cwd: root, stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, HEED_STORES: engine }, detached: true,
    })
    const end = () => void (child.pid !== undefined && process.kill(-child.pid, 'SIGKILL'))
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      end()
    }, minutes * 60_000)
    const stop = () => {
      end()
      process.exit(130)
    }
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop)
    const [code] = (await once(child, 'close')) as [number | null]
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.removeListener(signal, stop)
    clearTimeout(timer)
    const seconds = Math.round((performance.now() - began) / 1000)
    if (existsSync(output)) return { ...countsOf(root, JSON.parse(readFileSync(output, 'utf8')) as Report), seconds }
    const unknown = isLate ? `ended after ${minutes} minutes` : `the process ended with ${code} and without results`
    return { counts: {}, failures: [], skipped: [], slowest: [], seconds, unknown }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function countsOf(root: string, { testResults }: Report): Pick<SuiteResult, 'counts' | 'failures' | 'skipped' | 'slowest'> {
  const counts: SuiteResult['counts'] = {}
  const failures: SuiteResult['failures'] = []
  const skipped: string[] = []
  const took: Array<{ test: string; seconds: number }> = []
  const countOf = (domain: Domain) => (counts[domain] ??= { passed: 0, failed: 0, skipped: 0 })
  for (const { name, message = '', assertionResults } of testResults) {
    const path = relative(root, name)
    // A file that can't be loaded, or one whose hooks failed, has no tests.
    if (assertionResults.length === 0) {
      countOf(domainOf(path, '', '')).failed += 1
      failures.push({ test: path, why: firstLine(message), details: message })
    }
    for (const { status, title, fullName, duration, failureMessages = [] } of assertionResults) {
      took.push({ test: `${path}: ${fullName}`, seconds: Math.round((duration ?? 0) / 1000) })
      const kind = status === 'passed' ? 'passed' : status === 'failed' ? 'failed' : 'skipped'
      countOf(domainOf(path, title, fullName))[kind] += 1
      const [details = ''] = failureMessages
      if (kind === 'failed') failures.push({ test: `${path}: ${fullName}`, why: firstLine(details), details })
      if (kind === 'skipped') skipped.push(`${path}: ${fullName}`)
    }
  }
  const slowest = took.toSorted((one, other) => other.seconds - one.seconds).slice(0, 5).filter(({ seconds }) => seconds > 5)
  return { counts, failures, skipped, slowest: slowest.map(({ test, seconds }) => `${test}, ${seconds} s`) }
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? ''
}
