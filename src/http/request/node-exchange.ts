import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { HeedError } from '../../base/errors.ts'
import type { Answer, Asked } from './exchange.ts'
import { hostOf } from '../auth/host.ts'
import { checkLength, tooLarge } from './read-body.ts'

/** Routes on Node's own server: no request or response of the platform is made where nobody looks at one. */
export class NodeListener {
  readonly #answer: (asked: Asked) => Promise<Answer>
  /** Answers that were not with the other side when they were given. The others need no keeping, which would cost each of them. */
  readonly #lasting = new Set<ServerResponse>()
  #closing = false

  constructor(answer: (asked: Asked) => Promise<Answer>) {
    this.#answer = answer
  }

  readonly listen: RequestListener = (incoming, outgoing) => {
    const asked = new NodeAsked(incoming, outgoing)
    this.#answer(asked).then((answered) => this.#send(answered, asked, incoming, outgoing)).catch(() => {
      // The stream of an answer broke, and it is known where that is made. What was to be said can't be said any more.
      outgoing.destroy()
    })
  }

  /** From now on every answer is the last of its connection. `onKept`: another one was over, and its connection is open still. */
  close(onKept: () => void): void {
    this.#closing = true
    for (const outgoing of this.#lasting) outgoing.once('close', onKept)
  }

  #send({ status, headers, body }: Answer, asked: NodeAsked, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> | undefined {
    // A body that nobody wanted is not read to its end: the connection goes with it.
    if (this.#closing || !(asked.isRead || incoming.complete)) headers.connection = 'close'
    if (body instanceof ReadableStream) {
      outgoing.writeHead(status, headers)
      this.#lasts(outgoing)
      return stream(body, incoming, outgoing)
    }
    if (body !== null) headers['content-length'] = String(Buffer.byteLength(body))
    outgoing.writeHead(status, headers).end(incoming.method === 'HEAD' ? undefined : (body ?? undefined))
    if (outgoing.writableLength > 0) this.#lasts(outgoing)
    return undefined
  }

  #lasts(outgoing: ServerResponse): void {
    this.#lasting.add(outgoing)
    outgoing.once('close', () => this.#lasting.delete(outgoing))
  }
}

const afterThisTurn = Promise.resolve()

class NodeAsked implements Asked {
  readonly path: string
  readonly search: string
  /** All of its body is here, also where its end is still to be seen. */
  isRead = false
  readonly #incoming: IncomingMessage
  readonly #outgoing: ServerResponse
  #gone: AbortController | undefined
  #request: Request | undefined

  constructor(incoming: IncomingMessage, outgoing: ServerResponse) {
    this.#incoming = incoming
    this.#outgoing = outgoing
    const target = targetOf(incoming.url ?? '')
    const query = target.indexOf('?')
    const path = query < 0 ? target : target.slice(0, query)
    this.path = ambiguous.test(path) ? '/' : path
    this.search = query < 0 ? '' : target.slice(query + 1)
  }

  get method(): string {
    return this.#incoming.method ?? ''
  }

  get hostname(): string {
    return hostOf(this.header('host')).hostname
  }

  get remote(): string | undefined {
    return this.#incoming.socket.remoteAddress
  }

  header(name: string): string | null {
    const value = this.#incoming.headers[name]
    return value === undefined ? null : Array.isArray(value) ? value.join(', ') : value
  }

  async text(maxBytes: number): Promise<string> {
    const length = this.header('content-length')
    checkLength(length, maxBytes)
    // What came together with the head is here after this turn, and most bodies do: those are taken as they are.
    await afterThisTurn
    const incoming = this.#incoming
    if (length === null || incoming.readableLength !== Number(length)) return textOf(incoming, maxBytes)
    const whole = incoming.read() as Buffer | null
    incoming.resume()
    this.isRead = true
    return whole === null ? '' : whole.toString('utf8')
  }

  get signal(): AbortSignal {
    if (!this.#gone) {
      const gone = new AbortController()
      this.#gone = gone
      this.#outgoing.once('close', () => {
        if (!this.#outgoing.writableFinished) gone.abort(new HeedError('aborted', 'The caller is gone.'))
      })
      if (this.#outgoing.destroyed) gone.abort()
    }
    return this.#gone.signal
  }

  get request(): Request {
    if (!this.#request) {
      const headers = new Headers()
      for (const [name, values] of Object.entries(this.#incoming.headersDistinct)) for (const value of values ?? []) headers.append(name, value)
      const target = this.search === '' ? this.path : `${this.path}?${this.search}`
      this.#request = new Request(hostOf(this.header('host')).origin + target, { method: this.method, headers, signal: this.signal })
    }
    return this.#request
  }
}

function textOf(incoming: IncomingMessage, maxBytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    let size = 0
    incoming.on('data', (part: Buffer) => {
      size += part.byteLength
      if (size <= maxBytes) return void parts.push(part)
      parts.length = 0
      incoming.pause()
      reject(tooLarge(maxBytes))
    })
    incoming.once('end', () => resolve(parts.length === 1 && parts[0] ? parts[0].toString('utf8') : Buffer.concat(parts).toString('utf8')))
    const gone = () => {
      if (!incoming.complete) reject(new HeedError('aborted', 'The caller went before its request was complete.'))
    }
    if (incoming.destroyed) gone()
    else incoming.once('close', gone)
  })
}

/** What a URL would read as another path than the one that is written: nothing that is here. */
const ambiguous = /\\|\/(?:\.|%2e){1,2}(?:\/|$)/i

/** What is asked for; a proxy may have written the whole address. */
function targetOf(url: string): string {
  const fragment = url.indexOf('#')
  const target = fragment < 0 ? url : url.slice(0, fragment)
  if (target.startsWith('/')) return target
  if (!URL.canParse(target)) return '/'
  const { pathname, search } = new URL(target)
  return pathname.startsWith('/') ? pathname + search : '/'
}

async function stream(body: ReadableStream<Uint8Array>, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  if (incoming.method === 'HEAD') await body.cancel()
  else await pour(body, outgoing)
  outgoing.end()
}

/** As fast as the other side takes it. Whoever goes takes the stream along. */
async function pour(body: ReadableStream<Uint8Array>, outgoing: ServerResponse): Promise<void> {
  const reader = body.getReader()
  let goOn = () => {}
  outgoing.on('drain', () => goOn())
  outgoing.once('close', () => {
    goOn()
    reader.cancel().catch(() => {})
  })
  while (!outgoing.destroyed) {
    const { done, value } = await reader.read()
    if (done) return
    if (!outgoing.write(value) && !outgoing.destroyed) await new Promise<void>((resolve) => (goOn = resolve))
  }
  await reader.cancel()
}
