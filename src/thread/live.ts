import type { Chunk } from '../run/chunk.ts'
import { compareCursors, formatCursor, parseCursor, type Cursor } from './cursor.ts'

/** How many chunks a thread keeps for those who read slowly or come back. Beyond it they start from a snapshot. */
const ringSize = 8_192

const boundaries = new Set<Chunk['type']>(['step-finish', 'finish', 'abort', 'error', 'tool-call-approval', 'tool-call-suspended'])

/**
 * What happens on a thread right now, for everyone here who watches. The runner is the only writer; a watcher is an index.
 * Nobody is waited for: a watcher that falls out of the ring is told so by a snapshot.
 */
export class LiveThread {
  readonly threadId: string
  /** The run that is active, or suspended, as far as is known here. */
  runId: string | undefined
  /** The last row of history that the chunks before the present step stand for. */
  seq: number | undefined
  readonly #ring: Chunk[] = new Array<Chunk>()
  /** The position of the oldest chunk in the ring, and the one after the newest. */
  #first = 0
  #end = 0
  #runStart = 0
  #epoch = 0
  #index = 0
  /** The present step, adjacent deltas joined: what history can't tell yet. */
  #step: Chunk[] = []
  #nextSeq: number | undefined
  #news: PromiseWithResolvers<void> | undefined

  constructor(threadId: string) {
    this.threadId = threadId
  }

  get end(): number {
    return this.#end
  }

  get first(): number {
    return this.#first
  }

  /** Where the active run began, or the edge when none is active. */
  get runStart(): number {
    return this.runId === undefined ? this.#end : this.#runStart
  }

  /** The place after the newest chunk, as a cursor to come back with. */
  get cursor(): string {
    return formatCursor({ epoch: this.#epoch, index: this.#index })
  }

  /** Everything from here on belongs to this epoch. An older one changes nothing. */
  enter(epoch: number): void {
    if (epoch <= this.#epoch) return
    this.#epoch = epoch
    this.#index = 0
  }

  startRun(runId: string, seq: number | undefined): void {
    this.runId = runId
    this.#runStart = this.#end
    this.#step = []
    this.seq = seq
    this.#nextSeq = seq
  }

  endRun(): void {
    this.runId = undefined
  }

  /** A commit reached this row. Watchers count it as told once the step's last chunk is out. */
  committed(seq: number | undefined): void {
    if (seq !== undefined) this.#nextSeq = seq
  }

  publish(chunk: Chunk): void {
    chunk.cursor = `${this.#epoch}.${++this.#index}`
    if (this.#ring.length < ringSize) this.#ring.push(chunk)
    else {
      this.#ring[this.#end % ringSize] = chunk
      this.#first++
    }
    this.#end++
    if (boundaries.has(chunk.type)) {
      this.#step = []
      this.seq = this.#nextSeq
    } else join(this.#step, chunk)
    this.#news?.resolve()
    this.#news = undefined
  }

  /** The chunk at a position that is not before `first`; undefined at the edge. */
  at(position: number): Chunk | undefined {
    return position < this.#end ? this.#ring[position % ringSize] : undefined
  }

  /** Resolves at the next chunk, for all who wait with one promise. */
  news(): Promise<void> {
    this.#news ??= Promise.withResolvers()
    return this.#news.promise
  }

  /** Makes everyone who waits look again, after something other than a chunk. */
  ring(): void {
    this.#news?.resolve()
    this.#news = undefined
  }

  step(): Chunk[] {
    return [...this.#step]
  }

  /** The position after the chunk with this cursor; undefined when the ring can't tell what came after it. */
  after(text: string): number | undefined {
    const cursor = parseCursor(text)
    if (compareCursors(cursor, { epoch: this.#epoch, index: this.#index }) === 0) return this.#end
    let low = this.#first
    let high = this.#end
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compareCursors(this.#cursorAt(middle), cursor) < 0) low = middle + 1
      else high = middle
    }
    return low < this.#end && compareCursors(this.#cursorAt(low), cursor) === 0 ? low + 1 : undefined
  }

  #cursorAt(position: number): Cursor {
    return parseCursor(this.at(position)?.cursor ?? '0.0')
  }
}

/** Keeps the step as short as what it said: one delta for all that follow each other in one block. */
function join(step: Chunk[], chunk: Chunk): void {
  const last = step.at(-1)
  if (last && chunk.type === last.type) {
    if ((chunk.type === 'text-delta' || chunk.type === 'reasoning-delta') && last.type === chunk.type && chunk.payload.id === last.payload.id) {
      step[step.length - 1] = { ...chunk, payload: { ...chunk.payload, text: last.payload.text + chunk.payload.text } }
      return
    }
    if (chunk.type === 'tool-call-delta' && last.type === 'tool-call-delta' && chunk.payload.toolCallId === last.payload.toolCallId) {
      step[step.length - 1] = { ...chunk, payload: { ...chunk.payload, argsTextDelta: last.payload.argsTextDelta + chunk.payload.argsTextDelta } }
      return
    }
  }
  step.push(chunk)
}
