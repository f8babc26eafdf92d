import { HeedError } from '../../base/errors.ts'

/** What has an id is known by that when it is sent again; a key beside it would say something else. */
export function checkKey(key: string | undefined, id: string | undefined): void {
  if (key === undefined || id === undefined || key === id) return
  throw new HeedError('invalid_argument', 'What is sent has an id of its own, which makes it one however often it is sent. Leave out the Idempotency-Key, or send it with the same value.', { details: { field: 'Idempotency-Key' } })
}

export function keyReused(): HeedError {
  return new HeedError('idempotency_key_reused', 'This Idempotency-Key was used for something else. Take a new key for each thing that is sent.', { details: { field: 'Idempotency-Key' } })
}
