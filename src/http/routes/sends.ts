import { HeedError } from '../../base/errors.ts'
import type { WokenRunOptions } from '../../run/options.ts'
import type { MessageInput, SignalInput } from '../../signals/signal.ts'
import type { StateInput } from '../../signals/state.ts'
import type { Acceptance, SendReceipt } from '../../thread/send/receipt.ts'
import type { SendOptions } from '../../thread/send/options.ts'
import { requireResource, resolveResource } from '../auth/principal.ts'
import { unlessForeign } from '../request/access.ts'
import { checkKeyMatchesId, keyReused, readStreamOptions } from '../request/fields.ts'
import { route, type Call, type JSONSchema, type ObjectSchema, type Route } from '../route.ts'
import { accepted, stateAccepted } from '../schema/response-schemas.ts'
import { message, object, signal, state, target } from '../schema/schemas.ts'

type Target = Omit<SendOptions, 'ifIdle'> & {
  ifIdle?: { behavior?: 'wake' | 'persist' | 'discard'; attributes?: Record<string, string>; streamOptions?: Record<string, unknown> }
}
type MessageBody = { message: MessageInput } & Target
type SignalBody = { signal: SignalInput } & Target
type StateBody = { state: StateInput & { stateId?: string } } & Target
type WaitQuery = { wait?: 'outcome' }

const query = object({ wait: { enum: ['outcome'], description: 'Respond when the outcome is known, not when the signal is stored.' } })

export const sends: readonly Route[] = [
  route<MessageBody, WaitQuery>({
    method: 'POST', path: '/agents/:agentId/send-message', summary: 'Sends a message to the active run, or starts one', response: 'json',
    responseSchema: accepted, send: true, startsRun: true, creates: true, query, body: withTarget({ message }, ['message']),
    handle: (call) => send(call, (to) => call.agent.sendMessage(withKey(call.body.message, call.idempotencyKey), to)),
  }),
  route<MessageBody, WaitQuery>({
    method: 'POST', path: '/agents/:agentId/queue-message', summary: 'Queues a message, which starts a run after the active one',
    response: 'json', responseSchema: accepted, send: true, startsRun: true, creates: true, query,
    body: withTarget({ message }, ['message']),
    handle: (call) => send(call, (to) => call.agent.queueMessage(withKey(call.body.message, call.idempotencyKey), to)),
  }),
  route<SignalBody, WaitQuery>({
    method: 'POST', path: '/agents/:agentId/signals', summary: 'Sends a signal that a system produced', response: 'json',
    responseSchema: accepted, send: true, creates: true, query, body: withTarget({ signal }, ['signal']),
    handle: (call) => send(call, (to) => call.agent.sendSignal(withId(call.body.signal, call.idempotencyKey), to)),
  }),
  route<StateBody>({
    method: 'POST', path: '/agents/:agentId/state-signals', summary: 'Sets the state of a lane; skipped if the lane already has it',
    response: 'json', responseSchema: stateAccepted, send: true, creates: true, body: withTarget({ state }, ['state', 'threadId']),
    async handle(call) {
      const receipt = await unlessForeignRun(call, call.agent.sendStateSignal(readState(call), await readTarget(call)))
      if (receipt.skipped) return receipt
      await unlessForeignRun(call, receipt.stored)
      return { ...acceptedResponse(await receipt.acceptance, call.idempotencyKey), skipped: false }
    },
  }),
]

function withTarget(input: Record<string, JSONSchema>, required: string[]): ObjectSchema {
  return object({ ...input, ...target }, required)
}

/** Existing clients name the lane `stateId`. The idempotency key becomes the id of the signal. */
function readState({ body, idempotencyKey: key }: Call<StateBody, unknown>): StateInput {
  const { stateId, ...rest } = body.state
  checkKeyMatchesId(key, rest.signalId)
  return {
    ...rest,
    ...(stateId === undefined ? {} : { id: stateId }),
    ...(key === undefined || rest.signalId !== undefined ? {} : { signalId: key }),
  }
}

/** Responds after the signal is stored; a rejected send is an error. */
async function send(call: Call<Target, WaitQuery>, sendTo: (to: SendOptions) => SendReceipt): Promise<unknown> {
  const to = readTarget(call)
  const receipt = sendTo(to instanceof Promise ? await to : to)
  await unlessForeignRun(call, receipt.stored)
  const response = acceptedResponse(await receipt.acceptance, call.idempotencyKey)
  return call.query.wait === 'outcome' ? { ...response, outcome: await receipt.outcome } : response
}

/** A run of another resource is answered for as one that is not active. A thread of another resource has a taken id. */
function unlessForeignRun<T>(call: Call<Target, unknown>, sent: Promise<T>): Promise<T> {
  const { runId } = call.body
  if (runId === undefined) return sent
  return unlessForeign(call, sent, () => {
    const message = `No active run '${runId}' was found. Send with resourceId and threadId to wake the thread.`
    throw new HeedError('no_active_run', message, { details: { runId } })
  })
}

interface AcceptedResponse {
  accepted: true
  runId: string
  signal: unknown
  duplicate?: true
}

/** For a repeated send, the acceptance is that of the first one. */
function acceptedResponse({ runId, signal, differs, duplicate }: Acceptance, key: string | undefined): AcceptedResponse {
  if (differs && key !== undefined) throw keyReused()
  return { accepted: true, runId: runId ?? signal.id, signal, ...(duplicate ? { duplicate } : {}) }
}

/** The run or thread that a send addresses. Its resource is checked against the principal. */
function readTarget(call: Call<Target, unknown>): SendOptions | Promise<SendOptions> {
  const { runId, threadId, resourceId, ifIdle } = call.body
  if (runId === undefined && threadId === undefined) {
    const message = 'The target is missing. Send resourceId and threadId, or the runId of an active run.'
    throw new HeedError('invalid_argument', message, { details: { field: 'threadId' } })
  }
  if (runId !== undefined && ifIdle !== undefined) {
    const message = 'A send with a runId only reaches an active run, so ifIdle never applies. Leave one of them out.'
    throw new HeedError('invalid_argument', message, { details: { field: 'ifIdle' } })
  }
  const resource = threadId === undefined ? resolveResource(call.principal, resourceId) : requireResource(call.principal, resourceId)
  // An active run already has its options.
  const options = runId === undefined ? readStreamOptions(call, ifIdle?.streamOptions) : {}
  if (options instanceof Promise) return options.then((resolved) => sendOptions(call.body, resource, resolved))
  return sendOptions(call.body, resource, options)
}

function sendOptions(
  { runId, threadId, ifActive, ifIdle }: Target, resourceId: string | undefined, streamOptions: WokenRunOptions,
): SendOptions {
  const hasOptions = hasProperties(streamOptions)
  const options: Partial<SendOptions> = {
    ...(runId === undefined ? {} : { runId }),
    ...(threadId === undefined ? {} : { threadId }),
    ...(resourceId === undefined ? {} : { resourceId }),
    ...(ifActive ? { ifActive } : {}),
    ...(ifIdle || hasOptions ? { ifIdle: { ...withoutOptions(ifIdle), ...(hasOptions ? { streamOptions } : {}) } } : {}),
  }
  // The caller has checked the target.
  return options as SendOptions
}

type IdleBranch = NonNullable<Target['ifIdle']>

function withoutOptions({ streamOptions: _, ...branch }: IdleBranch = {}): Omit<IdleBranch, 'streamOptions'> {
  return branch
}

function hasProperties(value: object): boolean {
  for (const _ in value) return true
  return false
}

function withKey(input: MessageInput, key: string | undefined): MessageInput {
  if (key === undefined) return input
  return typeof input === 'object' && !Array.isArray(input) ? withId(input, key) : { contents: input, id: key }
}

function withId<T extends { id?: string }>(input: T, key: string | undefined): T {
  checkKeyMatchesId(key, input.id)
  return input.id === undefined && key !== undefined ? { ...input, id: key } : input
}
