import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'

const usage = `npm run test:matrix -- [--engines memory,file,client,postgres,postgres+redis] [--only <part of a path>] [--minutes 20]

Runs the suites of every domain on each engine, one engine after the other, and prints a table of the tests that passed, failed and were skipped.
A test of a suite that names its own store counts on every engine: it is the same everywhere. Each folder of suites is a process of its own, which is
ended after so many minutes and then counts as failed; a line says how long it took.`

const titles: Readonly<Record<string, string>> = {
  memory: '`:memory:`', file: 'file', client: '`@libsql/client`', postgres: 'PostgreSQL', 'postgres+redis': 'PostgreSQL + Redis',
}
const domains = ['threads', 'memory', 'notifications', 'schedules', 'subscriptions', 'recall', 'watches'] as const
type Domain = (typeof domains)[number]
const folders: Readonly<Record<string, Domain>> = {
  thread: 'threads', lanes: 'threads', memory: 'memory', inbox: 'notifications', schedule: 'schedules', sources: 'subscriptions',
}

interface Results {
  testResults: Array<{
    name: string; message?: string
    assertionResults: Array<{ status: string; fullName: string; title: string; failureMessages?: string[] }>
  }>
}

/** What runs on an engine, one after the other. */
const parts = ['test/matrix/', ...Object.keys(folders).map((folder) => `test/${folder}/`)]

const root = join(import.meta.dirname, '../..')
const { values } = parseArgs({ options: {
  engines: { type: 'string', default: Object.keys(titles).join(',') }, only: { type: 'string', default: '' }, help: { type: 'boolean', default: false },
  minutes: { type: 'string', default: '20' },
} })
const print = (line: string) => process.stdout.write(`${line}\n`)
if (values.help) print(usage)
else process.exitCode = await matrix(values.engines.split(','))

async function matrix(engines: readonly string[]): Promise<number> {
  const columns: Array<Map<Domain, { passed: number; failed: number; skipped: number }>> = []
  let failed = 0
  for (const engine of engines) {
    const began = performance.now()
    const testResults: Results['testResults'] = []
    for (const part of values.only === '' ? parts : [values.only]) {
      const since = performance.now()
      const results = await runOn(engine, part)
      const seconds = Math.round((performance.now() - since) / 1000)
      if (results) testResults.push(...results.testResults)
      else failed += 1
      const tests = results?.testResults.flatMap(({ assertionResults }) => assertionResults).length
      print(`${engine}: ${part}: ${tests === undefined ? `no results within ${values.minutes} minutes` : `${tests} tests`}, ${seconds} s`)
    }
    const counts = new Map(domains.map((domain) => [domain, { passed: 0, failed: 0, skipped: 0 }]))
    for (const { name, message, assertionResults } of testResults) {
      const path = relative(root, name)
      if (assertionResults.length === 0) {
        failed += 1
        print(`  failed on ${engine}: ${path}: ${message ?? ''}`)
      }
      for (const { status, title, fullName, failureMessages = [] } of assertionResults) {
        const count = counts.get(domainOf(path, title, fullName))
        if (!count) continue
        const kind = status === 'passed' ? 'passed' : status === 'failed' ? 'failed' : 'skipped'
        count[kind] += 1
        if (kind !== 'failed') continue
        failed += 1
        print(`  failed on ${engine}: ${path}: ${fullName}\n    ${(failureMessages[0] ?? '').split('\n', 1)[0] ?? ''}`)
      }
    }
    print(`${engine}: ${Math.round((performance.now() - began) / 1000)} s`)
    columns.push(counts)
  }
  print(`\n| passed / failed / skipped | ${engines.map((engine) => titles[engine] ?? engine).join(' | ')} |\n|---|${engines.map(() => '---|').join('')}`)
  for (const domain of domains) {
    const cells = columns.map((counts) => {
      const { passed = 0, failed: broken = 0, skipped = 0 } = counts.get(domain) ?? {}
      return `${passed} / ${broken} / ${skipped}`
    })
    print(`| ${domain} | ${cells.join(' | ')} |`)
  }
  return failed === 0 ? 0 : 1
}

/** Suites of conformance name their domain; tests of recall are found by their file. */
function domainOf(path: string, title: string, fullName: string): Domain {
  if (path.startsWith('test/matrix/')) return domains.find((domain) => title.startsWith(`${domain}: `)) ?? (fullName.startsWith('recall') ? 'recall' : 'threads')
  if (/recall|embed|vector|first-search|repeated-questions/.test(path)) return 'recall'
  return folders[path.split('/')[1] ?? ''] ?? 'threads'
}

/** Undefined if it had to be ended. */
async function runOn(engine: string, part: string): Promise<Results | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'heed-matrix-'))
  try {
    const output = join(folder, 'results.json')
    const vitest = join(root, 'node_modules/vitest/vitest.mjs')
    const args = [vitest, 'run', '--config', 'vitest.matrix.config.ts', '--reporter=json', `--outputFile=${output}`, part]
    // With the processes of its tests, a process group of its own.
    const child = spawn(process.execPath, args, {
      cwd: root, stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, HEED_STORES: engine }, detached: true,
    })
    const end = () => void (child.pid !== undefined && process.kill(-child.pid, 'SIGKILL'))
    const timer = setTimeout(end, Number(values.minutes) * 60_000)
    const stop = () => {
      end()
      process.exit(130)
    }
    process.once('SIGINT', stop)
    await once(child, 'close')
    process.removeListener('SIGINT', stop)
    clearTimeout(timer)
    return existsSync(output) ? (JSON.parse(readFileSync(output, 'utf8')) as Results) : undefined
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
