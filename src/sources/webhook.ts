import { HeedError } from '../base/errors.ts'
import type { JSONObject, JSONValue } from '../base/json.ts'
import { checkSecrets, isKey, verifyStandardWebhook } from './signature.ts'
import type { ToldOfEvent, WebhookAnswer, WebhookRequest } from './event.ts'
import { SignalProvider } from './source.ts'

/** What a webhook tells, whether it came bare or in a CloudEvents envelope. */
export interface WebhookEvent {
  id: string
  /** The `type` of a CloudEvents envelope or of the body. */
  type: string
  /** The `subject` or `source` of a CloudEvents envelope. */
  subject?: string
  data: JSONValue
}

export interface WebhookSignalsOptions {
  /** Defaults to `webhook`. It is in the webhook's address. */
  id?: string
  name?: string
  /** Signs what comes, as Standard Webhooks does (`whsec_…`). A list while it is changed. */
  secret: string | readonly string[]
  /** What an event is about. Defaults to `subject` of the envelope, or `resource` of the data, or of its `data`. */
  externalIds?: (event: WebhookEvent) => string | readonly string[] | undefined
  /** What threads are told of it. Nothing: undefined. */
  notification?: (event: WebhookEvent) => ToldOfEvent | undefined
}

/** Any service that signs its webhooks by the Standard Webhooks scheme, with or without a CloudEvents envelope. */
export class WebhookSignals extends SignalProvider {
  readonly id: string
  override readonly name: string
  readonly #secrets: string[]
  readonly #options: WebhookSignalsOptions

  constructor(options: WebhookSignalsOptions) {
    super()
    this.id = options.id ?? 'webhook'
    this.name = options.name ?? this.id
    this.#secrets = checkSecrets(`The webhook '${this.id}'`, options.secret, isKey)
    this.#options = options
  }

  override async handleWebhook({ headers, body }: WebhookRequest): Promise<WebhookAnswer> {
    const { clock, store } = this.environment
    const now = clock.now()
    const delivery = { sourceId: this.id, ...verifyStandardWebhook(headers, body, this.#secrets, now) }
    const event = eventOf(headers, body, delivery.id)
    const deliveries = await store()
    if (await deliveries.isDelivered(delivery)) throw new HeedError('unauthorized', 'This webhook was here before, to the letter. A retry is signed anew.')
    const externalIds = [this.#options.externalIds ? (this.#options.externalIds(event) ?? []) : (subjectOf(event) ?? [])].flat()
    const notification = this.#options.notification ? this.#options.notification(event) : usualNotification(event)
    const delivered = notification ? await this.deliver({ id: event.id, externalIds, notification }) : 0
    // It counts only now that all of it is stored: whatever ends this before, the very same bytes are taken again, and each thread knows the event.
    await deliveries.recordDelivery({ ...delivery, now })
    return { status: 200, body: { delivered } }
  }
}

/** A `kind` is short and never empty. */
const longestKind = 256

function usualNotification({ type, data, subject }: WebhookEvent): ToldOfEvent {
  const about = subject === undefined ? '' : ` for ${subject}`
  return { kind: type.slice(0, longestKind).toWellFormed() || 'event', summary: `${type || 'event'}${about}`, payload: data }
}

/** What Standard Webhooks recommends has its `data` apart. */
function subjectOf({ subject, data }: WebhookEvent): string | undefined {
  if (subject !== undefined) return subject
  return [fieldOf(data, 'resource'), fieldOf(fieldOf(data, 'data'), 'resource')].find((found) => typeof found === 'string')
}

function fieldOf(value: JSONValue | undefined, name: string): JSONValue | undefined {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

function isObject(value: JSONValue | undefined): value is JSONObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Structured and binary CloudEvents, and plain JSON. */
function eventOf(headers: Headers, body: string, id: string): WebhookEvent {
  const value = parsed(body)
  const binary = headers.get('ce-id')
  const subject = headers.get('ce-subject') ?? headers.get('ce-source')
  const about = { type: headers.get('ce-type') ?? 'event', ...(subject === null ? {} : { subject }) }
  // The sender's id is unique within its source only.
  if (binary !== null) return { ...about, id: `${headers.get('ce-source') ?? ''}/${binary}`, data: value }
  if (!isObject(value)) throw wrongBody('a JSON object')
  if ((headers.get('content-type') ?? '').toLowerCase().startsWith('application/cloudevents+json')) return envelopeOf(value)
  return { ...about, ...(headers.has('ce-type') || typeof value.type !== 'string' ? {} : { type: value.type }), id, data: value }
}

function envelopeOf({ specversion, id, type, source, subject, data = null }: JSONObject): WebhookEvent {
  if (specversion !== '1.0' || typeof type !== 'string' || typeof source !== 'string' || typeof id !== 'string') throw wrongBody('a CloudEvents envelope of version 1.0 with id, source and type')
  return { id: `${source}/${id}`, type, subject: typeof subject === 'string' ? subject : source, data }
}

function parsed(body: string): JSONValue {
  try {
    return JSON.parse(body) as JSONValue
  } catch (cause) {
    throw wrongBody('JSON', cause)
  }
}

export function wrongBody(wanted: string, cause?: unknown): HeedError {
  return new HeedError('invalid_argument', `The body of this webhook is not ${wanted}.`, { cause })
}
