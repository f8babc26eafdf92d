import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { domains, domainsIn, engines, suites, titles, type Domain, type Engine, type Suite } from './cells.ts'
import type { SavedResult } from './saved.ts'
import type { Count } from './suite.ts'

interface Cell extends Count {
  engine: Engine
  domain: Domain
  /** The suites that have tests of the domain, and no result. */
  missing: Suite[]
}

export function cells(results: readonly SavedResult[]): Cell[] {
  return engines.flatMap((engine) => domains.map((domain) => {
    const found = suites.filter((suite) => domainsIn(suite).includes(domain))
      .map((suite) => ({ suite, result: results.find((one) => one.engine === engine && one.suite === suite) }))
    const counts = found.map(({ result }) => result?.counts[domain])
    const sum = (kind: keyof Count) => counts.reduce((total, count) => total + (count?.[kind] ?? 0), 0)
    const missing = found.filter(({ result }) => result === undefined || result.unknown !== undefined).map(({ suite }) => suite)
    return { engine, domain, passed: sum('passed'), failed: sum('failed'), skipped: sum('skipped'), missing }
  }))
}

/** A row a domain, a column an engine. */
export function table(results: readonly SavedResult[]): string {
  const all = cells(results)
  const shown = (domain: Domain) => engines.map((engine) => {
    const cell = all.find((one) => one.engine === engine && one.domain === domain)
    if (!cell || (cell.missing.length > 0 && cell.passed + cell.failed + cell.skipped === 0)) return 'no result'
    const counts = `${cell.passed} / ${cell.failed} / ${cell.skipped}`
    return cell.missing.length > 0 ? `${counts}, without ${cell.missing.join(', ')}` : counts
  })
  return grid(['passed / failed / skipped', ...engines.map((engine) => titles[engine])], domains.map((domain) => [domain, ...shown(domain)]))
}

function times(results: readonly SavedResult[]): string {
  const rows = suites.map((suite) => [suite, ...engines.map((engine) => {
    const result = results.find((one) => one.engine === engine && one.suite === suite)
    if (!result) return ''
    return result.unknown ?? `${result.seconds} s`
  })])
  return grid(['suite', ...engines.map((engine) => titles[engine])], rows)
}

function grid(head: readonly string[], rows: ReadonlyArray<readonly string[]>): string {
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
}

/** Equal reasons once, with the engines. */
function reasons(lines: ReadonlyArray<{ text: string; engine: Engine }>): string {
  const byText = Map.groupBy(lines, ({ text }) => text)
  return [...byText].map(([text, of]) => `- ${[...new Set(of.map(({ engine }) => titles[engine]))].join(', ')}: ${text}`).join('\n')
}

const heading = '## The suites on each engine'

/** Replaces the section of the page. Returns what was done. */
export async function writePage(root: string, results: readonly SavedResult[]): Promise<string> {
  const page = join(root, 'docs/reliability.md')
  const text = await readFile(page, 'utf8')
  const begin = text.indexOf(`${heading}\n`)
  if (begin < 0) throw new Error(`${page} has no section "${heading}".`)
  const next = text.indexOf('\n## ', begin + heading.length)
  const end = next < 0 ? text.length : next + 1
  await writeFile(page, `${text.slice(0, begin)}${heading}\n\n${section(results)}\n\n${text.slice(end)}`)
  return `docs/reliability.md has the table.`
}

function section(results: readonly SavedResult[]): string {
  const dates = [...new Set(results.map(({ at }) => at))].toSorted()
  const commits = [...Map.groupBy(results, ({ version }) => version)]
    .map(([version, of]) => ({ version, count: of.length, names: of.map(({ suite, engine }) => `${suite} on ${titles[engine]}`).join(', ') }))
    .toSorted((one, other) => other.count - one.count)
  const [most, ...others] = commits
  const failures = results.flatMap(({ engine, failures: failed }) => failed.map(({ test, why }) => ({ engine, text: `${plain(test)}: ${plain(why)}` })))
  const unknown = results.flatMap(({ engine, suite, unknown: why }) => (why === undefined ? [] : [{ engine, text: `${suite}: ${why}` }]))
  const missing = engines.flatMap((engine) => suites.filter((suite) => !results.some((one) => one.engine === engine && one.suite === suite))
    .map((suite) => `${suite} on ${titles[engine]}`))
  const skipped = results.flatMap(({ engine, skipped: titled }) => titled.map((test) => ({ engine, text: plain(test) })))
  return [
    `\`npm run test:matrix\` runs the suites of every domain on each engine, and writes this section with \`--write\`. A store in memory has one process: where a
suite has several, it runs on a file there. A test that names its own store is the same in every column.`,
    `The last run, ${dates.length < 2 ? `on ${dates[0] ?? ''}` : `from ${dates[0] ?? ''} to ${dates.at(-1) ?? ''}`}, of commit ${most?.version ?? ''}\
${others.map(({ version, names }) => `; of ${version}: ${names}`).join('')}:`,
    table(results),
    ...(failures.length > 0 ? [`Failed:\n\n${reasons(failures)}`] : ['No test failed.']),
    ...(missing.length > 0 ? [`Not run yet: ${missing.join(', ')}.`] : []),
    ...(unknown.length > 0 ? [`Without a result:\n\n${reasons(unknown)}`] : []),
    ...(skipped.length > 0 ? [`Skipped:\n\n${reasons(skipped)}`] : []),
    `How long each took, with two workers on a machine that did other work too:`,
    times(results),
  ].join('\n\n')
}

function plain(text: string): string {
  return text.replaceAll(/[|<>]/g, ' ').replaceAll(/\s+/g, ' ').trim()
}
