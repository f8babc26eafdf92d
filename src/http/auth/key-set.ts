import type { FetchImplementation, JWK, JWTVerifyGetKey } from 'jose'
import { HeedError } from '../../base/errors.ts'
import type { JwtOptions } from './jwt.ts'

/** A key id that is unknown makes the keys be read again, but not more often than this: strangers must not cause requests. */
const refreshMs = 60_000
/** The same for an issuer that does not answer. */
const retryMs = 5_000
const timeoutMs = 10_000

/** The public keys of an issuer. Keys that were read stay valid while the issuer is down. */
export async function keySet(source: JwtOptions['jwks']): Promise<JWTVerifyGetKey> {
  const { createLocalJWKSet, createRemoteJWKSet, customFetch, errors } = await import('jose')
  const keys = typeof source === 'string'
    ? createRemoteJWKSet(new URL(source), {
      cooldownDuration: refreshMs, cacheMaxAge: Infinity, timeoutDuration: timeoutMs, [customFetch]: readKeys(),
    })
    : createLocalJWKSet({ keys: forSignatures(source.keys) })

  return async (header, token) => {
    try {
      const key = await keys(header, token)
      // A token that names no key is verified with the only key there is.
      if (header.kid !== undefined || keys.jwks()?.keys.length === 1) return key
    } catch (error) {
      if (!(error instanceof HeedError) || !keys.jwks()) throw error
    }
    throw new errors.JWKSNoMatchingKey()
  }
}

/** Reads the keys at a URL. A failure is the answer for the next `retryMs`. */
function readKeys(): FetchImplementation {
  let failure: { error: HeedError; at: number } | undefined
  return async (url, { headers, signal }) => {
    if (failure && Date.now() - failure.at < retryMs) throw failure.error
    try {
      const response = await fetch(url, { headers, signal })
      const { keys } = response.ok ? ((await response.json()) as { keys?: unknown }) : {}
      if (!Array.isArray(keys)) throw new Error(`The response was ${response.status} without a list of keys.`)
      failure = undefined
      return Response.json({ keys: forSignatures(keys) })
    } catch (cause) {
      const error = new HeedError('unauthorized', `The issuer's keys at ${url} could not be read.`, { cause, retryable: true })
      failure = { error, at: Date.now() }
      throw error
    }
  }
}

/** Issuers publish keys for encryption, and of kinds that are unknown here, beside those that sign tokens. */
function forSignatures(keys: readonly unknown[]): JWK[] {
  return keys.filter((key): key is JWK => {
    if (typeof key !== 'object' || key === null) return false
    const { kty, use = 'sig' } = key as JWK
    return use === 'sig' && ['RSA', 'EC', 'OKP'].includes(String(kty))
  })
}
