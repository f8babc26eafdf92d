import { HeedError } from '../base/errors.ts'

/*
 * What an agent was given or found for a request. A function that answers nothing, or something else, is refused by name: what it was
 * to say, a guardrail or a limit, would silently not hold.
 */

export function objectFound<T>(found: T, field: string, agent: string): T {
  if (typeof found === 'object' && found !== null && !Array.isArray(found)) return found
  throw wrong(field, agent, 'an object')
}

export function listFound<T extends readonly unknown[]>(found: T, field: string, agent: string): T {
  if (Array.isArray(found)) return found
  throw wrong(field, agent, 'a list')
}

function wrong(field: string, agent: string, what: string): HeedError {
  return new HeedError('invalid_agent', `${field} of agent '${agent}' must be ${what}, and so must what a function answers for it.`, { details: { field } })
}
