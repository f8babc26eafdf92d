import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'vite'

const folder = join(import.meta.dirname, '../../api')
/** The reports that are read. Clients and test tools have calls of their own. */
const entries = ['heed.d.txt', 'libsql.d.txt', 'server.d.txt', 'sources.d.txt', 'unexported.d.txt']

/** A node of the syntax tree, as far as it is read here. */
interface Node {
  type: string
  name?: string
  value?: unknown
  id?: Node
  key?: Node
  kind?: string
  body?: { body: Node[] } | Node[]
  members?: Node[]
  params?: Node[]
  types?: Node[]
  extends?: Node[]
  expression?: Node
  typeName?: Node
  typeArguments?: { params: Node[] }
  typeAnnotation?: Node
  elementType?: Node
  literal?: { value?: unknown }
  declaration?: Node
}

/** The declarations of the public surface, by name, as `npm run api` writes them. */
function declarations(): Map<string, Node[]> {
  const found = new Map<string, Node[]>()
  for (const file of entries) {
    const text = readFileSync(join(folder, file), 'utf8').replaceAll(/^export .*: see .*$/gm, '')
    const { program, errors } = parseSync(`${file}.d.ts`, text)
    if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`)
    const own = new Map<string, Node[]>()
    for (const statement of program.body as unknown as Node[]) {
      const node = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement
      const name = node?.id?.name
      if (node && name !== undefined) own.set(name, [...(own.get(name) ?? []), node])
    }
    // Two entries may have different types of one name; that of the first is meant.
    for (const [name, nodes] of own) if (!found.has(name)) found.set(name, nodes)
  }
  return found
}

/** The options that each type, method or function declares; options of an option are joined by a point. */
export type Declared = Map<string, Set<string>>

/** Types of values rather than of options: what they contain is content, or an object of the caller. */
const values: ReadonlySet<string> = new Set([
  'Agent', 'AgentInput', 'AgentMessage', 'AgentsInput', 'AnyEmbeddingModel', 'Authenticate', 'BuiltInVectors', 'Bus', 'Chunk', 'Clock', 'ContextOf',
  'DecideContext', 'DomainStorage', 'Heed', 'JSONObject', 'JSONValue', 'LanguageModel', 'LibSQLClient', 'Logger', 'Memory', 'Message',
  'MessageContent', 'MessageList', 'MessageRow', 'MetadataFilter', 'NotificationRecord', 'Processor', 'ProviderOptions', 'RecallProgress',
  'RequestContext', 'RunResult', 'Schema', 'SignalAttributes', 'SignalContents', 'SignalProvider', 'StepResult', 'Storage', 'StoreDomains',
  'SubscriptionRecord', 'SystemMessageInput', 'ThreadRow', 'ThreadStore', 'ToolsInput',
])
const transparent: ReadonlySet<string> = new Set(['Partial', 'Readonly', 'Required', 'Array', 'ReadonlyArray', 'Dynamic', 'Own'])

type Filter = (name: string) => boolean
const all: Filter = () => true

/** The options of the parameters of every public method, constructor and function of these names. */
export function declaredOptions(owners: readonly string[]): Declared {
  return new OptionReader().read(owners)
}

class OptionReader {
  readonly #known = declarations()
  readonly #found: Declared = new Map()
  readonly #seen = new Set<string>()

  read(owners: readonly string[]): Declared {
    for (const owner of owners) {
      const nodes = this.#known.get(owner)
      if (!nodes) throw new Error(`api/ has no '${owner}'.`)
      for (const node of nodes) {
        if (node.params) this.#parameters(owner, node.params)
        for (const member of membersOf(node)) {
          const name = member.key?.name
          const params = member.params ?? (member.value as Node | undefined)?.params
          if (params && name !== undefined) this.#parameters(name === 'constructor' ? owner : `${owner}.${name}`, params)
        }
      }
    }
    return this.#found
  }

  #parameters(owner: string, params: readonly Node[]): void {
    for (const param of params) {
      const type = param.typeAnnotation?.typeAnnotation
      const name = type?.typeName?.name
      if (name !== undefined && this.#isOptions(name)) this.#named(name)
      else this.#walk(type, owner, '', all)
    }
  }

  #isOptions(name: string): boolean {
    return this.#known.has(name) && !values.has(name) && !transparent.has(name)
  }

  /** Lists a named type once, under its name. */
  #named(name: string): void {
    if (this.#seen.has(name)) return
    this.#seen.add(name)
    this.#declared(name, name, '', all)
  }

  #declared(name: string, owner: string, under: string, filter: Filter): void {
    for (const node of this.#known.get(name) ?? []) {
      if (node.type === 'TSTypeAliasDeclaration') this.#walk(node.typeAnnotation, owner, under, filter)
      if (node.type !== 'TSInterfaceDeclaration') continue
      for (const { expression, typeArguments } of node.extends ?? [])
        this.#walk({ type: 'TSTypeReference', typeName: expression, typeArguments }, owner, under, filter)
      this.#members(membersOf(node), owner, under, filter)
    }
  }

  #walk(type: Node | undefined, owner: string, under: string, filter: Filter): void {
    if (!type) return
    if (type.type === 'TSParenthesizedType' || type.type === 'TSTypeOperator') return this.#walk(type.typeAnnotation, owner, under, filter)
    if (type.type === 'TSArrayType') return this.#walk(type.elementType, owner, under, filter)
    if (type.types) return type.types.forEach((one) => this.#walk(one, owner, under, filter))
    if (type.type === 'TSTypeLiteral') return this.#members(membersOf(type), owner, under, filter)
    const name = type.typeName?.name
    if (name === undefined) return
    const [first, second] = type.typeArguments?.params ?? []
    const names = literalsOf(second)
    if (name === 'Omit') return this.#walk(first, owner, under, (option) => filter(option) && !names.includes(option))
    if (name === 'Pick' && !this.#known.has(first?.typeName?.name ?? '')) return this.#add(owner, under, names.filter(filter))
    if (name === 'Pick') return this.#walk(first, owner, under, (option) => filter(option) && names.includes(option))
    if (transparent.has(name)) return this.#walk(first, owner, under, filter)
    if (!this.#isOptions(name)) return
    // A part of a type is listed where it is used; a type that is the value of an option is listed once.
    if (under === '') this.#declared(name, owner, under, filter)
    else this.#named(name)
  }

  #add(owner: string, under: string, names: readonly string[]): void {
    const options = this.#found.get(owner) ?? new Set()
    for (const name of names) options.add(under + name)
    this.#found.set(owner, options)
  }

  #members(members: readonly Node[], owner: string, under: string, filter: Filter): void {
    for (const member of members) {
      const name = member.key?.name
      const type = member.typeAnnotation?.typeAnnotation
      const isField = member.type === 'TSPropertySignature' || member.type === 'TSMethodSignature'
      if (!isField || name === undefined || !filter(name) || type?.type === 'TSNeverKeyword') continue
      this.#add(owner, under, [name])
      if (member.type === 'TSPropertySignature') this.#walk(type, owner, `${under}${name}.`, all)
    }
  }
}

function membersOf({ body, members }: Node): readonly Node[] {
  if (members) return members
  return Array.isArray(body) ? body : (body?.body ?? [])
}

function literalsOf(type: Node | undefined): string[] {
  if (type?.types) return type.types.flatMap(literalsOf)
  return typeof type?.literal?.value === 'string' ? [type.literal.value] : []
}
