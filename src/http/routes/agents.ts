import type { Agent } from '../../agent/agent.ts'
import { agent as agentShape, agentsById } from '../answer-schemas.ts'
import { route, type Route } from '../route.ts'

export const agents: readonly Route[] = [
  route({
    method: 'GET', path: '/agents', summary: 'The agents of this server', answer: 'json', answers: agentsById,
    handle: ({ heed }) => Object.fromEntries(Object.values(heed.listAgents()).map((agent) => [agent.id, described(agent)])),
  }),
  route({ method: 'GET', path: '/agents/:agentId', summary: 'One agent', answer: 'json', answers: agentShape, handle: ({ agent }) => described(agent) }),
]

function described({ id, name, description }: Agent): { id: string; name: string; description?: string } {
  return { id, name, ...(description === undefined ? {} : { description }) }
}
