import { STATUS_CODES, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { Duplex, Writable } from 'node:stream'
import { HeedError } from '../../base/errors.ts'
import { openingHead } from '../../socket/handshake.ts'
import { bodyTooLarge, checkContentLength, parseHost, type HttpRequest, type HttpResponse } from './exchange.ts'

/** Answers the requests of a Node server, without a `Request` or `Response` of the platform where none is needed. */
export class NodeListener {
  readonly #respond: (request: HttpRequest) => Promise<HttpResponse>
  /** Responses that were not flushed when they were written. The others are not tracked, which would cost each of them. */
  readonly #unflushed = new Set<ServerResponse>()
  #closing = false

  constructor(respond: (request: HttpRequest) => Promise<HttpResponse>) {
    this.#respond = respond
  }

  readonly listen: RequestListener = (incoming, outgoing) => {
    const request = new NodeHttpRequest(incoming, outgoing)
    this.#respond(request).then((response) => this.#send(response, request, incoming, outgoing)).catch(() => {
      // The body's stream failed, which its source has logged. The response can't be completed.
      outgoing.destroy()
    })
  }

  /** Answers a request for a WebSocket. */
  readonly upgrade = (incoming: IncomingMessage, stream: Duplex, head: Uint8Array): void => {
    // Until the WebSocket is open, no other listener handles a connection that fails.
    const onError = () => stream.destroy()
    stream.on('error', onError)
    const request = new NodeHttpRequest(incoming, stream, true)
    this.#respond(request).then((response) => {
      if (stream.destroyed) return
      if (!response.upgrade) return refuseUpgrade(stream, response)
      stream.write(openingHead(request, response.upgrade.protocol))
      response.upgrade.open(stream, head)
      stream.off('error', onError)
    }).catch(() => stream.destroy())
  }

  /** From now on each response closes its connection. `onKept` is called when an earlier response ends, whose connection stays open. */
  close(onKept: () => void): void {
    this.#closing = true
    for (const outgoing of this.#unflushed) outgoing.once('close', onKept)
  }

  #send(
    { status, headers, body }: HttpResponse, request: NodeHttpRequest, incoming: IncomingMessage, outgoing: ServerResponse,
  ): Promise<void> | undefined {
    // A request body that no route read is not read to its end: the connection closes instead.
    if (this.#closing || !(request.isRead || incoming.complete)) headers.connection = 'close'
    if (body instanceof ReadableStream) {
      outgoing.writeHead(status, headers)
      this.#track(outgoing)
      return writeStream(body, incoming, outgoing)
    }
    if (body !== null) headers['content-length'] = String(Buffer.byteLength(body))
    outgoing.writeHead(status, headers).end(incoming.method === 'HEAD' ? undefined : (body ?? undefined))
    if (outgoing.writableLength > 0) this.#track(outgoing)
    return undefined
  }

  #track(outgoing: ServerResponse): void {
    this.#unflushed.add(outgoing)
    outgoing.once('close', () => this.#unflushed.delete(outgoing))
  }
}

/** The response to a request that asked for a WebSocket and gets none. */
function refuseUpgrade(stream: Duplex, { status, headers, body }: HttpResponse): void {
  if (body instanceof ReadableStream) body.cancel().catch(() => {})
  const text = typeof body === 'string' ? body : ''
  const all = { ...headers, connection: 'close', 'content-length': String(Buffer.byteLength(text)) }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
  stream.end([`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, ...lines, '', text].join('\r\n'))
}

const nextMicrotask = Promise.resolve()

class NodeHttpRequest implements HttpRequest {
  readonly path: string
  readonly search: string
  /** The whole body was read, although its end event may be pending. */
  isRead = false
  readonly upgradable?: true
  readonly #incoming: IncomingMessage
  readonly #outgoing: Pick<Writable, 'once' | 'destroyed' | 'writableFinished'>
  #disconnect: AbortController | undefined
  #fetchRequest: Request | undefined

  constructor(incoming: IncomingMessage, outgoing: Pick<Writable, 'once' | 'destroyed' | 'writableFinished'>, upgradable = false) {
    this.#incoming = incoming
    if (upgradable) this.upgradable = true
    this.#outgoing = outgoing
    const target = requestTarget(incoming.url ?? '')
    const query = target.indexOf('?')
    const path = query < 0 ? target : target.slice(0, query)
    this.path = ambiguous.test(path) ? '/' : path
    this.search = query < 0 ? '' : target.slice(query + 1)
  }

  get method(): string {
    return this.#incoming.method ?? ''
  }

  get hostname(): string {
    return parseHost(this.header('host')).hostname
  }

  get remote(): string | undefined {
    return this.#incoming.socket.remoteAddress
  }

  header(name: string): string | null {
    const value = this.#incoming.headers[name]
    return value === undefined ? null : Array.isArray(value) ? value.join(', ') : value
  }

  headerNames(): Iterable<string> {
    return Object.keys(this.#incoming.headers)
  }

  async text(maxBytes: number): Promise<string> {
    const length = this.header('content-length')
    checkContentLength(length, maxBytes)
    // Most bodies arrive together with the head and are readable after this microtask: those are read at once.
    await nextMicrotask
    const incoming = this.#incoming
    if (length === null || incoming.readableLength !== Number(length)) return readText(incoming, maxBytes)
    const whole = incoming.read() as Buffer | null
    incoming.resume()
    this.isRead = true
    return whole === null ? '' : whole.toString('utf8')
  }

  async *chunks(maxBytes: number): AsyncGenerator<Uint8Array> {
    checkContentLength(this.header('content-length'), maxBytes)
    let size = 0
    try {
      for await (const part of this.#incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        size += part.byteLength
        if (size > maxBytes) throw bodyTooLarge(maxBytes)
        yield part
      }
    } catch (cause) {
      if (this.#incoming.complete || size > maxBytes) throw cause
      throw new HeedError('aborted', 'The client disconnected before its request was complete.', { cause })
    }
    this.isRead = true
  }

  get signal(): AbortSignal {
    if (!this.#disconnect) {
      const disconnect = new AbortController()
      this.#disconnect = disconnect
      this.#outgoing.once('close', () => {
        if (!this.#outgoing.writableFinished) disconnect.abort(new HeedError('aborted', 'The client disconnected.'))
      })
      if (this.#outgoing.destroyed) disconnect.abort()
    }
    return this.#disconnect.signal
  }

  get fetchRequest(): Request {
    if (!this.#fetchRequest) {
      const headers = new Headers()
      for (const [name, values] of Object.entries(this.#incoming.headersDistinct)) {
        for (const value of values ?? []) headers.append(name, value)
      }
      const target = this.search === '' ? this.path : `${this.path}?${this.search}`
      this.#fetchRequest = new Request(parseHost(this.header('host')).origin + target, {
        method: this.method,
        headers,
        signal: this.signal,
      })
    }
    return this.#fetchRequest
  }
}

function readText(incoming: IncomingMessage, maxBytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    let size = 0
    incoming.on('data', (part: Buffer) => {
      size += part.byteLength
      if (size <= maxBytes) return void parts.push(part)
      parts.length = 0
      incoming.pause()
      reject(bodyTooLarge(maxBytes))
    })
    incoming.once('end', () => resolve((parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts)).toString('utf8')))
    const onClose = () => {
      if (!incoming.complete) reject(new HeedError('aborted', 'The client disconnected before its request was complete.'))
    }
    if (incoming.destroyed) onClose()
    else incoming.once('close', onClose)
  })
}

/** Paths that a URL parser would change. No route has such a path. */
const ambiguous = /\\|\/(?:\.|%2e){1,2}(?:\/|$)/i

/** The path and query of a request; a proxy may have sent the whole URL. */
function requestTarget(url: string): string {
  const fragment = url.indexOf('#')
  const target = fragment < 0 ? url : url.slice(0, fragment)
  if (target.startsWith('/')) return target
  if (!URL.canParse(target)) return '/'
  const { pathname, search } = new URL(target)
  return pathname.startsWith('/') ? pathname + search : '/'
}

async function writeStream(body: ReadableStream<Uint8Array>, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  if (incoming.method === 'HEAD') await body.cancel()
  else await pipe(body, outgoing)
  outgoing.end()
}

/** Writes as fast as the client reads. When the client disconnects, the stream is cancelled. */
async function pipe(body: ReadableStream<Uint8Array>, outgoing: ServerResponse): Promise<void> {
  const reader = body.getReader()
  let resume = () => {}
  outgoing.on('drain', () => resume())
  outgoing.once('close', () => {
    resume()
    reader.cancel().catch(() => {})
  })
  while (!outgoing.destroyed) {
    const { done, value } = await reader.read()
    if (done) return
    if (!outgoing.write(value) && !outgoing.destroyed) await new Promise<void>((resolve) => (resume = resolve))
  }
  await reader.cancel()
}
