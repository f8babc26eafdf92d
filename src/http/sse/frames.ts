import { jsonText } from '../../base/json.ts'

export interface FrameOptions {
  /** Writes JSON records, each followed by the byte 0x1E, in place of server-sent events: existing clients read runs of workflows so. */
  records?: boolean
  /** Adds an `id:` line with the cursor, for `EventSource`. Other clients expect one line in a frame and read the cursor from the chunk. */
  ids: boolean
  /** The cursor at which the stream begins, for clients that lose the connection before the first chunk. */
  from?: string | undefined
  /** What this reader gets of a chunk. It returns the same chunk where all of it is shown. */
  show?: (<T extends StreamedChunk>(chunk: T) => T) | undefined
}

export type StreamedChunk = { type: string; runId?: string; cursor?: string; payload?: unknown }

/** What a stream has besides its chunks, in one of its forms. */
export interface StreamForm {
  readonly contentType: string
  /** Sent before the first chunk. */
  opening(frame: FrameOptions): string
  /** Sent in silence. Readers take no chunk from it. */
  readonly heartbeat: string
  readonly done: string
  readonly tooSlow: string
  /** One chunk, as JSON. */
  chunk(json: string): string
}

const events: StreamForm = {
  contentType: 'text/event-stream; charset=utf-8',
  // `EventSource` stores the id of a frame without data and dispatches no event for it.
  opening: ({ ids, from }) => `: connected\n\n${ids && from !== undefined ? `id: ${from}\n\n` : ''}`,
  heartbeat: ': heartbeat\n\n',
  done: 'data: [DONE]\n\n',
  tooSlow: ': closed, too slow\n\n',
  chunk: (json) => `data: ${json}\n\n`,
}

const recordEnd = '\u001E'

/** A record has no comments: what is sent in silence is an empty record, which readers skip, and the stream ends with its last record. */
const records: StreamForm = {
  contentType: 'text/plain; charset=utf-8',
  opening: () => '',
  heartbeat: recordEnd,
  done: '',
  tooSlow: '',
  chunk: (json) => `${json}${recordEnd}`,
}

export function formOf({ records: asRecords }: FrameOptions): StreamForm {
  return asRecords ? records : events
}

/** Encodes chunks as server-sent events or records; the JSON of a chunk is written once for all its subscribers. */
export class Frames {
  readonly #json = new JsonCache()

  /** Several chunks are encoded together: adjacent deltas become one. */
  encode(chunks: readonly StreamedChunk[], frame: FrameOptions): string {
    const { ids, show } = frame
    const form = formOf(frame)
    let text = ''
    for (const whole of chunks.length === 1 ? chunks : joinDeltas(chunks)) {
      const chunk = show ? show(whole) : whole
      if (ids && !frame.records && chunk.cursor !== undefined) text += `id: ${chunk.cursor}\n`
      text += form.chunk(this.#json.stringify(chunk, wireForm))
    }
    return text
  }

  /** The approximate size of a chunk on the wire, in characters. */
  sizeOf(chunk: StreamedChunk): number {
    return this.#json.stringify(chunk, wireForm).length
  }

  clear(): void {
    this.#json.clear()
  }
}

/** Existing clients read the value of a structured answer from the chunk itself, not from its payload. */
function wireForm(chunk: StreamedChunk): object {
  if (chunk.type !== 'object' && chunk.type !== 'object-result') return chunk
  return { ...chunk, object: (chunk.payload as { object?: unknown } | undefined)?.object }
}

const joinedTypes: ReadonlySet<string> = new Set(['text-delta', 'reasoning-delta'])

/**
 * Joins adjacent deltas of one text, so that a slow client gets the same text in fewer frames. A joined delta has the cursor of its last
 * part: a client that reconnects with it has received all parts. Other chunks stay as they are.
 */
export function joinDeltas<T extends StreamedChunk>(chunks: readonly T[]): T[] {
  const out: T[] = []
  let open: { payload: { id: string; text: string }; runId: unknown } | undefined
  for (const chunk of chunks) {
    const { type, runId, cursor, payload } = chunk
    const delta = joinedTypes.has(type) ? (payload as { id: string; text: string; providerMetadata?: unknown }) : undefined
    const last = out.at(-1)
    if (
      delta &&
      open &&
      last?.type === type &&
      open.payload.id === delta.id &&
      open.runId === runId &&
      delta.providerMetadata === undefined
    ) {
      open.payload.text += delta.text
      if (cursor !== undefined) last.cursor = cursor
      continue
    }
    if (!delta) {
      open = undefined
      out.push(chunk)
      continue
    }
    // Subscribers share the chunk, so the text is joined in a copy.
    const copy = { ...chunk, payload: { ...delta } }
    open = { payload: copy.payload, runId }
    out.push(copy)
  }
  return out
}

const same = <Value>(value: Value) => value

const maxEntries = 256
const maxChars = 2 * 1024 * 1024
/** Longer texts are cached for as long as their value lives, which takes about as much memory already. */
const longChars = 64 * 1024

/**
 * Recent values as JSON: the subscribers of a thread need the same chunks at about the same time. A cached value must not change
 * afterwards.
 */
export class JsonCache {
  readonly #recent = new Map<object, string>()
  #long = new WeakMap<object, string>()
  #chars = 0

  /** The number of characters that the cache alone keeps in memory. */
  get chars(): number {
    return this.#chars
  }

  /** `form`: what is written of a value that is not cached. */
  stringify<Value extends object>(value: Value, form: (value: Value) => object = same): string {
    const cached = this.#recent.get(value) ?? this.#long.get(value)
    if (cached !== undefined) return cached
    const json = jsonText(form(value))
    if (json.length > longChars) this.#long.set(value, json)
    else this.#add(value, json)
    return json
  }

  clear(): void {
    this.#recent.clear()
    this.#long = new WeakMap()
    this.#chars = 0
  }

  #add(value: object, json: string): void {
    this.#recent.set(value, json)
    this.#chars += json.length
    for (const [oldest, text] of this.#recent) {
      if (this.#recent.size <= maxEntries && this.#chars <= maxChars) return
      this.#recent.delete(oldest)
      this.#chars -= text.length
    }
  }
}
