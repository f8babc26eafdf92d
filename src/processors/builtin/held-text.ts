import type { Chunk } from '../../run/chunk.ts'
import type { ProcessOutputStreamArgs } from '../processor.ts'

export type DeltaChunk = Extract<Chunk, { type: 'text-delta' | 'reasoning-delta' }>
export type EndChunk = Extract<Chunk, { type: 'text-end' | 'reasoning-end' }>

export function isDelta(chunk: Chunk): chunk is DeltaChunk {
  return chunk.type === 'text-delta' || chunk.type === 'reasoning-delta'
}

export function isEnd(chunk: Chunk): chunk is EndChunk {
  return chunk.type === 'text-end' || chunk.type === 'reasoning-end'
}

/** The block of text that a chunk belongs to. Blocks of one step may be said at the same time. */
export function blockOf({ type, payload }: DeltaChunk | EndChunk): string {
  return `${type.slice(0, type.indexOf('-'))} ${payload.id}`
}

/** A chunk with other words; null for none, which drops it. */
export function reworded(chunk: DeltaChunk, text: string): DeltaChunk | null {
  if (text === '') return null
  return text === chunk.payload.text ? chunk : { ...chunk, payload: { ...chunk.payload, text } }
}

/** Shows what was held back of a block, before the block ends. */
export function release({ emit }: Pick<ProcessOutputStreamArgs, 'emit'>, end: EndChunk, text: string): Chunk {
  const { runId, from, payload } = end
  if (text !== '') emit({ type: end.type === 'text-end' ? 'text-delta' : 'reasoning-delta', runId, from, payload: { id: payload.id, text } })
  return end
}

/** Something that belongs to one processor and one run, and goes with the run. */
export class OfRun<T> {
  readonly #make: () => T
  readonly #made = new WeakMap<object, T>()

  constructor(make: () => T) {
    this.#make = make
  }

  /** By the run's `state`. Processors of one id share that, so what is kept by it has to be kept apart. */
  of(state: object): T {
    let made = this.#made.get(state)
    if (made === undefined) {
      made = this.#make()
      this.#made.set(state, made)
    }
    return made
  }
}
