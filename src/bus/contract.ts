import type { BusMessage } from './message.ts'

/**
 * Connects the processes that share a storage: it carries announcements, and the live chunks of threads that another process watches.
 *
 * A bus may lose messages, and nothing depends on it: the store alone decides what is true, and a sweep of the store finds what no
 * message announced. What every implementation promises (`busConformance` in `heed/testing` checks it):
 * - Connections of different namespaces never receive each other's messages and don't count as each other's peers.
 * - Each receiver gets the messages of one sender in the order in which they were sent, each at most once.
 * - A connection receives neither its own messages nor those that are addressed to another.
 * - `send` returns at once and never throws. The queue of messages to send is bounded; what exceeds the bound is lost.
 * - When the bus detects a loss, it calls `onLoss`.
 */
export interface Bus {
  /**
   * Resolves when messages that others send from now on are delivered to `handler`. A bus that can't reach its peers resolves as well,
   * and calls `onDisconnect`. Rejects when it can never work.
   */
  connect(options: BusConnectOptions): Promise<BusConnection>
}

/** A process that joins the bus of a storage. */
export interface BusConnectOptions {
  /**
   * Names the storage. One bus may serve many: connections of different namespaces never meet, even where their ids and the ids of their
   * threads and resources are equal.
   */
  namespace: string
  /** The address of this connection, which no other connection of the namespace has. */
  id: string
  handler: BusHandler
}

/** What a process does with what the bus brings. */
export interface BusHandler {
  /** Must not throw. */
  onMessage(message: BusMessage, from: string): void
  /** Messages that were sent since `connect` were dropped, and it is unknown which. */
  onLoss(): void
  /** Peers can't be reached: messages are lost until `onReconnect`. The bus retries by itself. Called once for each interruption. */
  onDisconnect?(error: unknown): void
  onReconnect?(): void
  /** An attempt to reach the peers failed, or messages could not be sent: for the log. The bus goes on by itself. */
  onFailure?(error: unknown): void
  /** Whether a delay is noticed here. A bus that polls for messages polls more often while this is true. */
  wantsLowLatency(): boolean
}

/** Its promises never reject, and they resolve soon whatever peers do. */
export interface BusConnection {
  /** False only when no other connection of the namespace exists; then messages need not be sent. True where that is unknown. */
  readonly hasPeers: boolean
  /** True while peers may exist and can't be reached. Absent on a bus where that can't happen. */
  readonly disconnected?: boolean
  /** Resolves when the peers that were connected before had time to answer a `hello`. Absent where they answer at once. */
  ready?(): Promise<void>
  /** To one connection of the namespace, or to all others. */
  send(message: BusMessage, to?: string): void
  /** Resolves when every connected peer can receive what was sent before, or it is lost. */
  flush(): Promise<void>
  /** Resolves when what peers flushed before this call was delivered to `onMessage`, or is lost. */
  poll(): Promise<void>
  /** Resolves when what was sent before is on its way. Nothing is delivered to the handler after the call. */
  close(): Promise<void>
}
