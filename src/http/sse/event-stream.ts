import type { Clock, Timer } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import { cursorHeader, heartbeatHeader } from '../../base/stream-headers.ts'
import { Frames, greeting, type Streamed, type StreamForm } from './frames.ts'

export interface EventStreamOptions {
  clock: Clock
  logger: Logger
  /** A comment is sent after so much silence, so that nobody in between closes the connection. */
  heartbeatMs: number
  /** A client that takes nothing for so long, although there is something, is let go. */
  stallMs: number
}

/** How much is written at once, about. What comes faster than it is taken waits where it comes from. */
const writeChars = 64 * 1024

const encoder = new TextEncoder()
const nothing = Symbol('nothing yet')

/** The open streams of one server. Each takes a chunk when its client has room: whoever reads slowly makes nobody wait and fills no memory. */
export class EventStreams {
  readonly #options: EventStreamOptions
  readonly #open = new Set<() => void>()
  readonly #frames = new Frames()
  #closed = false

  constructor(options: EventStreamOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#open.size
  }

  /** Ends every stream as a server does that goes: clients come back with their cursor. */
  close(): void {
    this.#closed = true
    for (const end of this.#open) end()
    this.#frames.clear()
  }

  /**
   * Chunks as server-sent events. `release` is called once, when the client is gone or the chunks are. `beside` may tell something that is true
   * now and no part of the chunks: it is written when the client has room, the last alone. It answers how to stop it.
   */
  respond(chunks: AsyncIterable<Streamed>, form: StreamForm, release: () => void = () => {}, beside?: (tell: (chunk: Streamed) => void) => () => void): Response {
    const { clock, logger, heartbeatMs, stallMs } = this.#options
    const source = chunks[Symbol.asyncIterator]()
    let next: Promise<IteratorResult<Streamed>> | undefined
    let lastWrite = clock.now()
    let waitingSince: number | undefined
    let timer: Timer | undefined
    let over = false
    let news: Streamed | undefined
    let hush: (() => void) | undefined

    const stop = () => {
      if (over) return false
      over = true
      timer?.cancel()
      hush?.()
      this.#open.delete(end)
      release()
      void source.return?.()
      return true
    }
    let controller: ReadableStreamDefaultController<Uint8Array>
    const write = (text: string) => {
      lastWrite = clock.now()
      controller.enqueue(encoder.encode(text))
    }
    const tellNews = () => {
      if (over || news === undefined || (controller.desiredSize ?? 0) <= 0) return false
      write(this.#frames.of([news], form))
      news = undefined
      return true
    }
    const finish = (words: string) => {
      if (!stop()) return
      write(words)
      controller.close()
    }
    const end = () => finish('data: [DONE]\n\n')
    const look = () => {
      const now = clock.now()
      if ((controller.desiredSize ?? 0) > 0) {
        waitingSince = undefined
        if (now - lastWrite >= heartbeatMs) write(': heartbeat\n\n')
      } else {
        waitingSince ??= now
        if (now - waitingSince >= stallMs) {
          logger.warn('a client that stopped reading was let go', { afterMs: now - waitingSince })
          finish(': closed, too slow\n\n')
          return
        }
      }
      timer = clock.after(Math.min(heartbeatMs, stallMs), look, { background: true })
    }

    const stream = new ReadableStream<Uint8Array>(
      {
        start: (given) => {
          controller = given
          this.#open.add(end)
          write(greeting(form))
          timer = clock.after(Math.min(heartbeatMs, stallMs), look, { background: true })
          if (this.#closed) return end()
          hush = beside?.((chunk) => {
            news = chunk
            tellNews()
          })
        },
        pull: async () => {
          if (tellNews()) return
          const ready: Streamed[] = []
          let size = 0
          let done = false
          try {
            for (;;) {
              next ??= source.next()
              // The first is waited for; those that are there already go with it.
              const result = ready.length === 0 ? await next : await Promise.race([next, Promise.resolve(nothing)])
              if (result === nothing) break
              next = undefined
              if (typeof result === 'symbol' || result.done) {
                done = true
                break
              }
              ready.push(result.value)
              size += this.#frames.sizeOf(result.value)
              if (size >= writeChars) break
            }
          } catch (error) {
            logger.error('a stream of events broke', { error: String(error) })
            finish(`data: ${JSON.stringify({ type: 'error', runId: '', from: 'SYSTEM', payload: { error: { name: 'Error', message: 'The stream broke. Subscribe again.' } } })}\n\n`)
            return
          }
          if (over) return
          if (ready.length > 0) write(this.#frames.of(ready, form))
          if (done) end()
        },
        cancel: () => {
          stop()
        },
      },
      { highWaterMark: 1 },
    )
    return new Response(stream, {
      headers: {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-cache, no-transform',
        connection: 'keep-alive',
        'x-accel-buffering': 'no',
        [heartbeatHeader]: String(heartbeatMs),
        ...(form.from === undefined ? {} : { [cursorHeader]: form.from }),
      },
    })
  }
}
