import { HeedError } from '../base/errors.ts'
import { createdSignal } from '../signals/created.ts'
import { messageInputToSignal, normaliseSignal, type NormaliseContext } from '../signals/normalise.ts'
import { isPlain, type MessageInput, type Signal, type SignalInput, type StoredContents } from '../signals/signal.ts'
import type { RunEnvironment } from '../thread/runtime/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { optional, type Acceptance, type SendReceipt } from '../thread/send/receipt.ts'
import { hasRun, persists, rejected, type SendOptions } from '../thread/send/send.ts'

type Origin = Pick<RunEnvironment, 'clock' | 'newId'>

/** The input of a send as a signal. Throws when it is invalid. */
export function toSignal(origin: Origin, reservedTags: readonly string[], input: SignalInput): Signal {
  return requireContents(normaliseSignal(input, normaliseContext(origin, reservedTags, input?.id)))
}

/** A user's message as a signal. */
export function messageToSignal(origin: Origin, reservedTags: readonly string[], message: MessageInput): Signal {
  return requireContents(messageInputToSignal(message, normaliseContext(origin, reservedTags, idOf(message))))
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

function normaliseContext({ clock, newId }: Origin, reservedTags: readonly string[], id: string | undefined): NormaliseContext {
  return { id: id ?? newId(), now: clock.now(), reservedTags }
}

/** Sends whose storage is being resolved. The sends of one thread reach it in the order of their calls. */
export class UnresolvedSends {
  readonly #last = new Map<string, Promise<unknown>>()

  /** Whether a send of this thread is pending: later ones must wait for it. */
  includes({ threadId }: SendOptions): boolean {
    return threadId !== undefined && this.#last.has(threadId)
  }

  /**
   * Returns the receipt synchronously. `send` is called when the storage is resolved, with the id of the run that it starts if it wakes.
   */
  receipt(runtime: ThreadRuntime, signal: Signal, options: SendOptions, send: (runId: string) => Promise<SendReceipt>): SendReceipt {
    const runId = runtime.newId()
    const accepted: Signal = { ...signal, acceptedAt: new Date(runtime.clock.now()).toISOString() }
    const before = options.threadId === undefined ? undefined : this.#last.get(options.threadId)
    const sent = (before ?? Promise.resolve()).then(() => send(runId))
    if (options.threadId !== undefined) this.#follow(options.threadId, sent)
    let stored: Promise<void> | undefined
    let acceptance: Promise<Acceptance> | undefined
    return {
      accepted: true,
      runId: hasRun(options.ifIdle) ? runId : signal.id,
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

  #follow(threadId: string, sent: Promise<unknown>): void {
    const last = sent.then(() => {}, () => {}).then(() => {
      if (this.#last.get(threadId) === last) this.#last.delete(threadId)
    })
    this.#last.set(threadId, last)
  }
}
