import { HeedError } from '../base/errors.ts'
import type { NotificationInput } from '../inbox/input.ts'
import type { NotificationTarget } from '../inbox/options.ts'
import type { NotificationDeliveryPolicyConfig } from '../inbox/policy.ts'
import type { NotificationResult } from '../inbox/settlement.ts'
import { createdSignal } from '../signals/conversions.ts'
import { messageInputToSignal, normalizeSignal, type NormalizeContext } from '../signals/normalize.ts'
import type { MessageInput, Signal, SignalInput, StoredContents } from '../signals/signal.ts'
import { isPlain } from '../signals/tags.ts'
import { stateSignal, type StateInput } from '../signals/state.ts'
import type { WokenRunOptions } from '../run/options.ts'
import type { Site } from '../heed/site.ts'
import type { RunEnvironment } from '../thread/runtime/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { optional, type Acceptance, type SendReceipt, type StateReceipt } from '../thread/send/receipt.ts'
import { checkQueued, checkSendOptions, hasRun, persists, type CheckedSend, type SendOptions } from '../thread/send/options.ts'
import { rejected } from '../thread/send/send.ts'
import type { Askable } from './askable.ts'
import { checkOptions } from './options.ts'

type Origin = Pick<RunEnvironment, 'clock' | 'newId'>

/** The input of a send as a signal. Throws when it is invalid. */
export function toSignal(origin: Origin, reservedTags: readonly string[], input: SignalInput): Signal {
  return requireContents(normalizeSignal(input, normalizeContext(origin, reservedTags, input?.id)))
}

/** A user's message as a signal. */
export function messageToSignal(origin: Origin, reservedTags: readonly string[], message: MessageInput): Signal {
  return requireContents(messageInputToSignal(message, normalizeContext(origin, reservedTags, idOf(message))))
}

/** Whether the caller chose its id. */
export function hasCallerId(input: MessageInput | SignalInput): boolean {
  return idOf(input) !== undefined
}

function idOf(input: MessageInput | SignalInput): string | undefined {
  return typeof input === 'object' && input !== null && 'contents' in input ? input.id : undefined
}

/** An empty message gives a model nothing to answer. */
function requireContents(signal: Signal): Signal {
  if (isPlain(signal) && isEmpty(signal.contents))
    throw new HeedError('invalid_message', 'The message is empty. Pass a text or a file.', { details: { field: 'contents' } })
  return signal
}

function isEmpty(contents: StoredContents): boolean {
  if (typeof contents === 'string') return contents.trim() === ''
  return contents.every((part) => part.type === 'text' && part.text.trim() === '' && part.providerOptions === undefined)
}

function normalizeContext({ clock, newId }: Origin, reservedTags: readonly string[], id: string | undefined): NormalizeContext {
  return { id: id ?? newId(), now: clock.now(), reservedTags }
}

interface WithStreamOptions {
  threadId?: string
  resourceId?: string
  ifIdle?: { streamOptions?: WokenRunOptions }
}

/** Validates the options of a send. Throws before anything is stored or published. */
function checkSend(options: SendOptions): CheckedSend {
  checkStreamOptions(options)
  return checkSendOptions(options)
}

/**
 * Validates the options of the run that a send may start. Their `memory` may repeat the target of the send, and must not name another one.
 */
function checkStreamOptions(options: WithStreamOptions): void {
  const { streamOptions } = options?.ifIdle ?? {}
  if (streamOptions === undefined) return
  checkOptions(streamOptions, 'ifIdle.streamOptions')
  const { thread, resource, options: ofMemory } = (streamOptions as WokenRunOptions).memory ?? {}
  checkTarget('thread', typeof thread === 'string' ? thread : thread?.id, options.threadId)
  checkTarget('resource', resource, options.resourceId)
  if (ofMemory?.save !== false) return
  const field = 'ifIdle.streamOptions.memory.options.save'
  const message = `${field} has no effect: what is sent is stored. Call generate() or stream().`
  throw new HeedError('invalid_argument', message, { details: { field } })
}

function checkTarget(field: 'thread' | 'resource', named: string | undefined, target: string | undefined): void {
  if (named === undefined || named === target) return
  const why = `ifIdle.streamOptions.memory.${field} is '${named}', but the send goes to '${target ?? 'the thread of a run'}'.`
  throw new HeedError('invalid_argument', `${why} Leave it out: threadId and resourceId are the target.`, {
    details: { field: `ifIdle.streamOptions.memory.${field}` },
  })
}

/** Sends the state of a lane. Skipped when the lane has this state already. */
export async function sendState(agent: Askable, state: StateInput, options: SendOptions): Promise<StateReceipt> {
  const { input, lane } = stateSignal(state, options?.threadId)
  const checked = checkSend(options)
  const here = await agent.resolveStorage(options.ifIdle?.streamOptions?.requestContext)
  const site = here.site()
  return site.threads.sends.sendState(here, toSignal(site, agent.signalTags, input), checked, { lane, named: hasCallerId(input) })
}

/** The sends of one agent to threads. */
export class AgentSends {
  readonly #unresolved = new UnresolvedSends()

  /** Sends at the site of the request's storage, which may still have to be resolved. */
  send(agent: Askable, site: Site, mode: 'now' | 'queue', signal: Signal, options: SendOptions, named: boolean): SendReceipt {
    const checked = checkSend(options)
    if (mode === 'queue') checkQueued(checked)
    if (!agent.storageDependsOnRequest) return site.threads.sends.send(agent, mode, signal, checked, { named })
    const here = agent.resolveStorage(options.ifIdle?.streamOptions?.requestContext)
    if (!(here instanceof Promise) && !this.#unresolved.includes(options))
      return here.threads().sends.send(here, mode, signal, checked, { named })
    // It may reject while earlier sends are pending; the receipt reports it.
    if (here instanceof Promise) here.catch(() => {})
    return this.#unresolved.receipt(site.threads, mode, signal, options, async (runId) => {
      const placed = await here
      return placed.threads().sends.send(placed, mode, signal, checked, { runId, named })
    })
  }
}

/** Sends whose storage is being resolved. The sends of one thread reach it in the order of their calls. */
class UnresolvedSends {
  readonly #last = new Map<string, { sent: Promise<unknown>; runId: string }>()

  /** Whether a send of this thread is pending: later ones must wait for it. */
  includes({ threadId }: SendOptions): boolean {
    return threadId !== undefined && this.#last.has(threadId)
  }

  /**
   * Returns the receipt synchronously. `send` is called when the storage is resolved, with the id of the run that it starts if it wakes.
   */
  receipt(
    runtime: ThreadRuntime, mode: 'now' | 'queue', signal: Signal, options: SendOptions, send: (runId: string) => Promise<SendReceipt>,
  ): SendReceipt {
    const runId = options.ifIdle?.streamOptions?.runId ?? runtime.newId()
    const accepted: Signal = { ...signal, acceptedAt: new Date(runtime.clock.now()).toISOString() }
    const before = options.threadId === undefined ? undefined : this.#last.get(options.threadId)
    const sent = (before?.sent ?? Promise.resolve()).then(() => send(runId))
    // The first of them starts the run that the others enter, unless they are queued.
    const named = (mode === 'now' ? before?.runId : undefined) ?? runId
    if (options.threadId !== undefined) this.#follow(options.threadId, sent, before?.runId ?? runId)
    let stored: Promise<void> | undefined
    let acceptance: Promise<Acceptance> | undefined
    return {
      accepted: true,
      runId: hasRun(options.ifIdle) ? named : signal.id,
      signal: createdSignal(accepted),
      ...(persists(options) && !signal.transient ? { persisted: optional(sent.then((receipt) => receipt.persisted)) } : {}),
      get stored() {
        stored ??= optional(sent.then((receipt) => receipt.stored))
        return stored
      },
      get acceptance() {
        acceptance ??= optional(sent.then((receipt) => receipt.acceptance))
        return acceptance
      },
      outcome: sent.then((receipt) => receipt.outcome, rejected),
    }
  }

  #follow(threadId: string, sent: Promise<unknown>, runId: string): void {
    const last = { sent: sent.then(() => {}, () => {}), runId }
    this.#last.set(threadId, last)
    void last.sent.then(() => {
      if (this.#last.get(threadId) === last) this.#last.delete(threadId)
    })
  }
}

export type { NotificationDeliveryPolicyConfig, NotificationInput, NotificationResult, NotificationTarget }

/**
 * Sends one notification, or several in one transaction. `areNew`: rejects all of them with `id_taken` where one of their ids is stored.
 */
export async function sendNotifications(
  agent: Askable,
  given: NotificationInput | readonly NotificationInput[],
  target: NotificationTarget,
  terms: { areNew?: boolean } = {},
): Promise<NotificationResult | NotificationResult[]> {
  checkStreamOptions(target)
  const here = await agent.resolveStorage(target?.ifIdle?.streamOptions?.requestContext)
  const { inbox } = here.site()
  if (isBatch(given)) return given.length === 0 ? [] : inbox.send(here, given, target, terms)
  const [result] = await inbox.send(here, [given], target, terms)
  return result as NotificationResult
}

function isBatch(given: NotificationInput | readonly NotificationInput[]): given is readonly NotificationInput[] {
  return Array.isArray(given)
}
