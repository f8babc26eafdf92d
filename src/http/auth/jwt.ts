import type { CryptoKey, JWTVerifyGetKey } from 'jose'
import { HeedError } from '../../base/errors.ts'
import { bearer } from './api-keys.ts'
import { keySet } from './key-set.ts'
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

/** Signatures by a private key only: a shared secret, or no signature, is never accepted. */
const algorithms = ['RS256', 'ES256', 'EdDSA']

/** Authenticates callers by a signed token (`Authorization: Bearer`), verified with the keys that the issuer publishes. */
export function jwt(options: JwtOptions): Authenticate {
  const { jwks } = options
  if (typeof jwks === 'string' ? !URL.canParse(jwks) : !Array.isArray(jwks?.keys)) {
    throw new HeedError('invalid_argument', 'jwks must be a URL, or an object with a list of keys.', { details: { option: 'jwks' } })
  }
  const principalOf = options.principal ?? (({ sub }) => (typeof sub === 'string' && sub !== '' ? { id: sub, resources: [sub] } : null))
  let verifier: ReturnType<typeof verifierOf> | undefined
  return async (request) => {
    const token = bearer(request)
    if (token === null) return null
    verifier ??= verifierOf(options)
    const claims = await (await verifier)(token)
    return claims && principalOf(claims)
  }
}

/** Loads jose: only servers that verify tokens need it. */
async function verifierOf(options: JwtOptions): Promise<(token: string) => Promise<JwtClaims | null>> {
  const { errors, jwtVerify } = await import('jose')
  const { issuer, audience, toleranceSeconds: clockTolerance = 30 } = options
  const keys = await keySet(options.jwks)
  const claimsOf = async (token: string, key: JWTVerifyGetKey | CryptoKey): Promise<JwtClaims> => {
    const getKey: JWTVerifyGetKey = typeof key === 'function' ? key : () => key
    return (await jwtVerify<JwtClaims>(token, getKey, { algorithms, issuer, audience, clockTolerance, requiredClaims: ['exp'] })).payload
  }
  return async (token) => {
    try {
      return await claimsOf(token, keys)
    } catch (error) {
      if (error instanceof HeedError) throw error
      // The token, or the key that it names, can't be used.
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) return null
      for await (const key of error) {
        const claims = await claimsOf(token, key).catch(() => null)
        if (claims) return claims
      }
      return null
    }
  }
}
