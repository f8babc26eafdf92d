import type { MessageInput, SignalInput } from '../../signals/signal.ts'
import type { StateInput } from '../../signals/state.ts'
import type { AgentExecutionOptions } from '../../run/options.ts'
import type { Acceptance, SendReceipt } from '../../thread/send/receipt.ts'
import type { SendOptions } from '../../thread/send/send-options.ts'
import { HeedError } from '../../base/errors.ts'
import { accepted, stateAccepted } from '../schema/answer-schemas.ts'
import { checkKey, keyReused } from '../request/idempotency.ts'
import { resourceOf } from '../auth/principal.ts'
import { route, type Call, type JSONSchema, type Route } from '../route.ts'
import { optionsFrom } from '../request/run-options.ts'
import { message, messageFields, object, signal, signalFields, state, stateFields, target } from '../schema/schemas.ts'

type Target = Omit<SendOptions, 'ifIdle'> & { ifIdle?: { behavior?: 'wake' | 'persist' | 'discard'; attributes?: Record<string, string>; streamOptions?: Record<string, unknown> } }
type Waiting = { wait?: 'outcome' }

const query = object({ wait: { enum: ['outcome'], description: 'Answer when it is known what became of it, and not only that it is stored.' } })
const body = (what: Record<string, JSONSchema>, required: string[]) => object({ ...what, ...target }, required)

export const sending: readonly Route[] = [
  route<{ message: MessageInput } & Target, Waiting>({
    method: 'POST', path: '/agents/:agentId/send-message', summary: 'A message, into the active run or as the start of one', answer: 'json', answers: accepted, send: true, query,
    body: body({ message }, ['message']),
    handle: (call) => answer(call, (to) => call.agent.sendMessage(keyed(messageOf(call.body.message), call.idempotencyKey), to)),
  }),
  route<{ message: MessageInput } & Target, Waiting>({
    method: 'POST', path: '/agents/:agentId/queue-message', summary: 'A message as a turn of its own, after what is active', answer: 'json', answers: accepted, send: true, query,
    body: body({ message }, ['message']),
    handle: (call) => answer(call, (to) => call.agent.queueMessage(keyed(messageOf(call.body.message), call.idempotencyKey), to)),
  }),
  route<{ signal: SignalInput } & Target, Waiting>({
    method: 'POST', path: '/agents/:agentId/signals', summary: 'Context that a system produced', answer: 'json', answers: accepted, send: true, query,
    body: body({ signal }, ['signal']),
    handle: (call) => answer(call, (to) => call.agent.sendSignal(withId(picked(call.body.signal, signalFields), call.idempotencyKey), to)),
  }),
  route<{ state: StateInput & { stateId?: string } } & Target>({
    method: 'POST', path: '/agents/:agentId/state-signals', summary: 'The state of a lane; skipped when the lane has it already', answer: 'json', answers: stateAccepted, send: true,
    body: body({ state }, ['state', 'threadId']),
    async handle(call) {
      const receipt = await call.agent.sendStateSignal(stateOf(call), await targetOf(call))
      if (receipt.skipped) return receipt
      await receipt.stored
      return { ...told(await receipt.acceptance, call.idempotencyKey), skipped: false }
    },
  }),
]

/** The lane may be named as existing clients do; the key is the signal's. */
function stateOf({ body: { state: given }, idempotencyKey }: Call<{ state: StateInput & { stateId?: string } } & Target, unknown>): StateInput {
  const { stateId, ...rest } = picked(given, stateFields)
  checkKey(idempotencyKey, rest.signalId)
  return { ...rest, ...(stateId === undefined ? {} : { id: stateId }), ...(idempotencyKey === undefined || rest.signalId !== undefined ? {} : { signalId: idempotencyKey }) }
}

/** What is answered is stored; what was refused is an error. */
async function answer(call: Call<Target, Waiting>, send: (to: SendOptions) => SendReceipt): Promise<unknown> {
  const to = targetOf(call)
  const receipt = send(to instanceof Promise ? await to : to)
  await receipt.stored
  const answered = told(await receipt.acceptance, call.idempotencyKey)
  return call.query.wait === 'outcome' ? { ...answered, outcome: await receipt.outcome } : answered
}

/** Of a repeated send it is the first. */
function told({ runId, signal, differs, duplicate }: Acceptance, key: string | undefined): { accepted: true; runId: string; signal: unknown; duplicate?: true } {
  if (differs && key !== undefined) throw keyReused()
  return { accepted: true, runId: runId ?? signal.id, signal, ...(duplicate ? { duplicate } : {}) }
}

/** Existing clients may name a run or a thread; whose it is, is never taken on trust. */
function targetOf(call: Call<Target, unknown>): SendOptions | Promise<SendOptions> {
  const { runId, threadId, resourceId, ifIdle } = call.body
  if (runId === undefined && threadId === undefined) throw new HeedError('invalid_argument', 'Say where it goes: resourceId and threadId, or the runId of an active run.', { details: { field: 'threadId' } })
  if (runId !== undefined && ifIdle !== undefined) throw new HeedError('invalid_argument', 'A runId names an active run: ifIdle can never apply. Leave one of them out.', { details: { field: 'ifIdle' } })
  const resource = resourceOf(call.principal, resourceId)
  if (threadId !== undefined && resource === undefined) throw new HeedError('invalid_argument', 'resourceId is missing: say whom the thread belongs to.', { details: { field: 'resourceId' } })
  // A run that is there has its options.
  const options = runId === undefined ? optionsFrom(call, ifIdle?.streamOptions ?? {}) : {}
  return options instanceof Promise ? options.then((found) => sendOptions(call.body, resource, found)) : sendOptions(call.body, resource, options)
}

function sendOptions({ runId, threadId, ifActive, ifIdle }: Target, resourceId: string | undefined, streamOptions: AgentExecutionOptions): SendOptions {
  return {
    ...(runId === undefined ? {} : { runId }),
    ...(threadId === undefined ? {} : { threadId }),
    ...(resourceId === undefined ? {} : { resourceId }),
    ...(ifActive ? { ifActive: picked(ifActive, activeFields) } : {}),
    ...(ifIdle || hasAny(streamOptions) ? { ifIdle: { ...picked(ifIdle ?? {}, idleFields), ...(hasAny(streamOptions) ? { streamOptions } : {}) } } : {}),
  }
}

const activeFields = Object.keys(target.ifActive.properties)
const idleFields = Object.keys(target.ifIdle.properties).filter((name) => name !== 'streamOptions')

function hasAny(options: object): boolean {
  for (const _ in options) return true
  return false
}

/** What a route knows of an object: the rest, which existing clients put in, is passed over. */
function picked<T extends object>(given: T, names: readonly string[]): T {
  const known: Partial<T> = {}
  for (const name of names as ReadonlyArray<keyof T & string>) if (Object.hasOwn(given, name)) known[name] = given[name]
  return known as T
}

function messageOf(given: MessageInput): MessageInput {
  return typeof given === 'object' && !Array.isArray(given) ? picked(given, messageFields) : given
}

function keyed(message: MessageInput, key: string | undefined): MessageInput {
  if (key === undefined) return message
  return typeof message === 'object' && !Array.isArray(message) ? withId(message, key) : { contents: message, id: key }
}

function withId<T extends { id?: string }>(input: T, key: string | undefined): T {
  checkKey(key, input.id)
  return input.id === undefined && key !== undefined ? { ...input, id: key } : input
}
