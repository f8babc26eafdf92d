import type { Agent } from '../agent/agent.ts'
import type { Heed } from '../heed/heed.ts'
import type { EventStreams } from './sse/event-stream.ts'
import type { Asked } from './request/exchange.ts'
import type { Lingering } from './sse/grace-period.ts'
import type { Principal } from './auth/principal.ts'
import type { MaybeContext } from './request/request-context.ts'

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** JSON Schema, as it checks what comes in and stands in the OpenAPI document. */
export type JSONSchema = { readonly [keyword: string]: unknown }

export interface ObjectSchema extends JSONSchema {
  readonly type: 'object'
  readonly properties: Readonly<Record<string, JSONSchema>>
  readonly required?: readonly string[]
}

/** One thing the server can be asked. The table of these is the server: routing, checking and the OpenAPI document come from it. */
export interface Route {
  readonly method: Method
  /** Below the prefix, with `:names`. */
  readonly path: string
  readonly summary: string
  readonly query?: ObjectSchema
  readonly body?: ObjectSchema
  /** `events`: a stream of server-sent events. `open`: asked without saying who one is. */
  readonly answer: 'json' | 'events'
  /** What is answered, as far as callers may rely on it. */
  readonly answers?: JSONSchema
  readonly open?: true
  /** Never counted: whoever watches over the server must be answered, whatever others ask. */
  readonly unlimited?: true
  /** A send: the same `Idempotency-Key` is the same signal. */
  readonly send?: true
  /** A thread of somebody else: told as one that isn't there. */
  readonly read?: true
  readonly handle: (call: Call) => unknown
}

/** One request, checked and typed. */
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
  readonly lingering: Lingering
  readonly asked: Asked
  /** The context of a run that this request starts; `given` is what the caller wrote of it. */
  context(given?: Record<string, unknown>): MaybeContext | Promise<MaybeContext>
}

/** Types a route's handler by what its schemas let through. */
export function route<Body = Record<string, never>, Query = Record<string, never>>(
  definition: Omit<Route, 'handle'> & { handle: (call: Call<Body, Query>) => unknown },
): Route {
  return definition as unknown as Route
}
