import { refused } from '../../base/arguments.ts'
import { retryAfter, systemClock } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'
import { parseJSON } from '../../sources/body.ts'

interface ProviderCall {
  /** Names the provider in errors. */
  provider: string
  url: string
  headers: Readonly<Record<string, string>>
  body: string
  abortSignal: AbortSignal
}

/** The answer to a call. */
interface ProviderAnswer {
  status: number
  ok: boolean
  /** The parsed body; undefined where it is not JSON. */
  value: unknown
  retryAfterMs?: number
}

/** An answer to a sent message has a few kB. */
const maxAnswerBytes = 256 * 1024
const longestWaitMs = 3_600_000

/** One POST. It throws where there is no answer; what an answer means is the caller's. */
export async function callProvider({ provider, url, headers, body, abortSignal }: ProviderCall): Promise<ProviderAnswer> {
  if (abortSignal.aborted) throw new HeedError('aborted', `The reply through ${provider} was aborted.`, { details: { maybeSent: false } })
  try {
    // A redirect would send the credentials elsewhere.
    const response = await fetch(url, { method: 'POST', headers, body, signal: abortSignal, redirect: 'error' })
    const text = await readText(response)
    const wait = retryAfter(Object.fromEntries(response.headers), systemClock.now())
    return {
      status: response.status,
      ok: response.ok,
      value: text === undefined ? undefined : valueOf(text),
      ...(wait === undefined ? {} : { retryAfterMs: Math.min(wait, longestWaitMs) }),
    }
  } catch (cause) {
    if (abortSignal.aborted)
      throw new HeedError('aborted', `The reply through ${provider} was aborted.`, { cause, details: { maybeSent: true } })
    throw new HeedError('unreachable', `${provider} could not be reached. Send the reply again later.`, {
      cause, retryable: true, details: { maybeSent: !neverConnected(cause) },
    })
  }
}

/** The error of an answer that is no success. `reason` is the provider's own code. */
export function refusedBy(provider: string, { status, retryAfterMs }: ProviderAnswer, reason: string | undefined): HeedError {
  const retryable = status === 429 || status === 408 || status >= 500
  return new HeedError('provider_error', `${provider} refused the reply (${status}${reason === undefined ? '' : `, ${reason}`}).`, {
    retryable,
    details: {
      status,
      ...(reason === undefined ? {} : { reason }),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      maybeSent: status >= 500,
    },
  })
}

/** The origin of a provider's API. Credentials leave this machine encrypted only. */
export function checkBaseUrl(field: string, given: string): string {
  const url = safeUrl(given)
  if (!url || url.search !== '')
    throw refused(field, 'an https URL without credentials, query or fragment, or an http URL of this machine')
  return url.href.replace(/\/$/, '')
}

/** The address of a webhook, with its query. */
export function checkWebhookUrl(field: string, given: string): string {
  const url = safeUrl(given)
  if (!url) throw refused(field, 'an https URL without credentials or fragment, or an http URL of this machine')
  return url.href
}

function safeUrl(given: string): URL | undefined {
  const url = URL.canParse(given) ? new URL(given) : undefined
  const isLocal = url?.protocol === 'http:' && ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname)
  const isSafe = url?.protocol === 'https:' || isLocal
  return isSafe && url?.username === '' && url.password === '' && url.hash === '' ? url : undefined
}

export function checkReplyLength(provider: string, text: string, most: number): void {
  if (text.length > most)
    throw new HeedError('too_large', `A reply through ${provider} has at most ${most} characters.`, { details: { most } })
}

/** Undefined for an answer that is too long. */
async function readText(response: Response): Promise<string | undefined> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of response.body ?? []) {
    size += part.byteLength
    if (size > maxAnswerBytes) return undefined
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

function valueOf(text: string): unknown {
  try {
    return parseJSON(text)
  } catch {
    // A proxy between answers in HTML: the status says what happened.
    return undefined
  }
}

const notConnected: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT',
])

/** `fetch` wraps the error of the connection. */
function neverConnected(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined
  return notConnected.has((cause as { code?: unknown } | undefined)?.code)
}
