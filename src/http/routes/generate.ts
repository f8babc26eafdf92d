import { HeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { AgentInput } from '../../message/read/input.ts'
import { toUIMessages } from '../../message/ui/to-ui.ts'
import { promptOf } from '../../prompt/from-rows.ts'
import type { AgentExecutionOptions, MemoryOptions } from '../../run/options.ts'
import type { RunResult } from '../../run/output/run-result.ts'
import type { WaitingCall } from '../../run/step/step-result.ts'
import { checkRunId } from '../../thread/send/turns.ts'
import { requireResource } from '../auth/principal.ts'
import { checkRoles, omitUndefined, readRunOptions } from '../request/fields.ts'
import { inQuery } from '../request/named-once.ts'
import { route, type Call, type Route } from '../route.ts'
import { explainedPrompt, fullOutput } from '../schema/response-schemas.ts'
import { anything, flag, id, memoryOptions, object, promptOptions, record, runOptions, text, toleratedOptions } from '../schema/schemas.ts'

interface GenerateBody extends Record<string, unknown> {
  messages: AgentInput
  memory?: { thread?: string | { id: string }; resource?: string; options?: MemoryOptions }
  runId?: string
  threadId?: string
  resourceId?: string
}

type GenerateCall = Call<GenerateBody, unknown>

const thread = { anyOf: [id, object({ id, title: text, metadata: record }, ['id'])] }
const memory = object({ thread, resource: id, options: memoryOptions })
const body = object(
  { ...runOptions, ...toleratedOptions, messages: anything, memory, threadId: id, resourceId: id, runId: id }, ['messages'],
)
const { save: _, ...readOptions } = memoryOptions.properties
/** What changes a prompt. */
const promptBody = object(
  {
    ...promptOptions,
    structuredOutput: object({ schema: record, jsonPromptInjection: flag }, ['schema']),
    messages: anything,
    memory: object({ thread: { anyOf: [id, object({ id }, ['id'])] }, resource: id, options: object(readOptions) }),
    threadId: id,
    resourceId: id,
  },
  ['messages'],
)

export const generate: readonly Route[] = [
  route<GenerateBody>({
    method: 'POST',
    path: '/agents/:agentId/generate',
    summary: 'Runs the agent and responds with the whole result',
    response: 'json',
    responseSchema: fullOutput,
    startsRun: true,
    creates: true,
    body,
    async handle(call) {
      const options = await ofCaller(call, await optionsOf(call))
      return fullOutputResponse(await call.agent.generate(newMessages(call.body.messages, options), options))
    },
  }),
  ...['stream', 'stream-until-idle'].map((path) =>
    route<GenerateBody>({
      method: 'POST',
      path: `/agents/:agentId/${path}`,
      summary: 'Runs the agent and streams the run',
      response: 'events',
      startsRun: true,
      creates: true,
      body,
      async handle(call) {
        const options = await ofCaller(call, await optionsOf(call))
        const stream = await call.agent.stream(newMessages(call.body.messages, options), options)
        return call.events.respond(stream.fullStream, { ids: false })
      },
    }),
  ),
  route<GenerateBody>({
    method: 'POST',
    path: '/agents/:agentId/explain-prompt',
    summary: 'The prompt that the model would get, part by part',
    response: 'json',
    responseSchema: explainedPrompt,
    body: promptBody,
    read: true,
    handle: async (call) => call.agent.explainPrompt(call.body.messages, await optionsOf(call)),
  }),
]

/** A run without a thread is aborted when its caller disconnects, and its caller may decide about its calls. A thread has other readers. */
async function ofCaller(
  { agent, request, runCallers, principal }: GenerateCall, options: AgentExecutionOptions,
): Promise<AgentExecutionOptions> {
  if (options.memory && options.memory.options?.save !== false) return options
  const { runId = newId() } = options
  // The caller that begins a run may decide about its calls: the run must not have the id of one on a thread.
  if (options.runId !== undefined) await checkRunId(agent.threads(), runId, '')
  runCallers.add(runId, principal, agent.site().ephemeralRuns)
  return { ...options, runId, abortSignal: request.signal }
}

async function optionsOf(call: GenerateCall): Promise<AgentExecutionOptions> {
  const { body, principal } = call
  const { memory, threadId, resourceId, runId } = body
  checkRoles(call, body.messages)
  const options = { ...(await readRunOptions(call, body)), ...omitUndefined({ runId }) }
  const thread = memory?.thread ?? threadId
  if (thread === undefined) {
    const field = memory ? 'memory.thread' : 'threadId'
    if (!memory && resourceId === undefined && inQuery(call.request.search, 'resourceId') === undefined) return options
    const given = memory ? 'memory' : 'resourceId'
    const message = `${field} is missing: without a thread ${given} has no effect. Name the thread, or leave it out.`
    throw new HeedError('invalid_argument', message, { details: { field } })
  }
  const resource = requireResource(principal, memory?.resource ?? resourceId, 'memory.resource')
  return { ...options, memory: { thread, resource, ...(memory?.options ? { options: memory.options } : {}) } }
}

/** Existing clients that ran a tool repeat the assistant's message before the tool's result. A thread already has that message. */
function newMessages(messages: AgentInput, { memory }: AgentExecutionOptions): AgentInput {
  if (!memory || !Array.isArray(messages)) return messages
  const roles = (messages as unknown[]).map((message) => {
    return typeof message === 'object' && message !== null && 'role' in message ? message.role : undefined
  })
  if (roles[0] !== 'assistant' || roles.at(-1) !== 'tool') return messages
  return (messages as unknown[]).slice(roles.findLastIndex((role) => role !== 'tool') + 1) as AgentInput
}

/**
 * The result of a run as existing clients read it: each tool call and result has the fields of its chunk too, and `response.messages` can
 * be sent back before a tool's result.
 */
export function fullOutputResponse(result: RunResult<object, object>): Record<string, unknown> {
  const { runId, toolCalls, toolResults, messages, steps, suspended: [waiting] } = result
  return {
    ...result,
    ...(waiting ? { suspendPayload: suspendPayloadOf(waiting) } : {}),
    toolCalls: toolCalls.map((call) => ({ type: 'tool-call', runId, from: 'AGENT', payload: call, ...call })),
    toolResults: toolResults.map((toolResult) => ({ type: 'tool-result', runId, from: 'AGENT', payload: toolResult, ...toolResult })),
    response: {
      messages: promptOf(messages), dbMessages: messages, uiMessages: toUIMessages(messages),
      ...omitUndefined({ modelId: steps.at(-1)?.modelId }),
    },
  }
}

/** The first call that waits, with the fields of its chunk: existing clients read its id there. */
function suspendPayloadOf({ toolCallId, toolName, args, kind, payload = null, request }: WaitingCall): Record<string, unknown> {
  return { toolCallId, toolName, args, ...(kind === 'suspend' ? { suspendPayload: payload } : {}), ...(request ? { request } : {}) }
}
