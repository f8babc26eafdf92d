import { createHash, timingSafeEqual } from 'node:crypto'
import { HeedError } from '../../base/errors.ts'
import { flawOf, type Authenticate, type Principal } from './principal.ts'

/** Callers by the key they send as `Authorization: Bearer <key>` or `x-api-key`. */
export function apiKeys(keys: Readonly<Record<string, Principal>>): Authenticate {
  const known = Object.entries(keys).map(([key, principal], index) => {
    const flaw = flawOf(principal)
    // A key is a secret: it is told by its place.
    if (flaw !== undefined) throw new HeedError('invalid_argument', `The principal of API key number ${index + 1} can't be used: ${flaw}.`, { details: { number: index + 1 } })
    if (key.length < 16) throw new HeedError('invalid_argument', `The API key of '${principal.id}' is shorter than 16 characters. Use a long random one.`)
    return { digest: digest(key), principal }
  })
  return (request) => {
    const given = bearer(request) ?? request.headers.get('x-api-key')
    if (given === null) return null
    const asked = digest(given)
    // Every key is compared, in constant time: how long it takes tells nothing about which came close.
    return known.reduce<Principal | null>((found, { digest, principal }) => (timingSafeEqual(digest, asked) ? principal : found), null)
  }
}

export function bearer(request: Request): string | null {
  return /^Bearer +([^ ]+)$/i.exec(request.headers.get('authorization') ?? '')?.[1] ?? null
}

function digest(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}
