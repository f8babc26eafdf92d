import { createHmac, timingSafeEqual } from 'node:crypto'
import { HeedError } from '../base/errors.ts'
import { keepSecret } from '../base/redact.ts'

/** The signed values of a verified request. */
export interface Delivery {
  id: string
  /** Seconds since the epoch; a retry has a later one. */
  timestamp: number
}

/** How far a timestamp may differ from the present time. */
export const toleranceSeconds = 300

/**
 * Verifies a request signed by Standard Webhooks: an HMAC of id, time and body, with one of several keys during a rotation. Throws before
 * anything else of the request is read.
 */
export function verifyStandardWebhook(headers: Headers, body: string, secrets: readonly string[], now: number): Delivery {
  const id = headers.get('webhook-id') ?? ''
  const written = headers.get('webhook-timestamp') ?? ''
  const timestamp = Number(written)
  if (id === '' || id.length > 256 || !/^\d{1,12}$/.test(written)) throw unverified('It has no webhook-id or no webhook-timestamp.')
  if (Math.abs(now / 1_000 - timestamp) > toleranceSeconds) throw unverified('Its timestamp is too old, or in the future.')
  const wanted = secrets.map((secret) => createHmac('sha256', decodeKey(secret)).update(`${id}.${written}.${body}`).digest())
  const given = (headers.get('webhook-signature') ?? '')
    .split(' ')
    .filter((part) => part.startsWith('v1,'))
    .map((part) => Buffer.from(part.slice(3), 'base64'))
  if (!given.some((one) => wanted.some((other) => isEqual(one, other)))) throw unverified('Its signature is wrong.')
  return { id, timestamp }
}

/** The headers of a webhook that is sent: the same id for every attempt, and the time of this one. */
export function signStandardWebhook(id: string, body: string, secret: string, now: number): Record<string, string> {
  const written = String(Math.floor(now / 1_000))
  const signature = createHmac('sha256', decodeKey(secret)).update(`${id}.${written}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': written, 'webhook-signature': `v1,${signature}` }
}

/** Verifies a request signed by an HMAC of its body, in hexadecimal: `sha256=…`. */
export function verifyHexSignature(header: string | null, body: string, secrets: readonly string[]): void {
  const given = Buffer.from(/^sha256=([0-9a-f]{64})$/.exec(header ?? '')?.[1] ?? '', 'hex')
  if (!secrets.some((secret) => isEqual(given, createHmac('sha256', secret).update(body).digest())))
    throw unverified('Its signature is wrong.')
}

const shortestKey = 16

export function checkSecrets(of: string, secret: string | readonly string[], fits: (secret: string) => boolean = () => true): string[] {
  const secrets = [secret].flat()
  if (secrets.length === 0 || !secrets.every((one) => typeof one === 'string' && one.length >= shortestKey)) {
    throw new HeedError(
      'invalid_argument',
      `${of} needs a secret of at least ${shortestKey} characters, or a list of them during a rotation.`,
      { details: { option: 'secret' } },
    )
  }
  if (!secrets.every(fits))
    throw new HeedError(
      'invalid_argument',
      `${of} has a secret whose part after 'whsec_' is not base64 of at least ${shortestKey} bytes. Copy it as a whole.`,
      { details: { option: 'secret' } },
    )
  for (const one of secrets) keepSecret(one)
  return secrets
}

const encoded = 'whsec_'

/** Characters outside of base64 would be ignored, which would make the key guessable. */
export function isSigningKey(secret: string): boolean {
  return !secret.startsWith(encoded) || (/^[\w+/-]+={0,2}$/.test(secret.slice(encoded.length)) && decodeKey(secret).length >= shortestKey)
}

function decodeKey(secret: string): Buffer {
  return secret.startsWith(encoded) ? Buffer.from(secret.slice(encoded.length), 'base64') : Buffer.from(secret)
}

/** Takes the same time wherever two values of one length differ. */
export function isEqual(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other)
}

export function unverified(why: string): HeedError {
  return new HeedError('unauthorized', `This webhook is not verified. ${why}`)
}
