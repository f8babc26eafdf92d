import type { MessageInput, SignalInput } from '../../signals/signal.ts'
import type { StateInput } from '../../signals/state.ts'
import type { SendReceipt } from '../../thread/receipt.ts'
import type { SendOptions } from '../../thread/sending.ts'
import { HeedError } from '../../errors.ts'
import { accepted, stateAccepted } from '../answer-schemas.ts'
import { resourceOf } from '../principal.ts'
import { route, type Call, type JSONSchema, type Route } from '../route.ts'
import { optionsFrom } from '../run-options.ts'
import { message, messageFields, object, signal, signalFields, state, stateFields, target } from '../schemas.ts'

type Target = Omit<SendOptions, 'ifIdle'> & { ifIdle?: { behavior?: 'wake' | 'persist' | 'discard'; attributes?: Record<string, string>; streamOptions?: Record<string, unknown> } }
type Waiting = { wait?: 'outcome' }

const query = object({ wait: { enum: ['outcome'], description: 'Answer when it is known what became of it, and not only that it is stored.' } })
const body = (what: Record<string, JSONSchema>, required: string[]) => object({ ...what, ...target }, required)

export const sending: readonly Route[] = [
  route<{ message: MessageInput } & Target, Waiting>({
    method: 'POST', path: '/agents/:agentId/send-message', summary: 'A message, into the active run or as the start of one', answer: 'json', answers: accepted, send: true, query,
    body: body({ message }, ['message']),
    handle: async (call) => answer(call, call.agent.sendMessage(keyed(messageOf(call.body.message), call.idempotencyKey), await targetOf(call))),
  }),
  route<{ message: MessageInput } & Target, Waiting>({
    method: 'POST', path: '/agents/:agentId/queue-message', summary: 'A message as a turn of its own, after what is active', answer: 'json', answers: accepted, send: true, query,
    body: body({ message }, ['message']),
    handle: async (call) => answer(call, call.agent.queueMessage(keyed(messageOf(call.body.message), call.idempotencyKey), await targetOf(call))),
  }),
  route<{ signal: SignalInput } & Target, Waiting>({
    method: 'POST', path: '/agents/:agentId/signals', summary: 'Context that a system produced', answer: 'json', answers: accepted, send: true, query,
    body: body({ signal }, ['signal']),
    handle: async (call) => answer(call, call.agent.sendSignal(withId(picked(call.body.signal, signalFields), call.idempotencyKey), await targetOf(call))),
  }),
  route<{ state: StateInput & { stateId?: string } } & Target>({
    method: 'POST', path: '/agents/:agentId/state-signals', summary: 'The state of a lane; skipped when the lane has it already', answer: 'json', answers: stateAccepted, send: true,
    body: body({ state }, ['state', 'threadId']),
    async handle(call) {
      const receipt = await call.agent.sendStateSignal(stateOf(call), await targetOf(call))
      if (receipt.skipped) return receipt
      return { ...(await stored(receipt, call.idempotencyKey)), skipped: false }
    },
  }),
]

/** The lane may be named as existing clients do; the key is the signal's. */
function stateOf({ body: { state: given }, idempotencyKey }: Call<{ state: StateInput & { stateId?: string } } & Target, unknown>): StateInput {
  const { stateId, ...rest } = picked(given, stateFields)
  return { ...rest, ...(stateId === undefined ? {} : { id: stateId }), ...(idempotencyKey === undefined || rest.signalId !== undefined ? {} : { signalId: idempotencyKey }) }
}

async function answer(call: Call<unknown, Waiting>, receipt: SendReceipt): Promise<unknown> {
  const told = await stored(receipt, call.idempotencyKey)
  return call.query.wait === 'outcome' ? { ...told, outcome: await receipt.outcome } : told
}

/** What is answered is stored, and of a repeated send it is the first; what was refused is an error. */
async function stored(receipt: SendReceipt, key: string | undefined): Promise<{ accepted: true; runId: string; signal: unknown; duplicate?: true }> {
  await receipt.stored
  const { runId, signal, differs, duplicate } = await receipt.acceptance
  if (differs && key !== undefined) {
    throw new HeedError('idempotency_key_reused', 'This Idempotency-Key was used for something else on this thread. Take a new key for each thing that is sent.', { details: { field: 'Idempotency-Key' } })
  }
  return { accepted: true, runId: runId ?? signal.id, signal, ...(duplicate ? { duplicate } : {}) }
}

/** Existing clients may name a run or a thread; whose it is, is never taken on trust. */
async function targetOf(call: Call<Target, unknown>): Promise<SendOptions> {
  const { body, principal } = call
  const { runId, threadId, resourceId, ifActive, ifIdle } = body
  if (runId === undefined && threadId === undefined) throw new HeedError('invalid_argument', 'Say where it goes: resourceId and threadId, or the runId of an active run.', { details: { field: 'threadId' } })
  if (runId !== undefined && ifIdle !== undefined) throw new HeedError('invalid_argument', 'A runId names an active run: ifIdle can never apply. Leave one of them out.', { details: { field: 'ifIdle' } })
  const resource = resourceOf(principal, resourceId)
  if (threadId !== undefined && resource === undefined) throw new HeedError('invalid_argument', 'resourceId is missing: say whom the thread belongs to.', { details: { field: 'resourceId' } })
  const { streamOptions, ...idle } = picked(ifIdle ?? {}, Object.keys(target.ifIdle.properties))
  const options = runId === undefined ? await optionsFrom(call, streamOptions ?? {}) : {}
  return {
    ...(runId === undefined ? {} : { runId }),
    ...(threadId === undefined ? {} : { threadId }),
    ...(resource === undefined ? {} : { resourceId: resource }),
    ...(ifActive ? { ifActive: picked(ifActive, Object.keys(target.ifActive.properties)) } : {}),
    ...(ifIdle || options.requestContext ? { ifIdle: { ...idle, streamOptions: options } } : {}),
  }
}

/** What a route knows of an object: the rest, which existing clients put in, is passed over. */
function picked<T extends object>(given: T, names: readonly string[]): T {
  return Object.fromEntries(Object.entries(given).filter(([name]) => names.includes(name))) as T
}

function messageOf(given: MessageInput): MessageInput {
  return typeof given === 'object' && !Array.isArray(given) ? picked(given, messageFields) : given
}

function keyed(message: MessageInput, key: string | undefined): MessageInput {
  if (key === undefined) return message
  return typeof message === 'object' && !Array.isArray(message) ? withId(message, key) : { contents: message, id: key }
}

function withId<T extends { id?: string }>(input: T, key: string | undefined): T {
  return input.id === undefined && key !== undefined ? { ...input, id: key } : input
}
