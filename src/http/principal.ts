import { HeedError } from '../errors.ts'

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

/**
 * The resource that a call is about. Left out, it is the caller's own where that is a single one. Undefined only for callers who may
 * reach everything.
 */
export function resourceOf({ resources }: Principal, given: string | undefined): string | undefined {
  if (resources === '*') return given
  if (given === undefined) {
    if (resources.length === 1) return resources[0]
    throw new HeedError('invalid_argument', 'resourceId is missing: you may act for several resources, so say for which.', { details: { field: 'resourceId' } })
  }
  if (resources.includes(given)) return given
  throw new HeedError('forbidden', `You may not act for the resource '${given}'.`, { details: { field: 'resourceId' } })
}

/** The same where a thread is written to, which belongs to somebody. */
export function neededResource(principal: Principal, given: string | undefined): string {
  const resource = resourceOf(principal, given)
  if (resource === undefined) throw new HeedError('invalid_argument', 'resourceId is missing: say whom the thread belongs to.', { details: { field: 'resourceId' } })
  return resource
}

export function mayReach({ resources }: Principal, resourceId: string): boolean {
  return resources === '*' || resources.includes(resourceId)
}

export function requireOperator({ resources, operator }: Principal): void {
  if (resources !== '*' && !operator) throw new HeedError('forbidden', 'This concerns all resources and is for operators only.')
}
