import type { EvalResult, EvaluatedItem, EvaluatedTurn } from '../../scorers/index.ts'
import { describeThreshold } from './report.ts'

/** Results as JUnit XML: a suite for each evaluation, a test for each case, and one for each threshold and gate. */
export function junitReport(results: ReadonlyArray<readonly [name: string, result: EvalResult]>): string {
  const suites = results.map(([name, result]) => suite(name, result))
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="heed eval">\n${suites.join('\n')}\n</testsuites>\n`
}

function suite(name: string, { items, thresholds, gates }: EvalResult): string {
  const tests = [
    ...items.map((item) => test(name, nameOf(item), problemsOf(item), item.metrics?.durationMs)),
    ...[...thresholds, ...gates].map(({ scorerId, threshold, mean, passed }) => {
      const missed: Problem = ['failure', `${mean ?? 'none'}, wanted ${describeThreshold(threshold)}`]
      return test(name, `mean of ${scorerId}`, passed ? [] : [missed], undefined)
    }),
  ]
  const count = (kind: Problem[0]) => tests.filter(({ problems }) => problems.some(([one]) => one === kind)).length
  const head = `name="${escaped(name)}" tests="${tests.length}" failures="${count('failure')}" errors="${count('error')}"`
  return `  <testsuite ${head}>\n${tests.map(({ xml }) => xml).join('\n')}\n  </testsuite>`
}

function nameOf({ id, trial }: EvaluatedItem): string {
  return trial === 1 ? id : `${id} (trial ${trial})`
}

type Problem = [kind: 'error' | 'failure', message: string]

function problemsOf({ errors, turns = [] }: EvaluatedItem): Problem[] {
  return [...errorsOf(errors, ''), ...turns.flatMap((turn, index) => problemsOfTurn(turn, `turn ${index + 1}: `))]
}

function problemsOfTurn({ errors, missed }: EvaluatedTurn, of: string): Problem[] {
  return [...errorsOf(errors, of), ...missed.map((key): Problem => ['failure', `${of}${key}: missed`])]
}

function errorsOf(errors: EvaluatedItem['errors'], of: string): Problem[] {
  return Object.entries(errors).map(([what, { message }]) => ['error', `${of}${what}: ${message}`])
}

function test(suiteName: string, name: string, problems: Problem[], ms: number | undefined): { xml: string; problems: Problem[] } {
  const time = ms === undefined ? '' : ` time="${(ms / 1000).toFixed(3)}"`
  const head = `    <testcase classname="${escaped(suiteName)}" name="${escaped(name)}"${time}`
  if (problems.length === 0) return { xml: `${head}/>`, problems }
  const inner = problems.map(([kind, message]) => `      <${kind} message="${escaped(message)}"/>`).join('\n')
  return { xml: `${head}>\n${inner}\n    </testcase>`, problems }
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\n': '&#10;', '\t': '&#9;', '\r': '&#13;',
}

/** Text of an attribute. Characters that XML does not have are left out. */
function escaped(text: string): string {
  const allowed = text.toWellFormed().replaceAll(/[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]/g, '')
  return allowed.replaceAll(/[&<>"\n\t\r]/g, (character) => entities[character] as string)
}
