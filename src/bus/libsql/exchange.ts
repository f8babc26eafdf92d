import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock, type Timer } from '../../base/clock.ts'
import { newId } from '../../base/ids.ts'
import type { BusListener } from '../contract.ts'
import type { BusMessage } from '../message.ts'
import { Doorbell } from './doorbell.ts'
import { Sidecar } from './sidecar.ts'
import { Welcome } from './welcome.ts'

/** What waits to be carried, in characters. What comes beyond it is lost. */
const outboxLimit = 8_000_000

/** How often a sidecar that failed is opened anew. */
const reopenMs = 5_000
/** One that others hold is tried again so soon, and so often before anybody is told. */
const busyMs = 100
const mostBusyOpens = 30
/** How often this process says that it is here. */
const attendMs = 20_000

interface Said {
  from: string
  to?: string
  message: BusMessage
}

/** The one sidecar of this process for a database, and everybody here who listens to it. */
export class Exchange {
  readonly #folder: string
  readonly #process = newId()
  readonly #members = new Map<string, BusListener>()
  readonly #welcomes = new Map<string, Welcome>()
  #sidecar: Sidecar | undefined
  #doorbell: Doorbell | undefined
  #opening: Promise<void> | undefined
  #openedAt = -Infinity
  #others = false
  #outbox: string[] = []
  /** What members here said to each other and have not heard. */
  #here: string[] = []
  #emptied: PromiseWithResolvers<void> | undefined
  #waiting = 0
  #immediate: NodeJS.Immediate | undefined
  #pause: Timer | undefined
  #attending: Timer | undefined
  #reopening: Timer | undefined
  #busyOpens = 0
  /** Why the sidecar could not be opened. */
  #failure: unknown
  #closed = false

  constructor(folder: string) {
    this.#folder = folder
  }

  get company(): boolean {
    return this.#others || this.#members.size > 1 || this.mute
  }

  /** The sidecar is not open: others may be there, and hear nothing. */
  get mute(): boolean {
    return this.#sidecar === undefined
  }

  async add(member: string, listener: BusListener): Promise<void> {
    this.#members.set(member, listener)
    const opening = this.#opening
    await (this.#opening ??= this.#open())
    if (opening && this.#failure !== undefined) listener.unreachable?.(this.#failure)
  }

  /** Members here answer within two turns of the loop. */
  async met(member: string): Promise<void> {
    let others: string[] = []
    this.#try((sidecar) => void (others = sidecar.others()))
    const welcome = new Welcome(others)
    this.#welcomes.set(member, welcome)
    for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve))
    await welcome.met
    this.#welcomes.delete(member)
  }

  /** Answers whether it was the last. */
  remove(member: string): boolean {
    this.#members.delete(member)
    this.#welcomes.get(member)?.end()
    return this.#members.size === 0
  }

  say(from: string, message: BusMessage, to: string | undefined): void {
    // Whoever is new says so in any case: others may have come in the same moment.
    const greets = message.kind === 'hello'
    if (!this.company && !greets) return
    const text = JSON.stringify({ from, ...(to === undefined ? {} : { to }), message } satisfies Said)
    if (this.#members.size > 1 && this.#here.push(text) === 1) setImmediate(() => this.#tellHere())
    if ((!this.#others && !greets) || (to !== undefined && this.#members.has(to)) || this.#waiting + text.length > outboxLimit) return
    this.#outbox.push(text)
    this.#waiting += text.length
    this.#schedule()
  }

  /** Resolves when nothing waits to be carried. */
  settle(): Promise<void> {
    this.#flush()
    if (this.#outbox.length === 0) return Promise.resolve()
    this.#emptied ??= Promise.withResolvers()
    return this.#emptied.promise
  }

  listen(): void {
    this.#tellHere()
    if (this.#others) this.#look()
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#attending?.cancel()
    this.#reopening?.cancel()
    await this.#opening?.catch(() => {})
    this.#flush()
    this.#pause?.cancel()
    if (this.#immediate) clearImmediate(this.#immediate)
    this.#doorbell?.close()
    this.#sidecar?.close()
  }

  async #open(): Promise<void> {
    this.#openedAt = performance.now()
    try {
      this.#sidecar = await this.#openSidecar()
      this.#others = this.#sidecar.met
      this.#opened()
    } catch (error) {
      // Others open it too, or one of them sleeps: that passes.
      if (resultCode(error) === BUSY && ++this.#busyOpens <= mostBusyOpens) return this.#reopen(busyMs)
      this.#failed(error)
    }
    if (this.#closed) return
    this.#attend()
    if (!this.#sidecar) return this.#reopen()
    this.#doorbell = new Doorbell(this.#folder, {
      look: () => this.#look(),
      replaced: () => this.#reopen(),
      attentive: () => [...this.#members.values()].some((listener) => listener.attentive()),
    })
    this.#look()
  }

  /** Without it everything is found by the sweep, only later; it is tried again. */
  #failed(error: unknown): void {
    const first = this.#failure === undefined
    this.#failure = error
    if (first) for (const listener of this.#members.values()) listener.unreachable?.(error)
  }

  #opened(): void {
    this.#busyOpens = 0
    if (this.#failure === undefined) return
    this.#failure = undefined
    for (const listener of this.#members.values()) listener.reached?.()
  }

  async #openSidecar(): Promise<Sidecar> {
    try {
      return await Sidecar.open(this.#folder, this.#process)
    } catch (error) {
      if (!isDamaged(error)) throw error
      // It is never synced, so that a power cut may leave anything. Nothing in it is worth keeping.
      await Promise.all(['bus.db', 'bus.db-wal', 'bus.db-shm'].map((name) => rm(join(this.#folder, name), { force: true })))
      return Sidecar.open(this.#folder, this.#process)
    }
  }

  #attend(): void {
    this.#attending = systemClock.after(attendMs, () => {
      this.#try((sidecar) => void (this.#others = sidecar.attend()))
      if (!this.#closed) this.#attend()
    }, { background: true })
  }

  #look(): void {
    this.#try((sidecar) => {
      const { rows, lost } = sidecar.read()
      if (lost) for (const listener of this.#members.values()) listener.lost()
      if (rows.length > 0) this.#others = true
      for (const { body, process } of rows) {
        for (const said of JSON.parse(body) as Said[]) {
          this.#tell(said)
          if (said.to !== undefined) this.#welcomes.get(said.to)?.heard(process)
        }
      }
    })
  }

  #tellHere(): void {
    for (const text of this.#here.splice(0)) this.#tell(JSON.parse(text) as Said)
  }

  #tell({ from, to, message }: Said): void {
    for (const [member, listener] of this.#members) if (member !== from && (to === undefined || to === member)) listener.hear(message, from)
  }

  #schedule(): void {
    if (this.#immediate || this.#pause || this.#closed) return
    this.#immediate = setImmediate(() => {
      this.#immediate = undefined
      this.#flush()
    })
  }

  #flush(): void {
    if (this.#outbox.length === 0) return
    const written = this.#try((sidecar) => sidecar.write(`[${this.#outbox.join(',')}]`))
    if (written === 'busy' && !this.#closed) {
      this.#pause ??= systemClock.after(1 + Math.random() * 4, () => {
        this.#pause = undefined
        this.#flush()
      })
      return
    }
    if (written === 'done') this.#doorbell?.ring()
    this.#outbox = []
    this.#waiting = 0
    this.#emptied?.resolve()
    this.#emptied = undefined
  }

  #try(act: (sidecar: Sidecar) => void): 'done' | 'busy' | 'failed' {
    if (!this.#sidecar) return 'failed'
    try {
      act(this.#sidecar)
      return 'done'
    } catch (error) {
      if (resultCode(error) === BUSY) return 'busy'
      this.#reopen()
      return 'failed'
    }
  }

  /** Begins anew, though not again and again: at once, or when enough time went by since the last time. What was said meanwhile may be lost. */
  #reopen(ms = Math.max(0, this.#openedAt + reopenMs - performance.now())): void {
    if (this.#closed || this.#reopening) return
    this.#reopening = systemClock.after(ms, () => {
      this.#reopening = undefined
      this.#beginAnew()
    }, { background: true })
  }

  #beginAnew(): void {
    this.#doorbell?.close()
    this.#attending?.cancel()
    const before = this.#sidecar
    this.#sidecar = undefined
    this.#opening = (this.#opening ?? Promise.resolve()).then(async () => {
      before?.close()
      await this.#open()
      if (this.#sidecar) for (const listener of this.#members.values()) listener.lost()
    })
  }
}

const BUSY = 5

function resultCode(error: unknown): number | undefined {
  return typeof error === 'object' && error !== null && 'errcode' in error && typeof error.errcode === 'number' ? error.errcode & 0xff : undefined
}

function isDamaged(error: unknown): boolean {
  const code = resultCode(error)
  return code === 11 || code === 26
}
