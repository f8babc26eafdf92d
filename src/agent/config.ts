import { checkNames, isSimilar, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { checkEditor } from '../editor/applied.ts'
import type { EditorFields } from '../editor/contract.ts'
import { isObject } from '../base/json.ts'
import type { Heed } from '../heed/heed.ts'
import { Sites } from '../heed/site.ts'
import { checkPolicy, type NotificationDeliveryPolicyConfig } from '../inbox/policy.ts'
import { Memory } from '../memory/memory.ts'
import { allHooks, inputHooks, outputHooks } from '../processors/hooks.ts'
import type { Processor } from '../processors/processor.ts'
import type { SystemMessageInput } from '../prompt/system.ts'
import { checkModel, type ModelConfig } from '../run/model/model.ts'
import type { DefaultOptions } from '../run/options.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { ToolsInput } from '../run/tools/tool-set.ts'
import type { ToolPayloadTransformPolicy } from '../run/tools/payloads.ts'
import { compileSchema } from '../schema/compile.ts'
import type { Schema } from '../schema/schema.ts'
import type { AgentScorers } from '../scorers/contract.ts'
import type { Voice } from '../voice/contract.ts'
import { checkScorers } from '../scorers/sampling.ts'
import { isXMLName } from '../signals/tags.ts'
import type { Agent } from './agent.ts'
import { checkDefaults, fromLegacyOptions, wantedTransform, type LegacyOptions } from './options.ts'
import { checkWatchOptions, type AgentWatchOptions } from './watch-options.ts'
import type { WorkflowsInput } from './workflows.ts'

/** A value, or a function that returns it for one request. */
export type Dynamic<T> = T | ((context: { requestContext: RequestContext }) => T | Promise<T>)

/** Agents that another agent may call, by the name that it calls them by. Undefined entries are left out. */
export type AgentsInput = Record<string, Agent | undefined>

/** An option of a run that a request may set. */
export type RemoteOption =
  | 'activeTools' | 'modelSettings' | 'modelSettings.headers' | 'structuredOutput' | 'clientTools' | 'instructions' | 'system'
  | 'requireToolApproval' | 'maxSteps' | 'toolChoice' | 'providerOptions' | 'runId'

/** What limited principals may set over HTTP. */
export interface RemoteOptions {
  /**
   * The options of a run that they may set. Defaults to those that change nothing of the agent: `structuredOutput`, `clientTools`. Ids of
   * runs are global: a caller that may choose a `runId` learns whether it is taken.
   */
  options?: readonly RemoteOption[]
  /** Who may approve tool calls: principals with the scope `approve` (default), or also those that may send messages. */
  approvals?: 'approver' | 'sender'
}

export const defaultRemoteOptions: readonly RemoteOption[] = ['structuredOutput', 'clientTools']
const remoteOptions: readonly RemoteOption[] = [
  ...defaultRemoteOptions, 'activeTools', 'modelSettings', 'modelSettings.headers', 'instructions', 'system', 'requireToolApproval',
  'maxSteps', 'toolChoice', 'providerOptions', 'runId',
]

/** A workflow of processor steps, in series and in parallel, in a list of processors. */
export interface ProcessorWorkflow {
  readonly id: string
  /** The processors that it stands for. */
  asProcessors(): Processor[]
}

/** The options of an `Agent`. */
export interface AgentConfig<Id extends string = string, Tools extends ToolsInput = ToolsInput> {
  /** Defaults to `name`, then to the key under which a `Heed` knows the agent. */
  id?: Id
  name?: string
  description?: string
  /** For clients, to classify and filter agents. */
  metadata?: Dynamic<Record<string, unknown>>
  instructions?: Dynamic<SystemMessageInput>
  model?: Dynamic<ModelConfig>
  tools?: Dynamic<Tools>
  /** Offered to the model as tools; their chunks are nested in this agent's stream. */
  agents?: Dynamic<AgentsInput>
  /** Offered to the model as tools; their chunks are nested in this agent's stream. */
  workflows?: Dynamic<WorkflowsInput>
  /** Options for every `generate()`, `stream()` and woken run; the options of a call override them. */
  defaultOptions?: Dynamic<DefaultOptions>
  /** Options for every `generateLegacy()`; the options of a call override them. */
  defaultGenerateOptionsLegacy?: Dynamic<Omit<LegacyOptions, 'runId' | 'scorers'>>
  /** Options for every `streamLegacy()`; the options of a call override them. */
  defaultStreamOptionsLegacy?: Dynamic<Omit<LegacyOptions, 'runId' | 'scorers'>>
  /** What displays and transcripts see of the payloads of all tools. */
  transform?: ToolPayloadTransformPolicy
  /** Checked at the start of every run. */
  requestContextSchema?: Schema
  /** Processors, and workflows of processor steps: see `createStep(processor)` of `heed/workflows`. */
  inputProcessors?: Dynamic<Array<Processor | ProcessorWorkflow>>
  outputProcessors?: Dynamic<Array<Processor | ProcessorWorkflow>>
  /** How often processors may have the model called again. Defaults to 3. */
  maxProcessorRetries?: number
  /** How deep agents may call agents, where this one calls. Defaults to 8. */
  maxAgentDepth?: number
  memory?: Dynamic<Memory>
  /** What is done with notifications: see `sendNotificationSignal`. */
  notifications?: { deliveryPolicy?: NotificationDeliveryPolicyConfig }
  /** Lets the agent wait for messages of channels: the model is offered `await_signal`. */
  watches?: true | AgentWatchOptions
  /** Score its runs on threads after they ended. */
  scorers?: Dynamic<AgentScorers>
  /** Lets the agent speak and listen: `new CompositeVoice({ input, output })` of `heed/voice`. */
  voice?: Dynamic<Voice>
  /** Tags that this agent's own signals use: text that imitates one is escaped. */
  signalTags?: string[]
  /** What users of the server that are limited to their resources may do with the agent. */
  remote?: RemoteOptions
  heed?: Heed
  /** What an editor may change: everything that it can, nothing, or these fields. Has an effect with `new Heed({ editor })`. */
  editor?: false | EditorFields
}

const parameters = new Set([
  'id', 'name', 'description', 'metadata', 'instructions', 'model', 'tools', 'agents', 'workflows', 'defaultOptions',
  'defaultGenerateOptionsLegacy', 'defaultStreamOptionsLegacy', 'transform', 'requestContextSchema', 'inputProcessors',
  'outputProcessors', 'maxProcessorRetries', 'maxAgentDepth', 'memory', 'notifications', 'watches', 'scorers', 'voice', 'signalTags',
  'remote', 'heed', 'editor',
])

/** Rejects an invalid configuration. A missing parameter is reported by the first call that needs it. */
export function checkConfig(config: AgentConfig): void {
  if (typeof config !== 'object' || config === null || Array.isArray(config)) {
    throw new HeedError('invalid_agent', "An agent needs its parameters: new Agent({ id: 'support', … }).")
  }
  const { id, name } = config
  for (const [field, value] of Object.entries({ id, name })) {
    if (value !== undefined && (typeof value !== 'string' || value.trim() === '')) {
      throw new HeedError('invalid_agent', `An agent's ${field} must be a text that is not empty.`, { details: { field } })
    }
  }
  const who = id ?? name ?? 'without a name'
  for (const [key, value] of Object.entries(config)) {
    if (value === undefined) continue
    if (!parameters.has(key)) {
      throw new HeedError(
        'unsupported_option',
        `Agent '${who}' has '${key}', which is not a parameter of an agent. Known: ${[...parameters].join(', ')}.`,
        { details: { option: key } },
      )
    }
  }
  if (config.model !== undefined) checkModel(config.model, who)
  if (config.requestContextSchema !== undefined) compileSchema(config.requestContextSchema, `requestContextSchema of agent '${who}'`)
  const [input, output] = [config.inputProcessors ?? [], config.outputProcessors ?? []].map((list) =>
    typeof list === 'function' ? undefined : list,
  )
  checkProcessors({ input, output }, who)
  checkValues(config, who)
  checkNotifications(config.notifications, who)
  checkWatchOptions(config.watches, who)
  if (config.scorers !== undefined && typeof config.scorers !== 'function') checkScorers(config.scorers, `scorers of agent '${who}'`)
  checkRemote(config.remote, who)
  checkEditor(config.editor, who)
  for (const key of ['defaultOptions', 'defaultGenerateOptionsLegacy', 'defaultStreamOptionsLegacy'] as const) {
    const options = config[key]
    if (typeof options === 'object')
      checkDefaults(key === 'defaultOptions' ? options : fromLegacyOptions(options as LegacyOptions), `${key} of agent '${who}'`)
  }
}

function checkValues(config: AgentConfig, agent: string): void {
  const wanted: Partial<Record<keyof AgentConfig, string>> = {
    description: typeof config.description === 'string' ? undefined : 'a text',
    metadata: isObjectOrFunction(config.metadata) ? undefined : 'an object, or a function that returns one',
    agents: isObjectOrFunction(config.agents) ? undefined : 'an object of agents by their names, or a function that returns one',
    workflows: isObjectOrFunction(config.workflows) ? undefined : 'an object of workflows by their names, or a function that returns one',
    defaultOptions: isObjectOrFunction(config.defaultOptions) ? undefined : 'an object, or a function that returns one',
    defaultGenerateOptionsLegacy: isObjectOrFunction(config.defaultGenerateOptionsLegacy)
      ? undefined
      : 'an object, or a function that returns one',
    defaultStreamOptionsLegacy: isObjectOrFunction(config.defaultStreamOptionsLegacy)
      ? undefined
      : 'an object, or a function that returns one',
    transform: wantedTransform(config.transform),
    maxProcessorRetries:
      Number.isInteger(config.maxProcessorRetries) && Number(config.maxProcessorRetries) >= 0 ? undefined : 'a whole number of at least 0',
    maxAgentDepth:
      Number.isInteger(config.maxAgentDepth) && Number(config.maxAgentDepth) >= 1 ? undefined : 'a whole number of at least 1',
    memory:
      config.memory instanceof Memory || typeof config.memory === 'function'
        ? undefined
        : 'a Memory (new Memory()), or a function that returns one',
    voice: typeof config.voice === 'function' || isVoice(config.voice) ? undefined : 'a voice: new CompositeVoice({ input, output })',
    signalTags:
      Array.isArray(config.signalTags) && config.signalTags.every(isXMLName) ? undefined : "a list of tags' names, such as 'build-status'",
    heed: config.heed?.sites instanceof Sites ? undefined : 'a Heed: new Heed({ … })',
  }
  for (const [field, what] of Object.entries(wanted)) {
    if (what === undefined || config[field as keyof AgentConfig] === undefined) continue
    throw new HeedError('invalid_agent', `${field} of agent '${agent}' must be ${what}.`, { details: { field } })
  }
}

function checkNotifications(notifications: AgentConfig['notifications'], agent: string): void {
  if (notifications === undefined) return
  if (typeof notifications !== 'object' || notifications === null)
    throw new HeedError('invalid_agent', `notifications of agent '${agent}' must be an object.`, { details: { field: 'notifications' } })
  for (const key of Object.keys(notifications)) {
    if (key !== 'deliveryPolicy')
      throw new HeedError('unsupported_option', `notifications of agent '${agent}' has '${key}'. Known: deliveryPolicy.`, {
        details: { option: `notifications.${key}` },
      })
  }
  if (notifications.deliveryPolicy !== undefined) checkPolicy(notifications.deliveryPolicy)
}

function checkRemote(remote: AgentConfig['remote'], agent: string): void {
  if (remote === undefined) return
  const of = `remote of agent '${agent}'`
  checkNames(of, remote, ['options', 'approvals'])
  const { options, approvals } = remote
  if (options !== undefined && !(Array.isArray(options) && options.every((one) => remoteOptions.includes(one as RemoteOption)))) {
    throw refused('remote.options', `a list of names among ${remoteOptions.join(', ')}`)
  }
  if (approvals !== undefined && !['approver', 'sender'].includes(approvals)) throw refused('remote.approvals', "'approver' or 'sender'")
}

export function isVoice(value: unknown): value is Voice {
  const { speak, listen } = Object(value) as Partial<Voice>
  return typeof speak === 'function' && typeof listen === 'function'
}

function isObjectOrFunction(value: unknown): boolean {
  return typeof value === 'function' || isObject(value)
}

/** The same list with the processors of its workflows in their place; the list itself where it has none. */
export function plainProcessors(list: ReadonlyArray<Processor | ProcessorWorkflow>): Processor[]
export function plainProcessors(list: unknown): unknown
export function plainProcessors(list: unknown): unknown {
  if (!Array.isArray(list) || !list.some(isProcessorWorkflow)) return list
  return list.flatMap((entry: unknown) => (isProcessorWorkflow(entry) ? entry.asProcessors() : entry))
}

function isProcessorWorkflow(entry: unknown): entry is ProcessorWorkflow {
  return typeof (entry as Partial<ProcessorWorkflow> | null | undefined)?.asProcessors === 'function'
}

/** The configuration with plain processors in place of workflows of them. */
export function withPlainProcessors<Config extends AgentConfig>(config: Config): Config {
  if (!isObject(config)) return config
  const [input, output] = [plainProcessors(config.inputProcessors), plainProcessors(config.outputProcessors)]
  if (input === config.inputProcessors && output === config.outputProcessors) return config
  return { ...config, inputProcessors: input, outputProcessors: output }
}

/** The processors of an agent or a call. A list that depends on the request is undefined until it is resolved. */
interface ProcessorLists {
  input: unknown
  output: unknown
}

const hooksOf = { input: inputHooks, output: outputHooks } as const
/** Processors that were validated before: every run passes the same ones. */
const validated = new WeakSet()
const calledIn = { input: new WeakSet(), output: new WeakSet() }
/** The processors of memory: their presence configures memory. */
const hookless: readonly string[] = ['message-history', 'working-memory', 'semantic-recall']

/**
 * Rejects values that are no processors, and processors whose hooks would never be called: a guardrail in the wrong list would do nothing.
 */
export function checkProcessors(lists: ProcessorLists, agent: string): void {
  checkSide(lists, 'input', agent)
  checkSide(lists, 'output', agent)
}

function checkSide(lists: ProcessorLists, side: keyof ProcessorLists, agent: string): void {
  const list = lists[side]
  if (list === undefined) return
  const key = `${side}Processors`
  if (!Array.isArray(list)) throw new HeedError('invalid_agent', `${key} of agent '${agent}' must be a list of processors.`)
  const before = calledIn[side]
  for (let index = 0; index < list.length; index++) {
    const entry: unknown = list[index]
    if (before.has(entry as object)) continue
    if (!isValidated(entry)) checkProcessor(entry, `${key} of agent '${agent}'`)
    if (!isValidated(entry)) continue
    if (!isCalled(entry, side) && !isCalledInOther(entry, lists, side)) throw neverCalled(entry, side, agent)
    if (isCalled(entry, side)) before.add(entry)
  }
}

function isValidated(entry: unknown): entry is Processor {
  return typeof entry === 'object' && entry !== null && validated.has(entry)
}

function checkProcessor(entry: unknown, where: string): void {
  const value = entry as { id?: unknown; createRun?: unknown } | null
  if (typeof value?.createRun === 'function') {
    throw new HeedError('unsupported_option', `${where} holds a workflow that is not of heed/workflows. Use one, or a processor object.`)
  }
  if (typeof value !== 'object' || value === null || typeof value.id !== 'string' || value.id === '') {
    throw new HeedError('invalid_agent', `${where} must hold processors: objects with an id and at least one hook.`)
  }
  checkProcessorFields(value, `Processor '${value.id}' in ${where}`)
  validated.add(value)
}

function checkProcessorFields(processor: Record<string, unknown>, who: string): void {
  const { id, timeoutMs, maxDeltas } = processor
  for (const field of ['name', 'stateId']) {
    const text = processor[field]
    if (text !== undefined && (typeof text !== 'string' || text === ''))
      throw new HeedError('invalid_agent', `${who}: ${field} must be a text that is not empty.`)
  }
  for (const hook of allHooks) {
    if (processor[hook] !== undefined && typeof processor[hook] !== 'function')
      throw new HeedError('invalid_agent', `${who}: ${hook} must be a function.`)
  }
  for (const name of propertyNames(processor)) {
    const meant = allHooks.find((hook) => processor[hook] === undefined && name !== hook && isSimilar(name, hook))
    if (meant) throw new HeedError('invalid_agent', `${who}: '${name}' is not a hook. Did you mean ${meant}?`)
  }
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs > 0)) {
    throw new HeedError('invalid_agent', `${who}: timeoutMs must be a number of milliseconds above 0.`)
  }
  if (maxDeltas !== undefined && !(Number.isInteger(maxDeltas) && (maxDeltas as number) > 0)) {
    throw new HeedError('invalid_agent', `${who}: maxDeltas must be a whole number above 0.`)
  }
  if (!hookless.includes(String(id)) && !allHooks.some((hook) => processor[hook] !== undefined)) {
    throw new HeedError('invalid_agent', `${who} has no hook, so that it would never be called. Hooks are ${allHooks.join(', ')}.`)
  }
}

/** Names of its own properties and of those of its classes. */
function propertyNames(value: object): string[] {
  const names: string[] = []
  for (let of: object | null = value; of !== null && of !== Object.prototype; of = Reflect.getPrototypeOf(of))
    names.push(...Object.getOwnPropertyNames(of))
  return names
}

function isCalled(processor: Processor, side: keyof ProcessorLists): boolean {
  return hookless.includes(processor.id) || hooksOf[side].some((hook) => processor[hook] !== undefined)
}

/** One that is in both lists is calledIn in the other; what the other list is may not be validated yet. */
function isCalledInOther(processor: Processor, { input, output }: ProcessorLists, side: keyof ProcessorLists): boolean {
  const other = side === 'input' ? output : input
  return other === undefined || (Array.isArray(other) && other.includes(processor))
}

function neverCalled(processor: Processor, side: keyof ProcessorLists, agent: string): HeedError {
  const hooks = allHooks.filter((hook) => processor[hook] !== undefined).join(', ')
  const [list, other] = side === 'input' ? ['inputProcessors', 'outputProcessors'] : ['outputProcessors', 'inputProcessors']
  return new HeedError(
    'invalid_agent',
    `Processor '${processor.id}' in ${list} of agent '${agent}' has ${hooks}, which is never called there. Move it to ${other}.`,
    {
      details: { processorId: processor.id, list },
    },
  )
}

/*
 * Values of a configuration, fixed or returned by a function for a request. An invalid one is rejected: a guardrail or a limit that it
 * should hold would silently be missing.
 */

export function expectObject<T>(value: T, field: string, agent: string): T {
  if (isObject(value)) return value
  throw invalidValue(field, agent, 'an object')
}

export function expectList<T extends readonly unknown[]>(value: T, field: string, agent: string): T {
  if (Array.isArray(value)) return value
  throw invalidValue(field, agent, 'a list')
}

function invalidValue(field: string, agent: string, what: string): HeedError {
  return new HeedError('invalid_agent', `${field} of agent '${agent}' must be ${what}, or a function that returns one.`, {
    details: { field },
  })
}

/** The value for this request. */
export function resolve<T>(value: Dynamic<T>, context: { requestContext: RequestContext }): T | Promise<T> {
  return typeof value === 'function' ? (value as (context: { requestContext: RequestContext }) => T | Promise<T>)(context) : value
}

/** The scorers of an agent for a request, checked. */
export function resolveScorers(
  { scorers = {} }: AgentConfig, requestContext: RequestContext, agent: string,
): AgentScorers | Promise<AgentScorers> {
  const checked = (found: AgentScorers) => {
    if (found !== scorers) checkScorers(found, `scorers of agent '${agent}'`)
    return found
  }
  const found = resolve(scorers, { requestContext })
  return found instanceof Promise ? found.then(checked) : checked(found)
}

const beforeModel = ['processInput', 'processInputStep', 'computeStateSignal', 'processAPIError'] as const

/** Whether a processor may reject input before a model has read it. Processors that a function returns may. */
export function canRejectInput({ inputProcessors, outputProcessors }: Pick<AgentConfig, 'inputProcessors' | 'outputProcessors'>): boolean {
  return [inputProcessors, outputProcessors].some((list) =>
    Array.isArray(list)
      ? plainProcessors(list).some((processor) => beforeModel.some((hook) => processor[hook] !== undefined))
      : list !== undefined)
}
