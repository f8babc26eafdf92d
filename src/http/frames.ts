import { joinDeltas } from './join-deltas.ts'

export interface StreamForm {
  /** `EventSource` reads the cursor from an `id:` line; other clients want one line in a frame, and find it in the chunk. */
  ids: boolean
  /** The place where the stream begins, for whoever is cut off before the first chunk. */
  from?: string | undefined
}

export type Streamed = { type: string; runId?: string; cursor?: string; payload?: unknown }

/** How many chunks are kept in words. Those who watch one thread ask for the same ones at about the same time. */
const most = 256
const recent = new Map<Streamed, string>()

/** Chunks as server-sent events, deltas that wait together as one. */
export function framesOf(chunks: readonly Streamed[], form: StreamForm): string {
  return (chunks.length === 1 ? chunks : joinDeltas(chunks)).map((chunk) => frame(chunk, form)).join('')
}

/** Said before the first chunk. `EventSource` keeps the id of a frame without data, and tells its page nothing of it. */
export function greeting({ ids, from }: StreamForm): string {
  return `: connected\n\n${ids && from !== undefined ? `id: ${from}\n\n` : ''}`
}

/** About how much a chunk will take on the wire; its words are kept for the frame that follows. */
export function sizeOf(chunk: Streamed): number {
  return inWords(chunk).length
}

function frame(chunk: Streamed, { ids }: StreamForm): string {
  const data = `data: ${inWords(chunk)}\n\n`
  return ids && chunk.cursor !== undefined ? `id: ${chunk.cursor}\n${data}` : data
}

/** A chunk never changes once it was told: it is put into words once for all who watch. */
function inWords(chunk: Streamed): string {
  const known = recent.get(chunk)
  if (known !== undefined) return known
  const words = JSON.stringify(chunk)
  const oldest = recent.size >= most ? recent.keys().next().value : undefined
  if (oldest) recent.delete(oldest)
  recent.set(chunk, words)
  return words
}
