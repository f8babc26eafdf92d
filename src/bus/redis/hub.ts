import { createHash } from 'node:crypto'
import { systemClock, type Timer } from '../../base/clock.ts'
import { isHeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { jsonText } from '../../base/json.ts'
import { Namespaces, type Envelope } from '../namespaces.ts'
import type { BusHandler } from '../contract.ts'
import type { BusMessage } from '../message.ts'
import { Link, type MakeClient } from './link.ts'
import { isAfter, leaveScript, readEntries, readRenewed, renewScript, sendScript, type Entry, type Renewed } from './scripts.ts'

/** How many characters may wait to be sent. A message that exceeds the limit is lost. */
const outboxLimit = 8_000_000
/** How many characters are sent together, unless a single message has more. */
const batchLimit = 64_000

/** How often a process renews its keys, and how long they are kept without that. */
export const renewMs = 5_000
const keptMs = 60_000

/** How long a read waits for messages, and how many entries it returns. */
const blockMs = 5_000
const readCount = 256
/** After so many entries, those that were read are removed. */
const trimCount = 64

/** The delay before a second attempt to connect; it doubles up to the longest. */
const firstDelayMs = 100
const longestDelayMs = 5_000

export interface HubOptions {
  client: MakeClient
  keyPrefix: string
  /** How many entries the stream of a process keeps when that process reads slowly. */
  maxEntries: number
}

interface Outgoing {
  namespace: string
  to: string
  text: string
}

interface Links {
  writer: Link
  reader: Link
}

/** The connection of one process to Redis, and all connections of the process to the bus that use it. */
export class RedisHub {
  readonly #options: HubOptions
  readonly #base: string
  readonly #process = newId()
  readonly #namespaces = new Namespaces()
  readonly #keys = new Map<string, string>()
  /** The other processes in each namespace, by the key of the namespace. */
  readonly #peers = new Map<string, string[]>()
  /** The last entry of each sender. */
  readonly #received = new Map<string, { life: string; number: number }>()
  #links: Links | undefined
  #opening: Promise<void> | undefined
  /** The id of the last entry that was read. */
  #cursor = '0-0'
  #untrimmed = 0
  #outbox: Outgoing[] = []
  #waiting = 0
  #sending: Promise<void> | undefined
  #isScheduled = false
  /** Increases when messages of this process were dropped, or may have been: receivers see that some are missing. */
  #life = 1
  /** Messages may have been lost since `onLoss` was last called. */
  #lost = false
  readonly #polls = new Set<{ upTo: string; resolve(): void }>()
  #renewal: Timer | undefined
  #reopening: Timer | undefined
  #failures = 0
  /** `onDisconnect` was called. */
  #reported = false
  #closed = false

  constructor(options: HubOptions) {
    this.#options = options
    this.#base = `{${options.keyPrefix}}:`
  }

  hasPeers(namespace: string): boolean {
    return this.disconnected || this.#namespaces.hasPeers(namespace)
  }

  get disconnected(): boolean {
    return this.#links === undefined
  }

  get isEmpty(): boolean {
    return this.#namespaces.size === 0
  }

  async add(namespace: string, id: string, handler: BusHandler): Promise<void> {
    this.#namespaces.add(namespace, id, handler)
    const wasOpening = this.#opening !== undefined
    await (this.#opening ??= this.#open())
    if (!wasOpening) return
    if (this.#links) await this.#renew(this.#links)
    if (!this.#links) handler.onDisconnect?.(new Error('Redis can not be reached.'))
  }

  ready(namespace: string, id: string): Promise<void> {
    return this.#namespaces.ready(namespace, id, this.#peers.get(this.#keyOf(namespace)) ?? [])
  }

  send(namespace: string, from: string, message: BusMessage, to: string | undefined): void {
    if (!this.#namespaces.has(namespace) || (!this.hasPeers(namespace) && message.kind !== 'hello')) return
    const envelope: Envelope = { namespace, from, ...(to !== undefined && { to }), message }
    const text = jsonText(envelope)
    if (!this.#namespaces.sendLocal(envelope, text)) return
    if (!this.#links) return this.#loseSent()
    if (this.#waiting + text.length > outboxLimit) return void this.#life++
    this.#outbox.push({ namespace: this.#keyOf(namespace), to: to ?? '', text })
    this.#waiting += text.length
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#sending ??= this.#sendAll().finally(() => (this.#sending = undefined))
    })
  }

  /** What was sent may not arrive: receivers see that in the next message, and `onLoss` is called here when Redis is reached again. */
  #loseSent(): void {
    this.#life++
    this.#lost = true
  }

  /** Resolves when Redis has what was sent before, or it is lost. */
  async flush(): Promise<void> {
    while (this.#outbox.length > 0 || this.#sending) {
      this.#sending ??= this.#sendAll().finally(() => (this.#sending = undefined))
      await this.#sending
    }
  }

  async #sendAll(): Promise<void> {
    while (this.#outbox.length > 0) {
      const links = this.#links
      const batch = this.#takeBatch()
      if (!links) return
      const list = batch.flatMap(({ namespace, to, text }) => [namespace, to, text])
      try {
        await links.writer.call(sendScript, this.#base, [this.#process, this.#life, this.#options.maxEntries, ...list])
      } catch {
        // It is unknown whether they were sent. They are not sent again: each message arrives at most once.
        this.#loseSent()
        this.#fail(links)
      }
    }
  }

  #takeBatch(): Outgoing[] {
    let [count, length] = [0, 0]
    for (const { text } of this.#outbox) {
      if (count > 0 && length + text.length > batchLimit) break
      count++
      length += text.length
    }
    this.#waiting -= length
    return this.#outbox.splice(0, count)
  }

  /** Resolves when everything was delivered that was in the stream of this process at the time of the call. */
  async poll(): Promise<void> {
    this.#namespaces.deliverLocal()
    const links = this.#links
    if (!links) return
    try {
      const found = await links.writer.send(['XREVRANGE', this.#inbox, '+', '-', 'COUNT', 1])
      const upTo = readEntries(found as Array<[string, string[]]>)[0]?.id
      if (upTo === undefined || !isAfter(upTo, this.#cursor) || this.#links !== links) return
      await new Promise<void>((resolve) => this.#polls.add({ upTo, resolve }))
    } catch {
      this.#fail(links)
    }
  }

  /** Removes a connection at once. Resolves when what was sent before is in Redis, and peers can see that the connection is gone. */
  async remove(namespace: string, id: string): Promise<void> {
    if (this.#namespaces.remove(namespace, id)) this.#namespaces.drop(namespace)
    const isLast = this.isEmpty
    if (isLast) this.#stop()
    await this.#opening?.catch(() => {})
    await this.flush()
    const leaving = this.#links?.writer.call(leaveScript, this.#base, [this.#process, isLast ? 1 : 0, this.#keyOf(namespace), id])
    // Where it fails, the keys expire.
    await leaving?.catch(() => {})
    if (isLast) this.#endLinks()
  }

  #stop(): void {
    this.#closed = true
    this.#renewal?.cancel()
    this.#reopening?.cancel()
  }

  #endLinks(): void {
    const links = this.#links
    this.#links = undefined
    links?.writer.end()
    links?.reader.end()
    for (const { resolve } of this.#polls) resolve()
    this.#polls.clear()
  }

  get #inbox(): string {
    return `${this.#base}in:${this.#process}`
  }

  // Opening

  /** Rejects only if the package is missing: then no later attempt succeeds. */
  async #open(): Promise<void> {
    let opened: Links | undefined
    try {
      opened = await this.#connect()
      const renewed = await this.#renewKeys(opened)
      if (this.#closed) return endAll(opened)
      this.#opened(opened, renewed)
    } catch (error) {
      if (opened) endAll(opened)
      if (isHeedError(error) && error.code !== 'bus_failed') throw error
      this.#failedToOpen(error)
    }
  }

  async #connect(): Promise<Links> {
    const writer = await Link.open(this.#options.client)
    try {
      return { writer, reader: await Link.open(this.#options.client) }
    } catch (error) {
      writer.end()
      throw error
    }
  }

  #opened(links: Links, renewed: Renewed): void {
    this.#links = links
    this.#failures = 0
    this.#applyRenewed(renewed)
    if (this.#reported) for (const handler of this.#namespaces.handlers()) handler.onReconnect?.()
    this.#reported = false
    if (this.#lost) this.#tellLoss()
    void this.#read(links)
    this.#scheduleRenewal(links)
  }

  #failedToOpen(error: unknown): void {
    if (!this.#reported && !this.#closed) for (const handler of this.#namespaces.handlers()) handler.onDisconnect?.(error)
    this.#reported = true
    const delay = Math.min(longestDelayMs, firstDelayMs * 2 ** this.#failures++)
    this.#reopen(delay * (0.5 + Math.random() / 2))
  }

  /** The first attempt follows at once: most connections that were cut can be made again, and those are not reported. */
  #fail(links: Links): void {
    if (this.#links !== links) return endAll(links)
    this.#endLinks()
    if (this.#outbox.length > 0) this.#loseSent()
    this.#outbox = []
    this.#waiting = 0
    this.#renewal?.cancel()
    this.#reopen(0)
  }

  #reopen(ms: number): void {
    if (this.#closed) return
    this.#reopening?.cancel()
    const open = () => void this.#open().catch((error: unknown) => this.#failedToOpen(error))
    this.#reopening = systemClock.after(ms, open, { background: true })
  }

  // Keys

  #scheduleRenewal(links: Links): void {
    this.#renewal?.cancel()
    this.#renewal = systemClock.after(renewMs, () => {
      void this.#renew(links).then(() => (this.#links === links && !this.#closed ? this.#scheduleRenewal(links) : undefined))
    }, { background: true })
  }

  async #renew(links: Links): Promise<void> {
    try {
      const renewed = await this.#renewKeys(links)
      if (this.#links !== links) return
      this.#applyRenewed(renewed)
      // The read that waits does so from an id that the new stream may never reach.
      if (renewed.isNew) this.#fail(links)
    } catch {
      this.#fail(links)
    }
  }

  /** A stream that was set back, as after a failover that lost its last entries, is made anew: some of its entries were read. */
  async #renewKeys(links: Links): Promise<Renewed> {
    const cursor = this.#cursor
    const renewed = await this.#callRenew(links, false)
    return !renewed.isNew && isAfter(cursor, renewed.last) ? this.#callRenew(links, true) : renewed
  }

  async #callRenew({ writer }: Links, empty: boolean): Promise<Renewed> {
    const own = this.#namespaces.names().flatMap((namespace) => (
      this.#namespaces.ids(namespace).flatMap((id) => [this.#keyOf(namespace), id])
    ))
    return readRenewed(await writer.call(renewScript, this.#base, [this.#process, empty ? 1 : 0, keptMs, ...own]))
  }

  #applyRenewed({ isNew, last, peers }: Renewed): void {
    if (isNew) {
      // Redis lost its data, or this process was suspended for too long.
      this.#lost ||= this.#cursor !== '0-0'
      this.#cursor = last
      this.#received.clear()
    }
    this.#peers.clear()
    for (const { namespace, process } of peers) this.#peers.set(namespace, [...(this.#peers.get(namespace) ?? []), process])
    for (const namespace of this.#namespaces.names()) this.#namespaces.setRemotePeers(namespace, this.#peers.has(this.#keyOf(namespace)))
    const known = new Set(peers.map(({ process }) => process))
    for (const process of this.#received.keys()) if (!known.has(process)) this.#received.delete(process)
  }

  // Receiving

  async #read(links: Links): Promise<void> {
    try {
      while (this.#links === links && !this.#closed) {
        const command = ['XREAD', 'COUNT', readCount, 'BLOCK', blockMs, 'STREAMS', this.#inbox, this.#cursor]
        const found = (await links.reader.read(command, blockMs)) as Array<[string, Array<[string, string[]]>]> | null
        if (this.#links !== links || this.#closed) return
        const entries = readEntries(found?.[0]?.[1] ?? [])
        for (const entry of entries) this.#receive(entry)
        for (const poll of this.#polls) {
          if (isAfter(poll.upTo, this.#cursor)) continue
          this.#polls.delete(poll)
          poll.resolve()
        }
        this.#trim(links, entries.length)
      }
    } catch {
      this.#fail(links)
    }
  }

  #receive({ id, from, life, number, messages }: Entry): void {
    this.#cursor = id
    if (from === this.#process) return
    const last = this.#received.get(from)
    const isNext = last ? last.life === life && last.number + 1 === number : number === 1
    this.#received.set(from, { life, number })
    if (!isNext) this.#tellLoss()
    for (const envelope of JSON.parse(messages) as Envelope[]) this.#namespaces.receive(envelope, from)
  }

  /** No other process reads this stream. The last entry stays. */
  #trim(links: Links, count: number): void {
    this.#untrimmed += count
    if (this.#untrimmed < trimCount) return
    this.#untrimmed = 0
    links.reader.read(['XTRIM', this.#inbox, 'MINID', this.#cursor]).catch(() => this.#fail(links))
  }

  /** Namespaces contain paths and addresses: keys have their hash. */
  #keyOf(namespace: string): string {
    let key = this.#keys.get(namespace)
    if (key === undefined) this.#keys.set(namespace, (key = createHash('sha256').update(namespace).digest('base64url').slice(0, 22)))
    return key
  }

  #tellLoss(): void {
    this.#lost = false
    for (const handler of this.#namespaces.handlers()) handler.onLoss()
  }
}

function endAll({ writer, reader }: Links): void {
  writer.end()
  reader.end()
}
