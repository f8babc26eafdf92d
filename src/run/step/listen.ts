import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { HeedError } from '../../base/errors.ts'
import { modelMessagesOf } from '../../prompt/from-rows.ts'
import type { BrokenStream } from './broken-streams.ts'
import { CallInputs } from './call-inputs.ts'
import { endedEarly, type Answer } from '../output/answer.ts'
import { callModel } from '../model/model-call.ts'
import { addUsage, todaysPart } from '../model/model-parts.ts'
import { defaultMaxRetries, modelToolChoice, type ModelSettings } from '../options.ts'
import { GrowingObject } from '../output/growing-object.ts'
import { providerError } from '../model/provider-error.ts'
import { keepContext, keepSent } from '../loop/run-signals.ts'
import { repeatLanes } from '../loop/repeat-lanes.ts'
import { interrupted, type Run } from '../loop/run.ts'
import { StepRecorder } from './step-recorder.ts'
import { isPromise } from '../../base/is-promise.ts'
import { hideInTranscript } from '../tools/tool-display.ts'
import type { Chunk } from '../chunk.ts'

/** What one model call said. `cut`: why it was not allowed, or not able, to finish. */
export interface Said {
  recorder: StepRecorder
  cut?: { kind: 'aborted' } | { kind: 'interrupted' } | { kind: 'broken'; error: HeedError; goesOn: boolean }
}

const noSettings: ModelSettings = {}

/** Asks the model once and shows what it says as it comes. Throws when no model of the list would answer. */
export async function listen(run: Run): Promise<Said> {
  await repeatLanes(run)
  const known = run.processors.inputStep(run)
  const change = isPromise(known) ? await known : known
  await keepContext(run)
  // Only a provider's own tools may be called with a text.
  const recorder = new StepRecorder(run.id, (toolName) => run.tools.tools.get(toolName)?.provider !== undefined)
  const settings: ModelSettings = run.options.modelSettings || change.modelSettings ? { ...run.options.modelSettings, ...change.modelSettings } : noSettings
  await sayStart(run)
  const signal = run.openStep()
  const models = change.model ? [{ model: change.model, maxRetries: undefined }] : run.broken.left(run.models)
  const maxRetries = settings.maxRetries ?? defaultMaxRetries
  let broken: BrokenStream | undefined
  let answer: Answer | undefined
  try {
    await run.broken.pause(run.clock, signal)
    run.host.reading?.()
    const { trace } = run
    const options = callOptions(run, change, settings, signal)
    answer = await callModel(models, options, {
      clock: run.clock,
      signal,
      maxRetries,
      trace: trace && ((model, asked) => trace.chat(model, asked, run.step)),
      onFailure: run.processors.handlesErrors ? (error) => failed(run, error, options) : undefined,
    })
    const error = await record(run, answer, recorder)
    if (error) broken = { error, models, index: answer.index, maxRetries }
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error
  } finally {
    run.closeStep()
    answer?.chat?.end(recorder, signal.aborted ? { cut: cutBy(signal) } : { error: broken?.error })
    run.usage = addUsage(run.usage, recorder.usage)
  }
  const kind = cutBy(signal)
  if (kind) return cut(run, recorder, { kind })
  if (broken) return cut(run, recorder, { kind: 'broken', error: broken.error, goesOn: run.broken.goesOn(broken, run.clock.now()) })
  run.broken.reset()
  recorder.settleItems()
  await hideInTranscript(run, recorder.parts)
  return { recorder }
}

function sayStart(run: Run): ReturnType<Run['say']> {
  return run.say(run.chunk('step-start', { messageId: run.message.next(), request: {}, warnings: [], startedAt: run.clock.now() }))
}

/**
 * Whether to ask once more. What processors send when a call fails is for whoever is asked next: it is stored before, stands at the end of the
 * prompt, and the answer after it.
 */
async function failed(run: Run, error: HeedError, options: LanguageModelV4CallOptions): Promise<boolean> {
  const retry = await run.processors.apiError(run, error)
  const sent = await keepSent(run)
  if (sent.length === 0) return retry
  // Another list: the provider may keep the one that it was given.
  options.prompt = [...options.prompt, ...sent.flatMap((row) => modelMessagesOf(row, run.reservedTags))]
  run.message.sealed = true
  await sayStart(run)
  return retry
}

function cutBy({ aborted, reason }: AbortSignal): 'interrupted' | 'aborted' | undefined {
  if (!aborted) return undefined
  return reason === interrupted ? 'interrupted' : 'aborted'
}

/** Shows what the model says. Answers why its stream broke, if it did; throws what processors throw. */
async function record(run: Run, answer: Answer, recorder: StepRecorder): Promise<HeedError | undefined> {
  const object = run.structured && new GrowingObject()
  const inputs = new CallInputs(run)
  try {
    for (;;) {
      let chunk: Chunk | undefined
      let part: LanguageModelV4StreamPart
      try {
        const { done, value } = await answer.next()
        if (done) return recorder.finished ? undefined : endedEarly(answer.model)
        part = todaysPart(value)
        chunk = recorder.take(part)
      } catch (error) {
        return providerError(error, answer.model, true)
      }
      if (part.type === 'tool-input-start' || part.type === 'tool-input-delta' || part.type === 'tool-call') await inputs.hear(part)
      if (!chunk) continue
      const shown = chunk.type.startsWith('tool-') ? run.showToolCall(chunk) : run.say(chunk)
      recorder.keep(chunk, shown instanceof Promise ? await shown : shown)
      if (object && chunk.type === 'text-delta') await object.grow(run, recorder.text)
    }
  } finally {
    answer.close()
  }
}

/** What was said stays; calls that were not yet made, or never will be, don't. */
async function cut(run: Run, recorder: StepRecorder, why: NonNullable<Said['cut']>): Promise<Said> {
  for (const chunk of recorder.closeOpen()) recorder.keep(chunk, await run.say(chunk))
  recorder.dropOpenCalls()
  recorder.forgetItems()
  await hideInTranscript(run, recorder.parts)
  return { recorder, cut: why }
}

type StepChange = Awaited<ReturnType<Run['processors']['inputStep']>>

function callOptions(run: Run, change: StepChange, settings: ModelSettings, signal: AbortSignal): LanguageModelV4CallOptions {
  const { maxRetries: _, ...sampling } = settings
  const tools = run.definitions(change.activeTools ?? run.options.activeTools)
  const toolChoice = change.toolChoice ?? modelToolChoice(run.options.toolChoice)
  const providerOptions = change.providerOptions ?? run.options.providerOptions
  const options: LanguageModelV4CallOptions = Object.assign(sampling, { prompt: run.prompt(change.systemMessages), abortSignal: signal })
  if (tools.length > 0) {
    options.tools = tools
    if (toolChoice !== undefined) options.toolChoice = toolChoice
  }
  if (run.structured) options.responseFormat = run.structured.responseFormat
  if (providerOptions !== undefined) options.providerOptions = providerOptions
  if (run.options.includeRawChunks) options.includeRawChunks = true
  return options
}
