import { HeedError } from '../base/errors.ts'
import type { JSONObject } from '../base/json.ts'
import { editTools, resolveEdit, type AppliedEdit } from '../editor/applied.ts'
import { answeringKey, type Site } from '../heed/site.ts'
import { splitMetadata } from '../memory/working-memory/access.ts'
import { ProcessorPipeline } from '../processors/pipeline.ts'
import type { Processor } from '../processors/processor.ts'
import { splitProviderOptions, systemMessages, type SystemMessage } from '../prompt/system.ts'
import { checkTexts } from '../run/loop/check-texts.ts'
import { resolveModels } from '../run/model/model.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import { structuredOutput } from '../run/output/structured-output.ts'
import { emptyToolSet, resolveTools, type ResolvedTool, type ToolsInput, type ToolSet } from '../run/tools/tool-set.ts'
import { markOutsideSchema } from '../schema/outside-schema.ts'
import { selectScorers, scorersOfCall } from '../scorers/sampling.ts'
import type { Send } from '../store/contract/threads.ts'
import type { PreparedRun, RunEnvironment, Runnable, RunRequest } from '../thread/runtime/runnable.ts'
import { lostContext } from '../thread/send/stored-options.ts'
import { unlessAborted } from '../thread/send/turns.ts'
import {
  checkDefaults, checkOptions, checkToolNames, fromLegacyOptions, mergeOptions, type LegacyOptions, type ResolvedOptions,
} from './options.ts'
import { checkProcessors, expectList, expectObject, plainProcessors, resolve, resolveScorers, type AgentConfig } from './config.ts'
import { validateRequestContext, contextOf } from './memory/request-memory.ts'
import { recallSources } from './memory/semantic-recall.ts'
import { agentTools, isAgentTool } from './subagents.ts'
import { titlerFor } from './memory/titler.ts'
import { awaitSignalTool } from './watches.ts'
import { workflowTools } from './workflows.ts'
import type { AnsweringModel } from '../voice/contract.ts'
import { seatOf, workingMemoryParts, workingMemorySetting, type WorkingMemoryParts } from './memory/working-memory.ts'

const defaultProcessorRetries = 3

/** Merges the agent's defaults and the call's options. */
export function resolveOptions(config: AgentConfig, options: AgentExecutionOptions): Promise<ResolvedOptions> {
  return unlessAborted(resolveMergedOptions(config, options), options.abortSignal)
}

async function resolveMergedOptions(config: AgentConfig, options: AgentExecutionOptions): Promise<ResolvedOptions> {
  const requestContext = contextOf(config, options.requestContext)
  const context = { requestContext }
  const defaults = config.defaultOptions
    ? expectObject(await resolve(config.defaultOptions, context), 'defaultOptions', nameOf(config))
    : {}
  if (typeof config.defaultOptions === 'function') checkDefaults(defaults, `defaultOptions of agent '${nameOf(config)}'`)
  if (config.requestContextSchema !== undefined) await validateRequestContext(config, requestContext)
  const merged = Object.assign(mergeOptions(defaults, options), { requestContext })
  checkOptions(merged, config.id === undefined ? 'the agent' : `agent '${config.id}'`)
  return merged
}

/** The options of a legacy call: its own, over the agent's defaults for that method. */
export async function legacyOptions(
  config: AgentConfig, key: 'defaultGenerateOptionsLegacy' | 'defaultStreamOptionsLegacy', given: LegacyOptions,
): Promise<AgentExecutionOptions<never>> {
  const options = fromLegacyOptions(given)
  const defaults = config[key]
  if (!defaults || typeof options !== 'object' || options === null) return options as AgentExecutionOptions<never>
  const context = { requestContext: contextOf(config, options.requestContext) }
  const legacy = fromLegacyOptions(expectObject(await resolve(defaults, context), key, nameOf(config)))
  if (typeof defaults === 'function') checkDefaults(legacy, `${key} of agent '${nameOf(config)}'`)
  return mergeOptions(legacy, options) as AgentExecutionOptions<never>
}

function nameOf({ id, name }: AgentConfig): string {
  return id ?? name ?? 'without a name'
}

/** The environment of the run, and the site for its subagents. */
interface RunSurroundings {
  environment: RunEnvironment
  site: Site
}

/** Resolves everything a run needs for its request. Rejects with the name of what is missing. */
export function prepareRun(
  config: AgentConfig,
  agent: Runnable,
  given: AgentExecutionOptions,
  request: RunRequest,
  surroundings: RunSurroundings,
): Promise<PreparedRun> {
  return unlessAborted(resolveSetup(config, agent, given, request, surroundings), given.abortSignal)
}

async function resolveSetup(
  config: AgentConfig,
  agent: Runnable,
  given: AgentExecutionOptions,
  request: RunRequest,
  { environment, site }: RunSurroundings,
): Promise<PreparedRun> {
  const merged = await resolveMergedOptions(config, given)
  const answering = answeringOn(site, agent.id, request, merged)
  const options = answering ? withSession(merged, answering) : merged
  const context = { requestContext: options.requestContext }
  const model = options.model ?? answering?.model ?? (config.model === undefined ? undefined : await resolve(config.model, context))
  if (model === undefined)
    throw new HeedError('model_missing', `Agent '${agent.id}' has no model. Give it one: new Agent({ model: 'openai/gpt-5.5', … }).`)
  const { input, output } = await resolveProcessors(config, options, agent.id)
  const pipeline = new ProcessorPipeline(
    input,
    output,
    options.maxProcessorRetries ?? config.maxProcessorRetries ?? defaultProcessorRetries,
  )
  const setting = request.fence && (await workingMemorySetting(config, options, [input, output]))
  const { threadId, resourceId } = request
  const { requestContext } = options
  const { clock, logger, newId } = environment
  const owner = { agent, threadId, resourceId, requestContext, clock, logger, newId }
  const check = pipeline.readsInput ? (texts: readonly string[]) => checkTexts(input, texts, owner) : undefined
  const working = await workingMemoryParts(setting, seatOf(setting, request, site.threads, pipeline.canReject), check)
  const own = config.watches && request.fence ? { ...working.tools, await_signal: awaitSignalTool(agent, site) } : working.tools
  const edited = await resolveEdit(agent, options, site, request)
  const { system, call, tools, structured } = await resolvePrompt(config, options, agent.id, site, { ...working, tools: own }, edited)
  const models = await resolveModels(model, agent.id)
  const recalled = await recallSources(config, options, [input, output], request, {
    runtime: site.threads,
    environment,
    hasInputProcessors: pipeline.readsInput,
  })
  const setup: PreparedRun = {
    id: request.runId,
    agent: { id: agent.id, name: agent.name },
    requestContext: options.requestContext,
    options: call ? mergeOptions({ providerOptions: call }, options) : options,
    models,
    system,
    tools: withinContext(tools, lostContext(request.lost ?? []), own),
    structured,
    processors: pipeline,
    context: working.context.concat(recalled),
    titler: request.fence && (await titlerFor(config, options, agent.id, environment)),
    transform: options.transform ?? config.transform,
    reservedTags: config.signalTags ?? [],
    toolPolicy: site.toolPolicy,
    agentOf: (runId) => site.threads.agentOf(runId),
    trace: request.trace,
    clock: environment.clock,
    logger: environment.logger,
    newId: environment.newId,
    rows: request.rows,
    inputCount: request.inputCount,
    stepsDone: request.stepsDone,
  }
  const scores = await scoresOf(config, agent, options, request, site, edited?.edit.version)
  if (scores) setup.scores = scores
  if (edited) setup.edit = edited.edit
  if (request.threadId !== undefined) setup.threadId = request.threadId
  if (request.resourceId !== undefined) setup.resourceId = request.resourceId
  return setup
}

/** The work to score the run: by the scorers of the call, else by those of the agent. */
async function scoresOf(
  config: AgentConfig, agent: Runnable, { scorers: called, requestContext }: ResolvedOptions, request: RunRequest, site: Site,
  agentVersion: number | undefined,
): Promise<PreparedRun['scores']> {
  const { runId, threadId, resourceId, fence, trace } = request
  if (called && Object.keys(called).length > 0 && !fence) {
    const message = 'scorers have no effect: runs without a thread are not scored. Pass memory: { thread, resource }.'
    throw new HeedError('invalid_argument', message, { details: { option: 'scorers' } })
  }
  if (!fence || threadId === undefined || resourceId === undefined || !(called ?? config.scorers)) return undefined
  const own = await resolveScorers(config, requestContext, agent.id)
  const selected = selectScorers(called ? scorersOfCall(called, own, site.scorers) : own, runId, {
    requestContext: requestContext.all, entity: { id: agent.id, name: agent.name }, entityType: 'agent', source: 'live', threadId,
    resourceId,
  })
  if (selected.length === 0) return undefined
  const about = { ...trace?.ids, ...(agentVersion === undefined ? {} : { agentVersion }) }
  return {
    rows: ({ status }) => selected.flatMap(({ scorer: { id, version }, on }) =>
      on.some((end) => end === status) ? [{ scorerId: id, version, ...about }] : []),
    onStored: () => site.scoring.wake(),
  }
}

/** The model of a voice session on the thread, unless the call names another one or asks for an object. */
function answeringOn(
  { answering }: Site, agentId: string, { threadId, fence }: RunRequest, { model, structuredOutput: object }: ResolvedOptions,
): AnsweringModel | undefined {
  return fence && threadId !== undefined && !model && !object ? answering.get(answeringKey(agentId, threadId)) : undefined
}

/** The session may add tools and instructions. */
function withSession(options: ResolvedOptions, { tools, instructions }: AnsweringModel): ResolvedOptions {
  const [added, texts] = [tools() as ToolsInput, instructions()]
  const before = options.system === undefined ? [] : systemMessages(options.system)
  const system = [...before, ...texts.map((content) => ({ role: 'system' as const, content }))]
  return {
    ...options,
    ...(Object.keys(added).length > 0 ? { tools: { ...options.tools, ...added } } : {}),
    ...(texts.length > 0 ? { system } : {}),
  }
}

/** The start of every prompt of the run, and the tools that are `offered` with it unless a processor changes them. */
export async function resolvePrompt(
  config: AgentConfig, options: ResolvedOptions, agent: string, site: Site, working: WorkingMemoryParts, edited?: AppliedEdit,
) {
  const structured = options.structuredOutput ? await structuredOutput(options.structuredOutput) : undefined
  const { system, call } = splitProviderOptions(await resolveInstructions(config, options, edited?.overrides.instructions))
  const instructions = [...system, ...working.system]
  const tools = await resolveToolSet(config, options, agent, site, working.tools, edited)
  const { activeTools } = options
  return {
    system:
      structured?.instruction === undefined
        ? instructions
        : [...instructions, { role: 'system' as const, content: structured.instruction }],
    /** Provider options of the instructions that belong to the call. */
    call,
    tools,
    offered: tools.definitions.filter(({ name }) => !activeTools || activeTools.includes(name)),
    structured,
  }
}

async function resolveInstructions(
  config: AgentConfig, options: ResolvedOptions, edited: string | undefined,
): Promise<SystemMessage[]> {
  const own =
    options.instructions ??
    edited ??
    (config.instructions === undefined ? '' : await resolve(config.instructions, { requestContext: options.requestContext }))
  return [...systemMessages(own), ...(options.system === undefined ? [] : systemMessages(options.system))] as SystemMessage[]
}

export async function resolveToolSet(
  config: AgentConfig,
  options: ResolvedOptions,
  agent: string,
  site: Site,
  memoryTools: ToolsInput = {},
  edited?: AppliedEdit,
): Promise<ToolSet> {
  const context = { requestContext: options.requestContext }
  const sources: Array<{ from: string; tools: ToolsInput }> = []
  if (config.tools) sources.push({ from: `the tools of agent '${agent}'`, tools: await resolve(config.tools, context) })
  if (config.agents)
    sources.push({
      from: `the agents of agent '${agent}'`,
      tools: agentTools(expectObject(await resolve(config.agents, context), 'agents', agent), site, config.maxAgentDepth),
    })
  if (config.workflows)
    sources.push({
      from: `the workflows of agent '${agent}'`,
      tools: await workflowTools(expectObject(await resolve(config.workflows, context), 'workflows', agent), site),
    })
  const own = sources.length
  if (options.tools) sources.push({ from: "the call's tools", tools: options.tools })
  for (const [name, tools] of Object.entries(options.toolsets ?? {}))
    if (tools !== undefined) sources.push({ from: `the toolset '${name}'`, tools })
  if (options.clientTools) {
    // Also those of a run that another process began: their schemas were checked where they arrived.
    markSchemas(options.clientTools)
    sources.push({ from: "the client's tools", tools: options.clientTools })
  }
  if (Object.keys(memoryTools).length > 0) sources.push({ from: `the memory of agent '${agent}'`, tools: memoryTools })
  const found = sources.length === 0 ? emptyToolSet : await resolveTools(sources)
  const names = edited && new Set(sources.slice(0, own).flatMap((source) => Object.keys(source.tools)))
  const tools = edited && names ? editTools(found, names, edited) : found
  checkToolNames(options, tools)
  return tools
}

function markSchemas(tools: ToolsInput): void {
  for (const tool of Object.values(tools)) {
    const schema = (tool as { inputSchema?: unknown } | undefined)?.inputSchema
    if (typeof schema === 'object' && schema !== null) markOutsideSchema(schema)
  }
}

/**
 * The tools of a run that lost keys of its request context with an earlier process. A tool may need them, so that it fails instead of
 * running; called agents check their own tools, and the tools of memory (`own`) need no context.
 */
function withinContext(tools: ToolSet, lost: readonly string[], own: ToolsInput): ToolSet {
  if (lost.length === 0) return tools
  const keys = lost.map((key) => `'${key}'`).join(', ')
  const refuse = (name: string) => () => {
    throw new HeedError(
      'tool_interrupted',
      `${name} was not run: ${keys} of the request context cannot be stored as JSON and was lost when its process ended. Start a new run.`,
    )
  }
  const checked = [...tools.tools].map(([name, resolved]): [string, ResolvedTool] => {
    const { tool } = resolved
    if (!tool.execute || isAgentTool(tool) || own[name] === tool) return [name, resolved]
    return [name, { ...resolved, tool: { ...tool, requireApproval: () => Promise.resolve(false), execute: refuse(name) } }]
  })
  return { ...tools, tools: new Map(checked) }
}

/** The processors of a call, in the order in which their hooks are called. */
export async function resolveProcessors(config: AgentConfig, options: ResolvedOptions, agent: string) {
  const context = { requestContext: options.requestContext }
  const [input = config.inputProcessors ?? [], output = config.outputProcessors ?? []] = [options.inputProcessors, options.outputProcessors]
  const found = {
    input: plainProcessors(expectList(await resolve<Processor[]>(input, context), 'inputProcessors', agent)),
    output: plainProcessors(expectList(await resolve<Processor[]>(output, context), 'outputProcessors', agent)),
  }
  checkProcessors(found, agent)
  return found
}

/** The fields of a thread that a call may create, for the store. Options are resolved only where the metadata has working memory. */
export async function describeThread(
  config: AgentConfig, thread: { title?: string; metadata?: JSONObject }, given: AgentExecutionOptions, agent: string,
): Promise<NonNullable<Send['thread']>> {
  const { metadata, ...rest } = thread
  if (metadata?.workingMemory === undefined) return thread
  const options = await resolveOptions(config, given)
  const { input, output } = await resolveProcessors(config, options, agent)
  return { ...rest, ...(await splitMetadata(await workingMemorySetting(config, options, [input, output]), metadata)) }
}
