import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock, type Timer } from '../../base/clock.ts'
import { newId } from '../../base/ids.ts'
import { jsonText } from '../../base/json.ts'
import { Namespaces, type Envelope } from '../namespaces.ts'
import type { BusHandler } from '../contract.ts'
import type { BusMessage } from '../message.ts'
import { ChangeWatcher } from './change-watcher.ts'
import { isLocked, QueueDB, resultCode } from './queue-db.ts'

/** How many characters may wait to be written. A message that exceeds the limit is lost. */
const outboxLimit = 8_000_000

/** The least time between two attempts to open the queue. */
const reopenMs = 5_000
/** How soon a locked queue is tried again, and how often before `onDisconnect`. */
const lockedMs = 100
const maxLockedOpens = 30
/** How often a read of a locked queue is tried again before what it would deliver counts as lost. */
const maxLockedReads = 50
/** How often this process renews its memberships. */
const renewMs = 20_000

/** The queue that one process has open for a database, and all connections of the process that use it. */
export class Hub {
  readonly #folder: string
  readonly #process = newId()
  readonly #namespaces = new Namespaces()
  #queue: QueueDB | undefined
  #watcher: ChangeWatcher | undefined
  #opening: Promise<void> | undefined
  #openedAt = -Infinity
  #outbox: string[] = []
  #flushed: PromiseWithResolvers<void> | undefined
  #waiting = 0
  #immediate: NodeJS.Immediate | undefined
  #pause: Timer | undefined
  #renewal: Timer | undefined
  #reopening: Timer | undefined
  #lockedOpens = 0
  /** Why the queue could not be opened. */
  #failure: unknown
  #closed = false

  constructor(folder: string) {
    this.#folder = folder
  }

  hasPeers(namespace: string): boolean {
    return this.disconnected || this.#namespaces.hasPeers(namespace)
  }

  /** The queue is not open. */
  get disconnected(): boolean {
    return this.#queue === undefined
  }

  async add(namespace: string, id: string, handler: BusHandler): Promise<void> {
    const isNew = this.#namespaces.add(namespace, id, handler)
    const opening = this.#opening
    await (this.#opening ??= this.#open())
    if (!opening) return
    if (isNew) this.#renew()
    if (this.#failure !== undefined) handler.onDisconnect?.(this.#failure)
  }

  ready(namespace: string, id: string): Promise<void> {
    let peers: string[] = []
    this.#try((queue) => void (peers = queue.peers(namespace)))
    return this.#namespaces.ready(namespace, id, peers)
  }

  /** Returns whether it was the last connection. */
  remove(namespace: string, id: string): boolean {
    if (this.#namespaces.remove(namespace, id)) {
      // What was sent before is written first: to its readers this process has gone then.
      this.#flush()
      this.#namespaces.drop(namespace)
      if (this.#namespaces.size > 0) this.#try((queue) => queue.leave(namespace))
    }
    return this.#namespaces.size === 0
  }

  send(namespace: string, from: string, message: BusMessage, to: string | undefined): void {
    if (!this.#namespaces.has(namespace) || (!this.hasPeers(namespace) && message.kind !== 'hello')) return
    const envelope: Envelope = { namespace, from, ...(to !== undefined && { to }), message }
    const text = jsonText(envelope)
    if (!this.#namespaces.sendLocal(envelope, text) || this.#waiting + text.length > outboxLimit) return
    this.#outbox.push(text)
    this.#waiting += text.length
    this.#schedule()
  }

  /** Resolves when no message waits to be written. */
  flush(): Promise<void> {
    this.#flush()
    if (this.#outbox.length === 0) return Promise.resolve()
    this.#flushed ??= Promise.withResolvers()
    return this.#flushed.promise
  }

  /** Delivers before it returns, unless the queue is locked. */
  poll(): Promise<void> {
    this.#namespaces.deliverLocal()
    return this.#read() === 'locked' ? this.#readLater() : Promise.resolve()
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#renewal?.cancel()
    this.#reopening?.cancel()
    await this.#opening?.catch(() => {})
    this.#flush()
    this.#pause?.cancel()
    if (this.#immediate) clearImmediate(this.#immediate)
    this.#watcher?.close()
    this.#queue?.close()
  }

  // Opening

  async #open(): Promise<void> {
    this.#openedAt = performance.now()
    try {
      this.#queue = await this.#openQueue()
      this.#opened()
    } catch (error) {
      // Another process opens it too, or is suspended while it holds the lock: that passes.
      if (isLocked(error) && ++this.#lockedOpens <= maxLockedOpens) return this.#reopen(lockedMs)
      this.#failed(error)
    }
    if (this.#closed) return
    this.#scheduleRenewal(renewMs)
    if (!this.#queue) return this.#reopen()
    this.#watcher = new ChangeWatcher(this.#folder, {
      changed: () => void this.#read(),
      replaced: () => this.#reopen(),
      wantsLowLatency: () => this.#namespaces.handlers().some((handler) => handler.wantsLowLatency()),
    })
    this.#read()
  }

  /** Without the queue, sweeps of the store find everything later. It is opened again after a while. */
  #failed(error: unknown): void {
    const first = this.#failure === undefined
    this.#failure = error
    if (first) for (const handler of this.#namespaces.handlers()) handler.onDisconnect?.(error)
  }

  #opened(): void {
    this.#lockedOpens = 0
    if (this.#failure === undefined) return
    this.#failure = undefined
    for (const handler of this.#namespaces.handlers()) handler.onReconnect?.()
  }

  async #openQueue(): Promise<QueueDB> {
    try {
      return await this.#joinQueue()
    } catch (error) {
      if (!isDamaged(error)) throw error
      // It is never synced, so a power cut can damage it. Nothing in it has to be kept.
      await Promise.all(['bus.db', 'bus.db-wal', 'bus.db-shm'].map((name) => rm(join(this.#folder, name), { force: true })))
      return this.#joinQueue()
    }
  }

  async #joinQueue(): Promise<QueueDB> {
    const queue = await QueueDB.open(this.#folder, this.#process)
    try {
      this.#renewIn(queue)
      queue.stopWaiting()
      return queue
    } catch (error) {
      queue.close()
      throw error
    }
  }

  #renewIn(queue: QueueDB): void {
    for (const namespace of this.#namespaces.names()) this.#namespaces.setRemotePeers(namespace, queue.renew(namespace))
  }

  /** A locked queue is tried again soon: until a process is a member, peers that connect don't know of it. */
  #renew(): void {
    const renewed = this.#try((queue) => this.#renewIn(queue))
    if (!this.#closed) this.#scheduleRenewal(renewed === 'locked' ? lockedMs : renewMs)
  }

  #scheduleRenewal(ms: number): void {
    this.#renewal?.cancel()
    this.#renewal = systemClock.after(ms, () => this.#renew(), { background: true })
  }

  // Receiving

  #read(): 'done' | 'locked' | 'failed' {
    return this.#try((queue) => {
      const { rows, lost } = queue.read()
      if (lost) for (const handler of this.#namespaces.handlers()) handler.onLoss()
      for (const { body, process } of rows)
        for (const envelope of JSON.parse(body) as Envelope[]) this.#namespaces.receive(envelope, process)
    })
  }

  async #readLater(): Promise<void> {
    for (let attempt = 0; attempt < maxLockedReads && !this.#closed; attempt++) {
      await new Promise<void>((resolve) => void systemClock.after(1, resolve))
      if (this.#read() !== 'locked') return
    }
  }

  // Sending

  #schedule(): void {
    if (this.#immediate || this.#pause || this.#closed) return
    this.#immediate = setImmediate(() => {
      this.#immediate = undefined
      this.#flush()
    })
  }

  #flush(): void {
    if (this.#outbox.length === 0) return
    const written = this.#try((queue) => queue.write(`[${this.#outbox.join(',')}]`))
    if (written === 'locked' && !this.#closed) {
      this.#pause ??= systemClock.after(1 + Math.random() * 4, () => {
        this.#pause = undefined
        this.#flush()
      })
      return
    }
    if (written === 'done') this.#watcher?.notify()
    this.#outbox = []
    this.#waiting = 0
    this.#flushed?.resolve()
    this.#flushed = undefined
  }

  #try(act: (queue: QueueDB) => void): 'done' | 'locked' | 'failed' {
    if (!this.#queue) return 'failed'
    try {
      act(this.#queue)
      return 'done'
    } catch (error) {
      if (isLocked(error)) return 'locked'
      this.#reopen()
      return 'failed'
    }
  }

  /** Opens the queue anew: at once, or when enough time has passed since the last attempt. Messages sent meanwhile may be lost. */
  #reopen(ms = Math.max(0, this.#openedAt + reopenMs - performance.now())): void {
    if (this.#closed || this.#reopening) return
    this.#reopening = systemClock.after(ms, () => {
      this.#reopening = undefined
      this.#openAgain()
    }, { background: true })
  }

  #openAgain(): void {
    this.#watcher?.close()
    this.#renewal?.cancel()
    const before = this.#queue
    this.#queue = undefined
    this.#opening = (this.#opening ?? Promise.resolve()).then(async () => {
      before?.close()
      await this.#open()
      if (this.#queue) for (const handler of this.#namespaces.handlers()) handler.onLoss()
    })
  }
}

function isDamaged(error: unknown): boolean {
  const code = resultCode(error)
  return code === 11 || code === 26
}
