import { HeedError } from '../base/errors.ts'
import { messageInputToSignal, normaliseSignal, type NormaliseContext } from '../signals/normalise.ts'
import { isPlain, type MessageInput, type Signal, type SignalInput, type StoredContents } from '../signals/signal.ts'
import type { Askable } from './askable.ts'

/** What was passed to an agent, as a signal of its own: everything wrong with it is thrown here. */
export function sentSignal(agent: Askable, input: SignalInput): Signal {
  return saying(normaliseSignal(input, contextOf(agent, input?.id)))
}

/** A user's words as a signal. */
export function sentMessage(agent: Askable, message: MessageInput): Signal {
  return saying(messageInputToSignal(message, contextOf(agent, idOf(message))))
}

/** Whether its id is the sender's own. */
export function isNamed(input: MessageInput | SignalInput): boolean {
  return idOf(input) !== undefined
}

function idOf(input: MessageInput | SignalInput): string | undefined {
  return typeof input === 'object' && input !== null && 'contents' in input ? input.id : undefined
}

/** A user who says nothing gives a model nothing to answer. */
function saying(signal: Signal): Signal {
  if (isPlain(signal) && isEmpty(signal.contents)) throw new HeedError('invalid_message', 'The message is empty. Pass a text or a file.', { details: { field: 'contents' } })
  return signal
}

function isEmpty(contents: StoredContents): boolean {
  if (typeof contents === 'string') return contents.trim() === ''
  return contents.every((part) => part.type === 'text' && part.text.trim() === '' && part.providerOptions === undefined)
}

function contextOf(agent: Askable, id: string | undefined): NormaliseContext {
  const { clock, newId } = agent.threads()
  return { id: id ?? newId(), now: clock.now(), reservedTags: agent.signalTags }
}
