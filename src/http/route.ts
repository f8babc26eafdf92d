import type { Agent } from '../agent/agent.ts'
import type { Heed } from '../heed/heed.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { Principal } from './auth/principal.ts'
import type { HttpRequest } from './request/exchange.ts'
import type { EventStreams } from './sse/event-stream.ts'
import type { GracePeriod } from './sse/grace-period.ts'

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** JSON Schema. It validates requests and is part of the OpenAPI document. */
export type JSONSchema = { readonly [keyword: string]: unknown }

export interface ObjectSchema extends JSONSchema {
  readonly type: 'object'
  readonly properties: Readonly<Record<string, JSONSchema>>
  readonly required?: readonly string[]
}

/** One route. Routing, validation and the OpenAPI document are derived from the list of routes. */
export interface Route {
  readonly method: Method
  /** Below the prefix, with `:params`. */
  readonly path: string
  readonly summary: string
  readonly query?: ObjectSchema
  readonly body?: ObjectSchema
  /** `events`: a stream of server-sent events. */
  readonly response: 'json' | 'events'
  /** The part of a JSON response that clients may rely on. */
  readonly responseSchema?: JSONSchema
  /** Needs no authentication. */
  readonly anonymous?: true
  /** Exempt from the rate limit: monitoring must work whatever the load. */
  readonly unlimited?: true
  /** A send: the same `Idempotency-Key` is the same signal. */
  readonly send?: true
  /** Reads only: a thread of another resource is reported as missing. */
  readonly read?: true
  readonly handle: (call: Call) => unknown
}

/** One request, validated and typed. */
export interface Call<Body = Record<string, unknown>, Query = Record<string, unknown>> {
  readonly heed: Heed
  /** The agent that the path names. */
  readonly agent: Agent
  readonly params: Readonly<Record<string, string>>
  readonly query: Query
  readonly body: Body
  readonly principal: Principal
  readonly idempotencyKey: string | undefined
  readonly events: EventStreams
  readonly gracePeriod: GracePeriod
  readonly request: HttpRequest
  /**
   * The context of a run that this request starts; `received` is the context in the request. Without a `requestContext` hook, it is that
   * context, and no promise.
   */
  context(received?: Record<string, unknown>): RequestContext | undefined | Promise<RequestContext>
}

/** Types a route's handler by the values that its schemas accept. */
export function route<Body = Record<string, never>, Query = Record<string, never>>(
  definition: Omit<Route, 'handle'> & { handle: (call: Call<Body, Query>) => unknown },
): Route {
  return definition as unknown as Route
}
