import type { Agent } from '../../agent/agent.ts'
import { HeedError } from '../../base/errors.ts'
import { omitUndefined } from '../request/fields.ts'
import { route, type Call, type Route } from '../route.ts'
import { agent as agentSchema, agentsById, tool as toolSchema } from '../schema/response-schemas.ts'

export const agents: readonly Route[] = [
  route({
    method: 'GET', path: '/agents', summary: 'The agents of this server', response: 'json', responseSchema: agentsById,
    async handle(call) {
      const all = Object.values(call.heed.listAgents())
      return Object.fromEntries(await Promise.all(all.map(async (agent) => [agent.id, await describeAgent(call, agent)]))) as object
    },
  }),
  route({
    method: 'GET', path: '/agents/:agentId', summary: 'One agent', response: 'json', responseSchema: agentSchema,
    handle: (call) => describeAgent(call, call.agent),
  }),
  route({
    method: 'GET', path: '/agents/:agentId/tools/:toolId', summary: 'One tool of an agent', response: 'json', responseSchema: toolSchema,
    async handle(call) {
      const { toolId = '' } = call.params
      const { tools } = await call.agent.describe(omitUndefined({ requestContext: await call.context() }))
      const tool = tools.find(({ id }) => id === toolId)
      if (!tool) throw new HeedError('not_found', `Agent '${call.agent.id}' has no tool '${toolId}'.`, { details: { toolId } })
      return describeTool(tool)
    },
  }),
]

type DescribedTool = Awaited<ReturnType<Agent['describe']>>['tools'][number]

/** Existing clients read the schema of the input as a text. */
function describeTool(tool: DescribedTool): object {
  return tool.inputSchema === undefined ? tool : { ...tool, inputSchema: JSON.stringify(tool.inputSchema) }
}

/** The description of an agent that existing clients display. Its instructions are not revealed. */
async function describeAgent(call: Call<unknown, unknown>, agent: Agent): Promise<object> {
  const request = omitUndefined({ requestContext: await call.context() })
  const orWarn = <T>(what: string, fallback: T) => (error: unknown): T => {
    // What is created for a request may fail without one; the agent itself can still be described.
    call.heed.logger.warn(`${what} of an agent could not be described`, { agentId: agent.id, error: String(error) })
    return fallback
  }
  const [{ model, tools }, metadata] = await Promise.all([
    agent.describe(request).catch(orWarn('the model and the tools', { model: undefined, tools: [] })),
    agent.getMetadata(request).catch(orWarn('the metadata', {})),
  ])
  return {
    id: agent.id,
    name: agent.name,
    description: agent.description ?? '',
    metadata,
    instructions: '',
    tools: Object.fromEntries(tools.map((tool) => [tool.id, describeTool(tool)])),
    agents: {},
    workflows: {},
    skills: [],
    workspaceTools: [],
    browserTools: [],
    hasBrowser: false,
    hasDraft: false,
    inputProcessors: [],
    outputProcessors: [],
    provider: model?.provider ?? '',
    modelId: model?.modelId ?? '',
    modelVersion: model?.specificationVersion ?? '',
    supportsMemory: true,
    defaultOptions: {},
    defaultGenerateOptionsLegacy: {},
    defaultStreamOptionsLegacy: {},
    source: 'code',
  }
}
