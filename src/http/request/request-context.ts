import { RequestContext } from '../../run/request-context.ts'
import type { Asked } from './exchange.ts'
import type { Principal } from '../auth/principal.ts'

/**
 * Turns who asks into the request context of the run that follows. What it answers is all of the context: of `given`, which is what the
 * caller wrote into the request, only what it passes on counts.
 */
export type ContextOf = (asked: { principal: Principal; request: Request; given: Readonly<Record<string, unknown>> }) => Record<string, unknown> | Promise<Record<string, unknown>>

/** Without a hook the caller's own words are the context, as existing clients expect. Not a promise then. */
export function contextFrom(hook: ContextOf | undefined, principal: Principal, asked: Asked, given: Record<string, unknown> | undefined): MaybeContext | Promise<MaybeContext> {
  if (hook) return contextOf(hook, principal, asked, given ?? {})
  return given === undefined ? undefined : new RequestContext(given)
}

export type MaybeContext = RequestContext | undefined

async function contextOf(hook: ContextOf, principal: Principal, asked: Asked, given: Record<string, unknown>): Promise<RequestContext> {
  return new RequestContext(await hook({ principal, request: asked.request, given }))
}
