import type { Streamed } from './frames.ts'

const joined: ReadonlySet<string> = new Set(['text-delta', 'reasoning-delta'])

/**
 * Adjacent deltas of one text as one: a client that lags is told the same in fewer frames. The cursor is the last one's, so that
 * whoever returns with it has seen all of it. Everything else stays as it is.
 */
export function joinDeltas<T extends Streamed>(chunks: readonly T[]): T[] {
  const out: T[] = []
  let open: { payload: { id: string; text: string }; runId: unknown } | undefined
  for (const chunk of chunks) {
    const { type, runId, cursor, payload } = chunk
    const delta = joined.has(type) ? (payload as { id: string; text: string; providerMetadata?: unknown }) : undefined
    const last = out.at(-1)
    if (delta && open && last?.type === type && open.payload.id === delta.id && open.runId === runId && delta.providerMetadata === undefined) {
      open.payload.text += delta.text
      if (cursor !== undefined) last.cursor = cursor
      continue
    }
    if (!delta) {
      open = undefined
      out.push(chunk)
      continue
    }
    // The chunk belongs to everyone who watches: what is joined is joined in a copy.
    const copy = { ...chunk, payload: { ...delta } }
    open = { payload: copy.payload, runId }
    out.push(copy)
  }
  return out
}
