import { dateOf } from '../base/iso.ts'
import { signalToDataPart } from './echo.ts'
import { renderSignal } from './render.ts'
import { signalToMessage } from './row.ts'
import type { CreatedAgentSignal, Signal } from './signal.ts'

/** The signal of a receipt. */
export function createdSignal(signal: Signal): CreatedAgentSignal {
  return new Created(signal) as Created & Omit<CreatedAgentSignal, keyof Created>
}

/** The fields are own properties; the conversions are methods of the class, so that no function is created for each signal. */
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

  /** The signal itself, whose times are ISO texts already. */
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
