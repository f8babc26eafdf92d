import { checkNames, checkText, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import type { JSONObject, JSONValue } from '../base/json.ts'
import { invalidBody, parseJSON } from './body.ts'
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

/** The options of `WebhookSignals`. */
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
  /**
   * Read `ce-id`, `ce-source`, `ce-type` and `ce-subject` of binary CloudEvents, which the signature does not cover, where the body says
   * nothing else. Only for a route that no other party than the sender can reach. Defaults to false: such headers are rejected.
   */
  acceptUnsignedHeaders?: boolean
}

/** Any service that signs its webhooks by the Standard Webhooks scheme, with or without a CloudEvents envelope. */
export class WebhookSignals extends SignalProvider {
  readonly id: string
  override readonly name: string
  readonly #secrets: string[]
  readonly #options: WebhookSignalsOptions

  constructor(options: WebhookSignalsOptions) {
    super()
    checkNames('WebhookSignals', options, ['id', 'name', 'secret', 'externalIds', 'notification', 'acceptUnsignedHeaders'])
    const { acceptUnsignedHeaders = false } = options
    if (typeof acceptUnsignedHeaders !== 'boolean') throw refused('acceptUnsignedHeaders', 'true or false')
    for (const field of ['id', 'name'] as const) if (options[field] !== undefined) checkText(field, options[field])
    this.id = options.id ?? 'webhook'
    this.name = options.name ?? this.id
    this.#secrets = checkSecrets(`The webhook '${this.id}'`, options.secret, isSigningKey)
    this.#options = options
  }

  override async handleWebhook({ headers, body }: WebhookRequest): Promise<WebhookAnswer> {
    const { clock, store } = this.environment
    const now = clock.now()
    const delivery = { sourceId: this.id, ...verifyStandardWebhook(headers, body, this.#secrets, now) }
    const event = eventOf(headers, body, { id: delivery.id, acceptsUnsigned: this.#options.acceptUnsignedHeaders === true })
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
  return subject ?? resourceOf(data)
}

function resourceOf(data: JSONValue): string | undefined {
  return [fieldOf(data, 'resource'), fieldOf(fieldOf(data, 'data'), 'resource')].find((found) => typeof found === 'string')
}

function fieldOf(value: JSONValue | undefined, name: string): JSONValue | undefined {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

function textOf(value: JSONValue, name: string): string | undefined {
  const field = fieldOf(value, name)
  return typeof field === 'string' ? field : undefined
}

function isObject(value: JSONValue | undefined): value is JSONObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The attributes of a CloudEvent that decide what an event is and which threads get it. */
type Attribute = 'id' | 'source' | 'type' | 'subject'
const attributes: readonly Attribute[] = ['id', 'source', 'type', 'subject']

/**
 * Structured and binary CloudEvents, and plain JSON. The signature covers the body and the id of the delivery, and no other header: a
 * header that says otherwise than the body is rejected, and so is one about which the body says nothing, unless the source accepts it.
 */
function eventOf(headers: Headers, body: string, { id, acceptsUnsigned }: { id: string; acceptsUnsigned: boolean }): WebhookEvent {
  const value = parseJSON(body)
  const isNamedEnvelope = (headers.get('content-type') ?? '').toLowerCase().startsWith('application/cloudevents+json')
  // The type of the content is not signed either: a body that is an envelope is read as one, whatever the header says.
  if (isNamedEnvelope || isEnvelope(value)) {
    if (!isObject(value)) throw invalidBody('a JSON object')
    const event = envelopeOf(value)
    readUnsigned(headers, { ...signedFields(value), subject: event.subject }, false)
    return event
  }
  const binary = readUnsigned(headers, { ...signedFields(value), id }, acceptsUnsigned)
  const type = textOf(value, 'type') ?? binary.type ?? 'event'
  const subject = resourceOf(value) === undefined ? (binary.subject ?? binary.source) : undefined
  const about = { type, ...(subject === undefined ? {} : { subject }), data: value }
  // The id of a sender is unique within its source only.
  if (acceptsUnsigned && binary.id !== undefined) return { ...about, id: `${binary.source ?? ''}/${binary.id}` }
  if (!isObject(value)) throw invalidBody('a JSON object')
  return { ...about, id }
}

/** What a signed body says about the attributes. */
function signedFields(value: JSONValue): Partial<Record<Attribute, string | undefined>> {
  const [type, source] = [textOf(value, 'type'), textOf(value, 'source')]
  return { id: textOf(value, 'id'), type, source, subject: textOf(value, 'subject') ?? resourceOf(value) }
}

/** The attributes in the headers, where none differs from what is signed. */
function readUnsigned(
  headers: Headers, signed: Partial<Record<Attribute, string | undefined>>, acceptsUnsigned: boolean,
): Partial<Record<Attribute, string>> {
  const found: Partial<Record<Attribute, string>> = {}
  // The one that decides about the receiver first.
  for (const name of attributes.toReversed()) {
    const given = headers.get(`ce-${name}`)
    if (given === null) continue
    if (given !== signed[name] && !(acceptsUnsigned && isUnsaid(name, signed))) throw unsigned(`ce-${name}`, signed[name] !== undefined)
    found[name] = given
  }
  return found
}

/** The id of the delivery, which every request has, does not contradict the id of the event. */
function isUnsaid(name: Attribute, signed: Partial<Record<Attribute, string | undefined>>): boolean {
  return name === 'id' || signed[name] === undefined
}

function unsigned(header: string, differs: boolean): HeedError {
  const why = differs ? 'says otherwise than the signed body' : 'is not signed, and the signed body says nothing about it'
  const message = `The header ${header} of this webhook ${why}. Send a CloudEvent as application/cloudevents+json, or leave the header out.`
  return new HeedError('invalid_argument', message, { details: { header } })
}

function isEnvelope(value: JSONValue): boolean {
  return fieldOf(value, 'specversion') !== undefined && ['id', 'source', 'type'].every((name) => textOf(value, name) !== undefined)
}

function envelopeOf({ specversion, id, type, source, subject, data = null }: JSONObject): WebhookEvent {
  if (specversion !== '1.0' || typeof type !== 'string' || typeof source !== 'string' || typeof id !== 'string')
    throw invalidBody('a CloudEvents envelope of version 1.0 with id, source and type')
  return { id: `${source}/${id}`, type, subject: typeof subject === 'string' ? subject : source, data }
}
