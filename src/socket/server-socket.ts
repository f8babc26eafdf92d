import type { Clock, Timer } from '../base/clock.ts'
import { closeCode, closePayload, encodeFrame, FrameReader, opcode, SocketFailure, type SocketMessage } from './frames.ts'

/** As much of a connection as is used. Written out: published types need no package that may not be there. */
export interface ByteStream {
  readonly writableLength: number
  on(event: 'data', listener: (bytes: Uint8Array) => void): unknown
  on(event: 'drain' | 'error' | 'end' | 'close', listener: () => void): unknown
  write(bytes: Uint8Array): boolean
  end(): unknown
  pause(): unknown
  resume(): unknown
  destroy(): unknown
}

/** How a server's side of a WebSocket works. */
export interface ServerSocketOptions {
  clock: Clock
  /** The longest message of the client. */
  maxMessageBytes: number
  /** A ping is sent so often. A client that was silent for more than two of these times, while it was being read, is gone. */
  pingMs: number
  /**
   * A message of the client. While what it returns is pending, nothing more is read: the client's connection fills up, and a client that
   * minds that sends no more.
   */
  onMessage(message: string | Uint8Array): Promise<void> | undefined
  /** Called once, when the connection is over. */
  onClose(code: number, reason: string): void
}

/** The answer to a close of this side may take so long. */
const closeMs = 2_000

/** The server's side of a WebSocket by RFC 6455, on a connection whose handshake was answered. No extensions. */
export class ServerSocket {
  readonly #stream: ByteStream
  readonly #options: ServerSocketOptions
  readonly #reader: FrameReader
  #state: 'open' | 'closing' | 'closed' = 'open'
  /** A message of the client is being handled. */
  #handling = false
  #ended = false
  /** The client broke the protocol: what it sends is dropped. */
  #deaf = false
  #pinging: Timer | undefined
  #silentPings = 0
  #closing: Timer | undefined
  #close = { code: closeCode.abnormal, reason: '' }
  #drained: PromiseWithResolvers<void> | undefined

  constructor(stream: ByteStream, head: Uint8Array, options: ServerSocketOptions) {
    this.#stream = stream
    this.#options = options
    this.#reader = new FrameReader(options.maxMessageBytes)
    stream.on('data', (bytes: Uint8Array) => this.#read(bytes))
    stream.on('drain', () => this.#drain())
    stream.on('error', () => stream.destroy())
    stream.on('end', () => {
      this.#ended = true
      this.#finish()
    })
    stream.on('close', () => this.#over())
    this.#ping()
    if (head.length > 0) this.#read(head)
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /** Bytes that the connection has not taken yet. */
  get buffered(): number {
    return this.#stream.writableLength
  }

  /** Sends a message. Where it returns a promise, the connection is behind: send the next message when it resolves. */
  send(message: string | Uint8Array): Promise<void> | undefined {
    if (this.#state !== 'open') return undefined
    const isText = typeof message === 'string'
    const frame = encodeFrame(isText ? opcode.text : opcode.binary, isText ? new TextEncoder().encode(message) : message)
    if (this.#stream.write(frame)) return undefined
    return (this.#drained ??= Promise.withResolvers()).promise
  }

  /** Ends the connection. The client has a moment to answer. */
  close(code: number = closeCode.normal, reason = ''): void {
    if (this.#state !== 'open') return
    this.#state = 'closing'
    this.#close = { code, reason }
    this.#pinging?.cancel()
    this.#stream.write(encodeFrame(opcode.close, closePayload(code, reason)))
    // Its answer is read, whatever was waited for.
    this.#handling = false
    this.#stream.resume()
    this.#closing = this.#options.clock.after(closeMs, () => this.#stream.destroy(), { background: true })
  }

  /** Ends the connection at once, as a network does. */
  destroy(): void {
    this.#stream.destroy()
  }

  #read(bytes: Uint8Array): void {
    if (this.#deaf) return
    this.#silentPings = 0
    this.#reader.push(bytes)
    this.#handleNext()
  }

  #handleNext(): void {
    while (!this.#handling && this.#state !== 'closed') {
      let message: SocketMessage | undefined
      try {
        message = this.#reader.next()
      } catch (error) {
        return this.#fail(error)
      }
      if (!message) return
      this.#handle(message)
    }
  }

  #handle(message: SocketMessage): void {
    if (message.type === 'close') return this.#onClose(message)
    if (message.type === 'pong' || this.#state !== 'open') return
    if (message.type === 'ping') return void this.#stream.write(encodeFrame(opcode.pong, message.data))
    const handled = this.#options.onMessage(message.type === 'text' ? message.text : message.data)
    if (handled) this.#waitFor(handled)
  }

  #waitFor(handled: Promise<void>): void {
    this.#handling = true
    this.#stream.pause()
    const goOn = () => {
      // `close()` reads on without it.
      if (!this.#handling) return
      this.#handling = false
      this.#silentPings = 0
      this.#handleNext()
      if (this.#handling || this.#state === 'closed') return
      if (this.#ended) this.#finish()
      else this.#stream.resume()
    }
    handled.then(goOn, goOn)
  }

  #onClose({ code, reason }: { code: number; reason: string }): void {
    if (this.#state === 'open') {
      this.#state = 'closing'
      this.#close = { code, reason }
      this.#pinging?.cancel()
      this.#stream.write(encodeFrame(opcode.close, closePayload(code, '')))
    }
    this.#stream.end()
    this.#closing ??= this.#options.clock.after(closeMs, () => this.#stream.destroy(), { background: true })
  }

  #fail(error: unknown): void {
    const { code, message } = error instanceof SocketFailure ? error : new SocketFailure(1011, 'The server failed.')
    this.#deaf = true
    this.close(code, message)
    this.#stream.end()
  }

  /** The client has ended its side. */
  #finish(): void {
    if (!this.#handling) this.#stream.end()
  }

  #ping(): void {
    this.#pinging = this.#options.clock.after(this.#options.pingMs, () => {
      // A client that is not read is silent through no fault of its own.
      if (!this.#handling && this.#silentPings++ >= 2) return void this.#stream.destroy()
      this.#stream.write(encodeFrame(opcode.ping, new Uint8Array()))
      this.#ping()
    }, { background: true })
  }

  #drain(): void {
    this.#drained?.resolve()
    this.#drained = undefined
  }

  #over(): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#pinging?.cancel()
    this.#closing?.cancel()
    this.#drain()
    this.#options.onClose(this.#close.code, this.#close.reason)
  }
}
