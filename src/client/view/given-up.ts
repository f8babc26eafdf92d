import { isHeedError } from '../../base/errors.ts'
import type { AgentClient, ThreadScope } from '../agent.ts'

/** Which of these signals no run will take: taken out before one did, refused, or never kept. Of what can't be known, none. */
export async function givenUp(agent: AgentClient, scope: ThreadScope, ids: readonly string[]): Promise<string[]> {
  const fates = await Promise.all(ids.map(async (id) => ((await isGivenUp(agent, scope, id)) ? [id] : [])))
  return fates.flat()
}

async function isGivenUp(agent: AgentClient, scope: ThreadScope, signalId: string): Promise<boolean> {
  try {
    const { state } = await agent.explain({ ...scope, signalId })
    return state === 'cancelled' || state === 'rejected'
  } catch (error) {
    return isHeedError(error) && error.code === 'not_found'
  }
}
