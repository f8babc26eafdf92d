import type { Clock, Timer } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import { cursorHeader, heartbeatHeader } from '../../base/stream-headers.ts'
import { isOperator, type Principal } from '../auth/principal.ts'
import { formOf, Frames, type FrameOptions, type StreamedChunk, type StreamForm } from './frames.ts'

interface EventStreamOptions {
  clock: Clock
  logger: Logger
  /** A comment is sent after this time without a frame, so that no proxy closes the connection. */
  heartbeatMs: number
  /** A client that reads nothing for this long, although frames are ready, is disconnected. */
  stallMs: number
  /** How many streams may be open in all, and of one principal that is no operator. */
  limits: { all: number; perPrincipal: number }
}

/** Starts to emit chunks that are not part of the stream's source, and returns how to stop. */
export type SideChannel = (emit: (chunk: StreamedChunk) => void) => () => void

/** The approximate size of one write. Chunks that arrive faster than the client reads stay in their source. */
const writeChars = 64 * 1024

const retryStreamMs = 5_000
const encoder = new TextEncoder()
const notReady = Symbol('not ready')

/** The event streams that one principal opens. */
export interface PrincipalStreams {
  /**
   * Streams chunks as server-sent events, or as records. `release` is called once, when the client has disconnected or the chunks have
   * ended. `side` may emit current facts that are not part of the chunks: the newest one is written when the client reads.
   */
  respond(chunks: AsyncIterable<StreamedChunk>, frame: FrameOptions, release?: () => void, side?: SideChannel): Response
}

/** The open event streams of one server. */
export class EventStreams {
  readonly #options: EventStreamOptions
  readonly #open = new Set<EventStream>()
  /** Streams that a route opens itself, as part of one that is counted. */
  readonly #uncounted = new Set<EventStream>()
  /** Streams of requests that are not answered yet. */
  #reserved = 0
  /** The number of open and reserved streams, by the id of their principal. */
  readonly #counts = new Map<string, number>()
  readonly #frames = new Frames()
  #closed = false

  constructor(options: EventStreamOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#open.size + this.#uncounted.size
  }

  /** Ends every stream, server-sent events with `[DONE]`: clients reconnect with their cursor. */
  close(): void {
    this.#closed = true
    for (const stream of [...this.#open, ...this.#uncounted]) stream.end()
    this.#frames.clear()
  }

  /**
   * Reserves a stream of the principal before its request has any effect; throws `rate_limited` if it may open none. The caller releases
   * the reservation when the request is answered: requests that arrive together must not all find room for one.
   */
  reserve(principal: Principal): () => void {
    const { id } = principal
    const { all, perPrincipal } = this.#options.limits
    const isFull = this.#open.size + this.#reserved >= all
    if (isFull || (!isOperator(principal) && (this.#counts.get(id) ?? 0) >= perPrincipal)) {
      const message = 'Too many event streams are open. Close one, or try again later.'
      throw new HeedError('rate_limited', message, { retryable: true, details: { retryAfterMs: retryStreamMs } })
    }
    this.#reserved += 1
    this.#count(id, 1)
    return () => {
      this.#reserved -= 1
      this.#count(id, -1)
    }
  }

  /** The streams of one principal, which gets of each chunk what `show` returns. */
  of(principal: Principal, show?: FrameOptions['show']): PrincipalStreams {
    return {
      respond: (chunks, frame, release, side) => {
        this.#count(principal.id, 1)
        return this.#respond(this.#open, chunks, { ...frame, show }, () => {
          this.#count(principal.id, -1)
          release?.()
        }, side)
      },
    }
  }

  /** Streams of a route to itself: the one that its caller reads is counted, and these end with it. */
  readonly uncounted: Pick<EventStreams, 'of'> = {
    of: (_principal, show) => ({
      respond: (chunks, frame, release = () => {}, side) => this.#respond(this.#uncounted, chunks, { ...frame, show }, release, side),
    }),
  }

  #count(id: string, change: 1 | -1): void {
    const count = (this.#counts.get(id) ?? 0) + change
    if (count === 0) this.#counts.delete(id)
    else this.#counts.set(id, count)
  }

  #respond(
    open: Set<EventStream>, chunks: AsyncIterable<StreamedChunk>, frame: FrameOptions, release: () => void, side?: SideChannel,
  ): Response {
    const stream = new EventStream(chunks[Symbol.asyncIterator](), frame, this.#frames, this.#options, () => {
      open.delete(stream)
      release()
    })
    open.add(stream)
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          stream.start(controller)
          if (this.#closed) stream.end()
          else if (side) stream.attach(side)
        },
        pull: () => stream.pull(),
        cancel: () => {
          stream.stop()
        },
      },
      { highWaterMark: 1 },
    )
    return new Response(body, {
      headers: {
        'content-type': formOf(frame).contentType,
        'cache-control': 'no-cache, no-transform',
        connection: 'keep-alive',
        'x-accel-buffering': 'no',
        [heartbeatHeader]: String(this.#options.heartbeatMs),
        ...(frame.from === undefined ? {} : { [cursorHeader]: frame.from }),
      },
    })
  }
}

/** One response. It takes chunks from its source when its client reads: a slow client delays no other and fills no memory. */
class EventStream {
  readonly #source: AsyncIterator<StreamedChunk>
  readonly #frame: FrameOptions
  readonly #form: StreamForm
  readonly #frames: Frames
  readonly #options: EventStreamOptions
  readonly #release: () => void
  #controller!: ReadableStreamDefaultController<Uint8Array>
  #next: Promise<IteratorResult<StreamedChunk>> | undefined
  #lastWrite: number
  #stalledSince: number | undefined
  #timer: Timer | undefined
  #ended = false
  /** The newest chunk of the side channel that is not written yet. */
  #fact: StreamedChunk | undefined
  #detach: (() => void) | undefined

  constructor(
    source: AsyncIterator<StreamedChunk>, frame: FrameOptions, frames: Frames, options: EventStreamOptions, release: () => void,
  ) {
    this.#source = source
    this.#frame = frame
    this.#form = formOf(frame)
    this.#frames = frames
    this.#options = options
    this.#release = release
    this.#lastWrite = options.clock.now()
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller
    this.#write(this.#form.opening(this.#frame))
    this.#schedule()
  }

  attach(side: SideChannel): void {
    this.#detach = side((chunk) => {
      this.#fact = chunk
      this.#writeFact()
    })
  }

  /** Writes the next chunk, together with those that are ready. */
  async pull(): Promise<void> {
    if (this.#writeFact()) return
    const ready: StreamedChunk[] = []
    let done: boolean
    try {
      done = await this.#take(ready)
    } catch (error) {
      this.#options.logger.error('an event stream failed', { error: String(error) })
      const payload = { error: { name: 'Error', message: 'The stream failed. Subscribe again.' } }
      this.#finish(this.#form.chunk(JSON.stringify({ type: 'error', runId: '', from: 'SYSTEM', payload })))
      return
    }
    if (this.#ended) return
    if (ready.length > 0) this.#write(this.#frames.encode(ready, this.#frame))
    if (done) this.end()
  }

  end(): void {
    this.#finish(this.#form.done)
  }

  /** Releases what the stream holds. False if it was stopped before. */
  stop(): boolean {
    if (this.#ended) return false
    this.#ended = true
    this.#timer?.cancel()
    this.#detach?.()
    this.#release()
    void this.#source.return?.()
    return true
  }

  /** Waits for one chunk and adds it and those that are ready to `ready`. True if the source has ended. */
  async #take(ready: StreamedChunk[]): Promise<boolean> {
    let size = 0
    while (size < writeChars) {
      this.#next ??= this.#source.next()
      const result = ready.length === 0 ? await this.#next : await Promise.race([this.#next, Promise.resolve(notReady)])
      if (result === notReady) return false
      this.#next = undefined
      if (typeof result === 'symbol' || result.done) return true
      ready.push(result.value)
      size += this.#frames.sizeOf(result.value)
    }
    return false
  }

  #write(text: string): void {
    if (text === '') return
    this.#lastWrite = this.#options.clock.now()
    this.#controller.enqueue(encoder.encode(text))
  }

  #writeFact(): boolean {
    if (this.#ended || this.#fact === undefined || !this.#clientReads) return false
    this.#write(this.#frames.encode([this.#fact], this.#frame))
    this.#fact = undefined
    return true
  }

  #finish(text: string): void {
    if (!this.stop()) return
    this.#write(text)
    this.#controller.close()
  }

  get #clientReads(): boolean {
    return (this.#controller.desiredSize ?? 0) > 0
  }

  #schedule(): void {
    const { clock, heartbeatMs, stallMs } = this.#options
    this.#timer = clock.after(Math.min(heartbeatMs, stallMs), () => this.#check(), { background: true })
  }

  /** Sends a heartbeat to a silent stream, and disconnects a client that does not read. */
  #check(): void {
    const { clock, logger, heartbeatMs, stallMs } = this.#options
    const now = clock.now()
    if (this.#clientReads) {
      this.#stalledSince = undefined
      if (now - this.#lastWrite >= heartbeatMs) this.#write(this.#form.heartbeat)
    } else {
      this.#stalledSince ??= now
      if (now - this.#stalledSince >= stallMs) {
        logger.warn('a client that stopped reading was disconnected', { afterMs: now - this.#stalledSince })
        this.#finish(this.#form.tooSlow)
        return
      }
    }
    this.#schedule()
  }
}

/** How many subscriptions of disconnected clients are kept at once. */
const maxKept = 1_000

/**
 * Keeps the subscription of a client for a while after it disconnected: a client that reconnects with its cursor continues there, also
 * if the run ended in the meantime. Above the limit, the oldest subscriptions end, and their clients continue from a snapshot.
 */
export class GracePeriod {
  readonly #clock: Clock
  readonly #ms: number
  readonly #kept = new Map<() => void, Timer>()
  #closed = false

  constructor(clock: Clock, ms: number) {
    this.#clock = clock
    this.#ms = ms
  }

  /** Calls `unsubscribe` when the grace period is over. */
  release(unsubscribe: () => void): void {
    if (this.#closed || this.#ms <= 0) return unsubscribe()
    this.#kept.set(unsubscribe, this.#clock.after(this.#ms, () => this.#end(unsubscribe), { background: true }))
    const oldest = this.#kept.size > maxKept ? this.#kept.keys().next().value : undefined
    if (oldest) this.#end(oldest)
  }

  close(): void {
    this.#closed = true
    for (const unsubscribe of this.#kept.keys()) this.#end(unsubscribe)
  }

  #end(unsubscribe: () => void): void {
    this.#kept.get(unsubscribe)?.cancel()
    this.#kept.delete(unsubscribe)
    unsubscribe()
  }
}
