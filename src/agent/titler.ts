import { HeedError } from '../base/errors.ts'
import { cleanTitle, defaultTitleInstructions, parseTitleOptions, titleSource } from '../memory/titles.ts'
import { callModel, type ModelStream } from '../run/model/model-call.ts'
import { toV4Part } from '../run/model/model-parts.ts'
import { defaultMaxRetries, resolveModels } from '../run/model/model.ts'
import type { AgentExecutionOptions, TitleOptions } from '../run/options.ts'
import type { RequestContext } from '../run/request-context.ts'
import { StepRecorder } from '../run/step/step-recorder.ts'
import type { RunEnvironment, Titler } from '../thread/runtime/runnable.ts'
import { traceChat } from '../tracing/chat-trace.ts'
import type { AgentConfig } from './config.ts'
import { resolve } from './resolve.ts'

type ResolvedOptions = AgentExecutionOptions & { requestContext: RequestContext }

/** What makes the titles of this call's thread; nothing when neither the call nor the memory wants any. */
export async function titlerFor(config: AgentConfig, options: ResolvedOptions, agent: string, environment: RunEnvironment): Promise<Titler | undefined> {
  const memory = config.memory === undefined ? undefined : await resolve(config.memory, { requestContext: options.requestContext })
  const wanted = options.memory?.options?.generateTitle ?? memory?.options.generateTitle
  const how = parseTitleOptions(wanted === undefined ? {} : { generateTitle: wanted })
  return how && titlerBy(config, how, options, agent, environment)
}

/** The same for a thread that is marked already, whoever wanted it. */
export async function anyTitler(config: AgentConfig, options: ResolvedOptions, agent: string, environment: RunEnvironment): Promise<Titler> {
  return (await titlerFor(config, options, agent, environment)) ?? titlerBy(config, {}, options, agent, environment)
}

function titlerBy(config: AgentConfig, how: TitleOptions, options: ResolvedOptions, agent: string, { clock, tracing }: RunEnvironment): Titler {
  const context = { requestContext: options.requestContext }
  return async (words, signal, threadId) => {
    const model = how.model === undefined ? (options.model ?? (config.model && (await resolve(config.model, context)))) : await resolve(how.model, context)
    if (model === undefined) throw new HeedError('model_missing', `Agent '${agent}' has no model to write titles with. Give it one, or generateTitle: { model }.`)
    const instructions = how.instructions === undefined ? defaultTitleInstructions : await resolve(how.instructions, context)
    const trace = traceChat(tracing, { conversation: threadId, purpose: 'title' })
    const answer = await callModel(await resolveModels(model, agent), {
      prompt: [{ role: 'system', content: instructions }, { role: 'user', content: [{ type: 'text', text: titleSource(words) }] }],
      abortSignal: signal,
    }, { clock, signal, maxRetries: defaultMaxRetries, ...(trace ? { trace } : {}) })
    const title = cleanTitle(await written(answer, signal))
    if (title === '') throw new HeedError('provider_error', 'The model wrote no title.', { retryable: true })
    return title
  }
}

/** What the model wrote. */
async function written(answer: ModelStream, signal: AbortSignal): Promise<string> {
  const recorder = new StepRecorder('')
  let failure: unknown
  try {
    for (;;) {
      const { done, value } = await answer.next()
      if (done) break
      const part = toV4Part(value)
      if (part.type === 'error') throw part.error
      const chunk = recorder.take(part)
      if (chunk) recorder.keep(chunk, chunk)
    }
    signal.throwIfAborted()
    return recorder.text
  } catch (error) {
    failure = error
    throw error
  } finally {
    answer.close()
    answer.chat?.end(recorder, signal.aborted ? { cut: 'aborted' } : { error: failure })
  }
}
