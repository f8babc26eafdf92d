import { HeedError } from '../../base/errors.ts'
import type { Scope } from '../../store/contract/threads.ts'
import { errorRowId } from '../runtime/error-row.ts'
import type { Runnable } from '../runtime/runnable.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'

/**
 * Takes up a run that was parked, the newest one of the thread unless it is named. It goes on from its last finished step; the
 * message that said it was parked goes.
 */
export async function retryParked(runtime: ThreadRuntime, agent: Runnable, scope: Scope, runId?: string): Promise<string> {
  runtime.register(agent)
  await runtime.open()
  const thread = await runtime.store.getThread(scope)
  const run = runId === undefined ? (await runtime.store.listRuns({ threadId: scope.threadId, status: ['parked'], limit: 1 }))[0] : await runtime.store.getRun(scope, runId)
  if (!thread || !run) {
    throw new HeedError('run_not_parked', `No parked run was found on thread ${scope.threadId}.`, { details: { ...scope, ...(runId === undefined ? {} : { runId }) } })
  }
  const owner = runtime.knows(run.agentId) ? { owner: runtime.owner } : {}
  const { fence } = await runtime.store.retryParked(scope, run.runId, { ...owner, removed: [errorRowId(run.runId)] })
  if (fence) runtime.run(fence, thread.resourceId)
  return run.runId
}
