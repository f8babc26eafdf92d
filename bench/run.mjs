import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { cases } from './cases/index.mjs'
import { judge } from './harness/judge.mjs'
import { measure } from './harness/measure.mjs'
import { prepare } from './harness/prepare.mjs'
import { progress, table } from './harness/print.mjs'
import { record } from './harness/record.mjs'

const usage = `npm run bench -- [--only name]... [--rounds n] [--quick]

  --only name   one benchmark; may be repeated. Names: ${cases.map((known) => known.name).join(', ')}
  --rounds n    so many rounds instead of those of the benchmark; the page says how many
  --quick       fewer rounds and runs: a first impression, nothing is written`

const { values } = parseArgs({
  options: { only: { type: 'string', multiple: true }, rounds: { type: 'string' }, quick: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
})
if (values.help) {
  console.log(usage)
  process.exit()
}
const unknown = values.only?.find((name) => !cases.some((known) => known.name === name))
if (unknown !== undefined) {
  console.error(`There is no benchmark '${unknown}'.\n\n${usage}`)
  process.exit(2)
}

const rounds = Number(values.rounds ?? NaN)
if (values.rounds !== undefined && !(Number.isInteger(rounds) && rounds > 0)) {
  console.error(`--rounds is a whole number above 0.\n\n${usage}`)
  process.exit(2)
}
const chosen = cases.filter((known) => values.only?.includes(known.name) ?? true)
const bench = import.meta.dirname
const work = mkdtempSync(join(tmpdir(), 'heed-bench-'))
// PostgreSQL refuses to run as root: as another user it must reach its data below this folder.
chmodSync(work, 0o711)
const remove = () => rmSync(work, { recursive: true, force: true })
process.once('SIGINT', () => {
  remove()
  process.exit(130)
})
const finished = []
try {
  const heedProject = prepare({ root: join(bench, '..'), bench, work })
  for (const benchmark of chosen) {
    progress(`${benchmark.name}: ${benchmark.title}`)
    const samples = await measure(benchmark, { folder: join(bench, 'cases'), heedProject, work, quick: values.quick, rounds: values.rounds && rounds })
    const result = judge(benchmark, samples)
    console.log(table(result))
    finished.push(result)
    if (!values.quick) record(result, { results: join(bench, 'results', 'latest.json'), page: join(bench, '..', 'docs', 'benchmarks.md') }, cases)
  }
} finally {
  remove()
}
const missed = finished.filter((result) => result.comparisons.some((comparison) => comparison.ok === false))
if (missed.length > 0) {
  console.error(`Missed: ${missed.map((result) => result.name).join(', ')}`)
  process.exitCode = 1
}
