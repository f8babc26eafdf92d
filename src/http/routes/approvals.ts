import { queueTurn } from '../../agent/call.ts'
import { checkOptions } from '../../agent/options.ts'
import { HeedError } from '../../base/errors.ts'
import type { JSONValue } from '../../base/json.ts'
import type { AgentInput } from '../../message/read/input.ts'
import type { AgentExecutionOptions, WokenRunOptions } from '../../run/options.ts'
import type { RunResult } from '../../run/output/run-result.ts'
import { requireResource, resolveResource } from '../auth/principal.ts'
import { findCallerRun, unlessForeign } from '../request/access.ts'
import { checkRoles, omitUndefined, parseDate, readRunOptions } from '../request/fields.ts'
import { route, type Call, type ObjectSchema, type Route } from '../route.ts'
import { decided, fullOutput, suspendedRuns } from '../schema/response-schemas.ts'
import { anything, continuedOptions, date, flag, id, object, page, perPage, record, text, threadScope } from '../schema/schemas.ts'
import { fullOutputResponse } from './generate.ts'

interface Approval {
  resourceId?: string
  threadId: string
  toolCallId?: string
  approvalId?: string
  digest?: string
  approved: boolean
  resumeData?: JSONValue
  declineContext?: { reason?: string; message?: string }
  /** The results of tools that the client executed: the conversation continues with them. */
  messages?: AgentInput
  streamOptions?: Record<string, unknown>
}

interface Decision {
  runId: string
  toolCallId?: string
  approvalId?: string
  digest?: string
  reason?: string
  resumeData?: JSONValue
}

interface SuspendedQuery {
  threadId?: string
  resourceId?: string
  fromDate?: string
  toDate?: string
  page?: number
  perPage?: number
}

const request = { toolCallId: id, approvalId: id, digest: id }
/** Finds the storage, where that depends on the request. A run keeps the context that it began with. */
const requestContext = record
const approvalOfCall = object({ runId: id, ...request, requestContext }, ['runId'])
const declineOfCall = object({ runId: id, ...request, reason: text, requestContext }, ['runId'])
const resumption = object({ runId: id, ...request, resumeData: anything, requestContext }, ['runId', 'resumeData'])
const approval = object(
  {
    ...threadScope, ...request, approved: flag, resumeData: anything, declineContext: object({ reason: text, message: text }),
    messages: anything, streamOptions: continuedOptions, requestContext,
  },
  ['threadId', 'approved'],
)

/** The output of a run that continues after a decision. */
interface ContinuedRun {
  fullStream: AsyncIterable<{ type: string; cursor?: string }>
  getFullOutput(): Promise<RunResult<object, object>>
}

/** `of`: the resource of a run on a thread; a run without a thread has none. */
type Decide = (call: Call<Decision, unknown>, of: { resourceId?: string }) => Promise<ContinuedRun>

/** Decides about a call and streams the rest of the run. */
function streamRoute(path: string, summary: string, body: ObjectSchema, decide: Decide): Route {
  return route<Decision>({
    method: 'POST', path: `/agents/:agentId/${path}`, summary: `${summary}; streams the rest of the run`, response: 'events', body,
    async handle(call) {
      return call.events.respond((await decide(call, await checkRun(call))).fullStream, { ids: false })
    },
  })
}

/** Decides about a call and responds when the run has ended. */
function generateRoute(path: string, summary: string, body: ObjectSchema, decide: Decide): Route {
  return route<Decision>({
    method: 'POST', path: `/agents/:agentId/${path}-generate`, summary: `${summary}; responds when the run has ended`,
    response: 'json', responseSchema: fullOutput, body,
    async handle(call) {
      return fullOutputResponse(await (await decide(call, await checkRun(call))).getFullOutput())
    },
  })
}

const approve: Decide = (call, of) => call.agent.approveToolCall({ runId: call.body.runId, ...of, ...requestOf(call) })
const decline: Decide = (call, of) =>
  call.agent.declineToolCall({ runId: call.body.runId, ...of, ...requestOf(call), ...omitUndefined({ reason: call.body.reason }) })
const resume: Decide = (call, of) =>
  call.agent.resumeStream(call.body.resumeData ?? null, { runId: call.body.runId, ...of, ...requestOf(call) })

interface DecidedRequest {
  toolCallId?: string
  approvalId?: string
  digest?: string
}

/** The request that a decision names, and its sender. The digest shows that the sender decides about what it was shown. */
function requestOf({ body, principal, approvable }: Pick<Call<DecidedRequest, unknown>, 'body' | 'principal' | 'approvable'>) {
  const { toolCallId, approvalId, digest } = body
  if (approvalId !== undefined && digest === undefined) {
    throw new HeedError('invalid_argument', 'digest is missing. Send the digest of the request that approvalId names.', {
      details: { field: 'digest' },
    })
  }
  return { ...omitUndefined({ toolCallId, approvalId: approvable ?? approvalId, digest }), by: principal.id }
}

/** The options of the run that continues with the results of a client's tools. */
async function readContinuation(call: Call<Approval, unknown>, thread: string, resource: string): Promise<AgentExecutionOptions> {
  const given = call.body.streamOptions ?? {}
  const { thread: named, resource: owner, options: chosen } = (given.memory ?? {}) as NonNullable<WokenRunOptions['memory']>
  const repeated = { thread: typeof named === 'string' ? named : named?.id, resource: owner }
  for (const [field, value] of Object.entries({ thread, resource })) {
    const other = repeated[field as keyof typeof repeated]
    if (other === undefined || other === value) continue
    const message = `streamOptions.memory.${field} is '${other}', but the thread is that of the call. Leave it out.`
    throw new HeedError('invalid_argument', message, { details: { field: `streamOptions.memory.${field}` } })
  }
  if (chosen?.save === false) {
    const field = 'streamOptions.memory.options.save'
    throw new HeedError('invalid_argument', `${field} has no effect: what is sent is stored. Leave it out.`, { details: { field } })
  }
  const memory = { thread, resource, ...(chosen && { options: chosen }) }
  const options = { ...(await readRunOptions(call, given)), ...omitUndefined({ runId: given.runId }), memory }
  checkOptions(options, 'streamOptions')
  return options
}

/** The results of a client's tools are no decision: what belongs to one can have no effect. */
function checkContinuation({ approvalId, digest, resumeData, declineContext }: Approval): void {
  const [field] = Object.entries({ approvalId, digest, resumeData, declineContext }).find(([, value]) => value !== undefined) ?? []
  if (field === undefined) return
  const message = `${field} has no effect beside messages. Leave it out, or send no messages.`
  throw new HeedError('invalid_argument', message, { details: { field } })
}

function optionsOfDecision(): HeedError {
  const message = 'streamOptions has no effect: a run that continues after a decision has its options. Leave it out, or send messages.'
  return new HeedError('invalid_argument', message, { details: { field: 'streamOptions' } })
}

export const approvals: readonly Route[] = [
  route<Approval>({
    method: 'POST',
    path: '/agents/:agentId/send-tool-approval',
    summary: 'Approves or declines a call; subscribers get the rest of the run',
    response: 'json',
    responseSchema: decided,
    send: true,
    startsRun: true,
    creates: true,
    body: approval,
    async handle(call) {
      const { threadId, toolCallId, approved, resumeData, declineContext, messages, streamOptions: given } = call.body
      const resourceId = requireResource(call.principal, call.body.resourceId)
      if (messages !== undefined) {
        checkRoles(call, messages)
        checkContinuation(call.body)
        const options = await readContinuation(call, threadId, resourceId)
        const { runId } = await queueTurn(call.agent, {
          threadId,
          resourceId,
          id: call.idempotencyKey,
          messages: withoutRepeatedCalls(messages),
          options,
        })
        return { accepted: true, runId, ...omitUndefined({ toolCallId }) }
      }
      if (given !== undefined) throw optionsOfDecision()
      await checkThread(call, { threadId, resourceId })
      const optional = omitUndefined({ id: call.idempotencyKey, resumeData, declineContext })
      return call.agent.sendToolApproval({ threadId, resourceId, approved, ...requestOf(call), ...optional })
    },
  }),
  route<DecidedRequest & { threadId: string; resourceId?: string; runId?: string; resumeData: JSONValue }>({
    method: 'POST',
    path: '/agents/:agentId/send-stream-resume',
    summary: 'Resumes a call that suspended itself; subscribers get the rest of the run',
    response: 'json',
    responseSchema: decided,
    send: true,
    body: object({ ...threadScope, runId: id, ...request, resumeData: anything, requestContext }, ['threadId', 'resumeData']),
    async handle(call) {
      const { threadId, runId, resumeData } = call.body
      const scope = { threadId, resourceId: requireResource(call.principal, call.body.resourceId) }
      await checkThread(call, scope)
      const optional = omitUndefined({ id: call.idempotencyKey, runId })
      return call.agent.sendStreamResume({ ...scope, resumeData, ...requestOf(call), ...optional })
    },
  }),
  streamRoute('approve-tool-call', 'Approves a call', approvalOfCall, approve),
  generateRoute('approve-tool-call', 'Approves a call', approvalOfCall, approve),
  streamRoute('decline-tool-call', 'Declines a call', declineOfCall, decline),
  generateRoute('decline-tool-call', 'Declines a call', declineOfCall, decline),
  streamRoute('resume-stream', 'Resumes a call that suspended itself', resumption, resume),
  streamRoute('resume-stream-until-idle', 'Resumes a call that suspended itself', resumption, resume),
  route<never, SuspendedQuery>({
    method: 'GET',
    path: '/agents/:agentId/suspended-runs',
    summary: 'Suspended runs, newest first',
    response: 'json',
    responseSchema: suspendedRuns,
    read: true,
    query: object({ ...threadScope, fromDate: date, toDate: date, page, perPage }),
    async handle({ agent, query: { fromDate, toDate, resourceId, ...rest }, principal }) {
      const resource = resolveResource(principal, resourceId)
      return agent.listSuspendedRuns({
        ...rest,
        total: true,
        ...(resource === undefined ? {} : { resourceId: resource }),
        ...(fromDate === undefined ? {} : { fromDate: parseDate('fromDate', fromDate) }),
        ...(toDate === undefined ? {} : { toDate: parseDate('toDate', toDate) }),
      })
    },
  }),
]

/** Rejects a run of another resource or agent, or of another caller, with the same error as a run that is not suspended. */
async function checkRun(call: Call<Decision, unknown>): Promise<{ resourceId?: string }> {
  const { agent, body: { runId }, principal, runCallers } = call
  const began = runCallers.mayDecide(runId, principal)
  if (began && agent.site().ephemeralRuns.suspended(runId)) return {}
  const run = await findCallerRun(call, runId)
  if (run) return { resourceId: run.resourceId }
  // It was decided: the error says so. A run on a thread that has the same id is not the caller's.
  if (began && !(await agent.threads().store.findRun(runId))) return {}
  throw new HeedError('run_not_suspended', `No run '${runId}' is suspended.`, { details: { runId } })
}

/** The same for a decision that names a thread: its suspended run must be of this agent. */
async function checkThread(
  call: Pick<Call, 'agent' | 'principal'>, scope: { threadId: string; resourceId: string },
): Promise<void> {
  const { agent } = call
  const runtime = agent.threads()
  await runtime.open()
  const thread = await unlessForeign(call, runtime.store.getThread(scope), () => null)
  // Not as a missing thread: clients interpret 404 as a server without the route.
  if (thread && (thread.status !== 'suspended' || thread.agentId === agent.id)) return
  const { threadId } = scope
  throw new HeedError('run_not_suspended', `No run of this agent is suspended on thread '${threadId}'.`, { details: { threadId } })
}

/** Existing clients repeat each call before its result. The thread already has the call, so only the results are kept. */
function withoutRepeatedCalls(messages: AgentInput): AgentInput {
  if (!Array.isArray(messages)) return messages
  return (messages as unknown[]).map((message) => {
    const { role, content } = (message ?? {}) as { role?: unknown; content?: unknown }
    if (role !== 'assistant' || !Array.isArray(content)) return message
    const results = (content as Array<{ type?: unknown } | null>).filter((part) => part?.type === 'tool-result')
    return results.length > 0 && content.length === 2 * results.length ? { role: 'tool', content: results } : message
  }) as AgentInput
}
