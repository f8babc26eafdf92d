import { HeedError } from '../base/errors.ts'
import type { Message } from '../message/message.ts'

/**
 * The failure of a processor that must not leave its input as it was, such as files that it could not store elsewhere. The run fails with
 * this error, and `messages` replace the input in history.
 */
export class FailedInput extends HeedError {
  readonly messages: readonly Message[]

  constructor(error: HeedError, messages: readonly Message[]) {
    super(error.code, error.message, { cause: error.cause, ...(error.details && { details: error.details }) })
    this.messages = messages
  }
}
