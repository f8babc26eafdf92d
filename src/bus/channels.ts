import { systemClock, type Timer } from '../base/clock.ts'
import type { BusHandler } from './contract.ts'
import type { BusMessage } from './message.ts'

/** A message with its addresses. */
export interface Envelope {
  namespace: string
  from: string
  to?: string
  message: BusMessage
}

/** The connections of this process in one namespace. */
interface Channel {
  handlers: Map<string, BusHandler>
  handshakes: Map<string, Handshake>
  /** Whether another process is in the namespace, or that is unknown. */
  hasRemotePeers: boolean
}

/** The connections of one process to a bus, by namespace, and the messages between them, which need no bus. */
export class Channels {
  readonly #channels = new Map<string, Channel>()
  /** Messages between connections of this process that are not delivered yet, as JSON. */
  #local: string[] = []

  get size(): number {
    return this.#channels.size
  }

  namespaces(): string[] {
    return [...this.#channels.keys()]
  }

  /** The ids of the connections of this process in a namespace. */
  ids(namespace: string): string[] {
    return [...(this.#channels.get(namespace)?.handlers.keys() ?? [])]
  }

  handlers(): BusHandler[] {
    return [...this.#channels.values()].flatMap(({ handlers }) => [...handlers.values()])
  }

  has(namespace: string): boolean {
    return this.#channels.has(namespace)
  }

  /** Returns whether the namespace is new here. */
  add(namespace: string, id: string, handler: BusHandler): boolean {
    let channel = this.#channels.get(namespace)
    const isNew = channel === undefined
    if (!channel) this.#channels.set(namespace, (channel = { handlers: new Map(), handshakes: new Map(), hasRemotePeers: true }))
    channel.handlers.set(id, handler)
    return isNew
  }

  /** Removes a connection. Returns whether it was the last one of its namespace, which the caller then drops. */
  remove(namespace: string, id: string): boolean {
    const channel = this.#channels.get(namespace)
    channel?.handlers.delete(id)
    channel?.handshakes.get(id)?.end()
    return channel?.handlers.size === 0
  }

  drop(namespace: string): void {
    this.#channels.delete(namespace)
  }

  hasPeers(namespace: string): boolean {
    const channel = this.#channels.get(namespace)
    return channel !== undefined && (channel.hasRemotePeers || channel.handlers.size > 1)
  }

  setRemotePeers(namespace: string, exist: boolean): void {
    const channel = this.#channels.get(namespace)
    if (channel) channel.hasRemotePeers = exist
  }

  /**
   * Queues a message for the other connections of this process. Returns whether other processes may need it too: a `hello` is sent also
   * where no peer is known, since one may have connected at the same moment.
   */
  sendLocal(envelope: Envelope, text: string): boolean {
    const { namespace, to, message } = envelope
    const channel = this.#channels.get(namespace)
    if (!channel) return false
    if (channel.handlers.size > 1 && this.#local.push(text) === 1) setImmediate(() => this.deliverLocal())
    return to === undefined ? channel.hasRemotePeers || message.kind === 'hello' : !channel.handlers.has(to)
  }

  deliverLocal(): void {
    for (const text of this.#local.splice(0)) this.#deliver(JSON.parse(text) as Envelope)
  }

  /** Delivers a message of another process. */
  receive(envelope: Envelope, process: string): void {
    const channel = this.#channels.get(envelope.namespace)
    if (!channel) return
    channel.hasRemotePeers = true
    this.#deliver(envelope)
    if (envelope.to !== undefined) channel.handshakes.get(envelope.to)?.answered(process)
  }

  #deliver({ namespace, from, to, message }: Envelope): void {
    for (const [id, handler] of this.#channels.get(namespace)?.handlers ?? []) {
      if (id !== from && (to === undefined || to === id)) handler.onMessage(message, from)
    }
  }

  /** Resolves when these processes have answered a new connection. Those of this process answer within two turns of the event loop. */
  async ready(namespace: string, id: string, processes: Iterable<string>): Promise<void> {
    const handshake = new Handshake(processes)
    const handshakes = this.#channels.get(namespace)?.handshakes ?? new Map<string, Handshake>()
    handshakes.set(id, handshake)
    for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve))
    await handshake.done
    handshakes.delete(id)
  }
}

/**
 * How long a new connection waits for answers: a process that is suspended, or died a moment ago, never answers. Runs wait for it, so the
 * timer keeps the process alive.
 */
export const handshakeMs = 250

/** Waits until each process that was connected before has answered a new connection; by then the connection knows what they watch. */
class Handshake {
  readonly #missing: Set<string>
  readonly #done = Promise.withResolvers<void>()
  readonly #timer: Timer

  constructor(processes: Iterable<string>) {
    this.#missing = new Set(processes)
    this.#timer = systemClock.after(handshakeMs, () => this.end())
    if (this.#missing.size === 0) this.end()
  }

  get done(): Promise<void> {
    return this.#done.promise
  }

  answered(process: string): void {
    if (this.#missing.delete(process) && this.#missing.size === 0) this.end()
  }

  end(): void {
    this.#timer.cancel()
    this.#done.resolve()
  }
}
