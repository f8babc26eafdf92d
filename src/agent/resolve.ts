import type { RequestContext } from '../run/request-context.ts'
import type { Dynamic } from './config.ts'

/** The value for this request. */
export function resolve<T>(value: Dynamic<T>, context: { requestContext: RequestContext }): T | Promise<T> {
  return typeof value === 'function' ? (value as (context: { requestContext: RequestContext }) => T | Promise<T>)(context) : value
}
