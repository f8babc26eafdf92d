import type { JSONObject } from '../base/json.ts'
import type { Site } from '../heed/site.ts'
import { splitMetadata } from '../memory/working-memory/access.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { Send } from '../store/contract/threads.ts'
import { resolve, type AgentConfig } from './config.ts'
import { workingMemorySetting } from './memory/working-memory.ts'
import { resolveOptions, resolveProcessors, resolveToolSet } from './prepare.ts'

/** The model and the tools of an agent, as JSON. */
export interface AgentDescription {
  /** The first model that it calls; undefined when it has none. */
  model: { provider: string; modelId: string; specificationVersion?: string } | undefined
  /** As they are offered to a model. */
  tools: Array<{ id: string; description?: string; inputSchema?: unknown }>
}

export async function describeAgent(
  config: AgentConfig,
  id: string,
  site: Site,
  requestContext: RequestContext,
): Promise<AgentDescription> {
  const { definitions } = await resolveToolSet(config, { requestContext }, id, site)
  const tools = definitions.map((definition) => ({
    id: definition.name,
    ...('inputSchema' in definition ? { description: definition.description ?? '', inputSchema: definition.inputSchema } : {}),
  }))
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
