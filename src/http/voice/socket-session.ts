import { refused } from '../../base/arguments.ts'
import type { Clock, Timer } from '../../base/clock.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import { isPlainObject } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import { closeCode } from '../../socket/frames.ts'
import type { ServerSocket } from '../../socket/server-socket.ts'
import type { VoiceSession, VoiceSessionEvent } from '../../voice/contract.ts'
import { encodeAudio, voiceClose, type VoiceServerMessage, type WireError } from '../../voice/wire.ts'

/** So many messages of sound the client may have without having said so. 100 ms each. */
const audioWindow = 30
/** So many other messages are kept for a client that does not acknowledge them. */
const maxKept = 1_000
/** So much sound of the client waits while the session is behind. */
const maxWaitingBytes = 256 * 1024
/** So many messages wait: those without sound have no bytes. */
const maxWaiting = 1_000
/** After so many bytes of sound the client learns that they are there. */
const receiptBytes = 24_000
/** A client may send its sound so much faster than it is spoken, after a first burst of so many milliseconds. */
const fastest = 4
const burstMs = 30_000

/** What a session of a connection is opened with. */
export interface SocketSessionOptions {
  clock: Clock
  logger: Logger
  inputRate: number
  /** How long the session waits for its client after a connection was lost. */
  lingerMs: number
  /** The session ends after so long without a message of its client. */
  idleMs: number
  /** The session ends after so long. */
  maxMs: number
  /** What a client sees of an error. */
  showError(error: HeedError): WireError
  /** Called once, when the session is over. */
  onEnd(): void
}

interface KeptMessage {
  seq: number
  data: string | Uint8Array
  isAudio: boolean
}

type Input = Uint8Array | 'begin' | 'end'

/**
 * A session and the connection of its client, which may be lost and come back. What the client has not acknowledged is kept and sent
 * again; what it has sent is counted, so that it knows what to send again.
 */
export class SocketSession {
  readonly id: string
  readonly #session: VoiceSession
  readonly #options: SocketSessionOptions
  readonly #room: { wait: PromiseWithResolvers<void> | undefined }
  #socket: ServerSocket | undefined
  #seq = 0
  #kept: KeptMessage[] = []
  #keptAudio = 0
  /** The numbers of items, which sound carries instead of their ids. */
  #items = 0
  readonly #itemNumbers = new Map<string, number>()
  #received = 0
  #announced = 0
  #waiting: Input[] = []
  #waitingBytes = 0
  #working = false
  #worked: PromiseWithResolvers<void> | undefined
  readonly #startedAt: number
  #over = false
  /** Ends a wait of a client that was too fast. */
  #hurry = () => {}
  #lingering: Timer | undefined
  #idle: Timer | undefined
  readonly #life: Timer

  constructor(session: VoiceSession, gate: SoundGate, options: SocketSessionOptions) {
    this.id = session.id
    this.#session = session
    this.#options = options
    this.#room = gate
    gate.isFull = () => !this.#socket || this.#keptAudio >= audioWindow
    this.#startedAt = options.clock.now()
    this.#life = options.clock.after(options.maxMs, () => this.#timeOut('The session has lasted as long as it may.'), { background: true })
    void this.#pump()
  }

  get isAttached(): boolean {
    return this.#socket !== undefined
  }

  /** Goes on with a connection, after what the client has. One that the session had before ends. */
  attach(socket: ServerSocket, after: number, resumed: boolean): void {
    this.#lingering?.cancel()
    this.#lingering = undefined
    const before = this.#socket
    this.#socket = socket
    before?.close(voiceClose.replaced, 'Another connection goes on with this session.')
    this.#touch()
    this.#announced = this.#received
    this.#say({ type: 'started', session: this.id, resumed, received: this.#received })
    this.acknowledge(after)
    for (const { data } of this.#kept) void socket.send(data)
    this.#makeRoom()
  }

  /** The connection is lost. The session waits for another one. */
  detach(socket: ServerSocket): void {
    if (this.#socket !== socket || this.#over) return
    this.#socket = undefined
    this.#idle?.cancel()
    this.#lingering = this.#options.clock.after(this.#options.lingerMs, () => void this.end(), { background: true })
  }

  /** Sound of the client. Returns a promise where it is to send no more for now. */
  sound(samples: Uint8Array): Promise<void> | undefined {
    this.#touch()
    if (samples.length % 2 !== 0) throw refused('a binary message', 'whole samples of 16 bits')
    this.#received += samples.length
    this.#push(samples)
    const early = this.#earlyMs()
    return early > 0 ? this.#slowed(early) : this.#whenTaken()
  }

  get #isBehind(): boolean {
    return this.#waitingBytes > maxWaitingBytes || this.#waiting.length > maxWaiting
  }

  #whenTaken(): Promise<void> | undefined {
    return this.#isBehind ? (this.#worked ??= Promise.withResolvers()).promise : undefined
  }

  /** A message of the client, after `start`. Returns a promise where it is to send no more for now. */
  message(message: Record<string, unknown>): Promise<void> | undefined {
    this.#touch()
    switch (message.type) {
      case 'begin':
      case 'end':
        this.#push(message.type)
        return this.#whenTaken()
      case 'interrupt':
        this.#session.interrupt()
        return undefined
      case 'played': {
        const { itemId, ms } = message
        if (typeof itemId !== 'string') throw refused('itemId', 'a text')
        this.#session.played({ itemId, ms: ms as number })
        return undefined
      }
      case 'ack':
        this.acknowledge(whole('seq', message.seq))
        return undefined
      case 'gap':
        this.#received += whole('bytes', message.bytes)
        return undefined
      case 'close':
        void this.end()
        return undefined
      default:
        throw refused('type', "'begin', 'end', 'interrupt', 'played', 'ack', 'gap' or 'close'")
    }
  }

  acknowledge(seq: number): void {
    this.#kept = this.#kept.filter((one) => one.seq > seq)
    this.#countKept()
  }

  /** Ends the session and its connection. */
  async end(code: number = closeCode.normal, reason = 'The session has ended.', error?: HeedError): Promise<void> {
    if (this.#over) return
    this.#over = true
    for (const timer of [this.#life, this.#idle, this.#lingering]) timer?.cancel()
    this.#makeRoom()
    this.#worked?.resolve()
    this.#hurry()
    if (error) this.#say({ type: 'error', error: this.#options.showError(error), final: true })
    this.#socket?.close(code, reason)
    this.#options.onEnd()
    await this.#session.close()
  }

  async #pump(): Promise<void> {
    for await (const event of this.#session.events) {
      if (event.type === 'clear') this.#forgetSound()
      this.#send(event)
    }
    // Its Heed was closed.
    await this.end(closeCode.goingAway, 'The server is closing.')
  }

  #send(event: VoiceSessionEvent): void {
    const seq = ++this.#seq
    const data = this.#encoded(event, seq)
    this.#kept.push({ seq, data, isAudio: event.type === 'audio' })
    this.#countKept()
    void this.#socket?.send(data)
    if (this.#kept.length <= maxKept) return
    const message = `The client has not acknowledged ${maxKept} messages. Acknowledge them: { type: 'ack', seq }.`
    void this.end(voiceClose.failed, 'Too many messages were not acknowledged.', new HeedError('voice_overrun', message))
  }

  #encoded(event: VoiceSessionEvent, seq: number): string | Uint8Array {
    switch (event.type) {
      case 'audio':
        return encodeAudio({ seq, item: this.#itemNumbers.get(event.itemId) ?? 0, atMs: event.atMs, audio: event.audio })
      case 'sentence':
        this.#itemNumbers.set(event.itemId, ++this.#items)
        return JSON.stringify({ seq, ...event, item: this.#items })
      case 'item-end':
        this.#itemNumbers.delete(event.itemId)
        return JSON.stringify({ seq, ...event })
      case 'error':
        return JSON.stringify({ seq, type: 'error', error: this.#options.showError(event.error) })
      default:
        return JSON.stringify({ seq, ...event })
    }
  }

  /** Sound that the client has not acknowledged is not played any more: it is not sent again. */
  #forgetSound(): void {
    this.#kept = this.#kept.filter(({ isAudio }) => !isAudio)
    this.#itemNumbers.clear()
    this.#countKept()
  }

  #countKept(): void {
    this.#keptAudio = this.#kept.reduce((count, { isAudio }) => count + (isAudio ? 1 : 0), 0)
    if (this.#keptAudio < audioWindow) this.#makeRoom()
  }

  #makeRoom(): void {
    if (!this.#over && !this.#socket) return
    this.#room.wait?.resolve()
    this.#room.wait = undefined
  }

  #push(input: Input): void {
    this.#waiting.push(input)
    if (typeof input !== 'string') this.#waitingBytes += input.length
    if (!this.#working) void this.#work()
  }

  /** Gives the session what the client said, in order. */
  async #work(): Promise<void> {
    this.#working = true
    for (let input = this.#waiting.shift(); input !== undefined && !this.#over; input = this.#waiting.shift()) {
      try {
        if (input === 'begin') this.#session.beginTurn()
        else if (input === 'end') this.#session.endTurn()
        else await this.#session.write(input)
      } catch (error) {
        const isClosed = isHeedError(error) && error.code === 'closed'
        if (!isClosed) this.#options.logger.error('sound of a client failed', { error: String(error) })
      }
      if (typeof input !== 'string') this.#took(input.length)
      if (this.#isBehind) continue
      this.#worked?.resolve()
      this.#worked = undefined
    }
    this.#working = false
  }

  #took(bytes: number): void {
    this.#waitingBytes -= bytes
    const there = this.#received - this.#waitingBytes
    if (there - this.#announced < receiptBytes) return
    this.#announced = there
    this.#say({ type: 'received', bytes: there })
  }

  /** How long the client has to wait until it may have sent what it has sent. */
  #earlyMs(): number {
    const spokenMs = (this.#received / 2 / this.#options.inputRate) * 1_000
    return (spokenMs - burstMs) / fastest - (this.#options.clock.now() - this.#startedAt)
  }

  #slowed(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = this.#options.clock.after(ms, resolve, { background: true })
    this.#hurry = () => {
      timer.cancel()
      resolve()
    }
    return promise
  }

  #say(message: VoiceServerMessage): void {
    void this.#socket?.send(JSON.stringify(message))
  }

  #touch(): void {
    this.#idle?.cancel()
    const { clock, idleMs } = this.#options
    this.#idle = clock.after(idleMs, () => this.#timeOut('The client was silent for too long.'), { background: true })
  }

  #timeOut(message: string): void {
    void this.end(voiceClose.over, message, new HeedError('closed', `${message} Open another session.`))
  }
}

/** Whether a session may give out sound: closed while its client has not acknowledged what it has, and while it has no connection. */
export class SoundGate {
  isFull: () => boolean = () => true
  wait: PromiseWithResolvers<void> | undefined

  readonly room = (): Promise<void> | undefined => {
    return this.isFull() ? (this.wait ??= Promise.withResolvers()).promise : undefined
  }
}

function whole(field: string, value: unknown): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw refused(field, 'a whole number of at least 0')
  return value
}

/** A message of a client: an object with a type. */
export function parseMessage(text: string): Record<string, unknown> {
  let message: unknown
  try {
    message = JSON.parse(text)
  } catch {
    throw refused('a text message', 'JSON')
  }
  if (!isPlainObject(message) || typeof message.type !== 'string') throw refused('a text message', 'an object with a type')
  return message
}
