import { refused } from '../../base/arguments.ts'
import { HeedError, isHeedError, type HeedErrorCode } from '../../base/errors.ts'
import type { VoiceSession, VoiceSessionEvent, VoiceSessionOptions, VoiceState } from '../../voice/contract.ts'
import {
  decodeAudio, ticketPrefix, voiceClose, voiceProtocol, type VoiceClientMessage, type VoiceServerMessage, type WireError,
} from '../../voice/wire.ts'
import { backoff, pause, retryAfterMs, type Connection } from '../connection.ts'
import type { Reconnect } from '../reconnecting.ts'
import { ReceivedEvents } from './received-events.ts'
import { SentSound, type Said } from './sent-sound.ts'

/** A session on a thread, and how its connection is kept. */
export interface RemoteSessionOptions extends Omit<VoiceSessionOptions, 'resourceId'> {
  /** Optional if the principal has one resource only. */
  resourceId?: string
  /** How a lost connection is continued; false: the session ends with it. */
  reconnect?: boolean | Reconnect
}

/** `write()` waits where the server has not confirmed so much sound, in seconds. */
const waitSeconds = 5
/** Beyond this the oldest sound is dropped, and the reader gets an error. */
const dropSeconds = 30
/** A server that confirms nothing for so long, while sound is sent, is gone. */
const silenceMs = 15_000
/** A handshake may take so long. */
const openMs = 30_000

/** A session of a server over a WebSocket. It goes on after its connection was lost, with all sound that was written. */
export class RemoteVoiceSession implements Omit<VoiceSession, 'events'> {
  readonly events: ReceivedEvents
  readonly #connection: Connection
  readonly #path: string
  readonly #options: RemoteSessionOptions
  readonly #rate: number
  readonly #sent: SentSound
  readonly #closing = new AbortController()
  #id = ''
  #state: VoiceState = 'listening'
  #socket: WebSocket | undefined
  /** The newest message of the server. */
  #seq = 0
  #acknowledged = 0
  #items = new Map<number, string>()
  /** How far items were played, as far as that was not sent. */
  readonly #played = new Map<string, number>()
  #interrupts = false
  #room: PromiseWithResolvers<void> | undefined
  #heardAt = 0
  #silence: ReturnType<typeof setInterval> | undefined
  #over: Promise<void> = Promise.resolve()

  /** @internal */
  constructor(connection: Connection, path: string, options: RemoteSessionOptions) {
    const { inputRate = 24_000 } = options
    this.#connection = connection
    this.#path = path
    this.#options = options
    this.#rate = inputRate
    this.#sent = new SentSound(dropSeconds * inputRate * 2)
    this.events = new ReceivedEvents((seq) => this.#acknowledge(seq))
  }

  /** @internal Opens it. Rejects where the server does not let it begin. */
  async open(): Promise<this> {
    const opened = await this.#connect(undefined)
    this.events.push({ type: 'connection', state: 'open' })
    this.#over = this.#keepOpen(opened)
    return this
  }

  get id(): string {
    return this.#id
  }

  get state(): VoiceState {
    return this.#state
  }

  /** Samples of the microphone. Resolves when more may be written; a microphone, which can't wait, may go on all the same. */
  async write(samples: Uint8Array): Promise<void> {
    if (!(samples instanceof Uint8Array) || samples.length % 2 !== 0) throw refused('samples', 'bytes: samples of 16 bits')
    if (this.#closing.signal.aborted) throw new HeedError('closed', 'The session was closed. Open another one.')
    if (samples.length === 0) return
    this.#say(samples.slice())
    if (this.#sent.unconfirmed > waitSeconds * this.#rate * 2) await (this.#room ??= Promise.withResolvers()).promise
  }

  beginTurn(): void {
    this.#say('begin')
  }

  endTurn(): void {
    this.#say('end')
  }

  interrupt(): void {
    this.#interrupts = !this.#send({ type: 'interrupt' })
  }

  played({ itemId, ms }: { itemId: string; ms: number }): void {
    if (!this.#send({ type: 'played', itemId, ms })) this.#played.set(itemId, ms)
  }

  /** Ends the session; the run of the agent goes on. */
  async close(): Promise<void> {
    if (!this.#closing.signal.aborted) {
      this.#send({ type: 'close' })
      this.#end()
    }
    await this.#over
  }

  #end(): void {
    if (this.#closing.signal.aborted) return
    this.#closing.abort(new HeedError('closed', 'The session was closed.'))
    clearInterval(this.#silence)
    this.#room?.resolve()
    this.#socket?.close(1000)
    this.#socket = undefined
    this.events.close()
  }

  #say(said: Said): void {
    if (this.#closing.signal.aborted) return
    const dropped = this.#sent.add(said)
    if (dropped > 0) this.#lose(dropped)
    const socket = this.#socket
    if (!socket) return
    if (typeof said === 'string') this.#send({ type: said })
    else socket.send(said as Uint8Array<ArrayBuffer>)
  }

  #lose(bytes: number): void {
    const ms = Math.round((bytes / 2 / this.#rate) * 1_000)
    const message = `${ms} ms of sound were lost: the server has not taken them for ${dropSeconds} s.`
    this.events.push({ type: 'error', error: new HeedError('voice_overrun', message, { details: { ms } }) })
  }

  #send(message: VoiceClientMessage): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false
    this.#socket.send(JSON.stringify(message))
    return true
  }

  /** In steps: the server needs it for what it keeps, not for each message. */
  #acknowledge(seq: number): void {
    if (seq - this.#acknowledged < 4 && seq < this.#seq) return
    if (this.#send({ type: 'ack', seq })) this.#acknowledged = seq
  }

  /** Opens connections until the session is over. */
  async #keepOpen(first: OpenConnection): Promise<void> {
    const { reconnect = true } = this.#options
    const { maxRetries = Infinity, delayMs = 500, onLost, onOpen } = typeof reconnect === 'object' ? reconnect : {}
    const { signal } = this.#closing
    onOpen?.()
    for (let opened = first; ;) {
      const closed = await opened.lost
      if (signal.aborted) return
      if (reconnect === false || closed.isFinal) return this.#finish(closed.error)
      this.events.push({ type: 'connection', state: 'lost' })
      onLost?.()
      let failure: unknown
      for (let attempt = 0; ; attempt++) {
        if (attempt >= maxRetries) return this.#finish(asError(failure) ?? closed.error)
        await pause(Math.max(backoff(attempt, delayMs, 30_000), retryAfterMs(failure)), signal).catch(() => {})
        if (signal.aborted) return
        try {
          opened = await this.#reopen()
          break
        } catch (error) {
          failure = error
          if (isHeedError(error) && !error.retryable) return this.#finish(error)
        }
      }
      onOpen?.()
    }
  }

  async #reopen(): Promise<OpenConnection> {
    try {
      const opened = await this.#connect(this.#id)
      this.events.push({ type: 'connection', state: 'resumed' })
      return opened
    } catch (error) {
      if (!(isHeedError(error) && error.code === 'voice_gone')) throw error
    }
    // What was being played was of the session that is over.
    this.events.push({ type: 'clear' })
    this.#sent.restart()
    this.#played.clear()
    const opened = await this.#connect(undefined)
    this.events.push({ type: 'connection', state: 'restarted' })
    return opened
  }

  #finish(error: HeedError | undefined): void {
    if (error) this.events.push({ type: 'error', error })
    this.#end()
  }

  /** Opens one connection, and resolves when the session is open on it. */
  async #connect(session: string | undefined): Promise<OpenConnection> {
    const { resourceId } = this.#options
    const { signal } = this.#closing
    const { ticket } = await this.#connection.json<{ ticket: string }>(`${this.#path}/ticket`, {
      body: resourceId === undefined ? {} : { resourceId }, repeatable: true, signal,
    })
    signal.throwIfAborted()
    const socket = new WebSocket(this.#url(), [voiceProtocol, `${ticketPrefix}${ticket}`])
    socket.binaryType = 'arraybuffer'
    const started = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<Closed>()
    let final: HeedError | undefined
    const late = setTimeout(() => fail(unreachable('The server did not open the session in time.')), openMs)
    const fail = (error: HeedError) => {
      started.reject(error)
      closed.resolve({ error, isFinal: false })
      socket.close()
    }
    socket.addEventListener('open', () => socket.send(JSON.stringify(this.#startMessage(session))))
    socket.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
      this.#heardAt = performance.now()
      if (typeof data !== 'string') return this.#onAudio(new Uint8Array(data))
      const message = JSON.parse(data) as VoiceServerMessage
      if (message.type === 'error' && 'final' in message) final = fromWire(message.error)
      else if (message.type === 'started') {
        this.#onStarted(socket, message)
        started.resolve()
      } else this.#onMessage(message)
    })
    socket.addEventListener('close', ({ code, reason }: CloseEvent) => {
      if (this.#socket === socket) this.#socket = undefined
      signal.removeEventListener('abort', onAbort)
      const error = final ?? unreachable(`The connection was closed (${code}${reason === '' ? '' : `: ${reason}`}).`)
      started.reject(error)
      closed.resolve({ error: code === 1000 ? undefined : error, isFinal: code === 1000 || finalCodes.includes(code) })
    })
    const onAbort = () => socket.close(1000)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      await started.promise
    } finally {
      clearTimeout(late)
    }
    this.#watchSilence(socket, () => closed.resolve({ error: unreachable('The server is silent.'), isFinal: false }))
    return { lost: closed.promise }
  }

  #url(): string {
    const { resourceId } = this.#options
    const { location } = globalThis as { location?: { href: string } }
    const url = new URL(this.#connection.url(this.#path, { resourceId }), location?.href)
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
    return url.href
  }

  #startMessage(session: string | undefined): VoiceClientMessage {
    if (session !== undefined) return { type: 'start', session, after: this.#seq }
    const { inputRate, speaker, language, turn } = this.#options
    return { type: 'start', ...defined({ inputRate, speaker, language, turn }) }
  }

  #onStarted(socket: WebSocket, { session, resumed, received }: Extract<VoiceServerMessage, { type: 'started' }>): void {
    this.#id = session
    this.#socket = socket
    if (!resumed) {
      this.#seq = 0
      this.#acknowledged = 0
      this.#items.clear()
    }
    const { lost, said } = this.#sent.after(received)
    if (lost > 0) this.#send({ type: 'gap', bytes: lost })
    for (const one of said) {
      if (typeof one === 'string') this.#send({ type: one })
      else socket.send(one as Uint8Array<ArrayBuffer>)
    }
    for (const [itemId, ms] of this.#played) this.#send({ type: 'played', itemId, ms })
    this.#played.clear()
    if (this.#interrupts) this.#interrupts = !this.#send({ type: 'interrupt' })
  }

  #onMessage(message: Exclude<VoiceServerMessage, { type: 'started' } | { final: true }>): void {
    if (message.type === 'received') {
      this.#sent.confirm(message.bytes)
      if (this.#sent.unconfirmed <= waitSeconds * this.#rate * 2) {
        this.#room?.resolve()
        this.#room = undefined
      }
      return
    }
    const { seq, ...rest } = message
    // Sent again, and received before.
    if (seq <= this.#seq) return
    this.#seq = seq
    if (rest.type === 'sentence') this.#items.set(rest.item, rest.itemId)
    if (rest.type === 'state') this.#state = rest.state
    this.events.push(eventOf(rest), seq)
  }

  #onAudio(bytes: Uint8Array): void {
    const decoded = decodeAudio(bytes)
    if (!decoded || decoded.seq <= this.#seq) return
    const { seq, item, atMs, audio } = decoded
    this.#seq = seq
    const itemId = this.#items.get(item)
    if (itemId !== undefined) this.events.push({ type: 'audio', itemId, atMs, audio }, seq)
  }

  /** A connection that is dead is not always closed: where the server confirms nothing of what it is sent, another one is opened. */
  #watchSilence(socket: WebSocket, onSilent: () => void): void {
    this.#heardAt = performance.now()
    clearInterval(this.#silence)
    this.#silence = setInterval(() => {
      if (this.#socket !== socket || this.#sent.unconfirmed < this.#rate) return
      if (performance.now() - this.#heardAt < silenceMs) return
      this.#socket = undefined
      socket.close()
      onSilent()
    }, silenceMs / 3)
    // In Node a timer keeps the process alive, which the connection does already.
    ;(this.#silence as { unref?: () => void }).unref?.()
  }
}

interface Closed {
  error: HeedError | undefined
  isFinal: boolean
}

interface OpenConnection {
  /** Resolves when it is lost. */
  lost: Promise<Closed>
}

/** Another connection would end in the same way. */
const finalCodes: readonly number[] = [voiceClose.replaced, voiceClose.invalid, voiceClose.over, voiceClose.busy]

type Without<Message, Name extends string> = Message extends unknown ? Omit<Message, Name> : never
type PlainMessage = Without<Extract<VoiceServerMessage, { seq: number }>, 'seq'>

function eventOf(message: PlainMessage): VoiceSessionEvent {
  if (message.type === 'error') return { type: 'error', error: fromWire(message.error) }
  const { item: _, ...event } = message as VoiceSessionEvent & { item?: number }
  return event
}

function fromWire({ code, message, retryable, details }: WireError): HeedError {
  return new HeedError(code as HeedErrorCode, message, { retryable, ...(details ? { details } : {}) })
}

function asError(error: unknown): HeedError | undefined {
  return isHeedError(error) ? error : undefined
}

function unreachable(message: string): HeedError {
  return new HeedError('unreachable', message, { retryable: true })
}

type Defined<T> = { [Name in keyof T]: Exclude<T[Name], undefined> }

function defined<T extends object>(values: T): Defined<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Defined<T>
}
