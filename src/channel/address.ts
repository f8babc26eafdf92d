import { isId } from './message.ts'

/**
 * The one form in which two addresses of a kind are compared; undefined for a text that is no address of it. Nothing is guessed: a space
 * in a number or a letter of another alphabet in a domain makes another address, or none.
 *
 * - `sms`: E.164, `+` and 7 to 15 digits.
 * - `email`: ASCII, in lower case. A tag (`ann+shop@…`) and dots belong to the address.
 * - `telegram`: the numeric id. User names change hands.
 * - `slack`: `team:user`, or `team:bot`. Ids of users are unique within their team.
 * - Other kinds: the exact text.
 */
export function normalAddress(kind: string, address: string): string | undefined {
  if (!isId(address)) return undefined
  if (kind === 'email') return isMailAddress(address) ? address.toLowerCase() : undefined
  const shape = Object.hasOwn(shapes, kind) ? shapes[kind] : undefined
  return shape === undefined || shape.test(address) ? address : undefined
}

const shapes: Readonly<Record<string, RegExp>> = {
  sms: /^\+[1-9][0-9]{6,14}$/,
  telegram: /^-?[1-9][0-9]{0,18}$/,
  slack: /^[TE][A-Z0-9]{1,30}:[A-Z][A-Z0-9]{1,30}$/,
}

/** A dot-atom at a host name. Quoted local parts and address literals are valid mail, and are written in too many ways to compare. */
function isMailAddress(address: string): boolean {
  const at = address.indexOf('@')
  const [local, domain] = [address.slice(0, at), address.slice(at + 1)]
  if (at < 1 || local.length > 64 || domain.length > 253) return false
  return (
    local.split('.').every((part) => /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+$/.test(part)) &&
    domain.includes('.') && domain.split('.').every((part) => /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/.test(part))
  )
}
