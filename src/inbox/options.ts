import { isName } from '../base/json.ts'
import { HeedError } from '../base/errors.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import type { DispatchSettings } from '../schedule/dispatcher.ts'

/** Where a notification goes. */
export interface NotificationTarget {
  resourceId: string
  threadId: string
  /** For the run that starts when the notification wakes an idle thread at once. */
  ifIdle?: { streamOptions?: AgentExecutionOptions }
}

/** How a Heed handles notifications. */
export interface NotificationsConfig {
  dispatch?: {
    /** Whether this process dispatches by itself. Otherwise only `heed.tick()` does. Defaults to true. */
    enabled?: boolean
    /** A regular look besides the timers, which are exact: for what a process left that died. */
    cron?: string
    /** How many records are taken at once. Defaults to 100. */
    batchSize?: number
  }
  /** When a summary of what waits is emitted: after this much quiet, and at the latest after so long. Defaults to 5 s and 30 s. */
  batching?: { quietMs?: number; maxWaitMs?: number }
  /** For how long after its delivery a `dedupeKey` is only counted. Defaults to 0: only what waits is. */
  dedupeMemoryMs?: number
  /** How long a policy's `decide()` may take. Defaults to 5 s. */
  decideTimeoutMs?: number
  /** How often a delivery is tried before its record is `failed`. Defaults to 5. */
  maxAttempts?: number
}

export interface InboxSettings extends DispatchSettings {
  quietMs: number
  maxWaitMs: number
  dedupeMemoryMs: number
  decideTimeoutMs: number
  maxAttempts: number
}

const known: Record<string, readonly string[]> = {
  notifications: ['dispatch', 'batching', 'dedupeMemoryMs', 'decideTimeoutMs', 'maxAttempts'],
  'notifications.dispatch': ['enabled', 'cron', 'batchSize'],
  'notifications.batching': ['quietMs', 'maxWaitMs'],
}

/** The settings of a Heed, all of them. Refuses by name what it doesn't know. */
export function inboxSettings(config: NotificationsConfig = {}): InboxSettings {
  checkKeys('notifications', config)
  const { dispatch = {}, batching = {} } = config
  for (const [field, part] of Object.entries({ 'notifications.dispatch': dispatch, 'notifications.batching': batching })) checkKeys(field, part)
  if (dispatch.enabled !== undefined && typeof dispatch.enabled !== 'boolean') throw wrong('notifications.dispatch.enabled', 'must be true or false')
  if (dispatch.cron !== undefined && typeof dispatch.cron !== 'string') throw wrong('notifications.dispatch.cron', 'must be a cron expression')
  const settings = {
    enabled: dispatch.enabled ?? true,
    cron: dispatch.cron ?? (dispatch.enabled ? '*/1 * * * *' : undefined),
    batchSize: whole('notifications.dispatch.batchSize', dispatch.batchSize ?? 100, 1),
    quietMs: whole('notifications.batching.quietMs', batching.quietMs ?? 5_000, 0),
    maxWaitMs: whole('notifications.batching.maxWaitMs', batching.maxWaitMs ?? 30_000, 0),
    dedupeMemoryMs: whole('notifications.dedupeMemoryMs', config.dedupeMemoryMs ?? 0, 0),
    decideTimeoutMs: whole('notifications.decideTimeoutMs', config.decideTimeoutMs ?? 5_000, 1),
    maxAttempts: whole('notifications.maxAttempts', config.maxAttempts ?? 5, 1),
  }
  return settings
}

export function checkTarget(target: NotificationTarget): void {
  if (typeof target !== 'object' || target === null) throw wrong('options', 'must have resourceId and threadId')
  for (const key of Object.keys(target)) if (!['resourceId', 'threadId', 'ifIdle'].includes(key)) throw wrong(key, 'is not an option of a notification. Known: resourceId, threadId, ifIdle')
  for (const field of ['resourceId', 'threadId'] as const) {
    if (!isName(target[field])) throw wrong(field, 'is missing, or no text of whole characters without NUL')
  }
  checkParts('ifIdle', target.ifIdle)
  checkParts('ifIdle.streamOptions', target.ifIdle?.streamOptions)
  for (const key of Object.keys(target.ifIdle ?? {})) if (key !== 'streamOptions') throw wrong(`ifIdle.${key}`, "is not an option: the delivery policy decides. Known: streamOptions")
}

function checkParts(field: string, part: unknown): void {
  if (part !== undefined && (typeof part !== 'object' || part === null || Array.isArray(part))) throw wrong(field, 'must be an object')
}

function checkKeys(field: string, part: object): void {
  checkParts(field, part)
  const names = known[field] ?? []
  for (const key of Object.keys(part)) if (!names.includes(key)) throw wrong(`${field}.${key}`, `is not known. Known: ${names.join(', ')}`)
}

/** A hundred years, in milliseconds: what is added to the time must still be a time. */
const most = 3_155_760_000_000

function whole(field: string, value: number, least: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value
  throw wrong(field, `must be a whole number from ${least} to ${most}`)
}

function wrong(field: string, why: string): HeedError {
  return new HeedError('invalid_argument', `${field} ${why}.`, { details: { field } })
}
