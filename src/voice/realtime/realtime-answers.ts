import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider'
import { HeedError } from '../../base/errors.ts'
import { SampleStream } from '../sound/sample-stream.ts'
import type { ServerEvent } from './link.ts'

/** Something that the model says at once: its words, and its sound. */
export interface VoicedItem {
  readonly id: string
  text: string
  readonly samples: SampleStream
}

/** The longest sound of one item: ten minutes. */
const maxBytes = 24_000 * 2 * 600

/** One answer of a realtime model, as the parts of a language model; its sound is beside them. */
export class RealtimeAnswer {
  readonly stream: ReadableStream<LanguageModelV4StreamPart>
  readonly items: VoicedItem[] = []
  readonly calls: string[] = []
  /** Resolves when the model has ended it. */
  readonly ended: Promise<void>
  readonly #onItem: (item: VoicedItem) => void
  readonly #end = Promise.withResolvers<void>()
  #parts: ReadableStreamDefaultController<LanguageModelV4StreamPart> | undefined
  readonly #open = new Set<string>()
  #responseId: string | undefined
  #isOver = false
  /** The reader has ended it before the model did. */
  isCut = false

  /** `onCut`: the reader wants no more of it. */
  constructor(options: { onItem(item: VoicedItem): void; onCut(): void }) {
    this.#onItem = options.onItem
    this.ended = this.#end.promise
    this.stream = new ReadableStream<LanguageModelV4StreamPart>({
      start: (parts) => {
        this.#parts = parts
      },
      cancel: () => {
        if (this.#isOver) return
        this.isCut = true
        this.#parts = undefined
        options.onCut()
      },
    })
  }

  get text(): string {
    return this.items.map((item) => item.text).join('')
  }

  write(part: LanguageModelV4StreamPart): void {
    this.#parts?.enqueue(part)
  }

  /** An event of the connection. Returns whether the answer is over. */
  take(event: ServerEvent): boolean {
    switch (event.type) {
      case 'response-created':
        this.#responseId ??= event.responseId
        this.write({ type: 'response-metadata', id: event.responseId })
        break
      case 'audio-delta':
        this.#sound(this.#itemOf(event.itemId), event.delta)
        break
      case 'audio-transcript-delta':
      case 'text-delta':
        this.#say(this.#itemOf(event.itemId), event.delta)
        break
      case 'audio-transcript-done':
        this.#sayRest(event.itemId, event.transcript)
        break
      case 'text-done':
        this.#sayRest(event.itemId, event.text)
        break
      case 'audio-done':
        this.items.find(({ id }) => id === event.itemId)?.samples.end()
        break
      case 'output-item-done':
        this.#endItem(event.itemId)
        break
      case 'function-call-arguments-done':
        this.calls.push(event.callId)
        this.write({ type: 'tool-call', toolCallId: event.callId, toolName: event.name, input: event.arguments || '{}' })
        break
      case 'response-done':
        // Of an answer that was cut before this one.
        if (this.#responseId !== undefined && event.responseId !== this.#responseId) break
        this.#done(event)
        break
      case 'error':
        // Other errors are about events that came too late, and the answer goes on.
        if (this.#responseId === undefined) this.fail(new HeedError('provider_error', event.message, { details: { code: event.code } }))
        break
      default:
    }
    return this.#isOver
  }

  fail(error: unknown): void {
    if (this.#isOver) return
    this.#finish(error)
    this.#parts?.error(error)
  }

  #itemOf(id: string): VoicedItem {
    const known = this.items.find((item) => item.id === id)
    if (known) return known
    const item = { id, text: '', samples: new SampleStream() }
    this.items.push(item)
    this.#open.add(id)
    this.#onItem(item)
    this.write({ type: 'text-start', id })
    return item
  }

  #sound({ samples }: VoicedItem, base64: string): void {
    const bytes = Buffer.from(base64, 'base64')
    if (samples.bytes + bytes.length > maxBytes) {
      return this.fail(new HeedError('too_large', `The model speaks for longer than ${maxBytes} bytes.`))
    }
    samples.push(bytes)
  }

  #say(item: VoicedItem, delta: string): void {
    if (delta === '') return
    item.text += delta
    this.write({ type: 'text-delta', id: item.id, delta })
  }

  /** Some providers send the words when they are complete alone. */
  #sayRest(itemId: string, whole: string | undefined): void {
    const item = this.#itemOf(itemId)
    if (whole?.startsWith(item.text)) this.#say(item, whole.slice(item.text.length))
  }

  #endItem(id: string): void {
    this.items.find((item) => item.id === id)?.samples.end()
    if (this.#open.delete(id)) this.write({ type: 'text-end', id })
  }

  #done({ status, usage, raw }: Extract<ServerEvent, { type: 'response-done' }>): void {
    for (const id of this.#open) this.#endItem(id)
    const finishReason: LanguageModelV4FinishReason = { unified: reasonOf(status, this.calls.length > 0), raw: status }
    if (status === 'failed') this.write({ type: 'error', error: new HeedError('provider_error', failureText(raw), { retryable: true }) })
    this.write({ type: 'finish', finishReason, usage: usageOf(usage) })
    this.#finish()
    this.#parts?.close()
  }

  #finish(failure?: unknown): void {
    this.#isOver = true
    for (const { samples } of this.items) samples.end(failure)
    this.#end.resolve()
  }
}

function reasonOf(status: string, hasCalls: boolean): LanguageModelV4FinishReason['unified'] {
  if (status === 'failed') return 'error'
  if (status === 'incomplete') return 'length'
  if (hasCalls) return 'tool-calls'
  return status === 'completed' ? 'stop' : 'other'
}

function failureText(raw: unknown): string {
  const { response } = Object(raw) as { response?: { status_details?: { error?: { message?: unknown } } } }
  const message = response?.status_details?.error?.message
  return typeof message === 'string' ? message : 'The model failed, and gave no reason.'
}

type Counts = Extract<ServerEvent, { type: 'response-done' }>['usage']

function usageOf(usage: Counts): LanguageModelV4Usage {
  const { inputTokens, outputTokens, cachedInputTokens } = usage ?? {}
  const noCache = inputTokens === undefined ? undefined : inputTokens - (cachedInputTokens ?? 0)
  return {
    inputTokens: { total: inputTokens, noCache, cacheRead: cachedInputTokens, cacheWrite: undefined },
    outputTokens: { total: outputTokens, text: outputTokens, reasoning: undefined },
  }
}
