import type { AgentExecutionOptions } from '../../run/options.ts'
import type { Send } from '../../store/contract/threads.ts'
import type { Runnable } from '../runtime/runnable.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { storedOptions } from './stored-options.ts'

/** A send that is a turn of its own behind whatever is active, and is run here where it wakes the thread. */
export async function turnOf(
  runtime: ThreadRuntime, agent: Runnable, what: Pick<Send, 'threadId' | 'resourceId' | 'id' | 'rows' | 'runId'>, options: AgentExecutionOptions,
): Promise<Send> {
  const stored = await storedOptions(agent, options)
  return {
    ...what,
    agentId: agent.id,
    mode: 'queue',
    ifActive: { behavior: 'deliver' },
    ifIdle: { behavior: 'wake' },
    claim: { owner: runtime.owner },
    ...(stored ? { options: stored } : {}),
    now: runtime.clock.now(),
  }
}
