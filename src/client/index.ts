import { AgentClient, type AgentDetails } from './agent.ts'
import { Connection, type ClientOptions } from './connection.ts'
import { MemoryClient, type MemoryScope } from './memory.ts'

/** A client of a Heed server, for any platform with `fetch`: Node, browsers, workers. */
export class HeedClient {
  readonly #connection: Connection
  readonly #options: ClientOptions

  constructor(options: ClientOptions) {
    this.#options = options
    this.#connection = new Connection(options)
  }

  /** The same client, whose requests and streams end when the signal is aborted. */
  withSignal(signal: AbortSignal): HeedClient {
    const { signal: outer } = this.#options
    return new HeedClient({ ...this.#options, signal: outer ? AbortSignal.any([outer, signal]) : signal })
  }

  getAgent(id: string): AgentClient {
    return new AgentClient(this.#connection, id)
  }

  /** The memory of an agent: threads, messages, working memory. */
  memory(scope: MemoryScope = {}): MemoryClient {
    return new MemoryClient(this.#connection, scope)
  }

  listAgents(): Promise<Record<string, AgentDetails>> {
    return this.#connection.json('/agents')
  }

  /** Resolves if the server is alive. */
  health(): Promise<{ status: 'ok' }> {
    return this.#connection.json('/health')
  }

  /** Resolves if the server's storage responds, and rejects otherwise. */
  ready(): Promise<{ status: 'ready' }> {
    return this.#connection.json('/ready')
  }

  /** Counters, in the text format of Prometheus. For operators. */
  metrics(): Promise<string> {
    return this.#connection.text('/metrics')
  }

  /** Does the work that is due. For operators of servers that do not keep running. */
  tick(
    options: { limit?: number; timeoutMs?: number } = {},
  ): Promise<{ threads: number; notifications: number; schedules: number; pruned: number }> {
    return this.#connection.json('/tick', { body: options })
  }
}

export type { AgentClient, AgentDetails, ParkedRun, SendAnswer, SendTarget, ToolDetails } from './agent.ts'
export type { ClientOptions } from './connection.ts'
export type { FoundMessage, MemoryClient, MemoryScope } from './memory.ts'
export type { NotificationAnswer, NotificationFilter, NotificationsClient } from './agent.ts'
export type { NewSchedule, SchedulesClient } from './agent.ts'
export type { ProcessOptions, Reconnect, SubscribeParams, ThreadSubscription } from './thread-subscription.ts'
export type { OverWire, ThreadScope } from './connection.ts'
export { HeedError, isHeedError } from '../base/errors.ts'
