import type { LanguageModelV2CallOptions, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { sleep, type Clock } from '../clock.ts'
import { describe, HeedError, isHeedError } from '../errors.ts'
import type { ChatTrace } from '../tracing/chat-trace.ts'
import { withCacheBreakpoints } from '../prompt/cache-breakpoints.ts'
import { toV2Prompt, toV3Prompt } from '../prompt/down-convert.ts'
import type { LanguageModel, ResolvedModel } from './model.ts'
import type { AnyPart } from './model-parts.ts'
import { longestDelay, providerError, retryDelay } from './provider-error.ts'
import { untilAborted } from './until-aborted.ts'

/** A model that has begun to answer: from here on, a failure is a broken stream and no longer a failed call. */
export interface Answer {
  model: LanguageModel
  /** Its place in the list. */
  index: number
  /** For whoever reads the answer to end. */
  chat?: ChatTrace | undefined
  /** The next part, as the provider gave it. Ends at once when the signal aborts; rejects with what the provider threw. */
  next(): Promise<ReadableStreamReadResult<AnyPart>>
  /** Tells the provider that nobody listens any more. */
  close(): void
}

export interface ModelCallContext {
  clock: Clock
  signal: AbortSignal
  maxRetries: number
  /** Begins the trace of one model's answer, retries included. */
  trace?: (model: LanguageModel, options: LanguageModelV4CallOptions) => ChatTrace | undefined
  /** Asked when a model failed for good. True tries it once more. */
  onFailure?: (error: HeedError) => Promise<boolean>
}

/**
 * Opens the stream of the first model that answers. Failures before its first visible part are retried when they may pass, then
 * the next model is tried; after the last one the failure of the last is thrown. An abort throws the signal's reason.
 */
export async function callModel(models: readonly ResolvedModel[], options: LanguageModelV4CallOptions, context: ModelCallContext): Promise<Answer> {
  let failure: HeedError | undefined
  for (const [index, { model: named, maxRetries }] of models.entries()) {
    let model: LanguageModel
    try {
      model = typeof named === 'function' ? await untilAborted(named(), context.signal) : named
    } catch (error) {
      context.signal.throwIfAborted()
      failure = asHeedError(error)
      continue
    }
    const chat = context.trace?.(model, options)
    try {
      const ask = () => askModel(model, options, maxRetries ?? context.maxRetries, context, chat)
      const answer = await (chat ? chat.within(ask) : ask())
      chat?.answered()
      return { ...answer, index, chat }
    } catch (error) {
      if (context.signal.aborted) chat?.abandon()
      else chat?.fail(error instanceof Unanswered ? error.cause : error)
      if (context.signal.aborted || !(error instanceof Unanswered)) throw error
      failure = error.cause
    }
  }
  throw failure
}

/** A model that failed for good, with why. */
class Unanswered extends Error {
  override readonly cause: HeedError

  constructor(cause: HeedError) {
    super(cause.message)
    this.cause = cause
  }
}

/** Asks one model, again where that may help. Throws `Unanswered`, the reason of an abort, or what `onFailure` throws. */
async function askModel(model: LanguageModel, options: LanguageModelV4CallOptions, retries: number, context: ModelCallContext, chat: ChatTrace | undefined): Promise<Omit<Answer, 'index'>> {
  let failure: HeedError
  for (let attempt = 0; ; attempt++) {
    context.signal.throwIfAborted()
    try {
      return await open(model, options, context.signal)
    } catch (error) {
      context.signal.throwIfAborted()
      failure = providerError(error, model, false)
    }
    const delay = retryDelay(failure, attempt, context.clock.now())
    if (!failure.retryable || attempt >= retries || delay > longestDelay) break
    chat?.retried(failure)
    await sleep(context.clock, delay, context.signal)
  }
  if (!(await context.onFailure?.(failure))) throw new Unanswered(failure)
  chat?.retried(failure)
  try {
    return await open(model, options, context.signal)
  } catch (error) {
    context.signal.throwIfAborted()
    throw new Unanswered(providerError(error, model, false))
  }
}

/** Waits for the first part that anybody would see, so that an error before it can still be retried. */
async function open(model: LanguageModel, options: LanguageModelV4CallOptions, signal: AbortSignal): Promise<Omit<Answer, 'index'>> {
  const { stream } = await untilAborted(start(model, options), signal, ({ stream: late }) => void late.cancel().catch(() => {}))
  const reader = stream.getReader()
  const close = () => {
    signal.removeEventListener('abort', close)
    reader.cancel().catch(() => {})
  }
  // Cancelling settles a pending read at once, also with a provider that ignores the signal.
  if (signal.aborted) close()
  else signal.addEventListener('abort', close)
  const head: Array<ReadableStreamReadResult<AnyPart>> = []
  try {
    for (let preamble = true; preamble; ) {
      const read = await reader.read()
      signal.throwIfAborted()
      if (read.done) throw endedEarly(model)
      if (read.value.type === 'error') throw read.value.error
      head.push(read)
      preamble = isPreamble(read.value)
    }
  } catch (error) {
    close()
    throw error
  }
  let index = 0
  return {
    model,
    close,
    next: () => {
      const first = head[index]
      if (!first) return reader.read()
      index++
      return Promise.resolve(first)
    },
  }
}

/** A model that could not be loaded says why itself. */
function asHeedError(error: unknown): HeedError {
  return isHeedError(error) ? error : new HeedError('provider_error', `A model could not be loaded: ${describe(error)}`, { cause: error })
}

/** A stream that was closed before its finish. Whatever closed it, the same call may succeed. */
export function endedEarly(model: LanguageModel): HeedError {
  return new HeedError('stream_broken', `The answer of ${model.provider}/${model.modelId} ended without an end.`, { retryable: true })
}

function isPreamble(part: AnyPart): boolean {
  return part.type === 'stream-start' || part.type === 'response-metadata' || part.type === 'ping' || part.type === 'raw'
}

function start(model: LanguageModel, given: LanguageModelV4CallOptions): PromiseLike<{ stream: ReadableStream<AnyPart> }> {
  const options = { ...given, prompt: withCacheBreakpoints(model, given.prompt) }
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
