import { HeedError } from '../../base/errors.ts'
import type { HttpRequest } from './exchange.ts'

const details = { field: 'Idempotency-Key' }
const form = /^[\x21-\x7e]{1,200}$/

export function readIdempotencyKey(request: HttpRequest): string | undefined {
  const key = request.header('idempotency-key')
  if (key === null) return undefined
  if (form.test(key)) return key
  throw new HeedError('invalid_argument', 'Idempotency-Key must be 1 to 200 printable characters without spaces.', { details })
}

/** Input with an id is recognised by that id when it is sent again, so a key with another value would contradict it. */
export function checkKeyMatchesId(key: string | undefined, id: string | undefined): void {
  if (key === undefined || id === undefined || key === id) return
  const message = 'The input has an id, which already makes the send idempotent. Leave out the Idempotency-Key, or give it the same value.'
  throw new HeedError('invalid_argument', message, { details })
}

export function keyReused(): HeedError {
  return new HeedError('idempotency_key_reused', 'This Idempotency-Key was used for other input. Use a new key for each send.', { details })
}
