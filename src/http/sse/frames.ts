import { joinDeltas } from './join-deltas.ts'
import { Words } from './json-cache.ts'

export interface StreamForm {
  /** `EventSource` reads the cursor from an `id:` line; other clients want one line in a frame, and find it in the chunk. */
  ids: boolean
  /** The place where the stream begins, for whoever is cut off before the first chunk. */
  from?: string | undefined
}

export type Streamed = { type: string; runId?: string; cursor?: string; payload?: unknown }

/** Said before the first chunk. `EventSource` keeps the id of a frame without data, and tells its page nothing of it. */
export function greeting({ ids, from }: StreamForm): string {
  return `: connected\n\n${ids && from !== undefined ? `id: ${from}\n\n` : ''}`
}

/** Chunks as server-sent events, each put into words once for all who watch. */
export class Frames {
  readonly #words = new Words()

  /** Deltas that wait together are one. */
  of(chunks: readonly Streamed[], { ids }: StreamForm): string {
    let text = ''
    for (const chunk of chunks.length === 1 ? chunks : joinDeltas(chunks)) {
      if (ids && chunk.cursor !== undefined) text += `id: ${chunk.cursor}\n`
      text += `data: ${this.#words.of(chunk)}\n\n`
    }
    return text
  }

  /** About how much a chunk will take on the wire. */
  sizeOf(chunk: Streamed): number {
    return this.#words.of(chunk).length
  }

  clear(): void {
    this.#words.clear()
  }
}
