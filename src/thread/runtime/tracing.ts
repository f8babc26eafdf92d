import type { RunResult } from '../../run/output/run-result.ts'
import type { BegunRun } from '../../store/contract/threads.ts'
import { runInTrace, traceRun, type RunTrace } from '../../tracing/run-trace.ts'
import type { LocalCall } from '../send/waiters.ts'
import type { ThreadRuntime } from './runtime.ts'
import { takenRows } from './drained-rows.ts'

/** Does a run on a thread, traced where somebody traces: below whoever called for it and waits, else alone, with links to what woke it. */
export function tracedRun(
  runtime: ThreadRuntime, { run, thread, taken, resumed }: BegunRun, callers: readonly LocalCall[], work: (trace: RunTrace | undefined) => Promise<RunResult>,
): Promise<RunResult> {
  const trace = traceRun(runtime.tracing, () => ({
    agent: { id: run.agentId, name: runtime.knows(run.agentId) ? runtime.agent(run.agentId).name : run.agentId },
    runId: run.runId,
    threadId: thread.id,
    resourceId: thread.resourceId,
    parent: callers.find(({ from }) => from)?.from,
    drained: takenRows(taken),
    ...(resumed ? { resumed: { attempt: run.attempts } } : {}),
  }))
  return runInTrace(trace, () => work(trace))
}
