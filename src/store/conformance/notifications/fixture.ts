import type { DueClaim, NewNotification, NotificationStore, Settlement } from '../../contract/notifications.ts'

/** Gives the suite a new store of notifications, empty and open. The harness closes it after the case. */
export interface NotificationHarness {
  store(): Promise<NotificationStore>
  /** A second connection to the database of `store`, as for `StoreHarness`. */
  another?(store: NotificationStore): Promise<NotificationStore>
}

/** One guarantee as a test. The ids in brackets are those of PROTOCOL.md. */
export interface NotificationCase {
  name: string
  run(harness: NotificationHarness): Promise<void>
}

export const scope = { threadId: 'thread-1', resourceId: 'resource-1' }
export const now = 1_700_000_000_000
export const claim: DueClaim = { now: now + 10, until: now + 1_000, limit: 100, agentIds: ['agent-1'] }
export const window = { form: 'window', quietMs: 5, maxWaitMs: 30 } as const

export function note(id: string, more: Partial<NewNotification> = {}): NewNotification {
  return { ...scope, id, agentId: 'agent-1', source: 'github', kind: 'ci', summary: id, now, undecidedUntil: now + 30_000, ...more }
}

export function decided(id: string, more: Partial<Settlement>): Settlement {
  return { threadId: scope.threadId, id, action: 'defer', now, claimUntil: now + 1_000, ...more }
}
