import { HeedError } from '../base/errors.ts'
import { messageInputToSignal, normaliseSignal, type NormaliseContext } from '../signals/normalise.ts'
import { isPlain, type MessageInput, type Signal, type SignalInput, type StoredContents } from '../signals/signal.ts'
import type { RunEnvironment } from '../thread/runtime/runnable.ts'

type Origin = Pick<RunEnvironment, 'clock' | 'newId'>

/** The input of a send as a signal. Everything wrong with it is thrown here. */
export function sentSignal(origin: Origin, reservedTags: readonly string[], input: SignalInput): Signal {
  return notEmpty(normaliseSignal(input, contextOf(origin, reservedTags, input?.id)))
}

/** A user's message as a signal. */
export function sentMessage(origin: Origin, reservedTags: readonly string[], message: MessageInput): Signal {
  return notEmpty(messageInputToSignal(message, contextOf(origin, reservedTags, idOf(message))))
}

/** Whether its id is a caller id. */
export function isNamed(input: MessageInput | SignalInput): boolean {
  return idOf(input) !== undefined
}

function idOf(input: MessageInput | SignalInput): string | undefined {
  return typeof input === 'object' && input !== null && 'contents' in input ? input.id : undefined
}

/** An empty message gives a model nothing to answer. */
function notEmpty(signal: Signal): Signal {
  if (isPlain(signal) && isEmpty(signal.contents)) {
    throw new HeedError('invalid_message', 'The message is empty. Pass a text or a file.', { details: { field: 'contents' } })
  }
  return signal
}

function isEmpty(contents: StoredContents): boolean {
  if (typeof contents === 'string') return contents.trim() === ''
  return contents.every((part) => part.type === 'text' && part.text.trim() === '' && part.providerOptions === undefined)
}

function contextOf({ clock, newId }: Origin, reservedTags: readonly string[], id: string | undefined): NormaliseContext {
  return { id: id ?? newId(), now: clock.now(), reservedTags }
}
