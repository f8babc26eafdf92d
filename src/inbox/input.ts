import { HeedError } from '../base/errors.ts'
import { isName, type JSONValue } from '../base/json.ts'
import { normaliseAttributes } from '../signals/normalise.ts'
import { MAX_SIGNAL_BYTES } from '../signals/contents.ts'
import { copyJSON, copyJSONObject } from '../signals/input-fields.ts'
import type { SignalAttributes } from '../signals/signal.ts'
import { maxNotificationId, validateTextSize, type NewNotification, type NotificationPriority } from '../store/contract/notifications.ts'
import { priorities } from './policy.ts'

/** Something that happened elsewhere. */
export interface NotificationInput {
  /** The same id on a thread is the same notification, however often it is sent. Made up unless given. */
  id?: string
  /** What it came from, such as `github` or `email`. */
  source: string
  /** What it is within its source, such as `ci-status`. The model reads it as `type`. */
  kind: string
  /** What the model reads. */
  summary: string
  /** Defaults to `medium`. */
  priority?: NotificationPriority
  /** For tools and programs; the model doesn't see it. Must be JSON. */
  payload?: unknown
  /** The same event again: it is counted on the record that waits, of the same source and thread. */
  dedupeKey?: string
  /** A newer state of the same thing: it replaces the words of the record that waits, of the same source and thread. */
  coalesceKey?: string
  /** Besides `source`, `type`, `priority` and `status`, which these can't replace. */
  attributes?: SignalAttributes
  metadata?: Record<string, unknown>
}

export type CheckedNotification = Omit<NewNotification, 'id' | 'threadId' | 'resourceId' | 'agentId' | 'now' | 'undecidedUntil'> & { id?: string }

const known = new Set(['id', 'source', 'kind', 'summary', 'priority', 'payload', 'dedupeKey', 'coalesceKey', 'attributes', 'metadata'])
const maxName = 256
const maxKey = 1_024

/** So many are one transaction, which everything else in the process waits for. */
const mostAtOnce = 1_000

export function checkNotifications(inputs: readonly NotificationInput[]): CheckedNotification[] {
  if (inputs.length > mostAtOnce) throw wrong('notifications', `must not be more than ${mostAtOnce} at once: send them in parts`)
  // Also what is missing in between.
  return Array.from(inputs, checkNotification)
}

/** Everything that could fail later fails here, by name; nothing of the input is shared with the answer. */
function checkNotification(input: NotificationInput): CheckedNotification {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) throw wrong('notification', 'must be an object with source, kind and summary')
  for (const key of Object.keys(input)) if (!known.has(key)) throw wrong(key, `is not known. Known: ${[...known].join(', ')}`)
  const { id, priority, dedupeKey, coalesceKey, attributes, metadata, payload } = input
  if (priority !== undefined && !priorities.includes(priority)) throw wrong('priority', `must be one of ${priorities.join(', ')}`)
  if (attributes !== undefined && (typeof attributes !== 'object' || attributes === null)) throw wrong('attributes', 'must be an object')
  const given = attributes ? normaliseAttributes(attributes) : undefined
  return {
    ...(id === undefined ? {} : { id: name(id, 'id', maxNotificationId) }),
    source: name(input.source, 'source', maxName),
    kind: name(input.kind, 'kind', maxName),
    // Whoever cuts a text may cut an emoji in two: the half is read as the sign for what can't be read.
    summary: sized(text(input.summary, 'summary', MAX_SIGNAL_BYTES).toWellFormed(), 'summary'),
    ...(priority === undefined ? {} : { priority }),
    ...(payload === undefined ? {} : { payload: sized(copyJSON(payload, 'payload'), 'payload') }),
    ...(dedupeKey === undefined ? {} : { dedupeKey: name(dedupeKey, 'dedupeKey', maxKey) }),
    ...(coalesceKey === undefined ? {} : { coalesceKey: name(coalesceKey, 'coalesceKey', maxKey) }),
    ...(given ? { attributes: sized(given, 'attributes') } : {}),
    ...(metadata === undefined ? {} : { metadata: sized(copyJSONObject(metadata, 'metadata'), 'metadata') }),
  }
}

function text(value: unknown, field: string, max: number): string {
  if (typeof value !== 'string' || value === '') throw wrong(field, 'must be a text that is not empty')
  if (value.length > max) throw wrong(field, `must not be longer than ${max} characters`)
  return value
}

/** What it is found by, or told apart. */
function name(value: unknown, field: string, max: number): string {
  const given = text(value, field, max)
  if (!isName(given)) throw wrong(field, 'must be a text of whole characters, without NUL')
  return given
}

function sized<Value extends JSONValue>(value: Value, field: string): Value {
  validateTextSize(typeof value === 'string' ? value : JSON.stringify(value), field)
  return value
}

function wrong(field: string, why: string): HeedError {
  return new HeedError('invalid_argument', `Invalid notification: ${field} ${why}.`, { details: { field } })
}
