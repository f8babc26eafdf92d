import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CheckResult } from './report.ts'
import { isNode, lineOf, parse, sourceFiles, walk, type SourceFile, type SyntaxNode } from './source.ts'
import { citation, readResults, resultsPath, type TestResults } from './test-results.ts'

/** Where tests are looked for. */
const testFolders = ['src', 'test', 'examples']

interface MustsOptions {
  /**
   * Whether each MUST needs a test that passed in the run whose results are at `resultsPath`. Otherwise only a MUST needs one whose
   * tests are all conditional.
   */
  needsResults?: boolean
}

/**
 * Ties PROTOCOL.md to the tests: each `**[A1.1]** … MUST …` is cited as `[A1.1]` in the title of at least one test that runs, and
 * no test cites an id that isn't defined. A skipped test proves nothing.
 */
export function checkMusts(root: string, { needsResults = false }: MustsOptions = {}): CheckResult {
  const path = join(root, 'PROTOCOL.md')
  if (!existsSync(path)) {
    return { summary: 'no PROTOCOL.md', problems: ['PROTOCOL.md is missing: it holds the promises that tests cite.'] }
  }
  const { lines, problems } = mustsIn(readFileSync(path, 'utf8'))
  const tests = testFolders.flatMap((folder) => sourceFiles(root, folder)).filter((file) => holdsTests(file.path))
  const citations = tests.flatMap(citationsIn)
  for (const { id, at } of citations) {
    if (!lines.has(id)) problems.push(`${at} cites [${id}], which PROTOCOL.md does not define: correct the id, or write the MUST.`)
  }
  const results = readResults(root)
  if (needsResults && !results) problems.push(`${resultsPath} is missing: without the results of a test run no MUST is proved.`)

  for (const [id, line] of lines) {
    const citing = citations.filter((citation) => citation.id === id)
    const at = `PROTOCOL.md:${line} [${id}]`
    if (citing.length === 0) problems.push(`${at} has no test: write one with [${id}] in its title.`)
    else if (results?.passed.has(id)) continue
    else if (results && (needsResults || citing.every(({ conditional }) => conditional))) problems.push(`${at} is unproved: ${whyUnproved(results, id)}`)
    else if (citing.every(({ conditional }) => conditional)) {
      problems.push(`${at} is cited by conditional tests only, and there is no ${resultsPath}: \`CI=true npm test\` writes it.`)
    }
  }
  const proved = results && needsResults ? `, ${[...lines.keys()].filter((id) => results.passed.has(id)).length} proved` : ''
  const skipped = results && needsResults && results.skippedTests > 0 ? `; citing tests that were skipped: ${results.skippedTests}` : ''
  return { summary: `${lines.size} MUSTs${proved}, ${citations.length} citations in ${tests.length} test files${skipped}`, problems }
}

function whyUnproved({ skipped, failed }: TestResults, id: string): string {
  const reasons = [
    ...(failed.get(id) ?? []).map((name) => `failed: ${name}`),
    ...(skipped.get(id) ?? []).map((name) => `skipped: ${name}`),
  ]
  return reasons.length === 0 ? `${resultsPath} has no test that cites it.` : `no test passed in this run; ${reasons.join('; ')}`
}

/** Tests, campaigns, and the suites that the tests of every store or bus run. */
function holdsTests(path: string): boolean {
  return path.endsWith('.test.ts') || path.endsWith('.campaign.ts') || path.includes('/conformance/')
}

/** Ids by the line that defines them. A definition runs to the next one or to an empty line. */
function mustsIn(protocol: string): { lines: Map<string, number>; problems: string[] } {
  const lines = new Map<string, number>()
  const problems: string[] = []
  const text = protocol.split('\n')
  for (const [index, line] of text.entries()) {
    const id = definedIn(line)
    if (id === undefined) continue
    const first = lines.get(id)
    if (first === undefined) lines.set(id, index + 1)
    else problems.push(`PROTOCOL.md:${index + 1} defines [${id}] again (first on line ${first}): give one of them a new id.`)

    const next = text.findIndex((other, at) => at > index && (other.trim() === '' || definedIn(other) !== undefined))
    const body = text.slice(index, next === -1 ? undefined : next).join(' ')
    if (!/\bMUST\b/.test(body)) problems.push(`PROTOCOL.md:${index + 1} [${id}] says no MUST: only promises have an id.`)
  }
  return { lines, problems }
}

function definedIn(line: string): string | undefined {
  return /^\s*(?:[-*]\s+)?\*\*\[([A-Z]+\d+(?:\.\d+)?)\]\*\*/.exec(line)?.[1]
}

interface Citation {
  id: string
  at: string
  /** Whether the test, or a suite around it, may be skipped. */
  conditional: boolean
}

function citationsIn(file: SourceFile): Citation[] {
  const nodes = [...walk(parse(file))].map(({ node }) => node)
  const suites = nodes.filter((node) => modifiersOf(node.callee) !== undefined)
  const suitesAround = (node: SyntaxNode) => suites.filter((suite) => suite.start <= node.start && node.end <= suite.end)
  const skipping = new Set(nodes.filter(callsSkip).map((call) => suitesAround(call).at(-1)))
  const found: Citation[] = []
  for (const node of nodes) {
    const ids = [...titleOf(titleIn(node, file)).matchAll(citation)].flatMap(([, id]) => id ?? [])
    if (ids.length === 0) continue
    const around = suitesAround(node)
    if (around.some(neverRuns)) continue
    const conditional = around.some(isConditional) || skipping.has(node)
    for (const id of ids) found.push({ id, at: `${file.path}:${lineOf(file, node)}`, conditional })
  }
  return found
}

/** The title of a test; in a conformance suite, which is data so that any runner can run it, the `name` of a case. */
function titleIn(node: SyntaxNode, file: SourceFile): unknown {
  if (node.type === 'CallExpression') return modifiersOf(node.callee) && Array.isArray(node.arguments) ? node.arguments[0] : undefined
  if (node.type !== 'Property' || !file.path.includes('/conformance/')) return undefined
  return (node.key as SyntaxNode).name === 'name' ? node.value : undefined
}

/** `['each']` of `it.each(cases)`: the names behind `it`, `test` or `describe`. Undefined for any other callee. */
function modifiersOf(callee: unknown): string[] | undefined {
  if (!isNode(callee)) return undefined
  if (callee.type === 'Identifier') return ['it', 'test', 'describe'].includes(String(callee.name)) ? [] : undefined
  if (callee.type === 'MemberExpression') return modifiersOf(callee.object)?.concat(String((callee.property as SyntaxNode).name))
  if (callee.type === 'CallExpression') return modifiersOf(callee.callee)
  return callee.type === 'TaggedTemplateExpression' ? modifiersOf(callee.tag) : undefined
}

function neverRuns({ callee }: SyntaxNode): boolean {
  return (modifiersOf(callee) ?? []).some((name) => name === 'skip' || name === 'todo')
}

function isConditional({ callee }: SyntaxNode): boolean {
  return (modifiersOf(callee) ?? []).some((name) => name === 'skipIf' || name === 'runIf')
}

/** `skip()` of a test's context, called while the test runs. */
function callsSkip(node: SyntaxNode): boolean {
  if (node.type !== 'CallExpression' || modifiersOf(node.callee) !== undefined) return false
  const callee = node.callee as SyntaxNode
  return (callee.type === 'MemberExpression' ? (callee.property as SyntaxNode) : callee).name === 'skip'
}

function titleOf(title: unknown): string {
  if (!isNode(title)) return ''
  if (title.type === 'Literal') return String(title.value)
  if (title.type !== 'TemplateLiteral' || !Array.isArray(title.quasis)) return ''
  return title.quasis.map((part: { value: { cooked: string } }) => part.value.cooked).join('…')
}
