import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseSync } from 'vite'
import type { Entry } from './entries.ts'
import { isNode, walk, type SyntaxNode } from './source.ts'

/** One declaration of a `.d.ts` file: a name and its text, without comments and without paths of files. */
interface Declaration {
  name: string
  text: string
  /** Names of the package's own declarations that the text refers to. */
  refersTo: Target[]
}

/** A name in a file. */
interface Target {
  file: string
  name: string
}

/** A module of declarations: which names it declares, takes from other modules, and exports. */
interface Module {
  declarations: Map<string, SyntaxNode[]>
  imports: Map<string, Target>
  exports: Map<string, Target>
  /** Modules of which everything is exported. */
  stars: string[]
  text: string
  comments: Array<{ start: number; end: number }>
}

/** File name and content of each report. */
type ApiReport = Record<string, string>

const origin = 'Written by `npm run api` from the emitted declarations; comments and paths are left out.'
const heading = (title: string) => `// ${title}\n// ${origin}\n`

/**
 * The public surface as text: a report for each entry with the declarations it exports, and one with those that they refer to without
 * exporting them. A declaration is in one report; entries that export it too name it. File names are not part of the text, so that moving
 * a module changes nothing.
 */
export function apiReport(types: string, entries: readonly Entry[]): ApiReport {
  const program = new Declarations()
  const reports: ApiReport = {}
  const printed = new Map<string, string>()
  const pending: Target[] = []
  for (const { specifier, name, source } of entries) {
    const file = join(types, source.replace(/^src\//, '').replace(/\.ts$/, '.d.ts'))
    const texts: string[] = []
    for (const [exported, target] of [...program.exportsOf(file)].toSorted(([a], [b]) => compare(a, b))) {
      const key = keyOf(target)
      const first = printed.get(key)
      if (first !== undefined) {
        texts.push(`export ${exported}: see ${first}`)
        continue
      }
      printed.set(key, specifier)
      for (const declaration of program.declarationsOf(target)) {
        const label = declaration.name === exported ? '' : `// ${exported} is\n`
        texts.push(label + declaration.text)
        pending.push(...declaration.refersTo)
      }
    }
    reports[`${name}.d.txt`] = `${heading(specifier)}\n${texts.join('\n\n')}\n`
  }
  reports['unexported.d.txt'] = unexported(program, pending, printed)
  return reports
}

function unexported(program: Declarations, pending: Target[], printed: Map<string, string>): string {
  const texts: Array<[string, string]> = []
  for (let target = pending.pop(); target !== undefined; target = pending.pop()) {
    const key = keyOf(target)
    if (printed.has(key)) continue
    printed.set(key, '')
    for (const { name, text, refersTo } of program.declarationsOf(target)) {
      texts.push([name, text])
      pending.push(...refersTo)
    }
  }
  texts.sort(([a, one], [b, other]) => compare(a, b) || compare(one, other))
  const title = heading('Declarations that the exported ones refer to, and that no entry exports')
  return `${title}\n${texts.map(([, text]) => text).join('\n\n')}\n`
}

/** What differs between two reports, each with what to do about it. */
export function apiProblems(stored: ApiReport, current: ApiReport): string[] {
  const problems: string[] = []
  for (const name of [...new Set([...Object.keys(stored), ...Object.keys(current)])].toSorted()) {
    const [before, now] = [stored[name], current[name]]
    if (before === now) continue
    const lines = changedLines(before ?? '', now ?? '')
    problems.push(`api/${name} differs from the public surface. Run \`npm run api\` and commit it where the change is meant:\n${lines}`)
  }
  return problems
}

function changedLines(before: string, now: string): string {
  const [old, current] = [before.split('\n'), now.split('\n')]
  const [had, has] = [new Set(old), new Set(current)]
  const gone = old.filter((line) => !has.has(line)).map((line) => `- ${line}`)
  const added = current.filter((line) => !had.has(line)).map((line) => `+ ${line}`)
  return [...gone.slice(0, 20), ...added.slice(0, 20)].join('\n') || '(the order of lines)'
}

class Declarations {
  readonly #modules = new Map<string, Module>()

  /** Every name that a file exports, with the place of its declaration. */
  exportsOf(file: string): Map<string, Target> {
    const module = this.#module(file)
    const all = new Map<string, Target>()
    for (const star of module.stars) for (const [name, target] of this.exportsOf(star)) if (name !== 'default') all.set(name, target)
    for (const [name, target] of module.exports) all.set(name, this.#resolve(target))
    return all
  }

  declarationsOf({ file, name }: Target): Declaration[] {
    const module = this.#module(file)
    const nodes = module.declarations.get(name)
    if (!nodes) throw new Error(`${file} declares no ${name}.`)
    return nodes.map((node) => ({ name, text: textOf(module, node), refersTo: this.#references(file, module, node) }))
  }

  /** Follows imports and re-exports to the file that declares the name. */
  #resolve({ file, name }: Target): Target {
    const module = this.#module(file)
    if (module.declarations.has(name)) return { file, name }
    const next = module.imports.get(name) ?? module.exports.get(name)
    if (next && !(next.file === file && next.name === name)) return this.#resolve(next)
    for (const star of module.stars) {
      const found = this.exportsOf(star).get(name)
      if (found) return found
    }
    throw new Error(`${file} has no ${name}.`)
  }

  #references(file: string, module: Module, declaration: SyntaxNode): Target[] {
    const found: Target[] = []
    const at = (target: Target) => found.push(this.#resolve(target))
    for (const { node, parent, field } of walk(declaration)) {
      if (node.type === 'TSImportType') {
        const imported = importedType(node)
        const from = imported && pathOf(file, imported.from)
        if (from !== undefined && imported?.name !== undefined) at({ file: from, name: imported.name })
      }
      if (node.type !== 'Identifier' || (field === 'key' && parent?.computed !== true)) continue
      const name = node.name as string
      if (module.declarations.has(name)) at({ file, name })
      else if (module.imports.has(name)) at({ file, name })
    }
    return found
  }

  #module(file: string): Module {
    const known = this.#modules.get(file)
    if (known) return known
    const text = readFileSync(file, 'utf8')
    const { program, errors, comments } = parseSync(file, text, { lang: 'dts', sourceType: 'module' })
    if (errors[0]) throw new Error(`${file} does not parse: ${errors[0].message}`)
    const module: Module = { declarations: new Map(), imports: new Map(), exports: new Map(), stars: [], text, comments }
    this.#modules.set(file, module)
    for (const statement of program.body as unknown as SyntaxNode[]) readStatement(file, module, statement)
    return module
  }
}

function readStatement(file: string, module: Module, statement: SyntaxNode): void {
  const from = isNode(statement.source) ? pathOf(file, statement.source.value as string) : undefined
  const foreign = isNode(statement.source) && from === undefined
  if (statement.type === 'ImportDeclaration') {
    if (foreign) return
    for (const specifier of statement.specifiers as SyntaxNode[]) {
      if (specifier.type !== 'ImportSpecifier') throw new Error(`${file} imports a module as a whole, which the report can't follow.`)
      module.imports.set(nameOf(specifier.local), { file: from as string, name: nameOf(specifier.imported) })
    }
    return
  }
  if (statement.type === 'ExportAllDeclaration') {
    if (foreign || isNode(statement.exported)) throw new Error(`${file} exports all of another package, or under a name.`)
    module.stars.push(from as string)
    return
  }
  if (statement.type === 'ExportDefaultDeclaration') throw new Error(`${file} has a default export: entries export names.`)
  if (statement.type === 'ExportNamedDeclaration') {
    for (const specifier of statement.specifiers as SyntaxNode[]) {
      if (foreign) throw new Error(`${file} exports ${nameOf(specifier.exported)} of another package.`)
      module.exports.set(nameOf(specifier.exported), { file: from ?? file, name: nameOf(specifier.local) })
    }
    if (!isNode(statement.declaration)) return
    for (const name of declare(module, statement.declaration, statement)) module.exports.set(name, { file, name })
    return
  }
  declare(module, statement, statement)
}

/** Keeps a declaration under each name it gives. */
function declare(module: Module, declaration: SyntaxNode, statement: SyntaxNode): string[] {
  const names = declaration.type === 'VariableDeclaration'
    ? (declaration.declarations as SyntaxNode[]).map(({ id }) => nameOf(id))
    : isNode(declaration.id) ? [nameOf(declaration.id)] : []
  for (const name of names) module.declarations.set(name, [...(module.declarations.get(name) ?? []), statement])
  return names
}

/** Comments are cut out, and `import("./file.ts").Name` is `Name`. */
function textOf({ text, comments }: Module, statement: SyntaxNode): string {
  const inside = comments.filter(({ start, end }) => start >= statement.start && end <= statement.end)
  const cuts = inside.map(({ start, end }) => ({ start, end }))
  for (const { node } of walk(statement)) {
    const imported = node.type === 'TSImportType' ? importedType(node) : undefined
    if (imported?.from.startsWith('.') && imported.dot !== undefined) cuts.push({ start: node.start, end: imported.dot })
  }
  cuts.sort((a, b) => b.start - a.start)
  let result = text.slice(statement.start, statement.end)
  for (const { start, end } of cuts) result = result.slice(0, start - statement.start) + result.slice(end - statement.start)
  return result.split('\n').map((line) => line.trimEnd()).filter((line) => line !== '').join('\n').replace(/^(export )?declare /, '$1')
}

/** The module and the first name of `import("module").Name`, and where that name begins. */
function importedType(node: SyntaxNode): { from: string; name?: string; dot?: number } | undefined {
  const literal = [...walk(node)].find((visit) => visit.node.type === 'Literal' && typeof visit.node.value === 'string')
  if (!literal) return undefined
  let qualifier = node.qualifier
  while (isNode(qualifier) && qualifier.type === 'TSQualifiedName') qualifier = qualifier.left
  return { from: literal.node.value as string, ...(isNode(qualifier) ? { name: nameOf(qualifier), dot: qualifier.start } : {}) }
}

/** The declarations of a relative module; those of other packages are not ours. */
function pathOf(file: string, specifier: string): string | undefined {
  if (!specifier.startsWith('.')) return undefined
  const path = join(dirname(file), specifier.replace(/\.[jt]s$/, '.d.ts'))
  if (!existsSync(path)) throw new Error(`${file} refers to ${specifier}, which has no declarations.`)
  return path
}

function nameOf(node: unknown): string {
  const { name, value } = node as { name?: string; value?: string }
  return name ?? String(value)
}

const keyOf = ({ file, name }: Target) => `${file}#${name}`
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
