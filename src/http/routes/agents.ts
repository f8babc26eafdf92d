import type { Agent } from '../../agent/agent.ts'
import { omitUndefined } from '../request/fields.ts'
import { route, type Call, type Route } from '../route.ts'
import { agent as agentSchema, agentsById } from '../schema/response-schemas.ts'

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
]

/** The description of an agent that existing clients display. Its instructions are not revealed. */
async function describeAgent(call: Call<unknown, unknown>, agent: Agent): Promise<object> {
  const { model, tools } = await agent.describe(omitUndefined({ requestContext: await call.context() })).catch((error: unknown) => {
    // Tools that are created for a request may fail without one; the agent itself can still be described.
    call.heed.logger.warn('the model and the tools of an agent could not be described', { agentId: agent.id, error: String(error) })
    return { model: undefined, tools: [] }
  })
  const toolEntries = tools.map((tool) => {
    return [tool.id, tool.inputSchema === undefined ? tool : { ...tool, inputSchema: JSON.stringify(tool.inputSchema) }] as const
  })
  return {
    id: agent.id,
    name: agent.name,
    description: agent.description ?? '',
    instructions: '',
    tools: Object.fromEntries(toolEntries),
    agents: {},
    workflows: {},
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
