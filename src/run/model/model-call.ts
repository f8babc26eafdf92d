import type { LanguageModelV2CallOptions, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { retryAfter, sleep, type Clock } from '../../base/clock.ts'
import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import { untilAborted } from '../../base/promises.ts'
import { withCacheBreakpoints } from '../../prompt/cache-breakpoints.ts'
import { toV2Prompt, toV3Prompt } from '../../prompt/down-convert.ts'
import type { ChatTrace } from '../../tracing/chat-trace.ts'
import type { LanguageModel, ResolvedModel } from './model.ts'
import type { AnyPart } from './model-parts.ts'
import { providerError, type ProviderFailure } from './provider-error.ts'

interface ModelCallContext {
  clock: Clock
  signal: AbortSignal
  maxRetries: number
  /** Starts the trace of the calls to one model, retries included. */
  trace?: ((model: LanguageModel, options: LanguageModelV4CallOptions) => ChatTrace | undefined) | undefined
  /** Called when the retries of a model are used up. True tries it once more. */
  onFailure?: (error: HeedError) => Promise<boolean>
}

/**
 * Opens the stream of the first model that answers. A failure before the first visible part is retried if it is retryable; then
 * the next model is tried. When all models failed, the failure of the last one is thrown. An abort throws the signal's reason.
 */
export async function callModel(
  models: readonly ResolvedModel[], options: LanguageModelV4CallOptions, context: ModelCallContext,
): Promise<ModelStream> {
  let failure: HeedError | undefined
  for (const [index, candidate] of models.entries()) {
    const { model: named, maxRetries } = candidate
    let model: LanguageModel
    try {
      model = typeof named === 'function' ? await untilAborted(named(), context.signal) : named
    } catch (error) {
      context.signal.throwIfAborted()
      failure = loadFailure(error)
      continue
    }
    const chat = context.trace?.(model, withOwn(options, candidate))
    try {
      const openStream = () => openModel(model, withOwn(options, candidate), context.signal)
      const open = () => openWithRetries(model, openStream, maxRetries ?? context.maxRetries, context, chat)
      const stream = await (chat ? chat.within(open) : open())
      chat?.firstChunk()
      stream.index = index
      stream.chat = chat
      return stream
    } catch (error) {
      if (context.signal.aborted) chat?.abandon()
      else chat?.fail(error instanceof ModelFailed ? error.cause : error)
      if (context.signal.aborted || !(error instanceof ModelFailed)) throw error
      failure = error.cause
    }
  }
  throw failure
}

/** One model failed and has no retries left. */
class ModelFailed extends Error {
  override readonly cause: HeedError

  constructor(cause: HeedError) {
    super(cause.message)
    this.cause = cause
  }
}

/** Throws `ModelFailed`, the reason of an abort, or what `onFailure` throws. */
async function openWithRetries(
  model: LanguageModel, openStream: () => Promise<ModelStream>, retries: number, context: ModelCallContext, chat: ChatTrace | undefined,
): Promise<ModelStream> {
  let failure: HeedError
  for (let attempt = 0; ; attempt++) {
    context.signal.throwIfAborted()
    try {
      return await openStream()
    } catch (error) {
      context.signal.throwIfAborted()
      failure = providerError(error, model, false)
    }
    const delay = retryDelay(failure, attempt, context.clock.now())
    if (!failure.retryable || attempt >= retries || delay > maxDelay) break
    chat?.retried(failure)
    await sleep(context.clock, delay, context.signal)
  }
  if (!(await context.onFailure?.(failure))) throw new ModelFailed(failure)
  chat?.retried(failure)
  try {
    return await openStream()
  } catch (error) {
    context.signal.throwIfAborted()
    throw new ModelFailed(providerError(error, model, false))
  }
}

/** The options of a call to one model of the list. Read for every attempt: `onFailure` may extend the prompt. */
function withOwn(options: LanguageModelV4CallOptions, { own }: ResolvedModel): LanguageModelV4CallOptions {
  if (!own) return options
  const merged: LanguageModelV4CallOptions = { ...options, ...own }
  if (options.headers && own.headers) merged.headers = { ...options.headers, ...own.headers }
  if (options.providerOptions && own.providerOptions) {
    merged.providerOptions = { ...options.providerOptions }
    for (const [provider, values] of Object.entries(own.providerOptions)) {
      merged.providerOptions[provider] = { ...options.providerOptions[provider], ...values }
    }
  }
  return merged
}

async function openModel(model: LanguageModel, options: LanguageModelV4CallOptions, signal: AbortSignal): Promise<ModelStream> {
  const { stream } = await untilAborted(doStream(model, options), signal, ({ stream: late }) => void late.cancel().catch(() => {}))
  return new ModelStream(model, stream, signal).begin()
}

function loadFailure(error: unknown): HeedError {
  return isHeedError(error) ? error : new HeedError('provider_error', `A model could not be loaded: ${describe(error)}`, { cause: error })
}

function doStream(model: LanguageModel, callOptions: LanguageModelV4CallOptions): PromiseLike<{ stream: ReadableStream<AnyPart> }> {
  const options = { ...callOptions, prompt: withCacheBreakpoints(model, callOptions.prompt) }
  switch (model.specificationVersion) {
    case 'v4':
      return model.doStream(options)
    case 'v3':
      return model.doStream({ ...options, prompt: toV3Prompt(options.prompt) })
    case 'v2': {
      const tools = options.tools?.map((tool) => (tool.type === 'provider' ? { ...tool, type: 'provider-defined' as const } : tool))
      return model.doStream({ ...options, tools, prompt: toV2Prompt(options.prompt) } as LanguageModelV2CallOptions)
    }
  }
}

/** The stream of a model that has begun to answer: from here on a failure is a broken stream, no longer a failed call. */
export class ModelStream {
  readonly model: LanguageModel
  /** The position of the model in the list of candidates. */
  index = 0
  /** The reader of the stream ends this trace. */
  chat: ChatTrace | undefined
  readonly #reader: ReadableStreamDefaultReader<AnyPart>
  readonly #signal: AbortSignal
  /** The parts that `begin()` read, up to the first visible one. */
  readonly #head: Array<ReadableStreamReadResult<AnyPart>> = []
  #headRead = 0

  constructor(model: LanguageModel, stream: ReadableStream<AnyPart>, signal: AbortSignal) {
    this.model = model
    this.#reader = stream.getReader()
    this.#signal = signal
    // Cancelling resolves a pending read at once, also with a provider that ignores the signal.
    if (signal.aborted) this.close()
    else signal.addEventListener('abort', this)
  }

  /** Waits for the first visible part, so that an error before it can still be retried. */
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

  /** The next part, as the provider sent it. Ends at once when the signal aborts; rejects with what the provider threw. */
  next(): Promise<ReadableStreamReadResult<AnyPart>> {
    const first = this.#head[this.#headRead]
    if (!first) return this.#reader.read()
    this.#headRead++
    return Promise.resolve(first)
  }

  /** Cancels the provider's stream. */
  close(): void {
    this.#signal.removeEventListener('abort', this)
    this.#reader.cancel().catch(() => {})
  }

  /** Called by the signal when it aborts. */
  handleEvent(): void {
    this.close()
  }
}

/** The stream was closed before its `finish` part. The same call may succeed when it is repeated. */
export function endedEarly(model: LanguageModel): HeedError {
  const message = `The stream of ${model.provider}/${model.modelId} ended before the answer was finished.`
  return new HeedError('stream_broken', message, { retryable: true })
}

/** The provider finished the answer with an error, and sent none. */
export function endedWithError(model: LanguageModel, reason: string | undefined): HeedError {
  const given = reason === undefined || reason === 'error' ? 'gave no reason' : `gave the reason '${reason}'`
  const name = `${model.provider}/${model.modelId}`
  const message = `The answer of ${name} ended with an error: the provider ${given}. Repeat the call, or use another model.`
  return new HeedError('stream_broken', message, { details: { provider: model.provider, modelId: model.modelId } })
}

function isPreamble(part: AnyPart): boolean {
  return part.type === 'stream-start' || part.type === 'response-metadata' || part.type === 'ping' || part.type === 'raw'
}

/** A stream that broke after it began: its model, as an index into the models that were tried, and the retries of each. */
export interface BrokenStream {
  error: HeedError
  models: readonly ResolvedModel[]
  index: number
  maxRetries: number
}

/** How a run continues after broken streams: with which model of its list, and after what delay. */
export class StreamRetries {
  #firstModel = 0
  #attempt = 0
  #delay = 0

  /** The models to try now, of all that the run has. */
  remaining(models: readonly ResolvedModel[]): readonly ResolvedModel[] {
    return this.#firstModel === 0 ? models : models.slice(this.#firstModel)
  }

  /** Counts a broken stream. True when the run may continue: with the same model while it has retries, then with the next one. */
  mayContinue({ error, models, index, maxRetries }: BrokenStream, now: number): boolean {
    if (index > 0) this.#skip(index)
    const delay = retryDelay(error, this.#attempt, now)
    if (error.retryable && this.#attempt < (models[index]?.maxRetries ?? maxRetries) && delay <= maxDelay) {
      this.#attempt++
      this.#delay = delay
      return true
    }
    if (index + 1 >= models.length) return false
    this.#skip(1)
    return true
  }

  /** Waits for the delay of the last broken stream. */
  async backOff(clock: Clock, signal: AbortSignal): Promise<void> {
    const ms = this.#delay
    this.#delay = 0
    if (ms > 0) await sleep(clock, ms, signal)
  }

  /** A stream was read to its end. */
  reset(): void {
    this.#firstModel = 0
    this.#attempt = 0
  }

  #skip(models: number): void {
    this.#firstModel += models
    this.#attempt = 0
  }
}

const firstDelay = 500
/** A provider that requests a longer delay than this is skipped. */
const maxDelay = 60_000

/** Milliseconds before the next attempt: as the provider requested, else exponential backoff. */
function retryDelay(error: HeedError, attempt: number, now: number): number {
  const requested = retryAfter((error.cause as ProviderFailure | undefined)?.responseHeaders, now)
  return requested ?? firstDelay * 2 ** attempt * (0.75 + Math.random() / 2)
}
