import { createVerify, verify, type KeyObject } from 'node:crypto'
import { bearer } from './api-keys.ts'
import { KeySet } from './key-set.ts'
import type { Authenticate, Principal } from './principal.ts'

/** A public key as issuers publish it. */
export interface PublicJwk {
  kty?: string
  kid?: string
  use?: string
  alg?: string
  key_ops?: readonly string[]
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
const algorithms: Record<string, Algorithm> = {
  RS256: { fits: (key) => key.asymmetricKeyType === 'rsa', verifies: (key, data, signature) => createVerify('RSA-SHA256').update(data).verify(key, signature) },
  ES256: { fits: (key) => key.asymmetricKeyDetails?.namedCurve === 'prime256v1', verifies: (key, data, signature) => verify('sha256', data, { key, dsaEncoding: 'ieee-p1363' }, signature) },
  EdDSA: { fits: (key) => key.asymmetricKeyType === 'ed25519', verifies: (key, data, signature) => verify(null, data, key, signature) },
}

interface Algorithm {
  fits(key: KeyObject): boolean
  verifies(key: KeyObject, data: Buffer, signature: Buffer): boolean
}

/** Callers by a signed token (`Authorization: Bearer`), checked with the issuer's published keys. */
export function jwt(options: JwtOptions): Authenticate {
  const { issuer, audience, toleranceSeconds = 30 } = options
  const principalOf = options.principal ?? (({ sub }) => (typeof sub === 'string' && sub !== '' ? { id: sub, resources: [sub] } : null))
  const keys = new KeySet(options.jwks)
  return async (request) => {
    const token = bearer(request)
    if (token === null) return null
    const [head = '', payload = '', signature = '', ...rest] = token.split('.')
    const header = decode(head)
    const claims = decode(payload) as JwtClaims | null
    // What must be understood of a header, and isn't known here, is not understood.
    if (!header || !claims || rest.length > 0 || header.crit !== undefined) return null
    const algorithm = typeof header.alg === 'string' && Object.hasOwn(algorithms, header.alg) ? algorithms[header.alg] : undefined
    const key = algorithm && (await keys.find(typeof header.kid === 'string' ? header.kid : undefined, (key, alg) => (alg === undefined || alg === header.alg) && algorithm.fits(key)))
    if (!algorithm || !key || !algorithm.verifies(key, Buffer.from(`${head}.${payload}`), Buffer.from(signature, 'base64url'))) return null
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
