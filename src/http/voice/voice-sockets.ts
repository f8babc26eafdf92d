import { checkNames, checkWhole, refused } from '../../base/arguments.ts'
import type { Clock } from '../../base/clock.ts'
import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import { closeCode } from '../../socket/frames.ts'
import { ServerSocket, type ByteStream } from '../../socket/server-socket.ts'
import type { VoiceSession, VoiceSessionOptions } from '../../voice/contract.ts'
import { voiceClose, type WireError } from '../../voice/wire.ts'
import { isOperator, type Principal } from '../auth/principal.ts'
import { parseMessage, SocketSession, SoundGate } from './socket-session.ts'

/** What voice sessions of a server may use. */
export interface VoiceLimits {
  sessions: number
  sessionsPerPrincipal: number
  messageBytes: number
  idleMs: number
  maxMs: number
}

interface VoiceSocketsOptions {
  clock: Clock
  logger: Logger
  pingMs: number
  lingerMs: number
  limits: VoiceLimits
}

/** What a connection may open. */
export interface VoiceAsked {
  principal: Principal
  agentId: string
  threadId: string
  resourceId: string
  open(options: Omit<VoiceSessionOptions, 'threadId' | 'resourceId'>, room: () => Promise<void> | undefined): Promise<VoiceSession>
  showError(error: HeedError): WireError
}

/** A connection says what it wants within this time. */
const startMs = 10_000
const retryMs = 5_000
const startNames = ['type', 'inputRate', 'speaker', 'language', 'turn', 'session', 'after']

interface OpenSession {
  asked: VoiceAsked
  socketSession: SocketSession
}

/** The voice sessions of one server, and their connections. */
export class VoiceSockets {
  readonly #options: VoiceSocketsOptions
  readonly #sessions = new Map<string, OpenSession>()
  /** Connections that have not said what they want, by the id of their principal. */
  readonly #pending = new Map<object, string>()
  readonly #sockets = new Set<ServerSocket>()
  /** The threads on which a session is being opened. */
  readonly #opening = new Set<string>()
  #closed = false

  constructor(options: VoiceSocketsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#sessions.size
  }

  /** Ends every session and connection: clients open others at another process. */
  close(): void {
    this.#closed = true
    for (const { socketSession } of this.#sessions.values()) void socketSession.end(closeCode.goingAway, 'The server is closing.')
    for (const socket of this.#sockets) socket.close(closeCode.goingAway, 'The server is closing.')
  }

  /** Cuts connections whose clients have not answered. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Throws `rate_limited` where the principal may open no connection. Returns what opens it. */
  reserve(asked: VoiceAsked): (stream: ByteStream, head: Uint8Array) => void {
    this.#checkCount(asked.principal, [...this.#pending.values()])
    const place = {}
    this.#pending.set(place, asked.principal.id)
    // A request that is answered otherwise than by a connection leaves its place after a while.
    const timer = this.#options.clock.after(startMs, () => this.#pending.delete(place), { background: true })
    return (stream, head) => {
      timer.cancel()
      this.#pending.delete(place)
      this.#connect(asked, stream, head)
    }
  }

  #connect(asked: VoiceAsked, stream: ByteStream, head: Uint8Array): void {
    const { clock, pingMs, limits } = this.#options
    const { id } = asked.principal
    let session: SocketSession | undefined
    const fail = (error: unknown) => this.#fail(asked, socket, error)
    const socket: ServerSocket = new ServerSocket(stream, head, {
      clock,
      pingMs,
      maxMessageBytes: limits.messageBytes,
      onMessage: (message) => {
        try {
          if (session && typeof message !== 'string') return session.sound(message)
          if (session) return session.message(parseMessage(message as string))
          starting.cancel()
          return this.#start(asked, socket, message).then((opened) => void (session = opened), fail)
        } catch (error) {
          fail(error)
          return undefined
        } finally {
          this.#pending.delete(socket)
        }
      },
      onClose: () => {
        starting.cancel()
        this.#pending.delete(socket)
        this.#sockets.delete(socket)
        session?.detach(socket)
      },
    })
    const starting = clock.after(startMs, () => fail(refused('the first message', "a start: { type: 'start' }")), { background: true })
    this.#sockets.add(socket)
    this.#pending.set(socket, id)
    if (this.#closed) socket.close(closeCode.goingAway, 'The server is closing.')
  }

  async #start(asked: VoiceAsked, socket: ServerSocket, message: string | Uint8Array): Promise<SocketSession> {
    if (typeof message !== 'string') throw refused('the first message', "a start: { type: 'start' }")
    const { type, session: sessionId, after = 0, ...options } = parseMessage(message)
    if (type !== 'start') throw refused('the first message', "a start: { type: 'start' }")
    checkNames('start', { ...options, session: sessionId, after }, startNames)
    checkWhole('after', after)
    if (sessionId !== undefined) return this.#resume(asked, socket, sessionId, after)
    const thread = JSON.stringify([asked.agentId, asked.threadId])
    if (this.#opening.has(thread)) throw busy()
    this.#opening.add(thread)
    try {
      await this.#makeWay(asked)
      this.#checkCount(asked.principal, [...this.#sessions.values()].map((open) => open.asked.principal.id))
      return await this.#open(asked, socket, options)
    } finally {
      this.#opening.delete(thread)
    }
  }

  async #open(
    asked: VoiceAsked, socket: ServerSocket, options: Omit<VoiceSessionOptions, 'threadId' | 'resourceId'>,
  ): Promise<SocketSession> {
    const { clock, logger, lingerMs, limits } = this.#options
    const gate = new SoundGate()
    const session = await asked.open(options, gate.room)
    const socketSession = new SocketSession(session, gate, {
      clock, logger, lingerMs,
      idleMs: limits.idleMs,
      maxMs: limits.maxMs,
      inputRate: options.inputRate ?? 24_000,
      showError: asked.showError,
      onEnd: () => this.#sessions.delete(session.id),
    })
    this.#sessions.set(session.id, { asked, socketSession })
    if (this.#closed) await socketSession.end(closeCode.goingAway, 'The server is closing.')
    else if (socket.isOpen) socketSession.attach(socket, 0, false)
    // Its client has gone meanwhile, and does not know the session.
    else await socketSession.end()
    return socketSession
  }

  #resume(asked: VoiceAsked, socket: ServerSocket, sessionId: unknown, after: number): SocketSession {
    const found = typeof sessionId === 'string' ? this.#sessions.get(sessionId) : undefined
    const isSame = found && (['agentId', 'threadId', 'resourceId'] as const).every((name) => found.asked[name] === asked[name])
    // Also for a session of someone else: ids can't be probed.
    if (!found || !isSame || found.asked.principal.id !== asked.principal.id) {
      throw new HeedError('voice_gone', 'This session is over, or in another process. Open another one: the thread has the conversation.')
    }
    found.socketSession.attach(socket, after, true)
    return found.socketSession
  }

  /** A thread has one session. One whose client is gone, as a page that was loaded again, makes way for another of the same principal. */
  async #makeWay({ agentId, threadId, principal }: VoiceAsked): Promise<void> {
    for (const { asked, socketSession } of this.#sessions.values()) {
      if (asked.threadId !== threadId || asked.agentId !== agentId) continue
      if (socketSession.isAttached || asked.principal.id !== principal.id) {
        throw busy()
      }
      await socketSession.end()
    }
  }

  #checkCount(principal: Principal, principals: readonly string[]): void {
    const { sessions, sessionsPerPrincipal } = this.#options.limits
    const own = principals.filter((id) => id === principal.id).length
    if (principals.length < sessions && (isOperator(principal) || own < sessionsPerPrincipal)) return
    const message = 'Too many voice sessions are open. End one, or try again later.'
    throw new HeedError('rate_limited', message, { retryable: true, details: { retryAfterMs: retryMs } })
  }

  #fail(asked: VoiceAsked, socket: ServerSocket, thrown: unknown): void {
    const error = isHeedError(thrown) ? thrown : new HeedError('voice_failed', describe(thrown), { cause: thrown })
    if (!isHeedError(thrown)) this.#options.logger.error('a voice session failed', { error: describe(thrown) })
    void socket.send(JSON.stringify({ type: 'error', error: asked.showError(error), final: true }))
    socket.close(codes[error.code] ?? voiceClose.invalid, error.code)
  }
}

function busy(): HeedError {
  return new HeedError('voice_busy', 'A voice session is open on this thread. End it, or use another thread.')
}

const codes: Partial<Record<string, number>> = {
  voice_gone: voiceClose.gone, voice_busy: voiceClose.busy, voice_failed: voiceClose.failed, closed: closeCode.goingAway,
}
