import type {
  Experimental_RealtimeModelV4, Experimental_RealtimeModelV4ClientEvent, Experimental_RealtimeModelV4ServerEvent,
  Experimental_RealtimeModelV4SessionConfig,
} from '@ai-sdk/provider'
import { sleep, type Clock } from '../../base/clock.ts'
import { describe, HeedError } from '../../base/errors.ts'
import { isObject } from '../../base/json.ts'

/** A realtime model of the AI SDK: `openai.experimental_realtime('gpt-realtime')`. */
export type RealtimeModel = Experimental_RealtimeModelV4
export type ClientEvent = Experimental_RealtimeModelV4ClientEvent
export type ServerEvent = Experimental_RealtimeModelV4ServerEvent
export type SessionConfig = Experimental_RealtimeModelV4SessionConfig

/** True for a realtime model whose connections a server can open. */
export function isRealtimeModel(value: unknown): value is RealtimeModel {
  if (!isObject(value)) return false
  const { specificationVersion, serializeClientEvent, parseServerEvent, getServerWebSocketConfig } = value
  const needed = [serializeClientEvent, parseServerEvent, getServerWebSocketConfig]
  return specificationVersion === 'v4' && needed.every((one) => typeof one === 'function')
}

/** A connection may take so long to open. */
const openMs = 30_000

/** What a link reports. */
export interface LinkHooks {
  event(event: ServerEvent): void
  /** The connection is over. Called once, also for one that never opened. */
  lost(error: HeedError): void
}

/** One connection to a realtime model. Events are those of the AI SDK, which the model translates into the protocol of its provider. */
export class RealtimeLink {
  readonly #model: RealtimeModel
  readonly #hooks: LinkHooks
  #socket: WebSocket | undefined
  /** Events are sent in order, also where their translation takes time. */
  #sending: Promise<void> = Promise.resolve()
  #lost = false

  constructor(model: RealtimeModel, hooks: LinkHooks) {
    this.#model = model
    this.#hooks = hooks
  }

  get isOpen(): boolean {
    return !this.#lost && this.#socket?.readyState === WebSocket.OPEN
  }

  /** Connects, and begins the session with these settings. */
  async open(config: SessionConfig, clock: Clock): Promise<void> {
    const model = this.#model
    const { url, headers, protocols } = (await model.getServerWebSocketConfig?.()) ?? { url: '', headers: {} }
    // Node's own client sends headers, which the type of browsers does not know.
    const socket = new WebSocket(url, { headers, ...(protocols ? { protocols } : {}) } as unknown as string[])
    socket.binaryType = 'arraybuffer'
    this.#socket = socket
    const opened = Promise.withResolvers<void>()
    opened.promise.catch(() => {})
    const parse = model.createServerEventParser?.() ?? model.parseServerEvent.bind(model)
    socket.addEventListener('open', () => opened.resolve())
    socket.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => this.#onMessage(data, parse))
    socket.addEventListener('close', ({ code, reason }: CloseEvent) => {
      const error = this.#failure(`the connection was closed (${code}${reason === '' ? '' : `: ${reason}`})`)
      opened.reject(error)
      this.#lose(error)
    })
    const late = new AbortController()
    const timedOut = sleep(clock, openMs, late.signal).then(() => {
      throw this.#failure('it did not answer in time')
    })
    try {
      await Promise.race([opened.promise, timedOut])
      const type = model.capabilities?.startup === 'session-start' ? 'session-start' : 'session-update'
      this.send({ type, config })
    } catch (error) {
      socket.close()
      throw error
    } finally {
      late.abort()
      timedOut.catch(() => {})
    }
  }

  send(event: ClientEvent): void {
    const serialize = async () => JSON.stringify(await this.#model.serializeClientEvent(event))
    this.#sending = this.#sending.then(async () => {
      const text = await serialize()
      if (this.isOpen) this.#socket?.send(text)
    }).catch((error: unknown) => this.#hooks.event({ type: 'error', message: describe(error), raw: undefined }))
  }

  close(): void {
    this.#lost = true
    this.#socket?.close(1000)
  }

  #lose(error: HeedError): void {
    if (this.#lost) return
    this.#lost = true
    this.#hooks.lost(error)
  }

  #onMessage(data: string | ArrayBuffer, parse: (raw: unknown) => ServerEvent | ServerEvent[]): void {
    if (this.#lost) return
    let raw: unknown
    let events: ServerEvent[]
    try {
      raw = JSON.parse(typeof data === 'string' ? data : new TextDecoder().decode(data))
      events = [parse(raw)].flat()
    } catch (error) {
      return this.#hooks.event({ type: 'error', message: `The answer could not be read: ${describe(error)}`, raw })
    }
    const health: unknown = this.#model.getHealthCheckResponse?.(raw) ?? null
    if (health !== null) this.#socket?.send(JSON.stringify(health))
    for (const event of events) this.#hooks.event(event)
  }

  #failure(reason: string): HeedError {
    const { provider, modelId } = this.#model
    return new HeedError('stream_broken', `${provider}/${modelId}: ${reason}.`, { retryable: true, details: { provider, modelId } })
  }
}
