import { isNode, lineOf, parse, walk, type SourceFile, type SyntaxNode } from './source.ts'

const globals = new Set(['process', 'setTimeout', 'setInterval', 'setImmediate', 'fetch', 'console'])
const members = new Set(['Date.now', 'Math.random', 'performance.now', 'crypto.randomUUID', 'crypto.getRandomValues'])

/** Where a file reads the time, rolls dice, or reaches for the process it runs in. Comments and strings don't count. */
export function impurities(file: SourceFile): Array<{ line: number; what: string }> {
  const found: Array<{ line: number; what: string }> = []
  for (const { node, parent, field } of walk(parse(file))) {
    const what = impurity(node, parent, field)
    if (what) found.push({ line: lineOf(file, node), what })
  }
  return found
}

function impurity(node: SyntaxNode, parent: SyntaxNode | undefined, field: string | undefined): string | undefined {
  if (node.type === 'MemberExpression') {
    const name = `${nameOf(node.object)}.${nameOf(node.property)}`
    return members.has(name) ? `${name}()` : undefined
  }
  if (node.type === 'NewExpression' && nameOf(node.callee) === 'Date') {
    return Array.isArray(node.arguments) && node.arguments.length === 0 ? 'new Date()' : undefined
  }
  if (node.type !== 'Identifier' || !globals.has(nameOf(node) ?? '')) return undefined
  const isName = (field === 'property' || field === 'key') && parent?.computed !== true
  return isName ? undefined : nameOf(node)
}

function nameOf(node: unknown): string | undefined {
  return isNode(node) && typeof node.name === 'string' ? node.name : undefined
}
