import { HeedError } from '../../base/errors.ts'
import { defaultTitleInstructions, cleanTitle, parseTitleOptions, titleSource } from '../../memory/titles.ts'
import { callModel, type ModelStream } from '../../run/model/model-call.ts'
import { toV4Part } from '../../run/model/model-parts.ts'
import { defaultMaxRetries, resolveModels } from '../../run/model/model.ts'
import type { TitleOptions } from '../../run/options.ts'
import type { ResolvedOptions } from '../options.ts'
import { StepRecorder } from '../../run/step/step-recorder.ts'
import type { RunEnvironment, Titler } from '../../thread/runtime/runnable.ts'
import { traceChat } from '../../tracing/chat-trace.ts'
import { resolve, type AgentConfig } from '../config.ts'

/** The titler of a call's thread; undefined when neither the call nor the memory asks for titles. */
export async function titlerFor(
  config: AgentConfig,
  options: ResolvedOptions,
  agent: string,
  environment: RunEnvironment,
): Promise<Titler | undefined> {
  const memory = config.memory === undefined ? undefined : await resolve(config.memory, { requestContext: options.requestContext })
  const wanted = options.memory?.options?.generateTitle ?? memory?.options.generateTitle
  const how = parseTitleOptions(wanted === undefined ? {} : { generateTitle: wanted })
  return how && createTitler(config, how, options, agent, environment)
}

/** The titler of a thread that is marked for a title, with the default options where the call has none. */
export async function titlerOfMarkedThread(
  config: AgentConfig,
  options: ResolvedOptions,
  agent: string,
  environment: RunEnvironment,
): Promise<Titler> {
  return (await titlerFor(config, options, agent, environment)) ?? createTitler(config, {}, options, agent, environment)
}

function createTitler(
  config: AgentConfig,
  how: TitleOptions,
  options: ResolvedOptions,
  agent: string,
  { clock, tracing }: RunEnvironment,
): Titler {
  const context = { requestContext: options.requestContext }
  return async (text, signal, threadId) => {
    const model =
      how.model === undefined
        ? (options.model ?? (config.model && (await resolve(config.model, context))))
        : await resolve(how.model, context)
    if (model === undefined)
      throw new HeedError('model_missing', `Agent '${agent}' has no model to write titles with. Give it one, or generateTitle: { model }.`)
    const instructions = how.instructions === undefined ? defaultTitleInstructions : await resolve(how.instructions, context)
    const trace = traceChat(tracing, { conversation: threadId, purpose: 'title' })
    const answer = await callModel(
      await resolveModels(model, agent),
      {
        prompt: [
          { role: 'system', content: instructions },
          { role: 'user', content: [{ type: 'text', text: titleSource(text) }] },
        ],
        abortSignal: signal,
      },
      { clock, signal, maxRetries: defaultMaxRetries, ...(trace ? { trace } : {}) },
    )
    const title = cleanTitle(await readText(answer, signal))
    if (title === '') throw new HeedError('provider_error', 'The model wrote no title.', { retryable: true })
    return title
  }
}

/** Reads the text of the model's answer. */
async function readText(answer: ModelStream, signal: AbortSignal): Promise<string> {
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
