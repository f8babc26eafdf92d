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
interface JoinedNamespace {
  handlers: Map<string, BusHandler>
  handshakes: Map<string, Handshake>
  /** Whether another process is in the namespace, or that is unknown. */
  hasRemotePeers: boolean
}

/** The connections of one process to a bus, by namespace, and the messages between them, which need no bus. */
export class Namespaces {
  readonly #joined = new Map<string, JoinedNamespace>()
  /** Messages between connections of this process that are not delivered yet, as JSON. */
  #local: string[] = []

  get size(): number {
    return this.#joined.size
  }

  names(): string[] {
    return [...this.#joined.keys()]
  }

  /** The ids of the connections of this process in a namespace. */
  ids(namespace: string): string[] {
    return [...(this.#joined.get(namespace)?.handlers.keys() ?? [])]
  }

  handlers(): BusHandler[] {
    return [...this.#joined.values()].flatMap(({ handlers }) => [...handlers.values()])
  }

  has(namespace: string): boolean {
    return this.#joined.has(namespace)
  }

  /** Returns whether the namespace is new here. */
  add(namespace: string, id: string, handler: BusHandler): boolean {
    let joined = this.#joined.get(namespace)
    const isNew = joined === undefined
    if (!joined) this.#joined.set(namespace, (joined = { handlers: new Map(), handshakes: new Map(), hasRemotePeers: true }))
    joined.handlers.set(id, handler)
    return isNew
  }

  /** Removes a connection. Returns whether it was the last one of its namespace, which the caller then drops. */
  remove(namespace: string, id: string): boolean {
    const joined = this.#joined.get(namespace)
    joined?.handlers.delete(id)
    joined?.handshakes.get(id)?.end()
    return joined?.handlers.size === 0
  }

  drop(namespace: string): void {
    this.#joined.delete(namespace)
  }

  hasPeers(namespace: string): boolean {
    const joined = this.#joined.get(namespace)
    return joined !== undefined && (joined.hasRemotePeers || joined.handlers.size > 1)
  }

  setRemotePeers(namespace: string, exist: boolean): void {
    const joined = this.#joined.get(namespace)
    if (joined) joined.hasRemotePeers = exist
  }

  /**
   * Queues a message for the other connections of this process. Returns whether other processes may need it too: a `hello` is sent also
   * where no peer is known, since one may have connected at the same moment.
   */
  sendLocal(envelope: Envelope, text: string): boolean {
    const { namespace, to, message } = envelope
    const joined = this.#joined.get(namespace)
    if (!joined) return false
    if (joined.handlers.size > 1 && this.#local.push(text) === 1) setImmediate(() => this.deliverLocal())
    return to === undefined ? joined.hasRemotePeers || message.kind === 'hello' : !joined.handlers.has(to)
  }

  deliverLocal(): void {
    for (const text of this.#local.splice(0)) this.#deliver(JSON.parse(text) as Envelope)
  }

  /** Delivers a message of another process. */
  receive(envelope: Envelope, process: string): void {
    const joined = this.#joined.get(envelope.namespace)
    if (!joined) return
    joined.hasRemotePeers = true
    this.#deliver(envelope)
    if (envelope.to !== undefined) joined.handshakes.get(envelope.to)?.answered(process)
  }

  #deliver({ namespace, from, to, message }: Envelope): void {
    for (const [id, handler] of this.#joined.get(namespace)?.handlers ?? []) {
      if (id !== from && (to === undefined || to === id)) handler.onMessage(message, from)
    }
  }

  /** Resolves when these processes have answered a new connection. Those of this process answer within two turns of the event loop. */
  async ready(namespace: string, id: string, processes: Iterable<string>): Promise<void> {
    const handshake = new Handshake(processes)
    const handshakes = this.#joined.get(namespace)?.handshakes ?? new Map<string, Handshake>()
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
