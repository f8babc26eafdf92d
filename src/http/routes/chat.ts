import type { HeedChatTransport, ChatMessage, UIChunk } from '../../client/ai-sdk/index.ts'
import { describe } from '../../base/errors.ts'
import { requireResource, resolveResource } from '../auth/principal.ts'
import { threadIdOf } from '../request/access.ts'
import { checkRoles } from '../request/fields.ts'
import { route, type Call, type Route } from '../route.ts'
import { anything, flag, id, ignored, object, open, record, text } from '../schema/schemas.ts'

interface ChatBody {
  id: string
  messages: ChatMessage[]
  trigger?: 'submit-message' | 'regenerate-message'
  resourceId?: string
  queue?: boolean
  requestContext?: Record<string, unknown>
}

const role = { enum: ['system', 'user', 'assistant'] }
/** What is read of a part: its text or file, or the decision about a call. */
const part = open({ type: text, state: text, toolCallId: text, approval: open({ id: text, approved: flag, reason: text }) }, ['type'])
const message = open({ id, role, parts: { type: 'array', items: part }, metadata: anything }, ['id', 'role', 'parts'])
const body = object(
  {
    id, messages: { type: 'array', items: message, minItems: 1, maxItems: 10_000 }, resourceId: id, queue: flag, requestContext: record,
    trigger: { enum: ['submit-message', 'regenerate-message'] }, messageId: ignored,
  },
  ['id', 'messages'],
)

/** The chat protocol of the AI SDK, for its own transport: the id of the chat is that of the thread. */
export const chat: readonly Route[] = [
  route<ChatBody>({
    method: 'POST', path: '/agents/:agentId/chat', response: 'events', body, relays: true, creates: true,
    summary: 'Sends the last message of an AI SDK chat to the thread, and streams the answer as a UI message stream',
    async handle(call) {
      const { id: chatId, messages, trigger = 'submit-message', queue = false, requestContext } = call.body
      checkRoles(call, messages)
      const resourceId = requireResource(call.principal, call.body.resourceId)
      const transport = await transportFor(call, resourceId, requestContext)
      return respond(call, await transport.sendMessages({ trigger, chatId, messages, body: { queue } }))
    },
  }),
  route<never, { resourceId?: string }>({
    method: 'GET', path: '/agents/:agentId/chat/:threadId/stream', response: 'events', mayBeEmpty: true, read: true,
    query: object({ resourceId: id }),
    summary: 'The UI message stream of the answer that is being written or is suspended; 204 if there is none',
    async handle(call) {
      const transport = await transportFor(call, resolveResource(call.principal, call.query.resourceId))
      const stream = await transport.reconnectToStream({ chatId: threadIdOf(call) })
      return stream ? respond(call, stream) : new Response(null, { status: 204 })
    },
  }),
]

/** The transport that pages use with `heed/ai-sdk`, here in the server: both answer a chat in the same way. */
async function transportFor(
  { agent, ownRequests }: Call<unknown, unknown>, resourceId: string | undefined, requestContext?: Record<string, unknown>,
): Promise<HeedChatTransport> {
  const [{ HeedClient }, { HeedChatTransport: Transport }] = await Promise.all([
    import('../../client/index.ts'), import('../../client/ai-sdk/index.ts'),
  ])
  const client = new HeedClient(ownRequests(requestContext))
  return new Transport({ agent: client.getAgent(agent.id), ...(resourceId === undefined ? {} : { resourceId }) })
}

/** The run goes on when the caller disconnects: a chat that is loaded again continues with its stream. */
function respond({ events }: Call<unknown, unknown>, stream: ReadableStream<UIChunk>): Response {
  const reader = stream.getReader()
  // Ends the subscription of the chat at once, although its next chunk may be long in coming.
  const release = () => void reader.cancel().catch(() => {})
  const response = events.respond(withoutFailure(reader), { ids: false }, release)
  response.headers.set('x-vercel-ai-ui-message-stream', 'v1')
  return response
}

/** A failure of the stream is a chunk of it. */
async function* withoutFailure(reader: ReadableStreamDefaultReader<UIChunk>): AsyncGenerator<UIChunk, void> {
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value
  } catch (error) {
    yield { type: 'error', errorText: describe(error) }
  }
}
