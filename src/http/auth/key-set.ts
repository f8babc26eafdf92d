import type { JWK, JWTVerifyGetKey } from 'jose'
import { HeedError } from '../../base/errors.ts'
import { silentLogger, type Logger } from '../../base/logger.ts'

/** A public key as issuers publish it. */
export interface PublicJwk {
  kty?: string
  kid?: string
  use?: string
  alg?: string
  key_ops?: readonly string[]
  [field: string]: unknown
}

/** Verifies a token with keys. `other key`: another key may verify it; null: no key can. */
export type Verifier<Claims> = (token: string, keys: JWTVerifyGetKey) => Promise<Claims | 'other key' | null>

/** A token that no key verifies makes the keys be loaded again, at most this often: unauthenticated callers must not cause requests. */
const refreshMs = 60_000
/** The same after a failed load. */
const retryMs = 5_000
const timeoutMs = 10_000

interface LoadedKeys {
  keys: JWTVerifyGetKey
  at: number
}

/** The public keys of an issuer, given or loaded from its URL. */
export class KeySet {
  readonly #source: string | { keys: readonly PublicJwk[] }
  readonly #maxAgeMs: number
  readonly #maxOutageMs: number
  #loaded: LoadedKeys | undefined
  #loading: Promise<void> | undefined
  #failure: { at: number; error: HeedError } | undefined

  constructor(source: string | { keys: readonly PublicJwk[] }, { maxAgeMs, maxOutageMs }: { maxAgeMs: number; maxOutageMs: number }) {
    this.#source = source
    this.#maxAgeMs = maxAgeMs
    this.#maxOutageMs = maxOutageMs
  }

  /** The claims of a token that one of the keys has signed; null for any other token. */
  async verify<Claims>(token: string, verifier: Verifier<Claims>, logger: Logger = silentLogger): Promise<Claims | null> {
    const known = await this.#current(logger)
    const claims = await verifier(token, known.keys)
    if (claims !== 'other key') return claims
    const newer = await this.#newerThan(known, logger)
    const verified = newer ? await verifier(token, newer.keys) : null
    return verified === 'other key' ? null : verified
  }

  /** The keys, loaded again where they are too old. */
  async #current(logger: Logger): Promise<LoadedKeys> {
    const known = this.#loaded
    const age = known ? Date.now() - known.at : Infinity
    if (known && (typeof this.#source !== 'string' || age < this.#maxAgeMs)) return known
    const loading = this.#load(logger)
    // The issuer did not answer just now: requests that the known keys can verify do not wait for it again.
    const isDown = this.#failure !== undefined && Date.now() - this.#failure.at < refreshMs
    if (!isDown || age >= this.#maxOutageMs) await loading
    if (this.#loaded && Date.now() - this.#loaded.at < this.#maxOutageMs) return this.#loaded
    throw this.#failure?.error ?? unavailable()
  }

  /** Keys that are newer than the ones with which a token failed; undefined if there are none. */
  async #newerThan(known: LoadedKeys, logger: Logger): Promise<LoadedKeys | undefined> {
    if (typeof this.#source !== 'string') return undefined
    if (this.#loaded === known && Date.now() - known.at >= refreshMs) await this.#load(logger)
    return this.#loaded === known ? undefined : this.#loaded
  }

  /** Loads the keys, once for all that wait for it. Never rejects: a failure is kept, and not repeated for `retryMs`. */
  async #load(logger: Logger): Promise<void> {
    if (this.#failure && Date.now() - this.#failure.at < retryMs) return
    this.#loading ??= this.#loadOnce(logger).finally(() => (this.#loading = undefined))
    await this.#loading
  }

  async #loadOnce(logger: Logger): Promise<void> {
    try {
      const { createLocalJWKSet, errors } = await import('jose')
      const published = signatureKeys(typeof this.#source === 'string' ? await fetchKeys(this.#source) : this.#source.keys)
      const keys = createLocalJWKSet({ keys: published })
      this.#loaded = {
        at: Date.now(),
        keys: async (header, token) => {
          const key = await keys(header, token)
          // A token that names no key is verified with the issuer's only key.
          if (header.kid !== undefined || published.length === 1) return key
          throw new errors.JWKSNoMatchingKey()
        },
      }
      this.#failure = undefined
    } catch (cause) {
      // The caller of the server must not learn where the keys are.
      this.#failure = { at: Date.now(), error: unavailable(cause) }
      logger.warn('the keys of the issuer of tokens could not be loaded', { url: this.#source, error: String(cause) })
    }
  }
}

function unavailable(cause?: unknown): HeedError {
  return new HeedError('unauthorized', "The keys that verify tokens can't be loaded now. Try again.", { cause, retryable: true })
}

async function fetchKeys(url: string): Promise<readonly unknown[]> {
  const headers = { accept: 'application/jwk-set+json, application/json' }
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(timeoutMs) })
  const { keys } = response.ok ? ((await response.json()) as { keys?: unknown }) : {}
  if (!Array.isArray(keys)) throw new Error(`The response was ${response.status} without a list of keys.`)
  return keys
}

/** Without the keys for encryption and the keys of unknown types that issuers publish in the same list. */
function signatureKeys(keys: readonly unknown[]): JWK[] {
  return keys.filter((key): key is JWK => {
    if (typeof key !== 'object' || key === null) return false
    const { kty, use = 'sig' } = key as JWK
    return use === 'sig' && ['RSA', 'EC', 'OKP'].includes(String(kty))
  })
}
