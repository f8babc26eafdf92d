import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { HeedError } from '../errors.ts'
import type { Answer, Asked } from './exchange.ts'
import { hostOf } from './host.ts'
import { checkLength, tooLarge } from './read-body.ts'

/** Routes on Node's own server: no request or response of the platform is made where nobody looks at one. */
export function nodeListener(answer: (asked: Asked) => Promise<Answer>): RequestListener {
  return (incoming, outgoing) => {
    answer(new NodeAsked(incoming, outgoing)).then((answered) => send(answered, incoming, outgoing)).catch(() => {
      // The stream of an answer broke, and it is known where that is made. What was to be said can't be said any more.
      outgoing.destroy()
    })
  }
}

class NodeAsked implements Asked {
  readonly path: string
  readonly search: string
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

  text(maxBytes: number): Promise<string> {
    return new Promise((resolve, reject) => {
      checkLength(this.header('content-length'), maxBytes)
      const incoming = this.#incoming
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
      incoming.once('close', () => {
        if (!incoming.complete) reject(new HeedError('aborted', 'The caller went before its request was complete.'))
      })
    })
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

async function send({ status, headers, body }: Answer, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  // A body that nobody wanted is not read to its end: the connection goes with it.
  if (!incoming.complete) headers.connection = 'close'
  if (typeof body === 'string') {
    headers['content-length'] = String(Buffer.byteLength(body))
    outgoing.writeHead(status, headers).end(incoming.method === 'HEAD' ? undefined : body)
    return
  }
  outgoing.writeHead(status, headers)
  if (body && incoming.method !== 'HEAD') await pour(body, outgoing)
  else if (body) await body.cancel()
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
