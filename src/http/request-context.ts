import { RequestContext } from '../run/request-context.ts'
import type { Asked } from './exchange.ts'
import type { Principal } from './principal.ts'

/**
 * Turns who asks into the request context of the run that follows. What it answers is all of the context: of `given`, which is what the
 * caller wrote into the request, only what it passes on counts.
 */
export type ContextOf = (asked: { principal: Principal; request: Request; given: Readonly<Record<string, unknown>> }) => Record<string, unknown> | Promise<Record<string, unknown>>

/** Without a hook the caller's own words are the context, as existing clients expect. */
export async function contextFrom(hook: ContextOf | undefined, principal: Principal, asked: Asked, given: Record<string, unknown> | undefined): Promise<RequestContext | undefined> {
  if (hook) return new RequestContext(await hook({ principal, request: asked.request, given: given ?? {} }))
  return given === undefined ? undefined : new RequestContext(given)
}
