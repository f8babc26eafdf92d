import { refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import type { JSONValue } from '../base/json.ts'
import { RequestContext } from '../run/request-context.ts'
import { describeIssues } from '../schema/compile.ts'
import type { ApprovalRequest, ChildCall, RunFilter, RunRow, SuspendedCall } from '../store/contract/threads.ts'
import { decide, type Decision } from '../thread/control/resume.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { restoreOptions } from '../thread/send/stored-options.ts'
import type { Askable } from './askable.ts'
import type { AgentConfig } from './config.ts'
import { resolveToolSet } from './prepare.ts'

/** A decision about a suspended call on a thread. */
export interface ToolApproval {
  /** Identifies the decision on its thread: a repeat returns the result of the first. */
  id?: string
  resourceId: string
  threadId: string
  /** May be left out when one call is suspended. Rejected where the call has asked before: name the request instead. */
  toolCallId?: string
  /** `request.id` of the chunk or of the suspended run. */
  approvalId?: string
  /** `request.digest`: the decision is rejected if the request has another one. */
  digest?: string
  /** Names the decider in the results of this decision and of later ones. */
  by?: string
  approved: boolean
  /** Why it was declined; the model reads it. */
  declineContext?: { reason?: string; message?: string }
  resumeData?: JSONValue
}

/** A suspended run, and one of its calls. */
export interface SuspendedTarget {
  runId: string
  /** May be left out when one call is suspended. Rejected where the call has asked before: name the request instead. */
  toolCallId?: string
  /** As in `ToolApproval`. */
  approvalId?: string
  digest?: string
  by?: string
  /** Rejects the decision when the run belongs to another resource. */
  resourceId?: string
}

/** Data for a call that suspended itself. */
export interface CallResume {
  /** Identifies the decision on its thread: a repeat returns the result of the first. */
  id?: string
  resourceId: string
  threadId: string
  runId?: string
  toolCallId?: string
  /** As in `ToolApproval`. */
  approvalId?: string
  digest?: string
  by?: string
  resumeData: JSONValue
}

export interface CallDecided {
  accepted: true
  runId: string
  toolCallId: string
  /** What was decided. Of a repeated decision, what the first one decided, who made it and when. */
  decided: { approvalId?: string; approved?: boolean; reason?: string; by?: string; at: Date }
}

export function approveCall(agent: Askable, config: AgentConfig, { declineContext, ...decision }: ToolApproval): Promise<CallDecided> {
  const { reason = declineContext?.message, message = reason } = declineContext ?? {}
  if (reason !== message) throw refused('declineContext.message', 'that of declineContext.reason, or left out')
  // Left out by callers that resume a call: that is no decline.
  const approved: unknown = decision.approved
  if (approved === false && decision.resumeData !== undefined)
    throw refused('resumeData', 'left out where the call is declined: the tool does not run')
  return decideCall(agent, config, { ...decision, ...(reason === undefined ? {} : { reason }) })
}

export async function decideCall(agent: Askable, config: AgentConfig, decision: Decision): Promise<CallDecided> {
  await checkResumeData(agent, config, decision)
  const { runId, toolCallId, made } = await decide(agent.threads(), agent, decision)
  return { accepted: true, runId, toolCallId, decided: { ...made, at: new Date(made.at) } }
}

/** Resume data for a suspended call, addressed by its thread or by its run. */
interface ResumeTarget {
  threadId?: string
  resourceId?: string
  runId?: string
  toolCallId?: string | undefined
  approvalId?: string | undefined
  resumeData?: JSONValue
}

/**
 * Rejects data that the `resumeSchema` of the suspended tool does not allow; the call stays suspended. Only the agent's own tools are
 * known here, resolved with the run's request context: all of it while this process has it, else what is stored. A tool that came with
 * the call, or cannot be resolved, validates when it runs.
 */
export async function checkResumeData(agent: Askable, config: AgentConfig, resume: ResumeTarget): Promise<void> {
  if (resume.resumeData === undefined) return
  const waiting = await findSuspendedCall(agent, resume)
  if (!waiting) return
  const { toolName } = waiting.call
  const checked = await (await ownTool(agent, config, waiting))?.resume?.validate(resume.resumeData)
  if (!checked || checked.ok) return
  throw new HeedError(
    'invalid_argument',
    `resumeData does not match the resumeSchema of tool '${toolName}': ${describeIssues(checked.issues)}`,
    {
      details: { field: 'resumeData', issues: checked.issues },
    },
  )
}

interface SuspendedToolCall {
  requestContext: RequestContext | undefined
  call: SuspendedCall
}

async function ownTool(agent: Askable, config: AgentConfig, { requestContext = new RequestContext(), call }: SuspendedToolCall) {
  const site = agent.site()
  try {
    return (await resolveToolSet(config, { requestContext }, agent.id, site)).tools.get(call.toolName)
  } catch (error) {
    site.logger.warn('the tools of an agent could not be resolved to validate resumeData; the run validates it', {
      agentId: agent.id,
      error: String(error),
    })
    return undefined
  }
}

/** The suspended call; undefined also for a run of another resource, so that ids cannot be probed. */
async function findSuspendedCall(
  agent: Askable,
  { threadId, resourceId, runId, toolCallId, approvalId }: ResumeTarget,
): Promise<SuspendedToolCall | undefined> {
  const named = (calls: readonly SuspendedCall[]) => {
    const found = calls.filter((call) => {
      if (call.decision || (approvalId !== undefined && call.request?.id !== approvalId)) return false
      return toolCallId === undefined || call.toolCallId === toolCallId
    })
    return found.length === 1 ? found[0] : undefined
  }
  const kept = threadId === undefined && runId !== undefined ? agent.site().ephemeralRuns.suspended(runId) : undefined
  if (kept?.agentId === agent.id) {
    const call = named(kept.calls)
    return call && { call, requestContext: kept.options.requestContext }
  }
  const runtime = agent.threads()
  await runtime.open()
  const scope = threadId === undefined ? undefined : { threadId, ...(resourceId === undefined ? {} : { resourceId }) }
  const active = scope && (await runtime.store.getThread(scope))?.runId
  const run =
    scope && active !== undefined
      ? await runtime.store.getRun(scope, active)
      : runId === undefined
        ? null
        : await runtime.store.findRun(runId)
  if (!run || (resourceId !== undefined && run.resourceId !== resourceId)) return undefined
  const call = named(run.suspended)
  const { options } = restoreOptions(run.options, runtime.waiters.retainedOptions(run.runId))
  return call && { call, requestContext: options.requestContext }
}

/** A run that waits for decisions. */
export interface SuspendedRun {
  runId: string
  status: 'suspended'
  threadId: string
  resourceId: string
  agentId: string
  suspendedAt: Date
  toolCalls: Array<{
    toolCallId: string
    toolName: string
    args: JSONValue
    requiresApproval: boolean
    suspendPayload?: JSONValue
    /** What runs, or continues, once it is decided. Of an agent below, it is the call of that agent. */
    request?: ApprovalRequest
    child?: ChildCall
  }>
}

/** Which suspended runs `listSuspendedRuns()` returns. */
export interface SuspendedRunsFilter {
  threadId?: string
  resourceId?: string
  /** The range of `suspendedAt`, both ends included. */
  fromDate?: Date
  toDate?: Date
  page?: number
  perPage?: number
  /** Also count the runs on all pages. */
  total?: boolean
}

/** A page of suspended runs. */
export interface SuspendedRuns {
  runs: SuspendedRun[]
  /** On request. */
  total?: number
}

/** Reads suspended runs from the store, newest first, those of earlier processes included. */
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
    toolCalls: suspended.filter((call) => !call.decision).map(({ toolCallId, toolName, args, kind, payload, request, child }) => ({
      toolCallId,
      toolName,
      args,
      requiresApproval: kind === 'approval',
      ...(payload === undefined ? {} : { suspendPayload: payload }),
      ...(request ? { request } : {}),
      ...(child ? { child } : {}),
    })),
  }
}
