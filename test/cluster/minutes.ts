import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { putOnPage } from '../crash/page.ts'
import { buildProgram } from '../crash/program.ts'
import { together, type PeaceResult } from './peace.ts'

const usage = `npm run test:cluster -- [--minutes 2] [--processes 2,4] [--seed 1] [--page docs/reliability.md] [--no-page] [--keep folder]

Lets several processes work on one file for minutes, all sending, running, deciding and watching, and proves that no thread was ever run by two, that
what one accepts enters the run of another at its next boundary, and that all watchers saw the same log. At the end the page is written.`

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '2' },
    processes: { type: 'string', default: '2,4' },
    seed: { type: 'string', default: '1' },
    page: { type: 'string', default: 'docs/reliability.md' },
    'no-page': { type: 'boolean', default: false },
    keep: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

/** p99 from acceptance to the boundary, beyond the step's own time. */
const mostMs = 20

const say = (line: string) => process.stdout.write(`${line}\n`)
if (values.help) say(usage)
else {
  const work = values.keep ?? mkdtempSync(join(tmpdir(), 'heed-minutes-'))
  try {
    mkdirSync(work, { recursive: true })
    const program = await buildProgram(work)
    const results: PeaceResult[] = []
    for (const count of values.processes.split(',').map(Number)) {
      const result = await together({ program, folder: join(work, `${count}`), count, ms: Number(values.minutes) * 60_000, seed: Number(values.seed) })
      results.push(result)
      say(rowOf(result))
      for (const { promise, what } of result.violations.slice(0, 10)) say(`  ${promise}: ${what}`)
    }
    if (!values['no-page']) putOnPage(values.page, 'npm run test:cluster', table(results))
    process.exitCode = results.every(({ violations, beyond }) => violations.length === 0 && beyond.p99 < mostMs) ? 0 : 1
  } finally {
    if (values.keep === undefined) rmSync(work, { recursive: true, force: true })
  }
}

function table(results: readonly PeaceResult[]): string {
  return `\`npm run test:cluster -- --minutes ${values.minutes} --seed ${values.seed}\`: processes on one file that all send, run, decide and subscribe.

| processes | seconds | sends | runs | broken guarantees | sent in one process, entered a run of another | accepted → entered, p50, p99 | of that, beyond the step's own time, p50, p99 | published → received in another process, p50, p99 |
|---|---|---|---|---|---|---|---|---|
${results.map(rowOf).join('\n')}
`
}

function rowOf({ count, seconds, sent, runs, violations, elsewhere, entered, beyond, heard }: PeaceResult): string {
  const times = [entered, beyond, heard].map(({ p50, p99 }) => `${p50.toFixed(1)} ms, ${p99.toFixed(1)} ms`)
  return `| ${[count, Math.round(seconds), sent, runs, violations.length, elsewhere, ...times].join(' | ')} |`
}
