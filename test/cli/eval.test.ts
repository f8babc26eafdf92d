import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, it } from 'vitest'
import { heed } from './heed-process.ts'
import { project } from './project.ts'

const scorers = pathToFileURL(join(import.meta.dirname, '../../src/scorers/index.ts')).href

function evalFile(minimum: number): string {
  return `
import { createScorer } from '${scorers}'
const length = createScorer({ id: 'length', description: 'd' }).generateScore(({ run }) => run.output.length / 10)
const target = (text: string) => {
  if (text === 'bad') throw new Error('no answer')
  return text.repeat(Number(process.env.TIMES ?? 1))
}
export const evals = {
  short: { target, data: [{ id: 'a', input: 'aa' }, { id: 'b', input: 'bbbb' }], scorers: [{ scorer: length, threshold: ${minimum} }] },
  failing: { target, data: [{ input: 'bad' }, { input: 'good' }], scorers: [length] },
}
`
}

it('[C7.1] heed eval prints scores, stores the result, compares it with the last one, and ends with 5 where a threshold is missed', async () => {
  const { folder } = project({ 'evals.ts': evalFile(0.5) })
  const first = await heed(['eval', '--only', 'short'], { cwd: folder })
  expect(first).toEqual({ code: 5, errors: '', output: 'short: failed (2 cases)\n  length  0.300  wanted at least 0.5: missed\n' })
  expect(JSON.parse(readFileSync(join(folder, '.heed/evals/short.json'), 'utf8'))).toMatchObject({ scores: { length: expect.closeTo(0.3) as number } })
  const second = await heed(['eval', '--only', 'short'], { cwd: folder, env: { TIMES: '2' } })
  expect(second).toEqual({
    code: 0, errors: '',
    output: 'short: passed (2 cases)\n  length  0.600  +0.300 since the last run (2 higher, 0 lower, p 0.50)  wanted at least 0.5: ok\n',
  })
})

it('[C7.1] lists a case that failed, as text and as JSON', async () => {
  const { folder } = project({ 'more.ts': evalFile(0) })
  const ended = await heed(['eval', 'more.ts', '--only', 'failing', '--results', 'out'], { cwd: folder })
  expect(ended).toEqual({ code: 5, errors: '', output: 'failing: failed (2 cases, 1 failed)\n  length  0.400\n  failed 1: target: no answer\n' })
  expect(existsSync(join(folder, 'out/failing.json'))).toBe(true)
  const { code, output } = await heed(['eval', 'more.ts', '--json', '--concurrency', '2'], { cwd: folder })
  expect(code).toBe(5)
  expect(output.trim().split('\n').map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { type: 'eval', name: 'short', verdict: 'passed' }, { type: 'eval', name: 'failing', verdict: 'failed', summary: { failedItems: 1 } },
  ])
})

it('[C7.2] heed eval refuses what it cannot run, by name', async () => {
  const { folder } = project({ 'evals.ts': evalFile(0), 'none.ts': 'export const a = 1' })
  const [unknown, none, count] = await Promise.all([
    heed(['eval', '--only', 'shrot'], { cwd: folder }), heed(['eval', 'none.ts'], { cwd: folder }), heed(['eval', '--concurrency', 'x'], { cwd: folder }),
  ])
  expect(unknown).toMatchObject({ code: 2, errors: expect.stringContaining("there is no evaluation 'shrot'") as string })
  expect(none).toMatchObject({ code: 1, errors: expect.stringContaining('exports no evaluations') as string })
  expect(count).toMatchObject({ code: 2, errors: expect.stringContaining('--concurrency') as string })
})

it('[C7.3] heed eval --junit writes the results as JUnit XML: what failed, what was missed, and texts that XML would read otherwise', async () => {
  const { folder } = project({ 'evals.ts': evalFile(0.5).replace("throw new Error('no answer')", "throw new Error('no <b>answer</b> & \\u0007\\nmore')") })
  expect(await heed(['eval', '--junit', 'out/eval.xml'], { cwd: folder })).toMatchObject({ code: 5 })
  expect(readFileSync(join(folder, 'out/eval.xml'), 'utf8')).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="heed eval">
  <testsuite name="short" tests="3" failures="1" errors="0">
    <testcase classname="short" name="a"/>
    <testcase classname="short" name="b"/>
    <testcase classname="short" name="mean of length">
      <failure message="0.30000000000000004, wanted at least 0.5"/>
    </testcase>
  </testsuite>
  <testsuite name="failing" tests="2" failures="0" errors="1">
    <testcase classname="failing" name="1">
      <error message="target: no &lt;b&gt;answer&lt;/b&gt; &amp; &#10;more"/>
    </testcase>
    <testcase classname="failing" name="2"/>
  </testsuite>
</testsuites>
`)
})
