import type { Agent } from '../../agent/agent.ts'
import { agent as agentShape, agentsById } from '../schema/answer-schemas.ts'
import { route, type Call, type Route } from '../route.ts'
import { given } from './threads.ts'

export const agents: readonly Route[] = [
  route({
    method: 'GET', path: '/agents', summary: 'The agents of this server', answer: 'json', answers: agentsById,
    handle: async (call) => Object.fromEntries(await Promise.all(Object.values(call.heed.listAgents()).map(async (agent) => [agent.id, await described(call, agent)]))) as object,
  }),
  route({ method: 'GET', path: '/agents/:agentId', summary: 'One agent', answer: 'json', answers: agentShape, handle: (call) => described(call, call.agent) }),
]

/** What existing clients show of an agent. Its instructions stay here. */
async function described(call: Call<unknown, unknown>, agent: Agent): Promise<object> {
  const { model, tools } = await agent.describe(given({ requestContext: await call.context() })).catch((error: unknown) => {
    // Tools that are made for a request may not be to be had without one; the agent is there all the same.
    call.heed.logger.warn('an agent could not be described', { agentId: agent.id, error: String(error) })
    return { model: undefined, tools: [] }
  })
  return {
    id: agent.id,
    name: agent.name,
    description: agent.description ?? '',
    instructions: '',
    tools: Object.fromEntries(tools.map((tool) => [tool.id, { ...tool, ...(tool.inputSchema === undefined ? {} : { inputSchema: JSON.stringify(tool.inputSchema) }) }])),
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
