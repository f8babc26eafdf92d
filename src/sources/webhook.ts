import { HeedError } from '../errors.ts'
import type { JSONValue } from '../json.ts'
import { checkSecrets, verifyStandardWebhook } from './signature.ts'
import { SignalProvider, type SourceEvent, type WebhookAnswer, type WebhookRequest } from './source.ts'

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
  /** What an event is about. Defaults to `subject` of the envelope, or `resource` of the data. */
  externalIds?: (event: WebhookEvent) => string | readonly string[] | undefined
  /** What threads are told of it. Nothing: undefined. */
  notification?: (event: WebhookEvent) => Exclude<SourceEvent['notification'], (...args: never) => unknown> | undefined
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
    this.#secrets = checkSecrets(`The webhook '${this.id}'`, options.secret)
    this.#options = options
  }

  override async handleWebhook({ headers, body }: WebhookRequest): Promise<WebhookAnswer> {
    const { clock, store } = this.environment
    const now = clock.now()
    const delivery = verifyStandardWebhook(headers, body, this.#secrets, now)
    const event = eventOf(headers, body, delivery.id)
    if ((await (await store()).takeDelivery({ sourceId: this.id, ...delivery, now })) === 'replayed') {
      throw new HeedError('unauthorized', 'This webhook was here before, to the letter. A retry is signed anew.')
    }
    const externalIds = [this.#options.externalIds ? (this.#options.externalIds(event) ?? []) : (subjectOf(event) ?? [])].flat()
    const notification = this.#options.notification ? this.#options.notification(event) : usualNotification(event)
    const delivered = notification ? await this.deliver({ id: event.id, externalIds, notification }) : 0
    return { status: 200, body: { delivered } }
  }
}

function usualNotification({ type, data, subject }: WebhookEvent): Exclude<SourceEvent['notification'], (...args: never) => unknown> {
  const about = subject === undefined ? '' : ` for ${subject}`
  return { kind: type, summary: `${type}${about}`, payload: data }
}

function subjectOf({ subject, data }: WebhookEvent): string | undefined {
  if (subject !== undefined) return subject
  const resource = typeof data === 'object' && data !== null && !Array.isArray(data) ? data.resource : undefined
  return typeof resource === 'string' ? resource : undefined
}

/** Structured and binary CloudEvents, and plain JSON. */
function eventOf(headers: Headers, body: string, id: string): WebhookEvent {
  const value = parsed(body)
  const structured = (headers.get('content-type') ?? '').startsWith('application/cloudevents+json')
  if (structured) {
    const { specversion, type, source, data = null } = value
    const eventId = value.id
    if (specversion !== '1.0' || typeof type !== 'string' || typeof source !== 'string' || typeof eventId !== 'string') throw wrongBody('a CloudEvents envelope of version 1.0 with id, source and type')
    // The sender's id is unique within its source only.
    return { id: `${source}/${eventId}`, type, subject: typeof value.subject === 'string' ? value.subject : source, data }
  }
  const type = headers.get('ce-type') ?? (typeof value.type === 'string' ? value.type : 'event')
  const subject = headers.get('ce-subject') ?? headers.get('ce-source')
  const binary = headers.get('ce-id')
  return { id: binary === null ? id : `${headers.get('ce-source') ?? ''}/${binary}`, type, ...(subject === null ? {} : { subject }), data: value }
}

function parsed(body: string): Record<string, JSONValue> {
  try {
    const value = JSON.parse(body) as JSONValue
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, JSONValue>
  } catch (cause) {
    throw wrongBody('JSON', cause)
  }
  throw wrongBody('a JSON object')
}

export function wrongBody(wanted: string, cause?: unknown): HeedError {
  return new HeedError('invalid_argument', `The body of this webhook is not ${wanted}.`, { cause })
}
