import type { MessageInput, SignalInput } from '../../signals/signal.ts'
import type { StateInput } from '../../signals/state.ts'
import type { SendReceipt } from '../../thread/receipt.ts'
import type { SendOptions } from '../../thread/sending.ts'
import { HeedError } from '../../errors.ts'
import { resourceOf } from '../principal.ts'
import { route, type Call, type JSONSchema, type Route } from '../route.ts'
import { optionsFrom } from '../run-options.ts'
import { message, object, signal, state, target } from '../schemas.ts'

type Target = Omit<SendOptions, 'ifIdle'> & { ifIdle?: { behavior?: 'wake' | 'persist' | 'discard'; attributes?: Record<string, string>; streamOptions?: Record<string, unknown> } }
type Waiting = { wait?: 'outcome' }

const query = object({ wait: { enum: ['outcome'], description: 'Answer when it is known what became of it, and not only that it is stored.' } })
const body = (what: Record<string, JSONSchema>, required: string[]) => object({ ...what, ...target }, required)

export const sending: readonly Route[] = [
  route<{ message: MessageInput } & Target, Waiting>({
    method: 'POST', path: '/agents/:agentId/send-message', summary: 'A message, into the active run or as the start of one', answer: 'json', send: true, query,
    body: body({ message }, ['message']),
    handle: (call) => answer(call, call.agent.sendMessage(keyed(call.body.message, call.idempotencyKey), targetOf(call))),
  }),
  route<{ message: MessageInput } & Target, Waiting>({
    method: 'POST', path: '/agents/:agentId/queue-message', summary: 'A message as a turn of its own, after what is active', answer: 'json', send: true, query,
    body: body({ message }, ['message']),
    handle: (call) => answer(call, call.agent.queueMessage(keyed(call.body.message, call.idempotencyKey), targetOf(call))),
  }),
  route<{ signal: SignalInput } & Target, Waiting>({
    method: 'POST', path: '/agents/:agentId/signals', summary: 'Context that a system produced', answer: 'json', send: true, query,
    body: body({ signal }, ['signal']),
    handle: (call) => answer(call, call.agent.sendSignal(withId(call.body.signal, call.idempotencyKey), targetOf(call))),
  }),
  route<{ state: StateInput } & Target>({
    method: 'POST', path: '/agents/:agentId/state-signals', summary: 'The state of a lane; skipped when the lane has it already', answer: 'json',
    body: body({ state }, ['state', 'threadId']),
    async handle(call) {
      const receipt = await call.agent.sendStateSignal(call.body.state, targetOf(call))
      if (receipt.skipped) return receipt
      return { ...(await stored(receipt)), skipped: false }
    },
  }),
]

async function answer(call: Call<unknown, Waiting>, receipt: SendReceipt): Promise<unknown> {
  const accepted = await stored(receipt)
  return call.query.wait === 'outcome' ? { ...accepted, outcome: await receipt.outcome } : accepted
}

/** What is answered is stored; what was refused is an error. */
async function stored(receipt: SendReceipt): Promise<{ accepted: true; runId: string; signal: unknown }> {
  await receipt.stored
  return { accepted: true, runId: receipt.runId, signal: receipt.signal }
}

/** Existing clients may name a run or a thread; whose it is, is never taken on trust. */
function targetOf({ body, principal }: Call<Target, unknown>): SendOptions {
  const { runId, threadId, resourceId, ifActive, ifIdle } = body
  if (runId === undefined && threadId === undefined) throw new HeedError('invalid_argument', 'Say where it goes: resourceId and threadId, or the runId of an active run.', { details: { field: 'threadId' } })
  if (runId !== undefined && ifIdle !== undefined) throw new HeedError('invalid_argument', 'A runId names an active run: ifIdle can never apply. Leave one of them out.', { details: { field: 'ifIdle' } })
  const resource = resourceOf(principal, resourceId)
  if (threadId !== undefined && resource === undefined) throw new HeedError('invalid_argument', 'resourceId is missing: say whom the thread belongs to.', { details: { field: 'resourceId' } })
  const { streamOptions, ...idle } = ifIdle ?? {}
  return {
    ...(runId === undefined ? {} : { runId }),
    ...(threadId === undefined ? {} : { threadId }),
    ...(resource === undefined ? {} : { resourceId: resource }),
    ...(ifActive ? { ifActive } : {}),
    ...(ifIdle ? { ifIdle: { ...idle, ...(streamOptions ? { streamOptions: optionsFrom(streamOptions) } : {}) } } : {}),
  }
}

function keyed(message: MessageInput, key: string | undefined): MessageInput {
  if (key === undefined) return message
  return typeof message === 'object' && !Array.isArray(message) ? withId(message, key) : { contents: message, id: key }
}

function withId<T extends { id?: string }>(input: T, key: string | undefined): T {
  return input.id === undefined && key !== undefined ? { ...input, id: key } : input
}
