import type { Agent } from '../../agent/agent.ts'
import { HeedError } from '../../base/errors.ts'
import type { Scope } from '../../store/contract/threads.ts'

/** Of a thread that isn't there is told what is told of somebody else's: in this process it would be one to which nothing was sent yet. */
export async function there(agent: Pick<Agent, 'getMemory'>, scope: Scope): Promise<Scope> {
  const { threadId } = scope
  if (!(await (await agent.getMemory()).getThreadById(scope))) throw new HeedError('thread_not_found', 'There is no such thread.', { details: { threadId } })
  return scope
}
