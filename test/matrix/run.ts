import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { domains, engines, suites, type Engine, type Suite } from './cells.ts'
import { cells, table, writePage } from './page.ts'
import { Saved } from './saved.ts'
import { runSuite } from './suite.ts'

const usage = `npm run test:matrix -- [--engines ${engines.join(',')}] [--suites ${suites.join(',')}]
  [--workers 2] [--minutes 20] [--keep] [--fresh] [--write]

Runs the suites of every domain on each engine and prints a table of the tests that passed, failed and were skipped. A test of a suite that names its own
store counts on every engine: it is the same everywhere. Each suite on each engine is a process of its own, which is ended after so many minutes and then has
no result. What a suite found is saved at once: a second call goes on with those that have no result of this commit, or, with --keep, of any commit. A suite with
a failure runs again. --fresh runs all that are named, and --write puts the table of all that is saved into docs/reliability.md.`

const { values } = parseArgs({ options: {
  engines: { type: 'string', default: engines.join(',') }, suites: { type: 'string', default: suites.join(',') },
  workers: { type: 'string', default: '2' }, minutes: { type: 'string', default: '20' },
  keep: { type: 'boolean', default: false }, fresh: { type: 'boolean', default: false }, write: { type: 'boolean', default: false }, help: { type: 'boolean', default: false },
} })
const root = join(import.meta.dirname, '../..')
const print = (line: string) => process.stdout.write(`${line}\n`)
if (values.help) print(usage)
else process.exitCode = await matrix(named(values.engines, engines), named(values.suites, suites))

function named<Name extends string>(given: string, known: readonly Name[]): Name[] {
  return given.split(',').map((one) => {
    const name = known.find((other) => other === one)
    if (name === undefined) throw new Error(`${one} is none of ${known.join(', ')}.`)
    return name
  })
}

async function matrix(onEngines: readonly Engine[], ofSuites: readonly Suite[]): Promise<number> {
  const saved = await Saved.open(root)
  if (saved.version.endsWith('+') && !values.keep) print('Files differ from the commit: nothing is taken from an earlier call.')
  const left = onEngines.flatMap((engine) => ofSuites.map((suite) => ({ engine, suite })))
    .filter(({ engine, suite }) => values.fresh || !saved.isDone(engine, suite, values.keep))
  for (const [nth, { engine, suite }] of left.entries()) {
    print(`${nth + 1} of ${left.length}: ${suite} on ${engine}`)
    const result = await runSuite(root, engine, suite, { minutes: Number(values.minutes), workers: values.workers })
    await saved.keep({ ...result, engine, suite, version: saved.version, at: new Date().toISOString().slice(0, 10) })
    const counts = domains.map((domain) => result.counts[domain]).filter((count) => count !== undefined)
    const sum = (kind: 'passed' | 'failed' | 'skipped') => counts.reduce((total, count) => total + count[kind], 0)
    print(`  ${result.unknown ?? `${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped`}, ${result.seconds} s`)
    for (const test of result.slowest) print(`  slow: ${test}`)
    for (const { test, why } of result.failures) print(`  failed: ${test}\n    ${why}`)
  }
  print(`\n${table(saved.all)}`)
  if (values.write) print(await writePage(root, saved.all))
  const wrong = cells(saved.all).filter(({ engine, failed, missing }) => onEngines.includes(engine) && (failed > 0 || missing.some((suite) => ofSuites.includes(suite))))
  for (const { engine, domain, failed, missing } of wrong) print(`${domain} on ${engine}: ${failed} failed${missing.length > 0 ? `, no result of ${missing.join(', ')}` : ''}`)
  return wrong.length === 0 ? 0 : 1
}
