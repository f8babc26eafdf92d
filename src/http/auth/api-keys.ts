import { createHash, timingSafeEqual } from 'node:crypto'
import { HeedError } from '../../base/errors.ts'
import { principalFlaw, type Authenticate, type Principal } from './principal.ts'

/** Authenticates callers by a key in `Authorization: Bearer <key>` or `x-api-key`. */
export function apiKeys(keys: Readonly<Record<string, Principal>>): Authenticate {
  const entries = Object.entries(keys).map(([key, principal], index) => {
    const flaw = principalFlaw(principal)
    // A key is a secret, so the error names its position.
    if (flaw !== undefined) {
      const message = `The principal of API key number ${index + 1} is invalid: ${flaw}.`
      throw new HeedError('invalid_argument', message, { details: { number: index + 1 } })
    }
    if (key.length < 16) {
      throw new HeedError('invalid_argument', `The API key of '${principal.id}' is shorter than 16 characters. Use a long random key.`)
    }
    return { digest: digest(key), principal }
  })
  return (request) => {
    const key = bearerToken(request) ?? request.headers.get('x-api-key')
    if (key === null) return null
    const received = digest(key)
    // Every key is compared, in constant time: the duration reveals nothing about which key was close.
    return entries.reduce<Principal | null>((match, entry) => (timingSafeEqual(entry.digest, received) ? entry.principal : match), null)
  }
}

export function bearerToken(request: Request): string | null {
  return /^Bearer +([^ ]+)$/i.exec(request.headers.get('authorization') ?? '')?.[1] ?? null
}

function digest(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}
