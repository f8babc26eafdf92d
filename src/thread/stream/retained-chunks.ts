import { HeedError } from '../../base/errors.ts'
import type { Chunk } from '../../message/chunk.ts'

/** How many chunks a thread retains for subscribers that read slowly or reconnect. A subscriber further behind starts from a snapshot. */
const ringSize = 8_192

/**
 * The position of a chunk in a thread's stream: `epoch.index`. The epoch comes with the lease and only grows, so that a takeover needs no
 * counter of the previous owner; the index counts the chunks within the epoch.
 */
export interface Cursor {
  epoch: number
  index: number
}

/** Above every index of a chunk. */
export const maxIndex = 999_999_999_999_999

export function formatCursor({ epoch, index }: Cursor): string {
  return `${epoch}.${index}`
}

export function parseCursor(text: string): Cursor {
  const match = /^(\d{1,15})\.(\d{1,15})$/.exec(text)
  if (!match) {
    throw new HeedError('invalid_argument', `'${text}' is not a cursor. Pass the 'cursor' of a chunk as it came.`, {
      details: { field: 'after' },
    })
  }
  return { epoch: Number(match[1]), index: Number(match[2]) }
}

/** Negative when `a` comes before `b`. */
export function compareCursors(a: Cursor, b: Cursor): number {
  return a.epoch - b.epoch || a.index - b.index
}

/** The cursor before this one. */
export function formatBefore({ epoch, index }: Cursor): string {
  return formatCursor({ epoch, index: index - 1 })
}

/** The chunks that a thread retains, by position. */
interface RetainedChunks {
  readonly first: number
  readonly end: number
  readonly generation: number
  at(position: number): Chunk | undefined
}

/** The newest chunks of a thread, by position. */
export class ChunkRing {
  /** The position of the oldest retained chunk, and the one after the newest. */
  first = 0
  end = 0
  /**
   * Chunks before this position were refused after they were published: subscribers that had attached have read them; later ones must not.
   */
  #withdrawn = 0
  readonly #chunks: Chunk[] = []

  push(chunk: Chunk): void {
    this.#chunks[this.end % ringSize] = chunk
    this.end++
    if (this.end - this.first > ringSize) this.first = this.end - ringSize
  }

  /** The chunk at a position that is not before `first`; undefined at the edge. */
  at(position: number): Chunk | undefined {
    return position < this.end ? this.#chunks[position % ringSize] : undefined
  }

  /** Drops every retained chunk. */
  clear(): void {
    this.first = this.end
  }

  /** Marks a gap: a subscriber that has read everything up to here is behind too. */
  skip(): void {
    this.first = ++this.end
  }

  withdraw(): void {
    this.#withdrawn = this.end
  }

  /** The first position that may be replayed to a new subscriber. */
  get replayFrom(): number {
    return Math.max(this.first, this.#withdrawn)
  }

  /** The chunks that may be replayed to a new subscriber. */
  replayed(generation: number): RetainedChunks {
    return { first: this.replayFrom, end: this.end, generation, at: (position) => this.at(position) }
  }

  /** From a position that is not before `first`. */
  from(position: number): Chunk[] {
    return Array.from({ length: this.end - position }, (_, index) => this.at(position + index) as Chunk)
  }
}

/** The position after the chunk with this cursor; undefined when the retained chunks do not show what followed it. */
export function positionAfter(retained: RetainedChunks, cursor: Cursor): number | undefined {
  let low = retained.first
  let high = retained.end
  while (low < high) {
    const middle = (low + high) >>> 1
    if (compareCursors(cursorAt(retained, middle), cursor) < 0) low = middle + 1
    else high = middle
  }
  if (low === retained.end) return undefined
  const found = cursorAt(retained, low)
  if (compareCursors(found, cursor) === 0) return low + 1
  // The chunk itself has just left the ring, and the one after it has not.
  return found.epoch === cursor.epoch && found.index === cursor.index + 1 ? low : undefined
}

/** The cursor of the chunk before a position; undefined where neither it nor the chunk at the position is retained. */
export function cursorBefore(retained: RetainedChunks, position: number): string | undefined {
  const seen = position > retained.first ? retained.at(position - 1)?.cursor : undefined
  return seen ?? (retained.at(position)?.cursor === undefined ? undefined : formatBefore(cursorAt(retained, position)))
}

/**
 * The position at which a subscriber attached while no chunk was retained. No chunk has its cursor, and the next chunk may belong to
 * another epoch; the marker stays valid while the subscribers since then have missed no chunk.
 */
export class StartMarker {
  #cursor: string | undefined
  #position = 0
  #generation = 0

  set({ end, generation }: RetainedChunks, cursor: string): string {
    this.#cursor = cursor
    this.#position = end
    this.#generation = generation
    return cursor
  }

  positionOf({ first, generation }: RetainedChunks, cursor: string): number | undefined {
    return cursor === this.#cursor && this.#position >= first && generation === this.#generation ? this.#position : undefined
  }
}

/** The id of the signal that a chunk echoes; undefined for other chunks. */
export function echoedSignal(chunk: Chunk): string | undefined {
  if ((chunk.type !== 'data-user-message' && chunk.type !== 'data-signal') || !('data' in chunk)) return undefined
  return (chunk.data as { id: string }).id
}

/**
 * The positions from which the echo of a signal follows that a snapshot with this cursor or an earlier one contained. A subscriber that
 * returns there may have read the snapshot, which the echo would repeat, or only the chunks.
 */
export class SnapshotEchoes {
  #signals: ReadonlySet<string> = new Set()
  #position = 0
  #from = Infinity
  #to = 0

  /** A snapshot contains these signals; a subscriber that returns with its cursor reads on at `position`. */
  onSnapshot(retained: RetainedChunks, position: number, signals: ReadonlySet<string>): void {
    this.#signals = signals
    this.#position = position
    for (let at = position; at < retained.end; at++) this.onChunk(retained.at(at), at)
  }

  onChunk(chunk: Chunk | undefined, at: number): void {
    const signal = this.#signals.size > 0 && chunk ? echoedSignal(chunk) : undefined
    if (signal === undefined || !this.#signals.has(signal)) return
    this.#from = Math.min(this.#from, this.#position)
    this.#to = Math.max(this.#to, at + 1)
  }

  mayRepeat(position: number): boolean {
    return position >= this.#from && position < this.#to
  }
}

function cursorAt(retained: RetainedChunks, position: number): Cursor {
  return parseCursor(retained.at(position)?.cursor ?? '0.0')
}

/** The types of a run's last chunk. */
export const finalChunks: ReadonlySet<Chunk['type']> = new Set<Chunk['type']>(['finish', 'abort', 'error'])
/** The types of chunks that are published after the commit of what they describe. */
export const committedChunks: ReadonlySet<Chunk['type']> = new Set<Chunk['type']>([
  ...finalChunks, 'step-finish', 'tool-call-approval', 'tool-call-suspended',
])

/** How many transient chunks a step retains: progress of tools, which is in no message. */
const transientLimit = 1_024

/** The chunks of the present step, which is not in history yet. Consecutive deltas are joined. */
export class PresentStep {
  #chunks: Chunk[] = []
  /** The last chunk, when it is a delta that following deltas are appended to. A copy, since subscribers hold the published chunk. */
  #lastDelta: Delta | undefined
  #transientCount = 0

  add(chunk: Chunk): void {
    const last = this.#lastDelta
    if (last && last.type === chunk.type && append(last, chunk)) return
    if (chunk.type === 'raw') return
    this.#lastDelta = isDelta(chunk) ? copyOf(chunk) : undefined
    this.#chunks.push(this.#lastDelta ?? chunk)
    if (isTransient(chunk) && ++this.#transientCount > transientLimit) this.#dropTransient()
  }

  clear(): void {
    this.#chunks = []
    this.#lastDelta = undefined
    this.#transientCount = 0
  }

  chunks(): Chunk[] {
    return this.#chunks.map((chunk) => (chunk === this.#lastDelta ? copyOf(this.#lastDelta) : chunk))
  }

  /** Drops the older half at once, so that the cost per chunk is small. */
  #dropTransient(): void {
    let drop = this.#transientCount - transientLimit / 2
    this.#transientCount -= drop
    this.#chunks = this.#chunks.filter((chunk) => !isTransient(chunk) || drop-- <= 0)
  }
}

function isTransient(chunk: Chunk): boolean {
  if (chunk.type === 'tool-output' || chunk.type === 'object') return true
  if (chunk.type === 'tool-result') return 'payload' in chunk && chunk.payload.preliminary === true
  return chunk.type.startsWith('data-') && chunk.type !== 'data-user-message' && chunk.type !== 'data-signal'
}

type Delta = Extract<Chunk, { type: 'text-delta' | 'reasoning-delta' | 'tool-call-delta' }>

function isDelta(chunk: Chunk): chunk is Delta {
  return chunk.type === 'text-delta' || chunk.type === 'reasoning-delta' || chunk.type === 'tool-call-delta'
}

function copyOf<D extends Delta>(chunk: D): D {
  return { ...chunk, payload: { ...chunk.payload } }
}

/** Appends a delta to the one before it, if both are of one block. */
function append(delta: Delta, chunk: Chunk): boolean {
  if (delta.type === 'tool-call-delta') {
    if (chunk.type !== 'tool-call-delta' || chunk.payload.toolCallId !== delta.payload.toolCallId) return false
    delta.payload.argsTextDelta += chunk.payload.argsTextDelta
  } else {
    if ((chunk.type !== 'text-delta' && chunk.type !== 'reasoning-delta') || chunk.payload.id !== delta.payload.id) return false
    delta.payload.text += chunk.payload.text
  }
  delta.cursor = chunk.cursor
  return true
}
