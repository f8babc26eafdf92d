import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseSync } from 'vite'
import { isNode, walk, type SyntaxNode } from './source.ts'

/** One declaration of a `.d.ts` file: a name and its text, without comments and without paths of files. */
export interface Declaration {
  name: string
  text: string
  /** Where the text begins and ends in its module, for readers of its comments. */
  node: SyntaxNode
  module: Module
  /** Names of the package's own declarations that the text refers to. */
  refersTo: Target[]
}

/** A name in a file. */
export interface Target {
  file: string
  name: string
}

/** A module of declarations: which names it declares, takes from other modules, and exports. */
export interface Module {
  declarations: Map<string, SyntaxNode[]>
  imports: Map<string, Target>
  exports: Map<string, Target>
  /** Modules of which everything is exported. */
  stars: string[]
  text: string
  comments: Array<{ start: number; end: number }>
}

/** The emitted declarations of a source, below the folder of all of them. */
export function fileOf(types: string, source: string): string {
  return join(types, source.replace(/^src\//, '').replace(/\.ts$/, '.d.ts'))
}

export const keyOf = ({ file, name }: Target): string => `${file}#${name}`

/** The declarations of a package, read from its `.d.ts` files, which need no type checker: names, where they come from, and their texts. */
export class Declarations {
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
    return nodes.map((node) => ({ name, node, module, text: textOf(module, node), refersTo: this.#references(file, module, node) }))
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
export function textOf({ text, comments }: Module, statement: SyntaxNode): string {
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
