import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'vite'

/** A node of the syntax tree, as the walkers here need it. */
export interface SyntaxNode {
  type: string
  start: number
  end: number
  [field: string]: unknown
}

export interface SourceFile {
  /** Path below the root, with forward slashes. */
  path: string
  text: string
}

/** The TypeScript files below `folder` of `root`, in a stable order. A folder that isn't there has none. */
export function sourceFiles(root: string, folder: string): SourceFile[] {
  let names: string[]
  try {
    names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
  return names
    .filter((name) => /\.tsx?$/.test(name) && !name.split(/[\\/]/).includes('node_modules'))
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
    .toSorted()
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
}

export function isTest(path: string): boolean {
  return /\.test(-d)?\.ts$/.test(path)
}

export function languageOf(path: string): 'ts' | 'tsx' {
  return path.endsWith('.tsx') ? 'tsx' : 'ts'
}

/** The syntax tree of a file. One that doesn't parse is an error: a check that skips what it can't read proves nothing. */
export function parse(file: SourceFile): SyntaxNode {
  const { program, errors } = parseSync(file.path, file.text, { lang: languageOf(file.path), sourceType: 'module' })
  const first = errors[0]
  if (first) throw new Error(`${file.path} does not parse: ${first.message}`)
  return program as unknown as SyntaxNode
}

interface Visit {
  node: SyntaxNode
  parent?: SyntaxNode
  field?: string
}

/** Every node below and including `node`, with its parent and the field it hangs from. */
export function* walk(node: SyntaxNode, parent?: SyntaxNode, field?: string): Generator<Visit> {
  yield { node, parent, field }
  for (const [name, value] of Object.entries(node)) {
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) yield* walk(child, node, name)
  }
}

export function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

export function lineOf(file: SourceFile, node: SyntaxNode): number {
  return file.text.slice(0, node.start).split('\n').length
}
