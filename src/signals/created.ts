import { signalToDataPart } from './echo.ts'
import { renderSignal } from './render.ts'
import { signalToMessage } from './row.ts'
import type { CreatedAgentSignal, Signal } from './signal.ts'

/** What a sender is given for the signal that was taken. */
export function createdSignal(signal: Signal): CreatedAgentSignal {
  const { createdAt, acceptedAt, ...fields } = signal
  const conversions: Pick<CreatedAgentSignal, 'toDBMessage' | 'toLLMMessage' | 'toDataPart'> = {
    toDBMessage: owner => signalToMessage(signal, owner),
    toLLMMessage: () => renderSignal(signal),
    toDataPart: () => signalToDataPart(signal),
  }
  return Object.assign(Object.create(conversions), {
    ...fields,
    createdAt: new Date(createdAt),
    ...(acceptedAt !== undefined && { acceptedAt: new Date(acceptedAt) }),
  })
}
