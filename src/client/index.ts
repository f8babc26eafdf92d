import { AgentClient, type AgentDetails } from './agent.ts'
import { Connection, type ClientOptions } from './connection.ts'
import { MemoryClient, type MemoryScope } from './memory.ts'

/** A Heed server from anywhere `fetch` is: Node, browsers, workers. */
export class HeedClient {
  readonly #connection: Connection
  readonly #options: ClientOptions

  constructor(options: ClientOptions) {
    this.#options = options
    this.#connection = new Connection(options)
  }

  /** The same client, until the signal is aborted: whatever it asks ends then, and its streams do. */
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

  /** Answered by a server that runs. */
  health(): Promise<{ status: 'ok' }> {
    return this.#connection.json('/health')
  }

  /** Answered by a server that can do its work; rejects when it can't. */
  ready(): Promise<{ status: 'ready' }> {
    return this.#connection.json('/ready')
  }

  /** Counters, in the text format of Prometheus. For operators. */
  metrics(): Promise<string> {
    return this.#connection.text('/metrics')
  }

  /** Does what is due now. For operators of servers that do not stay. */
  tick(options: { limit?: number; timeoutMs?: number } = {}): Promise<{ threads: number; notifications: number; schedules: number; pruned: number }> {
    return this.#connection.json('/tick', { body: options })
  }
}

export type { AgentClient, AgentDetails, ParkedRun, SendAnswer, SendTarget, ThreadScope } from './agent.ts'
export type { ClientOptions } from './connection.ts'
export type { FoundMessage, MemoryClient, MemoryScope } from './memory.ts'
export type { NotificationAnswer, NotificationFilter, NotificationsClient } from './notifications.ts'
export type { NewSchedule, SchedulesClient } from './schedules.ts'
export type { ProcessOptions, Reconnect, SubscribeParams, ThreadSubscription } from './thread-subscription.ts'
export type { OverWire } from './wire.ts'
export { HeedError, isHeedError } from '../base/errors.ts'
