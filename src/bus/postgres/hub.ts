import { HeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { jsonText } from '../../base/json.ts'
import { KeyedMutex } from '../../base/promises.ts'
import type { BusHandler } from '../contract.ts'
import type { BusMessage } from '../message.ts'
import { fail, type Connect, type NotifyClient } from './client.ts'
import { channelOf, pack, presenceOf, unpack, type Envelope } from './envelope.ts'
import { Notifier, type Outgoing } from './notifier.ts'

interface Member {
  namespace: string
  id: string
  handler: BusHandler
}

/** What a process receives from one other process on one channel. */
interface Inbox {
  /** The number of the last notification. */
  last: number
  parts: string[]
}

/** How often the listener looks whether it still hears, and how long it waits for that and for its peers. */
const pingEveryMs = 5_000
const pingWithinMs = 5_000
const answerWithinMs = 500

/** The notifications of one process: a connection that listens, and one that sends. */
export class Hub {
  readonly #id = newId()
  readonly #connect: Connect
  readonly #notifier: Notifier
  readonly #members = new Set<Member>()
  /** The hubs of other processes, by namespace. */
  readonly #peers = new Map<string, Set<string>>()
  readonly #numbers = new Map<string, number>()
  readonly #inboxes = new Map<string, Inbox>()
  readonly #pings = new Map<string, () => void>()
  #answers: (() => void) | undefined
  #listener: NotifyClient | undefined
  #connecting: Promise<void> | undefined
  /** Members join one after the other: the connection that listens takes one statement at a time. */
  readonly #joining = new KeyedMutex()
  #timer: ReturnType<typeof setInterval> | undefined
  #disconnected = false
  /** The last failure that was reported to the members. */
  #reported: string | undefined
  #closed = false

  constructor(connect: Connect) {
    this.#connect = connect
    this.#notifier = new Notifier(connect, (error) => this.#report('Notifications could not be sent', error))
  }

  get disconnected(): boolean {
    return this.#disconnected
  }

  hasPeers(namespace: string): boolean {
    return this.#disconnected || [...this.#members].filter((member) => member.namespace === namespace).length > 1
      || (this.#peers.get(namespace)?.size ?? 0) > 0
  }

  async add(namespace: string, id: string, handler: BusHandler): Promise<void> {
    const member = { namespace, id, handler }
    this.#members.add(member)
    try {
      await this.#listen()
      await this.#join(member)
    } catch (error) {
      this.#lose(error)
    }
  }

  /** Whether none is left. */
  remove(namespace: string, id: string): boolean {
    for (const member of this.#members) {
      if (member.namespace !== namespace || member.id !== id) continue
      this.#members.delete(member)
      if (![...this.#members].some((other) => other.namespace === namespace)) this.#tell(namespace, 'gone')
    }
    return this.#members.size === 0
  }

  send(namespace: string, from: string, message: BusMessage, to?: string): void {
    const text = jsonText(message)
    for (const member of this.#members) {
      if (member.namespace !== namespace || member.id === from || (to !== undefined && to !== member.id)) continue
      // A handler is never called inside of `send`.
      setImmediate(() => this.#members.has(member) && member.handler.onMessage(JSON.parse(text) as BusMessage, from))
      if (to !== undefined) return
    }
    const channel = channelOf(namespace, to)
    this.#notify(channel, { kind: 'message', from }, text)
  }

  flush(): Promise<void> {
    return this.#notifier.flush()
  }

  /** What was committed before this process notifies itself arrives before that does. */
  async poll(): Promise<void> {
    await new Promise<void>((resolve) => setImmediate(resolve))
    if (this.#listener) await this.#ping().catch(() => {})
  }

  async ready(): Promise<void> {
    await this.poll()
    await new Promise<void>((resolve) => setTimeout(resolve, 20))
    await this.poll()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    await this.#notifier.close()
    const listener = this.#listener
    this.#listener = undefined
    await listener?.end().catch(() => {})
  }

  #notify(channel: string, head: Pick<Envelope, 'kind' | 'from'>, text = ''): void {
    const number = () => {
      const next = (this.#numbers.get(channel) ?? 0) + 1
      this.#numbers.set(channel, next)
      return next
    }
    const payloads = pack({ hub: this.#id, ...head }, text, number)
    this.#notifier.send(payloads.map((payload): Outgoing => ({ channel, payload })))
  }

  /** Tells the other processes of a namespace of this one. */
  #tell(namespace: string, kind: 'here' | 'answer' | 'gone'): void {
    this.#notify(channelOf(namespace), { kind, from: namespace })
  }

  async #ping(): Promise<void> {
    const ping = newId()
    const heard = Promise.withResolvers<void>()
    this.#pings.set(ping, heard.resolve)
    this.#notify(channelOf(this.#id), { kind: 'ping', from: ping })
    const late = setTimeout(() => {
      const why = 'PostgreSQL delivers no notifications to this connection. Connect to the server, not to a pooler.'
      heard.reject(new HeedError('bus_failed', why))
    }, pingWithinMs)
    try {
      await heard.promise
    } finally {
      clearTimeout(late)
      this.#pings.delete(ping)
    }
  }

  #listen(): Promise<void> {
    this.#connecting ??= this.#connectListener().finally(() => (this.#connecting = undefined))
    return this.#connecting
  }

  async #connectListener(): Promise<void> {
    if (this.#listener) return
    const client = await this.#connect()
    const lost = (error?: unknown) => {
      if (this.#listener !== client) return
      this.#listener = undefined
      this.#lose(error)
    }
    client.on('notification', ({ channel, payload }) => this.#receive(channel, payload ?? ''))
    client.on('error', lost)
    client.on('end', lost)
    this.#listener = client
    try {
      await client.query(`LISTEN ${channelOf(this.#id)}`)
      await this.#ping()
    } catch (error) {
      this.#listener = undefined
      fail(client)
      throw error
    }
    this.#timer ??= setInterval(() => void this.#check(), pingEveryMs)
    this.#timer.unref?.()
  }

  /** Listens for a member, and waits until the processes that were there before know of it. */
  async #join({ namespace, id }: Member): Promise<void> {
    const client = this.#listener
    if (!client) throw new HeedError('bus_failed', 'The connection that listens is gone.', { retryable: true })
    const others = await this.#joining.run('', async () => {
      const held = await client.query(
        `SELECT count(DISTINCT pid) AS others FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()
           AND ((classid::bigint << 32) | objid::bigint) = $1::bigint`, [presenceOf(namespace)])
      await client.query('SELECT pg_advisory_lock_shared($1::bigint)', [presenceOf(namespace)])
      await client.query(`LISTEN ${channelOf(namespace)}; LISTEN ${channelOf(namespace, id)}`)
      return Number(held.rows[0]?.others ?? 0)
    })
    this.#tell(namespace, 'here')
    const since = performance.now()
    while ((this.#peers.get(namespace)?.size ?? 0) < others && performance.now() - since < answerWithinMs) {
      await new Promise<void>((resolve) => {
        const late = setTimeout(resolve, 20)
        this.#answers = () => {
          clearTimeout(late)
          resolve()
        }
      })
    }
    await this.#ping()
  }

  #receive(channel: string, payload: string): void {
    const received = unpack(payload)
    if (!received) return
    const { head, text } = received
    if (head.kind === 'ping') return this.#pings.get(head.from)?.()
    if (head.hub === this.#id) return
    const inbox = this.#inboxOf(channel, head)
    if (head.kind !== 'message') return this.#met(head)
    if (head.parts !== undefined) {
      if (head.part === 0) inbox.parts = []
      inbox.parts.push(text)
      if (inbox.parts.length < head.parts) return
    }
    const whole = head.parts === undefined ? text : inbox.parts.join('')
    inbox.parts = []
    for (const member of this.#members) {
      if (channel !== channelOf(member.namespace) && channel !== channelOf(member.namespace, member.id)) continue
      this.#know(member.namespace, head.hub)
      member.handler.onMessage(JSON.parse(whole) as BusMessage, head.from)
    }
  }

  /** Notices when a number of the sender is missing. */
  #inboxOf(channel: string, { hub, number }: Envelope): Inbox {
    const key = `${channel} ${hub}`
    const inbox = this.#inboxes.get(key) ?? { last: number - 1, parts: [] }
    this.#inboxes.set(key, inbox)
    if (number !== inbox.last + 1) {
      inbox.parts = []
      for (const { namespace, id, handler } of this.#members) {
        if (channel === channelOf(namespace) || channel === channelOf(namespace, id)) handler.onLoss()
      }
    }
    inbox.last = number
    return inbox
  }

  #met({ kind, hub, from: namespace }: Envelope): void {
    if (kind === 'gone') this.#peers.get(namespace)?.delete(hub)
    else this.#know(namespace, hub)
    if (kind === 'here') this.#tell(namespace, 'answer')
    this.#answers?.()
  }

  #know(namespace: string, hub: string): void {
    const peers = this.#peers.get(namespace) ?? new Set()
    this.#peers.set(namespace, peers.add(hub))
  }

  async #check(): Promise<void> {
    const client = this.#listener
    if (!client || this.#closed) return
    await this.#ping().catch((error: unknown) => {
      if (this.#listener !== client) return
      this.#listener = undefined
      fail(client)
      this.#lose(error)
    })
  }

  /** The connection is gone: tells the members, and connects again until it succeeds. */
  #lose(error: unknown): void {
    if (this.#closed || this.#disconnected) return
    this.#disconnected = true
    const reason = error instanceof Error ? error.message : 'the connection was closed'
    const why = new HeedError('bus_failed', `Notifications of PostgreSQL don't arrive: ${reason}.`, { retryable: true, cause: error })
    for (const { handler } of this.#members) handler.onDisconnect?.(why)
    void this.#reconnect()
  }

  /** Tells the members of a failure, once until another happens or the connection is there again. */
  #report(what: string, error: unknown): void {
    const text = `${what}: ${error instanceof Error ? error.message : String(error)}`
    if (this.#closed || this.#reported === text) return
    this.#reported = text
    for (const { handler } of this.#members) handler.onFailure?.(new HeedError('bus_failed', text, { retryable: true, cause: error }))
  }

  async #reconnect(): Promise<void> {
    for (let pause = 100; !this.#closed; pause = Math.min(5_000, pause * 2)) {
      await new Promise<void>((resolve) => setTimeout(resolve, pause * (0.5 + Math.random() / 2)).unref?.())
      if (this.#closed) return
      try {
        await this.#listen()
        for (const member of this.#members) await this.#join(member)
      } catch (error) {
        this.#report('The connection that listens could not be opened again', error)
        continue
      }
      this.#disconnected = false
      this.#reported = undefined
      this.#inboxes.clear()
      for (const { handler } of this.#members) {
        handler.onReconnect?.()
        handler.onLoss()
      }
      return
    }
  }
}
