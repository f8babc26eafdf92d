import { dateOf } from '../base/iso.ts'
import { signalToDataPart } from './echo.ts'
import { renderSignal } from './render.ts'
import { signalToMessage } from './row.ts'
import type { CreatedAgentSignal, Signal } from './signal.ts'

/** What a sender is given for the signal that was taken. */
export function createdSignal(signal: Signal): CreatedAgentSignal {
  return new Created(signal) as Created & Omit<CreatedAgentSignal, keyof Created>
}

/** The fields of a signal are its own; what it can be turned into is of its kind, so that none is made for each. */
class Created implements Pick<CreatedAgentSignal, 'toDBMessage' | 'toLLMMessage' | 'toDataPart'> {
  declare createdAt: Date
  declare acceptedAt?: Date
  readonly #signal: Signal

  constructor(signal: Signal) {
    this.#signal = signal
    Object.assign(this, signal)
    this.createdAt = dateOf(signal.createdAt)
    if (signal.acceptedAt !== undefined) this.acceptedAt = dateOf(signal.acceptedAt)
  }

  /** Its times as the text that they were: what a `Date` becomes in JSON, without being one in between. */
  toJSON(): Signal {
    return this.#signal
  }

  toDBMessage(owner: Parameters<CreatedAgentSignal['toDBMessage']>[0]): ReturnType<CreatedAgentSignal['toDBMessage']> {
    return signalToMessage(this.#signal, owner)
  }

  toLLMMessage(): ReturnType<CreatedAgentSignal['toLLMMessage']> {
    return renderSignal(this.#signal)
  }

  toDataPart(): ReturnType<CreatedAgentSignal['toDataPart']> {
    return signalToDataPart(this.#signal)
  }
}
