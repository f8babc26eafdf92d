import { createPublicKey, type KeyObject } from 'node:crypto'
import { HeedError } from '../errors.ts'
import type { PublicJwk } from './jwt.ts'

interface Key {
  object: KeyObject
  /** The only way of signing that it is for, where its issuer says so. */
  alg: unknown
}

type Fits = (key: KeyObject, alg: unknown) => boolean

/** Keys by their ids. Issuers publish keys of several kinds under one. */
type Keys = ReadonlyMap<string, readonly Key[]>

/** Unknown key ids make the keys be read again, but not more often than this: a stranger must not make us ask. */
const refreshMs = 60_000
/** The same for an issuer that doesn't answer. */
const retryMs = 5_000
const timeoutMs = 10_000

/** The public keys of an issuer. Those that were read stay good while new ones can't be had. */
export class KeySet {
  readonly #url: string | undefined
  #keys: Keys | undefined
  #reading: Promise<Keys> | undefined
  #failure: { error: unknown; at: number } | undefined
  #readAt = -Infinity

  constructor(source: string | { keys: readonly PublicJwk[] }) {
    if (typeof source === 'string') this.#url = source
    else this.#keys = imported(source.keys)
  }

  async find(kid: string | undefined, fits: Fits): Promise<KeyObject | undefined> {
    const found = this.#keys && pick(this.#keys, kid, fits)
    if (found || this.#url === undefined || (this.#keys && Date.now() - this.#readAt < refreshMs)) return found
    try {
      return pick(await this.#read(this.#url), kid, fits)
    } catch (error) {
      if (!this.#keys) throw error
      return undefined
    }
  }

  /** Those who ask at the same time wait for one answer. */
  #read(url: string): Promise<Keys> {
    if (this.#failure && Date.now() - this.#failure.at < retryMs) return Promise.reject(this.#failure.error)
    this.#reading ??= fetchKeys(url).then(
      (keys) => {
        this.#failure = undefined
        this.#readAt = Date.now()
        return (this.#keys = imported(keys))
      },
      (error: unknown) => {
        this.#failure = { error, at: Date.now() }
        throw error
      },
    ).finally(() => (this.#reading = undefined))
    return this.#reading
  }
}

/** A token that names no key is checked with the only one there is. */
function pick(keys: Keys, kid: string | undefined, fits: Fits): KeyObject | undefined {
  if (kid !== undefined) return keys.get(kid)?.find(({ object, alg }) => fits(object, alg))?.object
  const [only, ...others] = [...keys.values()].flat()
  return only && others.length === 0 && fits(only.object, only.alg) ? only.object : undefined
}

/** Those that sign, of kinds that are known here. Issuers publish others beside them. */
function imported(keys: readonly PublicJwk[]): Keys {
  const known = new Map<string, Key[]>()
  for (const [index, key] of keys.entries()) {
    if (typeof key !== 'object' || key === null || !isForSignatures(key)) continue
    try {
      const kid = key.kid ?? String(index)
      known.set(kid, [...(known.get(kid) ?? []), { object: createPublicKey({ key, format: 'jwk' }), alg: key.alg }])
    } catch {
      // A key that can't be read verifies nothing: tokens signed with it are unknown.
    }
  }
  return known
}

function isForSignatures({ use, key_ops: operations }: PublicJwk): boolean {
  return (use === undefined || use === 'sig') && (operations === undefined || (Array.isArray(operations) && operations.includes('verify')))
}

async function fetchKeys(url: string): Promise<readonly PublicJwk[]> {
  let status: number | undefined
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) })
    status = response.status
    const { keys } = response.ok ? ((await response.json()) as { keys?: readonly PublicJwk[] }) : {}
    if (Array.isArray(keys)) return keys as readonly PublicJwk[]
  } catch (cause) {
    throw unreadable(url, cause)
  }
  throw unreadable(url, new Error(`It answered ${status} without a list of keys.`))
}

function unreadable(url: string, cause: unknown): HeedError {
  return new HeedError('unauthorized', `The issuer's keys at ${url} could not be read.`, { cause, retryable: true })
}
