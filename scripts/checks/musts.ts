import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CheckResult } from './report.ts'
import { isNode, lineOf, parse, sourceFiles, walk, type SourceFile, type SyntaxNode } from './source.ts'

/** Where tests are looked for. */
const testFolders = ['src', 'test', 'examples']

/**
 * Ties PROTOCOL.md to the tests: each `**[A1.1]** … MUST …` is cited as `[A1.1]` in the title of at least one test that runs, and
 * no test cites an id that isn't there.
 */
export function checkMusts(root: string): CheckResult {
  const path = join(root, 'PROTOCOL.md')
  if (!existsSync(path)) {
    return { summary: 'no PROTOCOL.md', problems: ['PROTOCOL.md is missing: it holds the promises that tests cite.'] }
  }
  const { lines, problems } = mustsIn(readFileSync(path, 'utf8'))
  const cited = new Set<string>()

  const tests = testFolders.flatMap((folder) => sourceFiles(root, folder)).filter((file) => holdsTests(file.path))
  let citations = 0
  for (const { id, at } of tests.flatMap(citationsIn)) {
    citations += 1
    cited.add(id)
    if (!lines.has(id)) problems.push(`${at} cites [${id}], which PROTOCOL.md does not define: correct the id, or write the MUST.`)
  }
  for (const [id, line] of lines) {
    if (!cited.has(id)) problems.push(`PROTOCOL.md:${line} [${id}] has no test: write one with [${id}] in its title.`)
  }
  return { summary: `${lines.size} MUSTs, ${citations} citations in ${tests.length} test files`, problems }
}

/** Tests, and the suites that the tests of every store or bus run. */
function holdsTests(path: string): boolean {
  return path.endsWith('.test.ts') || path.includes('/conformance/')
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

function citationsIn(file: SourceFile): Array<{ id: string; at: string }> {
  const found: Array<{ id: string; at: string }> = []
  for (const { node } of walk(parse(file))) {
    for (const [, id] of titleOf(titleIn(node, file)).matchAll(/\[([A-Z]+\d+(?:\.\d+)?)\]/g)) {
      if (id !== undefined) found.push({ id, at: `${file.path}:${lineOf(file, node)}` })
    }
  }
  return found
}

/** The title of a test; in a conformance suite, which is data so that any runner can run it, the `name` of a case. */
function titleIn(node: SyntaxNode, file: SourceFile): unknown {
  if (node.type === 'CallExpression') return runsTests(node.callee) && Array.isArray(node.arguments) ? node.arguments[0] : undefined
  if (node.type !== 'Property' || !file.path.includes('/conformance/')) return undefined
  return (node.key as SyntaxNode).name === 'name' ? node.value : undefined
}

/** `it`, `test`, `describe` and what hangs from them (`it.each(cases)`, `test.concurrent`), except what never runs. */
function runsTests(callee: unknown): boolean {
  if (!isNode(callee)) return false
  if (callee.type === 'Identifier') return ['it', 'test', 'describe'].includes(String(callee.name))
  if (callee.type === 'MemberExpression') {
    const property = (callee.property as SyntaxNode).name
    return property !== 'skip' && property !== 'todo' && runsTests(callee.object)
  }
  if (callee.type === 'CallExpression') return runsTests(callee.callee)
  return callee.type === 'TaggedTemplateExpression' && runsTests(callee.tag)
}

function titleOf(title: unknown): string {
  if (!isNode(title)) return ''
  if (title.type === 'Literal') return String(title.value)
  if (title.type !== 'TemplateLiteral' || !Array.isArray(title.quasis)) return ''
  return title.quasis.map((part: { value: { cooked: string } }) => part.value.cooked).join('…')
}
