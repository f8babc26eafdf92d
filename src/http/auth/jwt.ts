import type { CryptoKey, FetchImplementation, JWK, JWTVerifyGetKey } from 'jose'
import { checkNames, checkText, refused } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { bearerToken, type Authenticate, type Principal } from './principal.ts'

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
  /** The URL at which the issuer publishes its public keys, or the keys. */
  jwks: string | { keys: readonly PublicJwk[] }
  issuer: string
  audience: string
  /** The principal of a token. Defaults to one with the resource that the subject names. */
  principal?: (claims: JwtClaims) => Principal | null
  /** The accepted difference between clocks, in seconds. Defaults to 30. */
  toleranceSeconds?: number
}

export type JwtClaims = Record<string, unknown> & { sub?: string; exp: number }

/** Signatures by a private key only: a shared secret, or no signature, is never accepted. */
const algorithms = ['RS256', 'ES256', 'EdDSA']

/** An unknown key id makes the keys be fetched again, at most this often: unauthenticated callers must not cause requests. */
const refreshMs = 60_000
/** The same after a failed fetch. */
const retryMs = 5_000
const timeoutMs = 10_000

/** Authenticates callers by a signed token (`Authorization: Bearer`), verified with the keys that the issuer publishes. */
export function jwt(options: JwtOptions): Authenticate {
  checkNames('jwt()', options, ['jwks', 'issuer', 'audience', 'principal', 'toleranceSeconds'])
  const { jwks, toleranceSeconds } = options
  checkText('issuer', options.issuer)
  checkText('audience', options.audience)
  if (options.principal !== undefined && typeof options.principal !== 'function') throw refused('principal', 'a function')
  if (toleranceSeconds !== undefined && !(toleranceSeconds >= 0)) throw refused('toleranceSeconds', 'a number of at least 0')
  if (typeof jwks === 'string' ? !URL.canParse(jwks) : !Array.isArray(jwks?.keys)) {
    throw new HeedError('invalid_argument', 'jwks must be a URL, or an object with a list of keys.', { details: { option: 'jwks' } })
  }
  const toPrincipal = options.principal ?? (({ sub }) => (typeof sub === 'string' && sub !== '' ? { id: sub, resources: [sub] } : null))
  let verifier: ReturnType<typeof createVerifier> | undefined
  return async (request) => {
    const token = bearerToken(request)
    if (token === null) return null
    verifier ??= createVerifier(options)
    const claims = await (await verifier)(token)
    return claims && toPrincipal(claims)
  }
}

/** Loads jose: only servers that verify tokens need it. */
async function createVerifier(options: JwtOptions): Promise<(token: string) => Promise<JwtClaims | null>> {
  const { errors, jwtVerify } = await import('jose')
  const { issuer, audience, toleranceSeconds: clockTolerance = 30 } = options
  const keys = await createKeySet(options.jwks)
  const verify = async (token: string, key: JWTVerifyGetKey | CryptoKey): Promise<JwtClaims> => {
    const getKey: JWTVerifyGetKey = typeof key === 'function' ? key : () => key
    return (await jwtVerify<JwtClaims>(token, getKey, { algorithms, issuer, audience, clockTolerance, requiredClaims: ['exp'] })).payload
  }
  return async (token) => {
    try {
      return await verify(token, keys)
    } catch (error) {
      if (error instanceof HeedError) throw error
      // The token, or the key that it names, can't be used.
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) return null
      for await (const key of error) {
        const claims = await verify(token, key).catch(() => null)
        if (claims) return claims
      }
      return null
    }
  }
}

/** The public keys of an issuer. Keys that were fetched stay valid while the issuer is down. */
async function createKeySet(source: JwtOptions['jwks']): Promise<JWTVerifyGetKey> {
  const { createLocalJWKSet, createRemoteJWKSet, customFetch, errors } = await import('jose')
  const keys = typeof source === 'string'
    ? createRemoteJWKSet(new URL(source), {
      cooldownDuration: refreshMs, cacheMaxAge: Infinity, timeoutDuration: timeoutMs, [customFetch]: keyFetcher(),
    })
    : createLocalJWKSet({ keys: signatureKeys(source.keys) })

  return async (header, token) => {
    try {
      const key = await keys(header, token)
      // A token that names no key is verified with the issuer's only key.
      if (header.kid !== undefined || keys.jwks()?.keys.length === 1) return key
    } catch (error) {
      if (!(error instanceof HeedError) || !keys.jwks()) throw error
    }
    throw new errors.JWKSNoMatchingKey()
  }
}

/** Fetches keys from a URL. After a failure, each call fails with the same error for `retryMs`. */
function keyFetcher(): FetchImplementation {
  let failure: { error: HeedError; at: number } | undefined
  return async (url, { headers, signal }) => {
    if (failure && Date.now() - failure.at < retryMs) throw failure.error
    try {
      const response = await fetch(url, { headers, signal })
      const { keys } = response.ok ? ((await response.json()) as { keys?: unknown }) : {}
      if (!Array.isArray(keys)) throw new Error(`The response was ${response.status} without a list of keys.`)
      failure = undefined
      return Response.json({ keys: signatureKeys(keys) })
    } catch (cause) {
      const error = new HeedError('unauthorized', `The issuer's keys at ${url} could not be fetched. Try again.`, {
        cause,
        retryable: true,
      })
      failure = { error, at: Date.now() }
      throw error
    }
  }
}

/** Without the keys for encryption and the keys of unknown types that issuers publish in the same list. */
function signatureKeys(keys: readonly unknown[]): JWK[] {
  return keys.filter((key): key is JWK => {
    if (typeof key !== 'object' || key === null) return false
    const { kty, use = 'sig' } = key as JWK
    return use === 'sig' && ['RSA', 'EC', 'OKP'].includes(String(kty))
  })
}
