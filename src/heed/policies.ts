import { refused } from '../base/arguments.ts'
import type { Clock } from '../base/clock.ts'
import { beforeDeadline } from '../base/deadline.ts'
import { HeedError } from '../base/errors.ts'
import type { CedarPolicies } from '../policy/policies.ts'

/** What a Heed asks of its policies. */
export type Policies = Pick<CedarPolicies, 'authorize'> & Partial<Pick<CedarPolicies, 'readsCategories' | 'namedCategories'>>

/** The tenant of what concerns no resource, or all of them. */
export const everyResource = '*'

export function checkPolicies(policies: unknown): void {
  if (typeof (policies as Partial<CedarPolicies> | null)?.authorize !== 'function')
    throw refused('policies', 'policies: new CedarPolicies({ … }) of heed/policy')
}

/** How long policies may take to decide. */
const answerMs = 10_000

/** The same policies, which fail where they do not answer in time: nothing that asks them waits for ever. */
export function withDeadline(policies: Policies, clock: Clock): Policies {
  const error = () => new HeedError('policy_timeout', `The policies did not answer within ${answerMs} ms.`)
  const inTime = async <T>(answer: T | Promise<T>) => beforeDeadline(Promise.resolve(answer), { clock, ms: answerMs, error })
  return {
    authorize: async (request) => inTime(policies.authorize(request)),
    ...(typeof policies.readsCategories === 'function'
      ? { readsCategories: async (tenant: string) => inTime(policies.readsCategories?.(tenant) ?? true) }
      : {}),
    ...(typeof policies.namedCategories === 'function'
      ? { namedCategories: async (tenant: string) => inTime(policies.namedCategories?.(tenant) ?? []) }
      : {}),
  }
}

/** Policies of the program's own may answer anything: only `true` allows. */
export function isAllowed({ allowed }: { allowed: unknown }): boolean {
  return allowed === true
}
