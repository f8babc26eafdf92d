import type { LanguageModelV2CallOptions, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { sleep, type Clock } from '../../base/clock.ts'
import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import type { ChatTrace } from '../../tracing/chat-trace.ts'
import { withCacheBreakpoints } from '../../prompt/cache-breakpoints.ts'
import { toV2Prompt, toV3Prompt } from '../../prompt/down-convert.ts'
import { Answer } from '../output/answer.ts'
import type { LanguageModel, ResolvedModel } from './model.ts'
import type { AnyPart } from './model-parts.ts'
import { longestDelay, providerError, retryDelay } from './provider-error.ts'
import { untilAborted } from '../../base/until-aborted.ts'

export interface ModelCallContext {
  clock: Clock
  signal: AbortSignal
  maxRetries: number
  /** Begins the trace of one model's answer, retries included. */
  trace?: ((model: LanguageModel, options: LanguageModelV4CallOptions) => ChatTrace | undefined) | undefined
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
      chat?.firstChunk()
      answer.index = index
      answer.chat = chat
      return answer
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
async function askModel(model: LanguageModel, options: LanguageModelV4CallOptions, retries: number, context: ModelCallContext, chat: ChatTrace | undefined): Promise<Answer> {
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

async function open(model: LanguageModel, options: LanguageModelV4CallOptions, signal: AbortSignal): Promise<Answer> {
  const { stream } = await untilAborted(start(model, options), signal, ({ stream: late }) => void late.cancel().catch(() => {}))
  return new Answer(model, stream, signal).begin()
}

/** A model that could not be loaded says why itself. */
function asHeedError(error: unknown): HeedError {
  return isHeedError(error) ? error : new HeedError('provider_error', `A model could not be loaded: ${describe(error)}`, { cause: error })
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
