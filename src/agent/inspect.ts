import { resolveEdit } from '../editor/applied.ts'
import type { Site } from '../heed/site.ts'
import type { WorkingMemorySetting } from '../memory/working-memory/setting.ts'
import type { AgentInput } from '../message/read/input.ts'
import type { MessageRow } from '../message/row.ts'
import type { Processor } from '../processors/processor.ts'
import { explainPrompt, type ExplainedPrompt } from '../prompt/explain.ts'
import { asChecked } from '../run/loop/other-agents.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import type { RequestContext } from '../run/request-context.ts'
import { needsNoApproval } from '../run/tools/tool.ts'
import { isUserAuthored } from '../signals/conversions.ts'
import type { Scope } from '../store/contract/threads.ts'
import { explainSignal, type ExplainedSignal } from '../thread/control/inspect.ts'
import { resolveMemoryOptions } from '../thread/send/stored-options.ts'
import type { ExplainedWatch } from '../watch/explain.ts'
import type { Askable } from './askable.ts'
import { resolve, type AgentConfig } from './config.ts'
import { inputRows } from './input.ts'
import { previewRecall } from './memory/semantic-recall.ts'
import { previewWorkingMemory, workingMemoryParts, workingMemorySetting } from './memory/working-memory.ts'
import { checkExplained, checkMemory, targetIn, validateArguments, type ResolvedOptions } from './options.ts'
import { resolveOptions, resolveProcessors, resolvePrompt, resolveToolSet } from './prepare.ts'
import { explainWatch, type WatchToExplain } from './watches.ts'

/** The model and the tools of an agent, as JSON. */
export interface AgentDescription {
  /** The first model that it calls; undefined when it has none. */
  model: { provider: string; modelId: string; specificationVersion?: string } | undefined
  /** As they are offered to a model. `requireApproval`: always, or for some inputs. */
  tools: Array<{ id: string; description?: string; inputSchema?: unknown; requireApproval?: boolean }>
}

export async function describeAgent(
  config: AgentConfig,
  id: string,
  site: Site,
  requestContext: RequestContext,
): Promise<AgentDescription> {
  const { definitions, tools: resolved } = await resolveToolSet(config, { requestContext }, id, site)
  const tools = definitions.map((definition) => {
    const own = resolved.get(definition.name)?.tool
    return {
      id: definition.name,
      ...('inputSchema' in definition ? { description: definition.description ?? '', inputSchema: definition.inputSchema } : {}),
      ...(own ? { requireApproval: !needsNoApproval(own) } : {}),
    }
  })
  return { model: await describeModel(config, requestContext), tools }
}

/** Names the model without loading it: listing agents needs no provider package. */
async function describeModel(config: AgentConfig, requestContext: RequestContext): Promise<AgentDescription['model']> {
  const given: unknown = config.model === undefined ? undefined : await resolve(config.model, { requestContext })
  const first: unknown = Array.isArray(given) ? given[0] : given
  const model: unknown = typeof first === 'object' && first !== null && 'model' in first ? first.model : first
  if (typeof model === 'string') {
    const slash = model.indexOf('/')
    return { provider: model.slice(0, Math.max(0, slash)), modelId: model.slice(slash + 1) }
  }
  if (typeof model !== 'object' || model === null || !('provider' in model) || !('modelId' in model)) return undefined
  return {
    provider: String(model.provider),
    modelId: String(model.modelId),
    ...('specificationVersion' in model ? { specificationVersion: String(model.specificationVersion) } : {}),
  }
}

/** A signal of a thread. */
export type SignalName = Scope & { signalId: string }

/** What is explained of a signal, or of a watch. */
export type Explained<Asked> = Asked extends { watchId: string } ? ExplainedWatch : ExplainedSignal

export async function explain<Asked extends SignalName | WatchToExplain>(agent: Askable, asked: Asked): Promise<Explained<Asked> | null> {
  // Callers may pass what the types forbid, which the branches reject.
  const ofWatch = typeof asked === 'object' && asked !== null && 'watchId' in asked
  const explained = ofWatch ? await explainWatch(agent, asked) : await explainSent(agent, asked)
  return explained as Explained<Asked> | null
}

async function explainSent(agent: Askable, signal: SignalName): Promise<ExplainedSignal | null> {
  const { signalId, ...scope } = validateArguments('explain', signal)
  const runtime = (await agent.resolveStorage()).threads()
  await runtime.open()
  return explainSignal(runtime.store, scope, signalId)
}

/**
 * The parts of the next prompt, working memory and recall included, and how much of it the provider saw in the last call. Calls no
 * processor and stores nothing.
 */
export async function explainAgentPrompt(
  agent: Askable,
  config: AgentConfig,
  messages: AgentInput,
  given: AgentExecutionOptions,
): Promise<ExplainedPrompt> {
  checkExplained(given)
  const options = await resolveOptions(config, given)
  if (!targetIn(options)) delete options.memory
  const { input: before, output: after } = await resolveProcessors(config, options, agent.id)
  const setting = options.memory && (await workingMemorySetting(config, options, [before, after]))
  const working = await workingMemoryParts(setting)
  const target = options.memory && checkMemory(options.memory)
  const edited = await resolveEdit(agent, options, (await agent.resolveStorage(options.requestContext)).site(), target ?? {})
  const { system, offered: tools } = await resolvePrompt(config, options, agent.id, agent.site(), working, edited)
  const tags = agent.signalTags
  const input = inputRows(agent, messages)
  const history = await readHistory(agent, options, input.filter((row) => isUserAuthored(row)).length)
  // The prompt of the last call: all rows before its answer.
  const answered = history.findLastIndex((row) => row.role === 'assistant')
  const previous = answered < 0 ? [] : explainPrompt({ system, tools, tags, rows: history.slice(0, answered) }).fingerprints
  const context = await contextRows(agent, config, options, { setting, processors: [before, after], history, input })
  const explained = explainPrompt({ system, tools, tags, rows: [...history, ...input, ...context], previous, texts: true })
  return edited ? { ...explained, edit: edited.edit } : explained
}

interface PromptRows {
  setting: WorkingMemorySetting | undefined
  processors: ReadonlyArray<readonly Processor[]>
  history: readonly MessageRow[]
  input: readonly MessageRow[]
}

/** The context rows, in the order in which a run adds them. */
async function contextRows(
  agent: Askable,
  config: AgentConfig,
  options: ResolvedOptions,
  { setting, processors, history, input }: PromptRows,
): Promise<MessageRow[]> {
  if (!options.memory) return []
  const runtime = (await agent.resolveStorage(options.requestContext)).threads()
  const scope = checkMemory(options.memory)
  await runtime.open()
  const working = await previewWorkingMemory(setting, runtime.store, scope, [...history, ...input])
  const recalled = await previewRecall(config, options, processors, runtime, { ...scope, history, input })
  return [working, recalled].flatMap((block) => {
    if (!block) return []
    const id = runtime.newId()
    return {
      id,
      messageId: id,
      role: 'context',
      createdAt: new Date(runtime.clock.now()),
      content: { format: 2, parts: [{ type: 'text', text: block.text }], metadata: block.metadata },
    }
  })
}

/** The window of history that a call on the thread would read. */
export async function readHistory(agent: Askable, options: AgentExecutionOptions, coming: number): Promise<MessageRow[]> {
  if (!options.memory) return []
  const scope = checkMemory(options.memory)
  const runtime = (await agent.resolveStorage(options.requestContext)).threads()
  await runtime.open()
  if (!(await runtime.store.getThread(scope))) return []
  return [...asChecked(await runtime.store.readWindow(scope, agent.window(await resolveMemoryOptions(agent, options)), coming), agent.id)]
}
