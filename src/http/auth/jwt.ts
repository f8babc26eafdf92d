import type { CryptoKey, JWTVerifyGetKey } from 'jose'
import { checkNames, checkText, refused } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { KeySet, type PublicJwk, type Verifier } from './key-set.ts'
import { bearerToken, type Authenticate, type Principal } from './principal.ts'

/** The options of `jwt()`. */
export interface JwtOptions {
  /** The URL at which the issuer publishes its public keys, or the keys. */
  jwks: string | { keys: readonly PublicJwk[] }
  issuer: string
  audience: string
  /** The principal of a token. Defaults to one with the resource that the subject names. */
  principal?: (claims: JwtClaims) => Principal | null
  /** The claim that has the scopes of the default principal: a list, or a text with blanks between them. None by default. */
  scopes?: string
  /** The accepted difference between clocks, in seconds. Defaults to 30. */
  toleranceSeconds?: number
  /** The keys of a URL are loaded again when they are this old: a key that the issuer removed is accepted no longer. Defaults to 600. */
  maxKeyAgeSeconds?: number
  /** While the issuer does not answer, its keys are used for this long after they were loaded. Defaults to 3600. */
  maxOutageSeconds?: number
}

/** The claims of a verified token. */
export type JwtClaims = Record<string, unknown> & { sub?: string; exp: number }

/** Signatures by a private key only: a shared secret, or no signature, is never accepted. */
const algorithms = ['RS256', 'ES256', 'EdDSA']

const optionNames = ['jwks', 'issuer', 'audience', 'principal', 'scopes', 'toleranceSeconds', 'maxKeyAgeSeconds', 'maxOutageSeconds']

/** Authenticates callers by a signed token (`Authorization: Bearer`), verified with the keys that the issuer publishes. */
export function jwt(options: JwtOptions): Authenticate {
  checkNames('jwt()', options, optionNames)
  const { jwks, toleranceSeconds, maxKeyAgeSeconds = 600, maxOutageSeconds = Math.max(3_600, maxKeyAgeSeconds) } = options
  checkText('issuer', options.issuer)
  checkText('audience', options.audience)
  if (options.principal !== undefined && typeof options.principal !== 'function') throw refused('principal', 'a function')
  if (options.scopes !== undefined) {
    checkText('scopes', options.scopes)
    if (options.principal !== undefined) throw refused('scopes', 'left out beside principal, whose result has the scopes')
  }
  const isNumber = (value: unknown, least: number) => typeof value === 'number' && value >= least
  if (toleranceSeconds !== undefined && !isNumber(toleranceSeconds, 0)) throw refused('toleranceSeconds', 'a number of at least 0')
  if (!isNumber(maxKeyAgeSeconds, 1)) throw refused('maxKeyAgeSeconds', 'a number of at least 1')
  if (!isNumber(maxOutageSeconds, maxKeyAgeSeconds)) throw refused('maxOutageSeconds', 'a number of at least maxKeyAgeSeconds')
  if (typeof jwks === 'string' ? !/^https?:/.test(URL.parse(jwks)?.protocol ?? '') : !Array.isArray(jwks?.keys)) {
    throw new HeedError('invalid_argument', 'jwks must be a URL, or an object with a list of keys.', { details: { option: 'jwks' } })
  }
  const toPrincipal = options.principal ?? ((claims) => principalOf(claims, options.scopes))
  const keySet = new KeySet(jwks, { maxAgeMs: maxKeyAgeSeconds * 1_000, maxOutageMs: maxOutageSeconds * 1_000 })
  let verifier: ReturnType<typeof createVerifier> | undefined
  return async (request, context) => {
    const token = bearerToken(request)
    if (token === null) return null
    verifier ??= createVerifier(options)
    const claims = await keySet.verify(token, await verifier, context?.logger)
    return claims && toPrincipal(claims)
  }
}

/** A token without the claim has no scopes: it may do nothing. */
function principalOf(claims: JwtClaims, scopesClaim: string | undefined): Principal | null {
  const { sub } = claims
  if (typeof sub !== 'string' || sub === '') return null
  if (scopesClaim === undefined) return { id: sub, resources: [sub] }
  const given = claims[scopesClaim] ?? []
  const scopes = typeof given === 'string' ? given.split(' ').filter((one) => one !== '') : given
  // What is neither a text nor a list is no principal, and is rejected as such.
  return { id: sub, resources: [sub], scopes: scopes as string[] }
}

/** Loads jose: only servers that verify tokens need it. */
async function createVerifier(options: JwtOptions): Promise<Verifier<JwtClaims>> {
  const { errors, jwtVerify } = await import('jose')
  const { issuer, audience, toleranceSeconds: clockTolerance = 30 } = options
  const verify = async (token: string, key: JWTVerifyGetKey | CryptoKey): Promise<JwtClaims> => {
    const getKey: JWTVerifyGetKey = typeof key === 'function' ? key : () => key
    return (await jwtVerify<JwtClaims>(token, getKey, { algorithms, issuer, audience, clockTolerance, requiredClaims: ['exp'] })).payload
  }
  // Another key may verify a token whose key is unknown, or can't be read, or has not made its signature.
  const { JOSEError, JWKSNoMatchingKey, JWSSignatureVerificationFailed } = errors
  const needsOtherKey = (error: unknown) =>
    !(error instanceof JOSEError) || error instanceof JWKSNoMatchingKey || error instanceof JWSSignatureVerificationFailed
  return async (token, keys) => {
    try {
      return await verify(token, keys)
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) return needsOtherKey(error) ? 'other key' : null
      for await (const key of error) {
        const claims = await verify(token, key).catch((reason: unknown) => (needsOtherKey(reason) ? 'other key' : null))
        if (claims !== 'other key') return claims
      }
      return 'other key'
    }
  }
}
