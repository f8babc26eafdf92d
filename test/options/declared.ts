import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'vite'

const folder = join(import.meta.dirname, '../../api')
const entries = ['heed', 'libsql', 'pg', 'duckdb', 'lancedb', 'redis', 'server', 'sources', 'client', 'react', 'ai-sdk', 'processors', 'embed', 'policy', 'channels', 'editor', 'scorers', 'studio', 'testing', 'voice', 'voice-call', 'workflows', 'unexported'] as const
/** An entry of the package, by the name of its report. */
export type Entry = (typeof entries)[number]

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

type Declarations = ReadonlyMap<string, readonly Node[]>

/** Changes the text of a report before it is read. */
type Edit = (text: string) => string

/** The declarations of each entry by name, as `npm run api` writes them. Entries may have different types of one name. */
function declarations(edit: Edit = (text) => text): ReadonlyMap<Entry, Declarations> {
  return new Map(entries.map((entry) => {
    const file = `${entry}.d.txt`
    const text = edit(readFileSync(join(folder, file), 'utf8')).replaceAll(/^export .*: see .*$/gm, '')
    const { program, errors } = parseSync(`${file}.d.ts`, text)
    if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`)
    const own = new Map<string, Node[]>()
    for (const statement of program.body as unknown as Node[]) {
      const node = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement
      const name = node?.id?.name
      if (node && name !== undefined) own.set(name, [...(own.get(name) ?? []), node])
    }
    return [entry, own]
  }))
}

/** Types that an entry has under the name of a type of another entry, and that no entry exports. */
const hidden: Partial<Record<Entry, readonly string[]>> = { 'ai-sdk': ['SendOptions'] }

/**
 * The options that each call declares: their paths, joined by points, with the shared type of the value. `*` stands for the keys of a
 * record. A shared type is listed under its own name.
 */
export type Declared = Map<string, Map<string, string | undefined>>

/** Types whose values one reader reads, whichever call has them: their options are shown once, the option that has such a value for each call. */
const shared: ReadonlySet<string> = new Set([
  'JudgeConfig', 'CallScorers', 'EvalScorer', 'ScorerFilter',
  'ModelConfig', 'Script', 'SemanticRecallOptions', 'TitleOptions', 'ToolTransform', 'VectorIndexConfig', 'VectorOption', 'WorkingMemoryOptions',
])

/** Types of values rather than of options: what they contain is content, or an object of the caller. */
const values: ReadonlySet<string> = new Set([
  'Agent', 'AgentClient', 'AgentInput', 'AgentMessage', 'AgentsInput', 'AnyEmbeddingModel', 'Authenticate', 'BuiltInVectors', 'Bus', 'CedarPolicies', 'Channel', 'ChannelAdapter', 'ChatMessage', 'Chunk', 'Clock',
  'Contacts', 'ContextOf', 'DecideContext', 'DomainStorage', 'FileInput', 'Heed', 'HeedClient', 'InboundMessage', 'InboundSender', 'JSONObject', 'JSONValue', 'LanguageModel', 'LibSQLClient', 'Logger', 'PgClient', 'PgPool', 'QueryClient', 'QueryPool', 'RedisClient', 'Memory', 'Message',
  'MessageContent', 'MessageList', 'MessageRow', 'MetadataFilter', 'NotificationRecord', 'NotificationStore', 'PolicySet', 'PolicyStore', 'PollContext', 'Processor', 'ProviderOptions', 'PublicJwk', 'RecallProgress',
  'ReceivedWebhook', 'RequestContext', 'ResolvedContact', 'RunResult', 'Schema', 'ScriptV2', 'ScriptV3', 'SignalAttributes', 'SignalContents', 'SignalProvider', 'StepResult', 'Storage', 'StoreDomains', 'Studio',
  'AgentLike', 'AnyStep', 'CallableVoice', 'MediaStream', 'MediaTrackConstraints', 'HeedWorkflow', 'EvalWorkflow', 'EvalStepScorers', 'MappedField', 'ProcessorWorkflow', 'Step', 'ToolLike', 'WorkflowLike', 'WorkflowsInput', 'RunMetrics', 'ScorerLike', 'SubscriptionRecord', 'SystemMessageInput', 'Voice', 'VoiceThread', 'ThreadRow', 'ThreadStore', 'ToolsInput', 'WebhookRequest',
])
const transparent: ReadonlySet<string> = new Set(['Partial', 'Readonly', 'Required', 'Array', 'ReadonlyArray', 'Dynamic', 'Own'])

type Filter = (name: string) => boolean
const all: Filter = () => true

/** The calls of each entry: a function, a class with its methods, or its constructor alone (`new Name`). */
export type Calls = Readonly<Partial<Record<Entry, readonly string[]>>>

/** The options of the parameters of these calls. */
export function declaredOptions(calls: Calls, edit?: Edit): Declared {
  return new OptionReader(edit).read(calls)
}

/** Every function and class that an entry exports. */
export function exportedCalls(): Array<[Entry, string]> {
  const kinds = ['TSDeclareFunction', 'ClassDeclaration']
  return [...declarations()].filter(([entry]) => entry !== 'unexported').flatMap(([entry, known]) =>
    [...known].filter(([, [node]]) => kinds.includes(node?.type ?? '')).map(([name]): [Entry, string] => [entry, name]))
}

/** Where options are listed: their owner, the path of the option that contains them, and the entry whose types are meant. */
interface Place {
  owner: string
  under: string
  entry: Entry
}

interface Found {
  nodes: readonly Node[]
  entry: Entry
  /** Under which its options are listed. */
  label: string
}

class OptionReader {
  readonly #known: ReadonlyMap<Entry, Declarations>
  readonly #found: Declared = new Map()
  readonly #seen = new Set<string>()
  /** The types that are being read, which may contain themselves. */
  readonly #within: string[] = []

  constructor(edit?: Edit) {
    this.#known = declarations(edit)
  }

  read(calls: Calls): Declared {
    for (const [entry, names] of Object.entries(calls) as Array<[Entry, readonly string[]]>) for (const call of names) this.#call(entry, call)
    return this.#found
  }

  #call(entry: Entry, call: string): void {
    const owner = call.replace('new ', '')
    const nodes = this.#known.get(entry)?.get(owner)
    if (!nodes) throw new Error(`api/${entry}.d.txt has no '${owner}'.`)
    for (const node of nodes) {
      if (node.params) this.#parameters(owner, entry, node.params)
      for (const member of membersOf(node)) {
        const name = member.key?.name
        const params = member.params ?? (member.value as Node | undefined)?.params
        if (!params || name === undefined || (call !== owner && name !== 'constructor')) continue
        this.#parameters(name === 'constructor' ? owner : `${owner}.${name}`, entry, params)
      }
    }
  }

  #parameters(owner: string, entry: Entry, params: readonly Node[]): void {
    for (const param of params) {
      this.#walk(param.typeAnnotation?.typeAnnotation, { owner, under: '', entry }, all)
    }
  }

  /** The declaration of a type of options: that of the entry itself, else of `heed`, else of any. */
  #options(name: string | undefined, entry: Entry): Found | undefined {
    if (name === undefined || values.has(name) || transparent.has(name)) return undefined
    const order = [entry, ...(hidden[entry]?.includes(name) ? ['unexported' as const] : []), ...entries]
    const at = order.find((one) => this.#known.get(one)?.has(name))
    const nodes = at && this.#known.get(at)?.get(name)
    if (!nodes) return undefined
    const first = entries.find((one) => this.#known.get(one)?.has(name))
    return { nodes, entry: at, label: at === first ? name : `${entry}:${name}` }
  }

  /** Lists a shared type once, under its name. */
  #named(found: Found): void {
    if (this.#seen.has(found.label)) return
    this.#seen.add(found.label)
    this.#declared(found, { owner: found.label, under: '', entry: found.entry }, all)
  }

  #declared({ nodes, entry }: Found, place: Place, filter: Filter): void {
    const here = { ...place, entry }
    for (const node of nodes) {
      if (node.type === 'TSTypeAliasDeclaration') this.#walk(node.typeAnnotation, here, filter)
      if (node.type !== 'TSInterfaceDeclaration') continue
      for (const { expression, typeArguments } of node.extends ?? [])
        this.#walk({ type: 'TSTypeReference', typeName: expression, typeArguments }, here, filter)
      this.#members(membersOf(node), here, filter)
    }
  }

  #walk(type: Node | undefined, place: Place, filter: Filter): void {
    if (!type) return
    if (type.type === 'TSParenthesizedType' || type.type === 'TSTypeOperator') return this.#walk(type.typeAnnotation, place, filter)
    if (type.type === 'TSArrayType') return this.#walk(type.elementType, place, filter)
    if (type.types) return type.types.forEach((one) => this.#walk(one, place, filter))
    if (type.type === 'TSTypeLiteral') return this.#members(membersOf(type), place, filter)
    const name = type.typeName?.name
    if (name === undefined) return
    const [first, second] = type.typeArguments?.params ?? []
    const names = literalsOf(second)
    if (name === 'Omit') return this.#walk(first, place, (option) => filter(option) && !names.includes(option))
    if (name === 'Pick') return this.#picked(first, names.filter(filter), place)
    if (transparent.has(name)) return this.#walk(first, place, filter)
    if (name === 'Record') return this.#walk(second, { ...place, under: `${place.under}*.` }, all)
    const found = this.#options(name, place.entry)
    if (!found) return
    if (shared.has(found.label) && place.under !== '') {
      this.#found.get(place.owner)?.set(place.under.slice(0, -1), found.label)
      return this.#named(found)
    }
    if (this.#within.includes(found.label)) return
    this.#within.push(found.label)
    this.#declared(found, place, filter)
    this.#within.pop()
  }

  #picked(type: Node | undefined, names: readonly string[], place: Place): void {
    if (values.has(type?.typeName?.name ?? '')) return
    if (this.#options(type?.typeName?.name, place.entry)) this.#walk(type, place, (option) => names.includes(option))
    this.#add(place, names)
  }

  #add({ owner, under }: Place, names: readonly string[]): void {
    if (names.length === 0) return
    const options = this.#found.get(owner) ?? new Map<string, string | undefined>()
    for (const name of names) if (!options.has(under + name)) options.set(under + name, undefined)
    this.#found.set(owner, options)
  }

  #members(members: readonly Node[], place: Place, filter: Filter): void {
    for (const member of members) {
      const name = member.key?.name
      const type = member.typeAnnotation?.typeAnnotation
      const isField = member.type === 'TSPropertySignature' || member.type === 'TSMethodSignature'
      if (!isField || name === undefined || !filter(name) || type?.type === 'TSNeverKeyword') continue
      this.#add(place, [name])
      if (member.type === 'TSPropertySignature') this.#walk(type, { ...place, under: `${place.under}${name}.` }, all)
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
