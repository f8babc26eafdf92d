import type { Chunk } from '../../message/chunk.ts'

/** The last word of a run. */
export const ends: ReadonlySet<Chunk['type']> = new Set<Chunk['type']>(['finish', 'abort', 'error'])
/** Chunks that are told when what they stand for is stored. */
export const boundaries: ReadonlySet<Chunk['type']> = new Set<Chunk['type']>([...ends, 'step-finish', 'tool-call-approval', 'tool-call-suspended'])

/** How many chunks of passing interest a step keeps: what a tool reports while it works is shown, and not part of any message. */
const passingLimit = 1_024

/** What the present step has said so far, as short as what it said: history can't tell it yet. */
export class PresentStep {
  #chunks: Chunk[] = []
  /** The last chunk when it is a delta that grows: a copy of ours, since watchers hold the chunks themselves. */
  #growing: Delta | undefined
  #passing = 0

  add(chunk: Chunk): void {
    const growing = this.#growing
    if (growing && growing.type === chunk.type && grow(growing, chunk)) return
    if (chunk.type === 'raw') return
    this.#growing = isDelta(chunk) ? copyOf(chunk) : undefined
    this.#chunks.push(this.#growing ?? chunk)
    if (isPassing(chunk) && ++this.#passing > passingLimit) this.#dropPassing()
  }

  clear(): void {
    this.#chunks = []
    this.#growing = undefined
    this.#passing = 0
  }

  chunks(): Chunk[] {
    return this.#chunks.map((chunk) => (chunk === this.#growing ? copyOf(this.#growing) : chunk))
  }

  /** The older half goes at once, so that dropping costs little per chunk. */
  #dropPassing(): void {
    let drop = this.#passing - passingLimit / 2
    this.#passing -= drop
    this.#chunks = this.#chunks.filter((chunk) => !isPassing(chunk) || drop-- <= 0)
  }
}

function isPassing(chunk: Chunk): boolean {
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

/** One delta for all that follow each other in one block. */
function grow(delta: Delta, chunk: Chunk): boolean {
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
