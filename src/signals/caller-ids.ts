import { describeValue, isName } from '../base/arguments.ts'
import { invalidSignal } from './invalid-signal.ts'

/** Prefixes of ids that Heed derives from a notification or an occurrence, so that a repeated delivery has the same id. */
export const reservedIdPrefixes = {
  full: 'notification:',
  retry: 'notification-retry:',
  summary: 'notification-summary:',
  occurrence: 'schedule:',
} as const

const maxIdLength = 256

export function checkSignalId(id: unknown): string {
  if (isName(id) && id.length <= maxIdLength) return id
  throw invalidSignal('id', `must be a string of 1 to ${maxIdLength} whole characters without NUL, not ${describeValue(id)}.`)
}

/** Rejects a caller id with a reserved prefix: the thread would take the signal for the delivery of a notification or an occurrence. */
export function checkCallerId(id: string, field = 'id'): string {
  const prefix = Object.values(reservedIdPrefixes).find((reserved) => id.startsWith(reserved))
  if (prefix === undefined) return id
  throw invalidSignal(field, `must not begin with '${prefix}', which is reserved for notifications and schedules. Choose another id.`)
}
