import { refusal } from './refusal.ts'

/** What ids begin with that Heed makes of what they stand for: whoever sends the same again makes the same one. */
export const reservedIds = { full: 'notification:', retry: 'notification-retry:', summary: 'notification-summary:', occurrence: 'schedule:' } as const

/** An id that a sender chose. One that reads as ours would pass for what it names, which the thread would then take for told. */
export function ownId(id: string, field = 'id'): string {
  const prefix = Object.values(reservedIds).find((reserved) => id.startsWith(reserved))
  if (prefix === undefined) return id
  throw refusal(field, `must not begin with '${prefix}': such ids are those of notifications and schedules. Choose another.`)
}
