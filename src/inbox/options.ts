import { isName } from '../base/json.ts'
import { HeedError } from '../base/errors.ts'
import type { WokenRunOptions } from '../run/options.ts'
import type { DispatchSettings } from '../schedule/dispatcher.ts'

/** The thread that a notification is for. */
export interface NotificationTarget {
  resourceId: string
  threadId: string
  /** For the run that starts when the notification wakes an idle thread at once. */
  ifIdle?: { streamOptions?: WokenRunOptions }
}

/** How a Heed handles notifications. */
export interface NotificationsConfig {
  dispatch?: {
    /** Whether this process dispatches by itself. Otherwise only `heed.tick()` does. Defaults to true. */
    enabled?: boolean
    /** Regular dispatches besides the timers, to find what a crashed process left. */
    cron?: string
    /** How many records are claimed at once. Defaults to 100. */
    batchSize?: number
  }
  /**
   * When a summary of pending notifications is sent: after this time without a new one, and at the latest after `maxWaitMs`. Defaults to 5
   * s and 30 s.
   */
  batching?: { quietMs?: number; maxWaitMs?: number }
  /** For how long after a delivery notifications with its `dedupeKey` are only counted. Defaults to 0: only pending records count. */
  dedupeMemoryMs?: number
  /** How long a policy's `decide()` may take. Defaults to 5 s. */
  decideTimeoutMs?: number
  /** How many deliveries are attempted before a record is `failed`. Defaults to 5. */
  maxAttempts?: number
}

export interface InboxSettings extends DispatchSettings {
  quietMs: number
  maxWaitMs: number
  dedupeMemoryMs: number
  decideTimeoutMs: number
  maxAttempts: number
}

const knownKeys: Record<string, readonly string[]> = {
  notifications: ['dispatch', 'batching', 'dedupeMemoryMs', 'decideTimeoutMs', 'maxAttempts'],
  'notifications.dispatch': ['enabled', 'cron', 'batchSize'],
  'notifications.batching': ['quietMs', 'maxWaitMs'],
}

/** The validated settings with their defaults. Unknown names are rejected. */
export function inboxSettings(config: NotificationsConfig = {}): InboxSettings {
  checkKeys('notifications', config)
  const { dispatch = {}, batching = {} } = config
  for (const [field, part] of Object.entries({ 'notifications.dispatch': dispatch, 'notifications.batching': batching }))
    checkKeys(field, part)
  if (dispatch.enabled !== undefined && typeof dispatch.enabled !== 'boolean')
    throw invalidOption('notifications.dispatch.enabled', 'must be true or false')
  if (dispatch.cron !== undefined && typeof dispatch.cron !== 'string')
    throw invalidOption('notifications.dispatch.cron', 'must be a cron expression')
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
  if (typeof target !== 'object' || target === null) throw invalidOption('options', 'must have resourceId and threadId')
  for (const key of Object.keys(target))
    if (!['resourceId', 'threadId', 'ifIdle'].includes(key))
      throw invalidOption(key, 'is not an option of a notification. Known: resourceId, threadId, ifIdle')
  for (const field of ['resourceId', 'threadId'] as const) {
    if (!isName(target[field])) throw invalidOption(field, 'is missing or is not a valid string (well-formed Unicode, no NUL)')
  }
  checkParts('ifIdle', target.ifIdle)
  checkParts('ifIdle.streamOptions', target.ifIdle?.streamOptions)
  for (const key of Object.keys(target.ifIdle ?? {}))
    if (key !== 'streamOptions') throw invalidOption(`ifIdle.${key}`, 'is not an option: the delivery policy decides. Known: streamOptions')
}

function checkParts(field: string, part: unknown): void {
  if (part !== undefined && (typeof part !== 'object' || part === null || Array.isArray(part)))
    throw invalidOption(field, 'must be an object')
}

function checkKeys(field: string, part: object): void {
  checkParts(field, part)
  const names = knownKeys[field] ?? []
  for (const key of Object.keys(part))
    if (!names.includes(key)) throw invalidOption(`${field}.${key}`, `is not known. Known: ${names.join(', ')}`)
}

/** A hundred years, in milliseconds, so that sums with the present time are valid times. */
const most = 3_155_760_000_000

function whole(field: string, value: number, least: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value
  throw invalidOption(field, `must be a whole number from ${least} to ${most}`)
}

function invalidOption(field: string, why: string): HeedError {
  return new HeedError('invalid_argument', `${field} ${why}.`, { details: { field } })
}
