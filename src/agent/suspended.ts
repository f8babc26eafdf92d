import type { JSONValue } from '../base/json.ts'
import type { ChildCall, RunFilter, RunRow } from '../store/contract/threads.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'

/** A run that waits for somebody. */
export interface SuspendedRun {
  runId: string
  status: 'suspended'
  threadId: string
  resourceId: string
  agentId: string
  suspendedAt: Date
  toolCalls: Array<{ toolCallId: string; toolName: string; args: JSONValue; requiresApproval: boolean; suspendPayload?: JSONValue; child?: ChildCall }>
}

export interface SuspendedRunsFilter {
  threadId?: string
  resourceId?: string
  /** Since when they wait, as `suspendedAt` tells it; both included. */
  fromDate?: Date
  toDate?: Date
  page?: number
  perPage?: number
  /** Also say how many there are on all pages. */
  total?: boolean
}

export interface SuspendedRuns {
  runs: SuspendedRun[]
  /** On request. */
  total?: number
}

/** Newest first. They are rows: those of an earlier process are among them. */
export async function listSuspendedRuns(runtime: ThreadRuntime, agentId: string, filter: SuspendedRunsFilter): Promise<SuspendedRuns> {
  await runtime.open()
  const { threadId, resourceId, fromDate, toDate, page = 0, perPage = 100 } = filter
  const wanted: RunFilter = {
    status: ['suspended'],
    agentId,
    ...(threadId === undefined ? {} : { threadId }),
    ...(resourceId === undefined ? {} : { resourceId }),
    ...(fromDate === undefined ? {} : { from: fromDate.getTime() }),
    ...(toDate === undefined ? {} : { to: toDate.getTime() }),
  }
  const runs = await runtime.store.listRuns({ ...wanted, limit: perPage, offset: page * perPage })
  return { runs: runs.map(suspendedRun), ...(filter.total ? { total: await runtime.store.countRuns(wanted) } : {}) }
}

function suspendedRun({ runId, threadId, resourceId, agentId, suspendedAt = 0, suspended }: RunRow): SuspendedRun {
  return {
    runId,
    status: 'suspended',
    threadId,
    resourceId,
    agentId,
    suspendedAt: new Date(suspendedAt),
    toolCalls: suspended.filter((call) => !call.decision).map(({ toolCallId, toolName, args, kind, payload, child }) => ({
      toolCallId,
      toolName,
      args,
      requiresApproval: kind === 'approval',
      ...(payload === undefined ? {} : { suspendPayload: payload }),
      ...(child ? { child } : {}),
    })),
  }
}
