import { checkNames } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import type { JSONObject, JSONValue } from '../base/json.ts'
import { checkSecrets, isSigningKey, verifyStandardWebhook } from './signature.ts'
import type { ToldOfEvent, WebhookAnswer, WebhookRequest } from './event.ts'
import { SignalProvider } from './source.ts'

/** The event of a webhook, with or without a CloudEvents envelope. */
export interface WebhookEvent {
  id: string
  /** The `type` of a CloudEvents envelope or of the body. */
  type: string
  /** The `subject` or `source` of a CloudEvents envelope. */
  subject?: string
  data: JSONValue
}

export interface WebhookSignalsOptions {
  /** Defaults to `webhook`. Part of the webhook's URL. */
  id?: string
  name?: string
  /** The secret of Standard Webhooks signatures (`whsec_…`); several during a rotation. */
  secret: string | readonly string[]
  /** What an event is about. Defaults to `subject` of the envelope, or `resource` of the data, or of its `data`. */
  externalIds?: (event: WebhookEvent) => string | readonly string[] | undefined
  /** The notification of the event; undefined for none. */
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
    checkNames('WebhookSignals', options, ['id', 'name', 'secret', 'externalIds', 'notification'])
    this.id = options.id ?? 'webhook'
    this.name = options.name ?? this.id
    this.#secrets = checkSecrets(`The webhook '${this.id}'`, options.secret, isSigningKey)
    this.#options = options
  }

  override async handleWebhook({ headers, body }: WebhookRequest): Promise<WebhookAnswer> {
    const { clock, store } = this.environment
    const now = clock.now()
    const delivery = { sourceId: this.id, ...verifyStandardWebhook(headers, body, this.#secrets, now) }
    const event = eventOf(headers, body, delivery.id)
    const deliveries = await store()
    if (await deliveries.isDelivered(delivery))
      throw new HeedError('unauthorized', 'This webhook was delivered before. A retry needs a new signature.')
    const externalIds = [this.#options.externalIds ? (this.#options.externalIds(event) ?? []) : (subjectOf(event) ?? [])].flat()
    const notification = this.#options.notification ? this.#options.notification(event) : defaultNotification(event)
    const delivered = notification ? await this.deliver({ id: event.id, externalIds, notification }) : 0
    // Recorded after everything is stored: a request that failed before is accepted again with the same bytes, and each thread recognizes
    // the event.
    await deliveries.recordDelivery({ ...delivery, now })
    return { status: 200, body: { delivered } }
  }
}

/** A `kind` must be short and not empty. */
const maxKindLength = 256

function defaultNotification({ type, data, subject }: WebhookEvent): ToldOfEvent {
  const about = subject === undefined ? '' : ` for ${subject}`
  return { kind: type.slice(0, maxKindLength).toWellFormed() || 'event', summary: `${type || 'event'}${about}`, payload: data }
}

/** Standard Webhooks recommends an envelope with its own `data`. */
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
  const value = parseJSON(body)
  const binary = headers.get('ce-id')
  const subject = headers.get('ce-subject') ?? headers.get('ce-source')
  const about = { type: headers.get('ce-type') ?? 'event', ...(subject === null ? {} : { subject }) }
  // The id of a sender is unique within its source only.
  if (binary !== null) return { ...about, id: `${headers.get('ce-source') ?? ''}/${binary}`, data: value }
  if (!isObject(value)) throw invalidBody('a JSON object')
  if ((headers.get('content-type') ?? '').toLowerCase().startsWith('application/cloudevents+json')) return envelopeOf(value)
  return { ...about, ...(headers.has('ce-type') || typeof value.type !== 'string' ? {} : { type: value.type }), id, data: value }
}

function envelopeOf({ specversion, id, type, source, subject, data = null }: JSONObject): WebhookEvent {
  if (specversion !== '1.0' || typeof type !== 'string' || typeof source !== 'string' || typeof id !== 'string')
    throw invalidBody('a CloudEvents envelope of version 1.0 with id, source and type')
  return { id: `${source}/${id}`, type, subject: typeof subject === 'string' ? subject : source, data }
}

function parseJSON(body: string): JSONValue {
  try {
    return JSON.parse(body) as JSONValue
  } catch (cause) {
    throw invalidBody('JSON', cause)
  }
}

export function invalidBody(wanted: string, cause?: unknown): HeedError {
  return new HeedError('invalid_argument', `The body of this webhook is not ${wanted}.`, { cause })
}
