import { Declarations, fileOf, keyOf, textOf, type Declaration, type Module, type Target } from '../checks/declarations.ts'
import type { Entry } from '../checks/entries.ts'
import { isNode, type SyntaxNode } from '../checks/source.ts'

/** The reference of the public surface, made from the emitted declarations and their doc comments. */
export interface Reference {
  pages: ReferencePage[]
  /** Exported names, and members of exported types, that have no doc comment: `heed: Agent.id`. */
  undocumented: { names: string[]; members: string[] }
  /** Where each exported name is described: page and anchor. */
  places: Map<string, { page: string; anchor: string }>
}

export interface ReferencePage {
  /** Name of the file without its ending: `heed`, `server`. */
  name: string
  title: string
  /** The first paragraph, for lists of pages. */
  about: string
  markdown: string
}

const groups = { class: 'Classes', function: 'Functions', const: 'Constants', interface: 'Interfaces', type: 'Types' } as const
type Kind = keyof typeof groups

interface Item {
  name: string
  kind: Kind
  declarations: Declaration[]
}

/** The page of declarations that exported ones refer to and that no entry exports. */
export const unexportedPage = 'unexported'

/** Reads the declarations below `types`, a folder that the compiler wrote. A declaration is on one page; other entries name that page. */
export function referenceOf(types: string, entries: readonly Entry[]): Reference {
  const program = new Declarations()
  const seen = new Map<string, { specifier: string; page: string; name: string }>()
  const pending: Target[] = []
  const reference: Reference = { pages: [], undocumented: { names: [], members: [] }, places: new Map() }
  for (const { specifier, name: page, source } of entries) {
    const items: Item[] = []
    const elsewhere: string[] = []
    for (const [name, target] of program.exportsOf(fileOf(types, source))) {
      const known = seen.get(keyOf(target))
      if (known) {
        elsewhere.push(`- [\`${name}\`](${known.page}.md#${anchorOf(known.name)}) of \`${known.specifier}\``)
        continue
      }
      seen.set(keyOf(target), { specifier, page, name })
      const declarations = program.declarationsOf(target)
      items.push({ name, kind: kindOf(declarations), declarations })
      pending.push(...declarations.flatMap(({ refersTo }) => refersTo))
      if (!reference.places.has(name)) reference.places.set(name, { page, anchor: anchorOf(name) })
    }
    note(reference, specifier, items)
    const about = `Everything that \`${specifier}\` exports.`
    reference.pages.push({ name: page, title: specifier, about, markdown: pageOf(specifier, about, items, elsewhere) })
  }
  const others = unexported(program, pending, seen)
  for (const { name } of others) if (!reference.places.has(name)) reference.places.set(name, { page: unexportedPage, anchor: anchorOf(name) })
  const about = 'Types that exported declarations mention and that no entry exports: you meet them as inferred types.'
  reference.pages.push({ name: unexportedPage, title: 'Other types', about, markdown: pageOf('Other types', about, others, []) })
  return reference
}

function unexported(program: Declarations, pending: Target[], seen: Map<string, unknown>): Item[] {
  const items: Item[] = []
  const reached = new Set<string>()
  for (let target = pending.pop(); target !== undefined; target = pending.pop()) {
    const key = keyOf(target)
    if (seen.has(key) || reached.has(key)) continue
    reached.add(key)
    const declarations = program.declarationsOf(target)
    items.push({ name: target.name, kind: kindOf(declarations), declarations })
    pending.push(...declarations.flatMap(({ refersTo }) => refersTo))
  }
  return items
}

function note({ undocumented }: Reference, specifier: string, items: readonly Item[]): void {
  for (const { name, declarations } of items) {
    if (!declarations.some(({ module, node }) => commentBefore(module, node))) undocumented.names.push(`${specifier}: ${name}`)
    for (const { module, node } of declarations) {
      for (const member of membersOf(node)) if (!commentBefore(module, member)) undocumented.members.push(`${specifier}: ${name}.${memberName(module, member)}`)
    }
  }
}

function pageOf(title: string, about: string, items: readonly Item[], elsewhere: readonly string[]): string {
  const parts = [`# ${title}`, about]
  for (const [kind, heading] of Object.entries(groups)) {
    const group = items.filter((item) => item.kind === kind).toSorted((a, b) => (a.name < b.name ? -1 : 1))
    if (group.length > 0) parts.push(`## ${heading}`, ...group.map(itemOf))
  }
  if (elsewhere.length > 0) parts.push('## Also exported', elsewhere.toSorted().join('\n'))
  return `${parts.join('\n\n')}\n`
}

function itemOf({ name, declarations }: Item): string {
  const parts = [`### ${name}`]
  for (const { module, node, name: declared } of declarations) {
    const comment = commentBefore(module, node)
    if (comment) parts.push(comment)
    const inner = declarationOf(node)
    const body = isNode(inner.body) ? inner.body : undefined
    const isListed = body?.type === 'ClassBody' || body?.type === 'TSInterfaceBody'
    const text = isListed ? clean(module.text.slice(inner.start, body.start)) : textOf(module, node)
    parts.push(`\`\`\`ts\n${text.replace(/^export /, '').replace(/^declare /, '')}\n\`\`\``)
    if (declared !== name && !/^(heed|default)$/.test(declared)) parts.push(`Declared as \`${declared}\`.`)
    if (isListed) parts.push(membersOf(node).map((member) => memberOf(module, member)).join('\n'))
  }
  return parts.filter((part) => part !== '').join('\n\n')
}

function memberOf(module: Module, member: SyntaxNode): string {
  const comment = commentBefore(module, member)
  const signature = clean(textOf(module, member)).replace(/;$/, '').replace(/\s*\n\s*/g, ' ')
  const [first = '', ...more] = (comment ?? '').split('\n\n')
  const quoted = signature.includes('`') ? `\`\` ${signature} \`\`` : `\`${signature}\``
  return [`- ${quoted}${first && ` — ${first.replaceAll('\n', '\n  ')}`}`, ...more.map((part) => `\n  ${part.replaceAll('\n', '\n  ')}`)].join('\n')
}

/** Public members; what TypeScript writes of private ones is only that they exist. */
function membersOf(statement: SyntaxNode): SyntaxNode[] {
  const { body } = declarationOf(statement)
  if (!isNode(body) || (body.type !== 'ClassBody' && body.type !== 'TSInterfaceBody')) return []
  return (body.body as SyntaxNode[]).filter(({ key, accessibility }) => !(isNode(key) && key.type === 'PrivateIdentifier') && accessibility !== 'private')
}

function memberName(module: Module, { type, key, static: isStatic }: SyntaxNode): string {
  const name = isNode(key) ? module.text.slice(key.start, key.end) : type
  return isStatic === true ? `static ${name}` : name
}

function declarationOf(statement: SyntaxNode): SyntaxNode {
  return isNode(statement.declaration) ? statement.declaration : statement
}

function kindOf([first]: readonly Declaration[]): Kind {
  const { type } = first ? declarationOf(first.node) : { type: '' }
  if (type === 'ClassDeclaration') return 'class'
  if (type === 'TSInterfaceDeclaration') return 'interface'
  if (type === 'TSTypeAliasDeclaration') return 'type'
  if (type === 'VariableDeclaration') return 'const'
  if (type === 'TSDeclareFunction' || type === 'FunctionDeclaration') return 'function'
  throw new Error(`The reference has no group for ${type} (${first?.name}).`)
}

/** The doc comment directly before a node, as Markdown. */
function commentBefore({ text, comments }: Module, { start }: SyntaxNode): string | undefined {
  const comment = comments.findLast(({ end }) => end <= start)
  if (!comment || text.slice(comment.end, start).trim() !== '') return undefined
  const source = text.slice(comment.start, comment.end)
  return source.startsWith('/**') ? commentText(source) : undefined
}

/** A line break within a paragraph is none in Markdown; examples become blocks of code. */
function commentText(source: string): string {
  const lines = source.slice(3, -2).split('\n').map((line) => line.replace(/^\s*\* ?/, '').trimEnd())
  const [prose = '', ...examples] = lines.join('\n').trim().split(/^@example\s*/m)
  return [prose.trim(), ...examples.map((code) => `\`\`\`ts\n${code.trim()}\n\`\`\``)].filter((part) => part !== '').join('\n\n')
}

function clean(text: string): string {
  return text.replace(/^(export )?(declare )?/, '').trimEnd()
}

/** The anchor that the pages give a heading of this name. */
export function anchorOf(name: string): string {
  return name.toLowerCase()
}
