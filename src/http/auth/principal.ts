import { HeedError } from '../../base/errors.ts'

/** Who asks, and whose threads they may reach. */
export interface Principal {
  /** Names the caller in limits and logs. */
  id: string
  /** The resources whose threads it may read and write; `'*'`: all of them. */
  resources: readonly string[] | '*'
  /** May also do what concerns no single resource: metrics, `tick`. Implied by `'*'`. */
  operator?: boolean
}

/** Turns a request into whoever asks; null refuses it. What it throws refuses it too. */
export type Authenticate = (request: Request) => Principal | null | undefined | Promise<Principal | null | undefined>

/** Whoever reaches a server that only listens on this machine. */
export const localPrincipal: Principal = { id: 'local', resources: '*', operator: true }

/** What is wrong with something that should be a principal, without its values. Hooks answer what their types don't say. */
export function flawOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'it must be an object with an id and resources'
  const { id, resources, operator } = value as Record<keyof Principal, unknown>
  if (!isText(id)) return 'id must be a text that is not empty'
  if (resources !== '*' && !(Array.isArray(resources) && Array.from(resources).every(isText))) return "resources must be a list of texts that are not empty, or '*'"
  return operator === undefined || typeof operator === 'boolean' ? undefined : 'operator must be true or false'
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

/**
 * The resource that a call is about. Left out, it is the caller's own where that is a single one. Undefined only for callers who may
 * reach everything.
 */
export function resourceOf(principal: Principal, given: string | undefined): string | undefined {
  const { resources } = principal
  if (resources === '*') return given
  if (given === undefined) {
    const [only] = resources
    if (only === undefined) throw new HeedError('forbidden', 'You may act for no resource.', { details: { field: 'resourceId' } })
    if (resources.length === 1) return only
    throw new HeedError('invalid_argument', 'resourceId is missing: you may act for several resources, so say for which.', { details: { field: 'resourceId' } })
  }
  if (mayReach(principal, given)) return given
  throw new HeedError('forbidden', `You may not act for the resource '${given}'.`, { details: { field: 'resourceId' } })
}

/** The same where a thread is written to, which belongs to somebody. */
export function neededResource(principal: Principal, given: string | undefined): string {
  const resource = resourceOf(principal, given)
  if (resource === undefined) throw new HeedError('invalid_argument', 'resourceId is missing: say whom the thread belongs to.', { details: { field: 'resourceId' } })
  return resource
}

export function mayReach({ resources }: Principal, resourceId: string): boolean {
  return resources === '*' || (Array.isArray(resources) && resources.includes(resourceId))
}

export function requireOperator({ resources, operator }: Principal): void {
  if (resources !== '*' && !operator) throw new HeedError('forbidden', 'This concerns all resources and is for operators only.')
}
