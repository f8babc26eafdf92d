import { HeedError } from '../../base/errors.ts'
import type { ChatTrace } from '../../tracing/chat-trace.ts'
import type { LanguageModel } from '../model/model.ts'
import type { AnyPart } from '../model/model-parts.ts'

/** A model that has begun to answer: from here on, a failure is a broken stream and no longer a failed call. */
export class Answer {
  readonly model: LanguageModel
  /** The model's place in the list. */
  index = 0
  /** For whoever reads the answer to end. */
  chat: ChatTrace | undefined
  readonly #reader: ReadableStreamDefaultReader<AnyPart>
  readonly #signal: AbortSignal
  /** What was read before there was anything to see. */
  readonly #head: Array<ReadableStreamReadResult<AnyPart>> = []
  #given = 0

  constructor(model: LanguageModel, stream: ReadableStream<AnyPart>, signal: AbortSignal) {
    this.model = model
    this.#reader = stream.getReader()
    this.#signal = signal
    // Cancelling settles a pending read at once, also with a provider that ignores the signal.
    if (signal.aborted) this.close()
    else signal.addEventListener('abort', this)
  }

  /** Waits for the first part that anybody would see, so that an error before it can still be retried. */
  async begin(): Promise<this> {
    try {
      for (let preamble = true; preamble; ) {
        const read = await this.#reader.read()
        this.#signal.throwIfAborted()
        if (read.done) throw endedEarly(this.model)
        if (read.value.type === 'error') throw read.value.error
        this.#head.push(read)
        preamble = isPreamble(read.value)
      }
      return this
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** The next part, as the provider gave it. Ends at once when the signal aborts; rejects with what the provider threw. */
  next(): Promise<ReadableStreamReadResult<AnyPart>> {
    const first = this.#head[this.#given]
    if (!first) return this.#reader.read()
    this.#given++
    return Promise.resolve(first)
  }

  /** Tells the provider that nobody listens any more. */
  close(): void {
    this.#signal.removeEventListener('abort', this)
    this.#reader.cancel().catch(() => {})
  }

  /** The signal aborted. */
  handleEvent(): void {
    this.close()
  }
}

/** A stream that was closed before its finish. Whatever closed it, the same call may succeed. */
export function endedEarly(model: LanguageModel): HeedError {
  return new HeedError('stream_broken', `The answer of ${model.provider}/${model.modelId} ended without an end.`, { retryable: true })
}

function isPreamble(part: AnyPart): boolean {
  return part.type === 'stream-start' || part.type === 'response-metadata' || part.type === 'ping' || part.type === 'raw'
}
