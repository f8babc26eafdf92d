import { createPublicKey, createVerify, verify, type KeyObject } from 'node:crypto'
import { HeedError } from '../errors.ts'
import { bearer } from './api-keys.ts'
import type { Authenticate, Principal } from './principal.ts'

/** A public key as issuers publish it. */
export interface PublicJwk {
  kty?: string
  kid?: string
  [field: string]: unknown
}

export interface JwtOptions {
  /** Where the issuer publishes its public keys, or the keys themselves. */
  jwks: string | { keys: readonly PublicJwk[] }
  issuer: string
  audience: string
  /** Whose threads a token opens. Defaults to the resource that its subject names. */
  principal?: (claims: JwtClaims) => Principal | null
  /** Clocks may differ by so many seconds. Defaults to 30. */
  toleranceSeconds?: number
}

export type JwtClaims = Record<string, unknown> & { sub?: string; exp: number }

/** Only signatures by a public key: a shared secret or none at all is never taken. */
const algorithms: Record<string, (key: KeyObject, data: Buffer, signature: Buffer) => boolean> = {
  RS256: (key, data, signature) => key.asymmetricKeyType === 'rsa' && createVerify('RSA-SHA256').update(data).verify(key, signature),
  ES256: (key, data, signature) => key.asymmetricKeyType === 'ec' && verify('sha256', data, { key, dsaEncoding: 'ieee-p1363' }, signature),
  EdDSA: (key, data, signature) => key.asymmetricKeyType === 'ed25519' && verify(null, data, key, signature),
}

/** Unknown key ids make the keys be read again, but not more often than this: a stranger must not make us ask. */
const refreshMs = 60_000

/** Callers by a signed token (`Authorization: Bearer`), checked with the issuer's published keys. */
export function jwt(options: JwtOptions): Authenticate {
  const { issuer, audience, toleranceSeconds = 30 } = options
  const principalOf = options.principal ?? (({ sub }) => (sub === undefined ? null : { id: sub, resources: [sub] }))
  const keys = new KeySet(options.jwks)
  return async (request) => {
    const token = bearer(request)
    if (token === null) return null
    const [head = '', payload = '', signature = '', ...rest] = token.split('.')
    const header = decode(head)
    const claims = decode(payload) as JwtClaims | null
    if (!header || !claims || rest.length > 0) return null
    const check = typeof header.alg === 'string' && Object.hasOwn(algorithms, header.alg) ? algorithms[header.alg] : undefined
    const key = check && (await keys.find(typeof header.kid === 'string' ? header.kid : undefined))
    if (!check || !key || !check(key, Buffer.from(`${head}.${payload}`), Buffer.from(signature, 'base64url'))) return null
    return isCurrent(claims, Date.now() / 1_000, toleranceSeconds) && claims.iss === issuer && audiences(claims).includes(audience) ? principalOf(claims) : null
  }
}

function isCurrent({ exp, nbf }: JwtClaims, now: number, tolerance: number): boolean {
  return typeof exp === 'number' && now <= exp + tolerance && (nbf === undefined || (typeof nbf === 'number' && now >= nbf - tolerance))
}

function audiences({ aud }: JwtClaims): readonly unknown[] {
  return Array.isArray(aud) ? aud : [aud]
}

function decode(part: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null
  } catch {
    // Not a token: whoever sent it is nobody.
    return null
  }
}

class KeySet {
  readonly #source: JwtOptions['jwks']
  #keys: Promise<Map<string, KeyObject>> | undefined
  #readAt = 0

  constructor(source: JwtOptions['jwks']) {
    this.#source = source
  }

  async find(kid: string | undefined): Promise<KeyObject | undefined> {
    const found = pick(await this.#read(), kid)
    if (found || typeof this.#source !== 'string' || Date.now() - this.#readAt < refreshMs) return found
    this.#keys = undefined
    return pick(await this.#read(), kid)
  }

  #read(): Promise<Map<string, KeyObject>> {
    if (!this.#keys) {
      this.#readAt = Date.now()
      this.#keys = this.#load()
      // What can't be read now may be read later.
      this.#keys.catch(() => (this.#keys = undefined))
    }
    return this.#keys
  }

  async #load(): Promise<Map<string, KeyObject>> {
    const source = this.#source
    const { keys } = typeof source === 'string' ? await fetchKeys(source) : source
    return new Map(keys.map((key, index) => [key.kid ?? String(index), createPublicKey({ key, format: 'jwk' })]))
  }
}

/** A token that names no key is checked with the only one there is. */
function pick(keys: Map<string, KeyObject>, kid: string | undefined): KeyObject | undefined {
  return kid === undefined ? (keys.size === 1 ? [...keys.values()][0] : undefined) : keys.get(kid)
}

async function fetchKeys(url: string): Promise<{ keys: readonly PublicJwk[] }> {
  const response = await fetch(url, { signal: AbortSignal.timeout(10_000) })
  const body = response.ok ? ((await response.json()) as { keys?: readonly PublicJwk[] }) : {}
  if (!Array.isArray(body.keys)) throw new HeedError('unauthorized', `The keys at ${url} could not be read (${response.status}).`, { retryable: true })
  return { keys: body.keys }
}
