import type { Chunk } from '../run/chunk.ts'

/** How many chunks of passing interest a step keeps: what a tool reports while it works is shown, and not part of any message. */
const passingLimit = 1_024

/** What the present step has said so far, as short as what it said: history can't tell it yet. */
export class PresentStep {
  #chunks: Chunk[] = []
  #passing = 0

  add(chunk: Chunk): void {
    if (chunk.type === 'raw') return
    const joined = join(this.#chunks.at(-1), chunk)
    if (joined) this.#chunks[this.#chunks.length - 1] = joined
    else this.#chunks.push(chunk)
    if (isPassing(chunk) && ++this.#passing > passingLimit) this.#dropPassing()
  }

  clear(): void {
    this.#chunks = []
    this.#passing = 0
  }

  chunks(): Chunk[] {
    return [...this.#chunks]
  }

  /** The older half goes at once, so that dropping costs little per chunk. */
  #dropPassing(): void {
    let drop = this.#passing - passingLimit / 2
    this.#passing -= drop
    this.#chunks = this.#chunks.filter((chunk) => !isPassing(chunk) || drop-- <= 0)
  }
}

function isPassing(chunk: Chunk): boolean {
  if (chunk.type === 'tool-output') return true
  if (chunk.type === 'tool-result') return 'payload' in chunk && chunk.payload.preliminary === true
  return chunk.type.startsWith('data-') && chunk.type !== 'data-user-message' && chunk.type !== 'data-signal'
}

/** One delta for all that follow each other in one block. */
function join(last: Chunk | undefined, chunk: Chunk): Chunk | undefined {
  if (chunk.type === 'text-delta' && last?.type === 'text-delta' && chunk.payload.id === last.payload.id) {
    return { ...chunk, payload: { ...chunk.payload, text: last.payload.text + chunk.payload.text } }
  }
  if (chunk.type === 'reasoning-delta' && last?.type === 'reasoning-delta' && chunk.payload.id === last.payload.id) {
    return { ...chunk, payload: { ...chunk.payload, text: last.payload.text + chunk.payload.text } }
  }
  if (chunk.type === 'tool-call-delta' && last?.type === 'tool-call-delta' && chunk.payload.toolCallId === last.payload.toolCallId) {
    return { ...chunk, payload: { ...chunk.payload, argsTextDelta: last.payload.argsTextDelta + chunk.payload.argsTextDelta } }
  }
  return undefined
}
