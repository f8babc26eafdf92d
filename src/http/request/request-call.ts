import type { Agent } from '../../agent/agent.ts'
import { HeedError } from '../../base/errors.ts'
import type { Heed } from '../../heed/heed.ts'
import { RequestContext } from '../../run/request-context.ts'
import type { Principal } from '../auth/principal.ts'
import type { Call } from '../route.ts'
import type { EventStreams, GracePeriod } from '../sse/event-stream.ts'
import type { HttpRequest } from './exchange.ts'
import type { ParsedRequest } from './request-reader.ts'

/**
 * Makes the request context of a run from the principal that starts it. Its result is the whole context: a value of `given`, which is
 * what the caller sent, only counts if the result contains it.
 */
export type ContextOf = (asked: {
  principal: Principal
  request: Request
  given: Readonly<Record<string, unknown>>
}) => Record<string, unknown> | Promise<Record<string, unknown>>

/** What all requests of a server share. */
export interface ServerContext {
  readonly heed: Heed
  readonly events: EventStreams
  readonly gracePeriod: GracePeriod
  readonly requestContext: ContextOf | undefined
}

/** A request as its route receives it. */
export class RequestCall implements Call {
  readonly params: Readonly<Record<string, string>>
  readonly query: Record<string, unknown>
  readonly body: Record<string, unknown>
  readonly principal: Principal
  readonly idempotencyKey: string | undefined
  readonly request: HttpRequest
  readonly #server: ServerContext
  #agent: Agent | undefined

  constructor(
    server: ServerContext,
    request: HttpRequest,
    principal: Principal,
    params: Readonly<Record<string, string>>,
    { query, body, idempotencyKey }: ParsedRequest,
  ) {
    this.#server = server
    this.request = request
    this.principal = principal
    this.params = params
    this.query = query
    this.body = body
    this.idempotencyKey = idempotencyKey
    this.#agent = params.agentId === undefined ? undefined : this.#findAgent(params.agentId)
  }

  get heed(): Heed {
    return this.#server.heed
  }

  get events(): EventStreams {
    return this.#server.events
  }

  get gracePeriod(): GracePeriod {
    return this.#server.gracePeriod
  }

  get agent(): Agent {
    return this.#agent ?? this.#findAgent('')
  }

  context(received?: Record<string, unknown>): RequestContext | undefined | Promise<RequestContext> {
    const hook = this.#server.requestContext
    if (hook) return this.#contextOf(hook, received ?? {})
    return received === undefined ? undefined : new RequestContext(received)
  }

  /** False if the agent's memory depends on the request: then `resolveStorage()` has to find the storage of its threads first. */
  get hasStorage(): boolean {
    return !this.#agent?.storageDependsOnRequest
  }

  async resolveStorage(): Promise<void> {
    this.#agent = await this.#agent?.forRequest((await this.context(contextIn(this.body))) ?? {})
  }

  async #contextOf(hook: ContextOf, given: Record<string, unknown>): Promise<RequestContext> {
    return new RequestContext(await hook({ principal: this.principal, request: this.request.fetchRequest, given }))
  }

  /** By its id, or by the key under which it is registered. */
  #findAgent(name: string): Agent {
    const agent = this.heed.findAgent(name)
    if (!agent) throw new HeedError('unknown_agent', `There is no agent '${name}'.`, { details: { agentId: name } })
    return agent
  }
}

/** The context in a body: a field of its own, or part of the options of the run that a send may start. */
function contextIn(body: Record<string, unknown>): Record<string, unknown> | undefined {
  const { requestContext, ifIdle } = body as {
    requestContext?: Record<string, unknown>
    ifIdle?: { streamOptions?: { requestContext?: Record<string, unknown> } }
  }
  return requestContext ?? ifIdle?.streamOptions?.requestContext
}
