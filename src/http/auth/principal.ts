import { createHash, timingSafeEqual } from 'node:crypto'
import { checkNames } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'

/** The authenticated sender of a request, and the resources that it may access. */
export interface Principal {
  /** Names the caller in limits and logs. */
  id: string
  /** The resources whose threads it may read and write; `'*'`: all of them. */
  resources: readonly string[] | '*'
  /** Has the scope `operate`: metrics, `tick`, and prompts of agents. Implied by `'*'` without `scopes`. */
  operator?: boolean
  /**
   * What it may do: any of `PrincipalScope`, such as `principalScopes.endUser`. By default all except for `operate`. Policies read them,
   * and other names among them, as `principal.scopes`.
   */
  scopes?: readonly string[]
}

/** What a server gives to its `auth` besides the request. */
export interface AuthContext {
  /** The operator's log, for what the caller must not learn. */
  logger: Logger
}

/** Finds the principal of a request; null, and an error that it throws, reject the request. */
export type Authenticate = (request: Request, context?: AuthContext) => Principal | null | undefined | Promise<Principal | null | undefined>

/** The principal of every caller of a server that only listens on this machine. */
export const localPrincipal: Principal = { id: 'local', resources: '*', operator: true }

/** Whether the limits of tenants do not apply to it. */
export function isOperator({ operator, resources, scopes }: Principal): boolean {
  return operator === true || (scopes === undefined ? resources === '*' : scopes.includes('operate'))
}

/** Why a value is not a valid principal, without its values. Checked at run time, since hooks may return what their types forbid. */
export function principalFlaw(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'it must be an object with an id and resources'
  const { id, resources, operator, scopes } = value as Record<keyof Principal, unknown>
  if (!isNonEmptyString(id)) return 'id must be a non-empty string'
  if (resources !== '*' && !(Array.isArray(resources) && Array.from(resources).every(isNonEmptyString))) {
    return "resources must be a list of non-empty strings, or '*'"
  }
  if (operator !== undefined && typeof operator !== 'boolean') return 'operator must be true or false'
  const areTexts = scopes === undefined || (Array.isArray(scopes) && Array.from(scopes).every(isNonEmptyString))
  return areTexts ? undefined : 'scopes must be a list of non-empty strings'
}

function isNonEmptyString(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

/**
 * The resource of a call. If `requested` is undefined, it is the principal's only resource. Undefined only for principals that may
 * access all resources.
 */
export function resolveResource(principal: Principal, requested: string | undefined): string | undefined {
  const { resources } = principal
  if (resources === '*') return requested
  const details = { field: 'resourceId' }
  if (requested === undefined) {
    const [only] = resources
    if (only === undefined) throw new HeedError('forbidden', 'You may not access any resource.', { details })
    if (resources.length === 1) return only
    throw new HeedError('invalid_argument', 'resourceId is missing. You may access several resources: name one.', { details })
  }
  if (mayAccess(principal, requested)) return requested
  throw new HeedError('forbidden', `You may not access the resource '${requested}'.`, { details })
}

/** The same for calls that write: every thread belongs to a resource. `field` names the missing field in the error. */
export function requireResource(principal: Principal, requested: string | undefined, field = 'resourceId'): string {
  const resource = resolveResource(principal, requested)
  if (resource !== undefined) return resource
  throw new HeedError('invalid_argument', `${field} is missing. Name the resource that the thread belongs to.`, { details: { field } })
}

export function mayAccess({ resources }: Principal, resourceId: string): boolean {
  return resources === '*' || (Array.isArray(resources) && resources.includes(resourceId))
}

/** Authenticates callers by a key in `Authorization: Bearer <key>` or `x-api-key`. */
export function apiKeys(keys: Readonly<Record<string, Principal>>): Authenticate {
  const entries = Object.entries(keys).map(([key, principal], index) => {
    const flaw = principalFlaw(principal)
    // A key is a secret, so the error names its position.
    if (flaw !== undefined) {
      const message = `The principal of API key number ${index + 1} is invalid: ${flaw}.`
      throw new HeedError('invalid_argument', message, { details: { number: index + 1 } })
    }
    // The result of a hook, in contrast, may carry what the program needs elsewhere.
    checkNames(`The principal of API key number ${index + 1}`, principal, ['id', 'resources', 'operator', 'scopes'])
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
