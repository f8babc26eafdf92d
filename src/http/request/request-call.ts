import type { Agent } from '../../agent/agent.ts'
import { HeedError } from '../../base/errors.ts'
import type { Heed } from '../../heed/heed.ts'
import type { EventStreams } from '../sse/event-stream.ts'
import type { Asked } from './exchange.ts'
import type { Lingering } from '../sse/grace-period.ts'
import type { Principal } from '../auth/principal.ts'
import type { ReadRequest } from './request-checks.ts'
import { contextFrom, type ContextOf, type MaybeContext } from './request-context.ts'
import type { Call } from '../route.ts'

/** What all requests of a server have in common. */
export interface Serving {
  readonly heed: Heed
  readonly events: EventStreams
  readonly lingering: Lingering
  readonly requestContext: ContextOf | undefined
}

/** A request as its route gets it. A class, since one is made for each. */
export class RequestCall implements Call {
  readonly params: Readonly<Record<string, string>>
  readonly query: Record<string, unknown>
  readonly body: Record<string, unknown>
  readonly principal: Principal
  readonly idempotencyKey: string | undefined
  readonly asked: Asked
  readonly #serving: Serving
  #agent: Agent | undefined

  constructor(serving: Serving, asked: Asked, principal: Principal, params: Readonly<Record<string, string>>, { query, body, idempotencyKey }: ReadRequest) {
    this.#serving = serving
    this.asked = asked
    this.principal = principal
    this.params = params
    this.query = query
    this.body = body
    this.idempotencyKey = idempotencyKey
    this.#agent = params.agentId === undefined ? undefined : agentOf(serving.heed, params.agentId)
  }

  get heed(): Heed {
    return this.#serving.heed
  }

  get events(): EventStreams {
    return this.#serving.events
  }

  get lingering(): Lingering {
    return this.#serving.lingering
  }

  get agent(): Agent {
    return this.#agent ?? agentOf(this.heed, '')
  }

  context(given?: Record<string, unknown>): MaybeContext | Promise<MaybeContext> {
    return contextFrom(this.#serving.requestContext, this.principal, this.asked, given)
  }

  /** Where the threads of its agent are depends on the request only where the agent's memory does: then that has to be found out first. */
  get isPlaced(): boolean {
    return !this.#agent?.storageDependsOnRequest
  }

  async place(): Promise<void> {
    this.#agent = await this.#agent?.forRequest((await this.context(contextIn(this.body))) ?? {})
  }
}

/** What a caller wrote of the context, beside the rest or with the options of the run that a send may start. */
function contextIn(body: Record<string, unknown>): Record<string, unknown> | undefined {
  const { requestContext, ifIdle } = body as { requestContext?: Record<string, unknown>; ifIdle?: { streamOptions?: { requestContext?: Record<string, unknown> } } }
  return requestContext ?? ifIdle?.streamOptions?.requestContext
}

/** By its id, or by the key under which it is registered. */
function agentOf(heed: Heed, name: string): Agent {
  const agent = heed.findAgent(name)
  if (!agent) throw new HeedError('unknown_agent', `There is no agent '${name}'.`, { details: { agentId: name } })
  return agent
}
