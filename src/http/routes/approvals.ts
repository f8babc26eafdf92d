import type { JSONValue } from '../../base/json.ts'
import type { AgentInput } from '../../message/read/input.ts'
import { askTurn } from '../../agent/turn.ts'
import type { RunResult } from '../../run/output/run-result.ts'
import { HeedError } from '../../base/errors.ts'
import { decided, suspendedRuns, whole } from '../schema/answer-schemas.ts'
import { mayReach, neededResource, resourceOf } from '../auth/principal.ts'
import { route, type Call, type Route } from '../route.ts'
import { optionsFrom } from '../request/run-options.ts'
import { anything, date, flag, id, object, page, perPage, record, text, threadScope } from '../schema/schemas.ts'
import { wholeAnswer } from './whole-answer.ts'
import { given } from './threads.ts'

interface Approval {
  resourceId?: string
  threadId: string
  toolCallId?: string
  approved: boolean
  resumeData?: JSONValue
  declineContext?: { reason?: string; message?: string }
  /** What tools of the caller answered: the conversation goes on with it. */
  messages?: AgentInput
  streamOptions?: Record<string, unknown>
}

interface Decision {
  runId: string
  toolCallId?: string
  reason?: string
  resumeData?: JSONValue
}

interface Suspended {
  threadId?: string
  resourceId?: string
  fromDate?: string
  toDate?: string
  page?: number
  perPage?: number
}

const decision = object({ runId: id, toolCallId: id, reason: text, requestContext: anything }, ['runId'])
const resumption = object({ runId: id, toolCallId: id, resumeData: anything }, ['runId', 'resumeData'])

/** Both forms that existing clients call: what follows as a stream, or as the whole answer. */
function decisions(path: string, summary: string, body: Route['body'], decide: (call: Call<Decision, unknown>) => Promise<Continued>): Route[] {
  return [
    route<Decision>({ method: 'POST', path: `/agents/:agentId/${path}`, summary: `${summary}; what follows is streamed`, answer: 'events', ...(body ? { body } : {}),
      async handle(call) {
        await checkRun(call)
        return call.events.respond((await decide(call)).fullStream, { ids: false })
      } }),
    route<Decision>({ method: 'POST', path: `/agents/:agentId/${path}-generate`, summary: `${summary}; answers when the run is over`, answer: 'json', answers: whole, ...(body ? { body } : {}),
      async handle(call) {
        await checkRun(call)
        return wholeAnswer(await (await decide(call)).getFullOutput())
      } }),
  ]
}

interface Continued {
  fullStream: AsyncIterable<{ type: string; cursor?: string }>
  getFullOutput(): Promise<RunResult<object, object>>
}

export const approvals: readonly Route[] = [
  route<Approval>({
    method: 'POST', path: '/agents/:agentId/send-tool-approval', summary: 'Approves or declines a call; what follows reaches those who watch', answer: 'json', answers: decided, send: true,
    body: object({ ...threadScope, toolCallId: id, approved: flag, resumeData: anything, declineContext: object({ reason: text, message: text }), messages: anything, streamOptions: record }, ['threadId', 'approved']),
    async handle(call) {
      const { threadId, toolCallId, approved, resumeData, declineContext, messages, streamOptions = {} } = call.body
      const resourceId = neededResource(call.principal, call.body.resourceId)
      if (messages !== undefined) {
        const { runId } = await askTurn(call.agent, { threadId, resourceId, id: call.idempotencyKey, messages: answersIn(messages), options: await optionsFrom(call, streamOptions) })
        return { accepted: true, runId, ...given({ toolCallId }) }
      }
      await checkThread(call, { threadId, resourceId })
      return call.agent.sendToolApproval({ threadId, resourceId, approved, ...given({ id: call.idempotencyKey, toolCallId, resumeData, declineContext }) })
    },
  }),
  route<{ threadId: string; resourceId?: string; runId?: string; toolCallId?: string; resumeData: JSONValue }>({
    method: 'POST', path: '/agents/:agentId/send-stream-resume', summary: 'Resumes a call that suspended itself; what follows reaches those who watch', answer: 'json', answers: decided, send: true,
    body: object({ ...threadScope, runId: id, toolCallId: id, resumeData: anything }, ['threadId', 'resumeData']),
    async handle(call) {
      const { threadId, runId, toolCallId, resumeData } = call.body
      const scope = { threadId, resourceId: neededResource(call.principal, call.body.resourceId) }
      await checkThread(call, scope)
      return call.agent.sendStreamResume({ ...scope, resumeData, ...given({ id: call.idempotencyKey, runId, toolCallId }) })
    },
  }),
  ...decisions('approve-tool-call', 'Approves a call', decision, ({ agent, body: { runId, toolCallId } }) => agent.approveToolCall({ runId, ...(toolCallId === undefined ? {} : { toolCallId }) })),
  ...decisions('decline-tool-call', 'Declines a call', decision, ({ agent, body: { runId, toolCallId, reason } }) =>
    agent.declineToolCall({ runId, ...(toolCallId === undefined ? {} : { toolCallId }), ...(reason === undefined ? {} : { reason }) })),
  ...['resume-stream', 'resume-stream-until-idle'].map((path) =>
    route<Decision>({
      method: 'POST', path: `/agents/:agentId/${path}`, summary: 'Resumes a call that suspended itself; what follows is streamed', answer: 'events', body: resumption,
      async handle(call) {
        await checkRun(call)
        const { runId, toolCallId, resumeData = null } = call.body
        return call.events.respond((await call.agent.resumeStream(resumeData, { runId, ...(toolCallId === undefined ? {} : { toolCallId }) })).fullStream, { ids: false })
      },
    })),
  route<never, Suspended>({
    method: 'GET', path: '/agents/:agentId/suspended-runs', summary: 'Runs that wait for somebody, newest first', answer: 'json', answers: suspendedRuns, read: true,
    query: object({ ...threadScope, fromDate: date, toDate: date, page, perPage }),
    async handle({ agent, query: { fromDate, toDate, resourceId, ...rest }, principal }) {
      const resource = resourceOf(principal, resourceId)
      return agent.listSuspendedRuns({
        ...rest,
        total: true,
        ...(resource === undefined ? {} : { resourceId: resource }),
        ...(fromDate === undefined ? {} : { fromDate: dateOf('fromDate', fromDate) }),
        ...(toDate === undefined ? {} : { toDate: dateOf('toDate', toDate) }),
      })
    },
  }),
]

/** A run is addressed by its id alone: whose it is, the row says. One of another resource or agent is told like one that doesn't wait. */
async function checkRun({ agent, principal, body: { runId } }: Call<Decision, unknown>): Promise<void> {
  const runtime = agent.threads()
  await runtime.open()
  const run = await runtime.store.findRun(runId)
  if (!run || run.agentId !== agent.id || !mayReach(principal, run.resourceId)) throw new HeedError('run_not_suspended', `No run '${runId}' waits for a decision.`, { details: { runId } })
}

/** The same where a thread is named: what waits there must be of this agent. */
async function checkThread({ agent }: Pick<Call, 'agent'>, scope: { threadId: string; resourceId: string }): Promise<void> {
  const runtime = agent.threads()
  await runtime.open()
  const found = await runtime.store.getThread(scope)
  if (found?.status === 'suspended' && found.agentId !== agent.id) {
    throw new HeedError('run_not_suspended', `No run of this agent waits on thread '${scope.threadId}'.`, { details: { threadId: scope.threadId } })
  }
}

/** Existing clients repeat each call before its result. The thread has the call already: what is new is the result. */
function answersIn(messages: AgentInput): AgentInput {
  if (!Array.isArray(messages)) return messages
  return (messages as unknown[]).map((message) => {
    const { role, content } = (message ?? {}) as { role?: unknown; content?: unknown }
    if (role !== 'assistant' || !Array.isArray(content)) return message
    const results = (content as Array<{ type?: unknown } | null>).filter((part) => part?.type === 'tool-result')
    return results.length > 0 && content.length === 2 * results.length ? { role: 'tool', content: results } : message
  }) as AgentInput
}

export function dateOf(field: string, value: string): Date {
  const date = new Date(value)
  if (Number.isNaN(date.getTime())) throw new HeedError('invalid_argument', `${field} is not a date. Write it as 2026-01-31T12:00:00Z.`, { details: { field } })
  return date
}
