import type { AgentInput } from '../../message/read/input.ts'
import { promptOf } from '../../prompt/from-rows.ts'
import type { AgentExecutionOptions } from '../../run/options.ts'
import type { RunResult } from '../../run/output/run-result.ts'
import { requireResource } from '../auth/principal.ts'
import { readRunOptions } from '../request/fields.ts'
import { route, type Call, type Route } from '../route.ts'
import { fullOutput } from '../schema/response-schemas.ts'
import { anything, id, object, runOptions } from '../schema/schemas.ts'

interface GenerateBody extends Record<string, unknown> {
  messages: AgentInput
  memory?: { thread?: string | { id: string }; resource?: string }
  threadId?: string
  resourceId?: string
}

type GenerateCall = Call<GenerateBody, unknown>

const thread = { anyOf: [id, object({ id, title: { type: 'string' }, metadata: { type: 'object' } }, ['id'])] }
const memory = object({ thread, resource: id })
const body = object({ ...runOptions, messages: anything, memory, threadId: id, resourceId: id }, ['messages'])

export const generate: readonly Route[] = [
  route<GenerateBody>({
    method: 'POST',
    path: '/agents/:agentId/generate',
    summary: 'Runs the agent and responds with the whole result',
    response: 'json',
    responseSchema: fullOutput,
    body,
    async handle(call) {
      const options = abortedByCaller(call, await optionsOf(call))
      return fullOutputResponse(await call.agent.generate(newMessages(call.body.messages, options), options))
    },
  }),
  ...['stream', 'stream-until-idle'].map((path) =>
    route<GenerateBody>({
      method: 'POST',
      path: `/agents/:agentId/${path}`,
      summary: 'Runs the agent and streams the run',
      response: 'events',
      body,
      async handle(call) {
        const options = abortedByCaller(call, await optionsOf(call))
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
    body,
    read: true,
    handle: async (call) => call.agent.explainPrompt(call.body.messages, await optionsOf(call)),
  }),
]

/** Aborts the run when its caller disconnects, unless it is on a thread: there it has other readers. */
function abortedByCaller({ request }: GenerateCall, options: AgentExecutionOptions): AgentExecutionOptions {
  return options.memory ? options : { ...options, abortSignal: request.signal }
}

async function optionsOf(call: GenerateCall): Promise<AgentExecutionOptions> {
  const { body, principal } = call
  const { memory, threadId, resourceId } = body
  const thread = memory?.thread ?? threadId
  if (thread === undefined) return readRunOptions(call, body)
  const resource = requireResource(principal, memory?.resource ?? resourceId, 'memory.resource')
  return { ...(await readRunOptions(call, body)), memory: { thread, resource } }
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
  const { runId, toolCalls, toolResults, messages } = result
  return {
    ...result,
    toolCalls: toolCalls.map((call) => ({ type: 'tool-call', runId, from: 'AGENT', payload: call, ...call })),
    toolResults: toolResults.map((toolResult) => ({ type: 'tool-result', runId, from: 'AGENT', payload: toolResult, ...toolResult })),
    response: { messages: promptOf(messages) },
  }
}
