import type { RequestContext } from '../run/request-context.ts'
import type { Site } from '../heed/site.ts'
import type { AgentConfig } from './config.ts'
import { resolveToolSet } from './prepare.ts'
import { resolve } from './resolve.ts'

/** What an agent is made of, as far as it can be said in JSON. */
export interface AgentDescription {
  /** The first one it asks; undefined when it has none. */
  model: { provider: string; modelId: string; specificationVersion?: string } | undefined
  /** As a model is offered them. */
  tools: Array<{ id: string; description?: string; inputSchema?: unknown }>
}

export async function describeAgent(config: AgentConfig, id: string, site: Site, requestContext: RequestContext): Promise<AgentDescription> {
  const { definitions } = await resolveToolSet(config, { requestContext }, id, site)
  const tools = definitions.map((definition) => ({ id: definition.name, ...('inputSchema' in definition ? { description: definition.description ?? '', inputSchema: definition.inputSchema } : {}) }))
  return { model: await modelOf(config, requestContext), tools }
}

/** Named, and not loaded: whoever lists agents needs no provider. */
async function modelOf(config: AgentConfig, requestContext: RequestContext): Promise<AgentDescription['model']> {
  const given: unknown = config.model === undefined ? undefined : await resolve(config.model, { requestContext })
  const first: unknown = Array.isArray(given) ? given[0] : given
  const model: unknown = typeof first === 'object' && first !== null && 'model' in first ? first.model : first
  if (typeof model === 'string') {
    const slash = model.indexOf('/')
    return { provider: model.slice(0, Math.max(0, slash)), modelId: model.slice(slash + 1) }
  }
  if (typeof model !== 'object' || model === null || !('provider' in model) || !('modelId' in model)) return undefined
  return { provider: String(model.provider), modelId: String(model.modelId), ...('specificationVersion' in model ? { specificationVersion: String(model.specificationVersion) } : {}) }
}
