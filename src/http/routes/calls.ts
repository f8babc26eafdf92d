import type { AgentInput } from '../../message/read/input.ts'
import type { AgentExecutionOptions } from '../../run/options.ts'
import { HeedError } from '../../base/errors.ts'
import { whole } from '../schema/answer-schemas.ts'
import { resourceOf } from '../auth/principal.ts'
import { route, type Call, type Route } from '../route.ts'
import { optionsFrom } from '../request/run-options.ts'
import { anything, id, object, runOptions } from '../schema/schemas.ts'
import { wholeAnswer } from './whole-answer.ts'

interface Ask extends Record<string, unknown> {
  messages: AgentInput
  memory?: { thread?: string | { id: string }; resource?: string }
  threadId?: string
  resourceId?: string
}

const thread = { anyOf: [id, object({ id, title: { type: 'string' }, metadata: { type: 'object' } }, ['id'])] }
const body = object({ ...runOptions, messages: anything, memory: object({ thread, resource: id }), threadId: id, resourceId: id }, ['messages'])

export const calls: readonly Route[] = [
  route<Ask>({
    method: 'POST', path: '/agents/:agentId/generate', summary: 'Asks once and answers with the whole result', answer: 'json', answers: whole, body,
    async handle(call) {
      const options = withCaller(call, await optionsOf(call))
      return wholeAnswer(await call.agent.generate(newIn(call.body.messages, options), options))
    },
  }),
  ...['stream', 'stream-until-idle'].map((path) =>
    route<Ask>({
      method: 'POST', path: `/agents/:agentId/${path}`, summary: 'Asks once and streams what follows', answer: 'events', body,
      async handle(call) {
        const options = withCaller(call, await optionsOf(call))
        const stream = await call.agent.stream(newIn(call.body.messages, options), options)
        return call.events.respond(stream.fullStream, { ids: false })
      },
    })),
  route<Ask>({
    method: 'POST', path: '/agents/:agentId/explain-prompt', summary: 'What the model would be sent, part by part', answer: 'json', body, read: true,
    handle: async (call) => call.agent.explainPrompt(call.body.messages, await optionsOf(call)),
  }),
]

/** On a thread the run goes on without its caller; whoever asks without one is the only one to hear it. */
function withCaller({ asked }: Call<Ask, unknown>, options: AgentExecutionOptions): AgentExecutionOptions {
  return options.memory ? options : { ...options, abortSignal: asked.signal }
}

async function optionsOf(call: Call<Ask, unknown>): Promise<AgentExecutionOptions> {
  const { body, principal } = call
  const { memory, threadId, resourceId } = body
  const thread = memory?.thread ?? threadId
  if (thread === undefined) return optionsFrom(call, body)
  const resource = resourceOf(principal, memory?.resource ?? resourceId)
  if (resource === undefined) throw new HeedError('invalid_argument', 'memory.resource is missing: say whom the thread belongs to.', { details: { field: 'memory.resource' } })
  return { ...(await optionsFrom(call, body)), memory: { thread, resource } }
}

/**
 * Existing clients that ran a tool repeat what the assistant said before the tool's result. A thread has that already; without one,
 * it is all that is known.
 */
function newIn(messages: AgentInput, { memory }: AgentExecutionOptions): AgentInput {
  if (!memory || !Array.isArray(messages)) return messages
  const roles = (messages as unknown[]).map((message) => (typeof message === 'object' && message !== null && 'role' in message ? message.role : undefined))
  if (roles[0] !== 'assistant' || roles.at(-1) !== 'tool') return messages
  return (messages as unknown[]).slice(roles.findLastIndex((role) => role !== 'tool') + 1) as AgentInput
}
