import { checkObject, nearestName, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { isName, orderedJSON } from '../base/json.ts'
import type { WatchCriteria, WatchRecord } from '../store/contract/watches.ts'
import type { PlainJSONSchema } from '../schema/schema.ts'
import { isCategory, MAX_CATEGORIES } from './annotation.ts'
import type { WatchMode } from './machine.ts'
import { compileResultSchema, type ResultSchema } from './result-schema.ts'

/** What `await_signal` takes, from a model or from a program. */
export interface WatchInput {
  /** What to wait for, in words: the judge's instruction. */
  description: string
  /** Labels of which a message needs at least one. */
  expected_categories?: readonly string[]
  /** Kinds of channels (`sms`), or single channels (`email/work`). Messages of others are not considered. */
  expected_channels?: readonly string[]
  /** Ids of contacts. Messages of others, and of senders that a channel did not verify, are not considered. */
  expected_contacts?: readonly string[]
  /** `once` by default. */
  mode?: WatchMode
  /** ISO 8601 with a time zone. An hour from now by default. */
  expires_at?: string
  expires_in_minutes?: number
  /** Messages that are judged before the watch ends. 50 by default, and 1000 for a continuous watch. */
  max_evaluations?: number
  result_schema?: unknown
  /** Messages that arrived up to so long ago count too. By default those since the turn began. */
  look_back_seconds?: number
  /** A message that matches this watch is given to no later one. */
  exclusive?: boolean
  /** The judge may end a continuous watch. False by default: a message could persuade it to. */
  judge_may_end?: boolean
}

/** A watch that can be registered: checked, with its defaults. Times are in milliseconds. */
interface CheckedWatch {
  readonly description: string
  readonly criteria: WatchCriteria
  readonly mode: WatchMode
  readonly expiresAt: number
  readonly maxEvaluations: number
  /** Messages received at this time or later are considered. */
  readonly since: number
  readonly exclusive: boolean
  readonly mayEnd: boolean
  readonly resultSchema: ResultSchema
}

export interface WatchLimits {
  readonly now: number
  /** When the turn that registers the watch began. A code may arrive before the model has written its call. */
  readonly turnStartedAt?: number
  /** The operator's limit for the time that a watch may be open. */
  readonly maxExpiryMs?: number
  readonly maxLookBackMs?: number
}

const HOUR = 3_600_000
const DEFAULT_EXPIRY_MS = HOUR
const DEFAULT_MAX_EXPIRY_MS = 7 * 24 * HOUR
const DEFAULT_MAX_LOOK_BACK_MS = 600_000
const MAX_EVALUATIONS = 1000
const ONCE_EVALUATIONS = 50
const MAX_DESCRIPTION = 2000
const MAX_LIST = 32
/** Of categories, channels and contacts: stores index each combination. */
const MAX_COMBINATIONS = 256

const fields: ReadonlyArray<keyof WatchInput> = [
  'description', 'expected_categories', 'expected_channels', 'expected_contacts', 'mode', 'expires_at', 'expires_in_minutes',
  'max_evaluations', 'result_schema', 'look_back_seconds', 'exclusive', 'judge_may_end',
]

const texts = (description: string, maxItems: number) => ({ type: 'array', items: { type: 'string' }, maxItems, description }) as const

/** The schema of `WatchInput`, for the model. What it does not say is checked when the watch is registered. */
export const watchInputSchema = {
  type: 'object',
  properties: {
    description: {
      type: 'string', minLength: 1, maxLength: MAX_DESCRIPTION, description: 'What to wait for, as an instruction to the judge.',
    },
    expected_categories: texts('Labels such as verification_code, reply or urgent; a message needs one of them.', MAX_CATEGORIES),
    expected_channels: texts('Kinds of channels such as sms; messages of others are ignored.', MAX_LIST),
    expected_contacts: texts('Ids of contacts; messages of others are ignored.', MAX_LIST),
    mode: {
      enum: ['once', 'continuous'], description: 'once (default): the first match ends the wait. continuous: each match is reported.',
    },
    expires_at: { type: 'string', description: 'ISO 8601 with a time zone. Defaults to an hour from now.' },
    expires_in_minutes: { type: 'number', description: 'Instead of expires_at.' },
    max_evaluations: { type: 'integer', minimum: 1, maximum: MAX_EVALUATIONS },
    result_schema: {
      type: 'object',
      description: 'JSON Schema of the result: strings with an anchored pattern and maxLength, or with enum; closed objects.',
    },
    look_back_seconds: { type: 'number', minimum: 0 },
    exclusive: { type: 'boolean', description: 'A message that matches is given to no other wait.' },
    judge_may_end: { type: 'boolean' },
  },
  required: ['description'],
  additionalProperties: false,
} as const satisfies PlainJSONSchema

const channelName = /^[a-z][a-z0-9_-]{0,31}(?:\/[A-Za-z0-9][A-Za-z0-9._-]{0,63})?$/
const isoTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/

/** Checks what `await_signal` was called with. Unknown names and invalid values are rejected by name; no value is changed silently. */
export function checkWatchInput(input: unknown, limits: WatchLimits): CheckedWatch {
  checkObject('await_signal', input)
  checkFieldNames(input)
  const { description, mode = 'once', exclusive = false, judge_may_end: mayEnd = false } = input
  if (typeof description !== 'string' || description.trim() === '' || description.length > MAX_DESCRIPTION || !isName(description)) {
    throw refused('description', `a text of at most ${MAX_DESCRIPTION} characters that says what to wait for`)
  }
  if (mode !== 'once' && mode !== 'continuous') throw refused('mode', `'once' or 'continuous'`)
  if (typeof exclusive !== 'boolean') throw refused('exclusive', 'true or false')
  if (typeof mayEnd !== 'boolean') throw refused('judge_may_end', 'true or false')
  return {
    description, mode, exclusive, mayEnd,
    criteria: criteriaOf(input),
    expiresAt: expiryOf(input, limits),
    maxEvaluations: evaluationsOf(input, mode),
    since: sinceOf(input, limits),
    resultSchema: compileResultSchema(input.result_schema),
  }
}

function criteriaOf(input: Record<string, unknown>): WatchCriteria {
  const label = 'a lowercase letter, then at most 31 lowercase letters, digits and _'
  const categories = listOf(input, 'expected_categories', isCategory, label, MAX_CATEGORIES)
  const channels = listOf(input, 'expected_channels', isChannelName, 'the kind of a channel, or kind/id', MAX_LIST)
  const contacts = listOf(input, 'expected_contacts', isContactId, 'the id of a contact', MAX_LIST)
  if (categories.length + channels.length + contacts.length === 0) {
    const message = 'A watch needs expected_categories, expected_channels or expected_contacts: without them every message would be judged.'
    throw new HeedError('invalid_argument', message, { details: { field: 'expected_categories' } })
  }
  if (Math.max(1, categories.length) * Math.max(1, channels.length) * Math.max(1, contacts.length) > MAX_COMBINATIONS) {
    const lists = 'expected_categories, expected_channels and expected_contacts'
    const message = `${lists} have more than ${MAX_COMBINATIONS} combinations: shorten a list.`
    throw new HeedError('invalid_argument', message, { details: { field: 'expected_categories' } })
  }
  return { categories, channels, contacts }
}

function checkFieldNames(input: Record<string, unknown>): void {
  for (const given of Object.keys(input)) {
    const name = given.slice(0, 64)
    if ((fields as readonly string[]).includes(name)) continue
    const meant = nearestName(name, fields)
    const hint = meant ? ` Did you mean ${meant}?` : ` Known: ${fields.join(', ')}.`
    throw new HeedError('unsupported_option', `await_signal has no '${name}'.${hint}`, { details: { option: name } })
  }
}

type Guard = (value: unknown) => value is string

function listOf(input: Record<string, unknown>, field: string, isValid: Guard, wanted: string, most: number): string[] {
  const list: unknown = input[field] ?? []
  if (!Array.isArray(list) || list.length > most) throw refused(field, `a list of at most ${most} texts`)
  for (const [index, value] of list.entries()) if (!isValid(value)) throw refused(`${field}[${index}]`, wanted)
  return [...new Set(list as string[])]
}

function isChannelName(value: unknown): value is string {
  return typeof value === 'string' && channelName.test(value)
}

function isContactId(value: unknown): value is string {
  return isName(value) && value.length <= 200
}

function expiryOf(input: Record<string, unknown>, { now, maxExpiryMs = DEFAULT_MAX_EXPIRY_MS }: WatchLimits): number {
  const { expires_at: at, expires_in_minutes: minutes } = input
  if (at !== undefined && minutes !== undefined) throw refused('expires_at', 'absent where expires_in_minutes is given')
  if (at === undefined && minutes === undefined) return now + Math.min(DEFAULT_EXPIRY_MS, maxExpiryMs)
  const field = at === undefined ? 'expires_in_minutes' : 'expires_at'
  const time = at === undefined ? minutesFrom(now, minutes) : timeOf(at)
  if (!(time > now)) throw refused(field, at === undefined ? 'a number above 0' : 'an ISO 8601 time with a time zone, in the future')
  if (time - now > maxExpiryMs) throw refused(field, `at most ${Math.floor(maxExpiryMs / 60_000)} minutes from now`)
  return time
}

function minutesFrom(now: number, minutes: unknown): number {
  return typeof minutes === 'number' && Number.isFinite(minutes) ? Math.ceil(now + minutes * 60_000) : Number.NaN
}

/** NaN for everything but a time with its zone: without one, the machine's would count. */
function timeOf(text: unknown): number {
  return typeof text === 'string' && isoTime.test(text) ? Date.parse(text) : Number.NaN
}

/** Whether a registered watch is what an input asks for. Its times count from the registration: it may be over since. */
export function isAskedFor(registered: WatchRecord, asked: WatchInput, limits: Pick<WatchLimits, 'maxExpiryMs'>): boolean {
  const { description, mode, exclusive, mayEnd, maxEvaluations, criteria: { categories, channels, contacts } } = registered
  const lists = [asked.expected_categories, asked.expected_channels, asked.expected_contacts].map((names) => [...new Set(names)])
  return (
    description === asked.description && mode === (asked.mode ?? 'once') && exclusive === (asked.exclusive ?? false) &&
    mayEnd === (asked.judge_may_end ?? false) && maxEvaluations === evaluationsOf(asked, mode) &&
    hasAskedTimes(registered, asked, limits) && orderedJSON([categories, channels, contacts]) === orderedJSON(lists) &&
    orderedJSON(registered.resultSchema ?? null) === orderedJSON(asked.result_schema ?? null)
  )
}

function hasAskedTimes(registered: WatchRecord, asked: WatchInput, limits: Pick<WatchLimits, 'maxExpiryMs'>): boolean {
  const { createdAt, expiresAt, since } = registered
  const { maxExpiryMs = DEFAULT_MAX_EXPIRY_MS } = limits
  const { expires_at: at, expires_in_minutes: minutes, look_back_seconds: seconds = 0 } = asked
  const registeredAt = createdAt.getTime()
  const usual = registeredAt + Math.min(DEFAULT_EXPIRY_MS, maxExpiryMs)
  const expiry = at === undefined ? (minutes === undefined ? usual : minutesFrom(registeredAt, minutes)) : timeOf(at)
  return expiry === expiresAt.getTime() && Math.floor(registeredAt - seconds * 1000) === since.getTime()
}

/** How many messages are judged. Throws for an invalid number. */
function evaluationsOf({ max_evaluations: given }: { max_evaluations?: unknown }, mode: WatchMode): number {
  if (given === undefined) return mode === 'once' ? ONCE_EVALUATIONS : MAX_EVALUATIONS
  if (!Number.isSafeInteger(given) || (given as number) < 1 || (given as number) > MAX_EVALUATIONS) {
    throw refused('max_evaluations', `a whole number from 1 to ${MAX_EVALUATIONS}`)
  }
  return given as number
}

/** An older message is more often one of another attempt than the one that is expected: the default goes no further back than the turn. */
function sinceOf({ look_back_seconds: given }: Record<string, unknown>, limits: WatchLimits): number {
  const { now, turnStartedAt = now, maxLookBackMs = DEFAULT_MAX_LOOK_BACK_MS } = limits
  if (given === undefined) return Math.min(now, Math.max(turnStartedAt, now - maxLookBackMs))
  if (typeof given !== 'number' || !(given >= 0) || given * 1000 > maxLookBackMs) {
    throw refused('look_back_seconds', `a number from 0 to ${Math.floor(maxLookBackMs / 1000)}`)
  }
  return Math.floor(now - given * 1000)
}
