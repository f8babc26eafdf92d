import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { HeedError, isHeedError } from '../errors.ts'
import { callModel, type Answer } from './model-call.ts'
import { defaultMaxRetries, modelToolChoice, type ModelSettings } from './options.ts'
import { providerError } from './provider-error.ts'
import { interrupted, type Run } from './run.ts'
import { StepRecorder } from './step-recorder.ts'

/** What one model call said. `cut`: why it was not allowed, or not able, to finish. */
export interface Said {
  recorder: StepRecorder
  cut?: { kind: 'aborted' } | { kind: 'interrupted' } | { kind: 'broken'; error: HeedError }
}

/** Asks the model once and shows what it says as it comes. Throws when no model of the list would answer. */
export async function listen(run: Run): Promise<Said> {
  const change = await run.processors.inputStep(run)
  await keepSent(run)
  const recorder = new StepRecorder(run.id)
  const settings: ModelSettings = { ...run.options.modelSettings, ...change.modelSettings }
  await run.say(run.chunk('step-start', { messageId: run.messageId, request: {}, warnings: [], startedAt: run.clock.now() }))
  const signal = run.openStep()
  let answer: Answer | undefined
  try {
    answer = await callModel(change.model ? [{ model: change.model, maxRetries: undefined }] : run.models, callOptions(run, change, settings, signal), {
      clock: run.clock,
      signal,
      maxRetries: settings.maxRetries ?? defaultMaxRetries,
      onFailure: run.processors.handlesErrors ? (error) => run.processors.apiError(run, error) : undefined,
    })
    await record(run, answer, recorder)
    if (!signal.aborted && !recorder.finished) throw new HeedError('stream_broken', `The answer of ${answer.model.provider}/${answer.model.modelId} ended without an end.`, { retryable: true })
  } catch (error) {
    if (!signal.aborted) {
      if (!answer) throw error
      return cut(run, recorder, { kind: 'broken', error: isHeedError(error) ? error : providerError(error, answer.model, true) })
    }
  } finally {
    run.closeStep()
  }
  if (signal.aborted) return cut(run, recorder, { kind: signal.reason === interrupted ? 'interrupted' : 'aborted' })
  return { recorder }
}

/** Signals that processors added for this step have to be in history before the model reads them. */
async function keepSent(run: Run): Promise<void> {
  const sent = run.takeSent()
  if (sent.length === 0) return
  await run.host.commit({ step: run.step, rows: sent })
  run.append(sent)
}

async function record(run: Run, answer: Answer, recorder: StepRecorder): Promise<void> {
  try {
    for (let part = await answer.next(); part; part = await answer.next()) {
      const chunk = recorder.take(part)
      if (!chunk) continue
      const shown = chunk.type.startsWith('tool-') ? run.showToolCall(chunk) : run.say(chunk)
      if (shown) await shown
    }
  } catch (error) {
    answer.close()
    throw error
  }
}

/** What was said stays; calls that were not yet made, or never will be, don't. */
async function cut(run: Run, recorder: StepRecorder, why: NonNullable<Said['cut']>): Promise<Said> {
  for (const chunk of recorder.closeOpen()) await run.say(chunk)
  recorder.dropCalls()
  return { recorder, cut: why }
}

type StepChange = Awaited<ReturnType<Run['processors']['inputStep']>>

function callOptions(run: Run, change: StepChange, settings: ModelSettings, signal: AbortSignal): LanguageModelV4CallOptions {
  const { maxRetries: _, ...sampling } = settings
  const tools = run.definitions(change.activeTools ?? run.options.activeTools)
  const toolChoice = change.toolChoice ?? modelToolChoice(run.options.toolChoice)
  const providerOptions = change.providerOptions ?? run.options.providerOptions
  return {
    ...sampling,
    prompt: run.prompt(),
    ...(tools.length === 0 ? {} : { tools, ...(toolChoice === undefined ? {} : { toolChoice }) }),
    ...(run.structured ? { responseFormat: run.structured.responseFormat } : {}),
    ...(providerOptions === undefined ? {} : { providerOptions: providerOptions as LanguageModelV4CallOptions['providerOptions'] }),
    ...(run.options.includeRawChunks ? { includeRawChunks: true } : {}),
    abortSignal: signal,
  }
}
