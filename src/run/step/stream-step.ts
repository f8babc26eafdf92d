import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { describe, type HeedError } from '../../base/errors.ts'
import { isPromise } from '../../base/promises.ts'
import { modelMessagesOf } from '../../prompt/from-rows.ts'
import type { Chunk } from '../../message/chunk.ts'
import { repeatLanes } from '../loop/repeat-lanes.ts'
import { interrupted, type Run } from '../loop/run.ts'
import { callModel, endedEarly, endedWithError, type BrokenStream, type ModelStream } from '../model/model-call.ts'
import { addUsage, toV4Part } from '../model/model-parts.ts'
import { defaultMaxRetries, type ModelSettings } from '../model/model.ts'
import { providerError } from '../model/provider-error.ts'
import { modelToolChoice } from '../options.ts'
import { GrowingObject } from '../output/structured-output.ts'
import { parseInput } from '../tools/tool-input.ts'
import { otherInputOf } from '../tools/tool-set.ts'
import type { InputContext } from '../tools/tool.ts'
import { callHead } from './prompt-head.ts'
import { StepRecorder } from './step-recorder.ts'

/** The output of one model call. `cut`: why its stream was not read to its end. */
export interface StreamedStep {
  recorder: StepRecorder
  cut?: { kind: 'aborted' } | { kind: 'interrupted' } | { kind: 'broken'; error: HeedError; mayContinue: boolean }
}

const noSettings: ModelSettings = {}

/** Calls the model once and publishes its stream. Throws when all models of the list failed. */
export async function streamStep(run: Run): Promise<StreamedStep> {
  await repeatLanes(run)
  // Memory first: processors see, and may limit, all that the model will read.
  await run.commitContext()
  const result = run.processors.inputStep(run)
  const change = isPromise(result) ? await result : result
  if (run.hasOwnSignals) await run.commitOwnSignals()
  const recorder = new StepRecorder(run.id, (toolName) => otherInputOf(run.tools, toolName))
  const settings: ModelSettings = run.options.modelSettings || change.modelSettings
    ? { ...run.options.modelSettings, ...change.modelSettings }
    : noSettings
  await publishStart(run)
  const signal = run.openStream()
  const models = change.model ? [{ model: change.model, maxRetries: undefined }] : run.streamRetries.remaining(run.models)
  const maxRetries = settings.maxRetries ?? defaultMaxRetries
  let broken: BrokenStream | undefined
  let stream: ModelStream | undefined
  let call: OpenCall | undefined
  try {
    await run.streamRetries.backOff(run.clock, signal)
    run.host.beforeModelCall?.()
    const { trace } = run
    const options = callOptions(run, change, settings, signal)
    call = openCall(run, options, change)
    stream = await callModel(models, options, {
      clock: run.clock,
      signal,
      maxRetries,
      trace: trace && ((model, call) => trace.chat(model, call, run.step)),
      onFailure: run.processors.handlesErrors ? (error) => retryAfterError(run, error, options, call) : undefined,
    })
    const error = await record(run, stream, recorder)
    if (error) broken = { error, models, index: stream.index, maxRetries }
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error
  } finally {
    run.closeStream()
    stream?.chat?.end(recorder, signal.aborted ? { cut: cutBy(signal) } : { error: broken?.error })
    run.usage = addUsage(run.usage, recorder.usage)
    if (call) finishCall(run, recorder, call, stream?.model)
  }
  const kind = cutBy(signal)
  if (kind) return cutStep(run, recorder, { kind })
  if (broken) {
    const mayContinue = run.streamRetries.mayContinue(broken, run.clock.now())
    return cutStep(run, recorder, { kind: 'broken', error: broken.error, mayContinue })
  }
  run.streamRetries.reset()
  recorder.dropChangedItems()
  await run.display.hideInTranscript(recorder.parts)
  return { recorder }
}

type OpenCall = NonNullable<Run['finishedCall']>['call']

/** The record of a call that begins. A call without a thread is stored nowhere. */
function openCall(run: Run, { tools = [] }: LanguageModelV4CallOptions, change: StepChange): OpenCall | undefined {
  if (run.threadId === undefined) return undefined
  const definitions = change.activeTools ?? run.options.activeTools ? tools : run.tools.definitions
  const head = callHead(change.systemMessages ?? run.system, run.reservedTags, definitions)
  return Object.assign(run.history.promptRecord(), { startedAt: run.clock.now(), head })
}

/** Keeps the call for the next commit. */
function finishCall(run: Run, recorder: StepRecorder, call: OpenCall, model: ModelStream['model'] | undefined): void {
  if (model) {
    call.provider = model.provider
    call.modelId = model.modelId
    call.specification = model.specificationVersion
  }
  run.finishedCall = { call, recorder }
}

function publishStart(run: Run): ReturnType<Run['publish']> {
  const messageId = run.history.message.next()
  return run.publish(run.chunk('step-start', { messageId, request: {}, warnings: [], startedAt: run.clock.now() }))
}

/**
 * Lets processors decide whether to call the model once more. Signals that they send are for the next call: they are stored before
 * it, at the end of the prompt, and the answer follows them.
 */
async function retryAfterError(
  run: Run, error: HeedError, options: LanguageModelV4CallOptions, call: OpenCall | undefined,
): Promise<boolean> {
  const retry = await run.processors.apiError(run, error)
  const sent = await run.commitOwnSignals()
  if (sent.length === 0) return retry
  // A new array: the provider may keep the one that it received.
  options.prompt = [...options.prompt, ...sent.flatMap((row) => modelMessagesOf(row, run.reservedTags))]
  if (call) Object.assign(call, run.history.promptRecord())
  run.history.message.sealed = true
  await publishStart(run)
  return retry
}

function cutBy({ aborted, reason }: AbortSignal): 'interrupted' | 'aborted' | undefined {
  if (!aborted) return undefined
  return reason === interrupted ? 'interrupted' : 'aborted'
}

/** Publishes the stream. Returns the error with which it broke; throws what processors throw. */
async function record(run: Run, stream: ModelStream, recorder: StepRecorder): Promise<HeedError | undefined> {
  const growing = run.structured && new GrowingObject(run.structured)
  const hooks = new InputHooks(run)
  try {
    for (;;) {
      let chunk: Chunk | undefined
      let part: LanguageModelV4StreamPart
      try {
        const { done, value } = await stream.next()
        if (done && !recorder.finished) return endedEarly(stream.model)
        if (done) return recorder.finishReason === 'error' ? endedWithError(stream.model, recorder.rawFinishReason) : undefined
        part = recorder.identify(toV4Part(value))
        chunk = recorder.take(part)
      } catch (error) {
        return providerError(error, stream.model, true)
      }
      if (part.type === 'tool-input-start' || part.type === 'tool-input-delta' || part.type === 'tool-call') await hooks.call(part)
      if (!chunk) continue
      const shown = chunk.type.startsWith('tool-') ? run.display.publishCall(chunk) : run.publish(chunk)
      recorder.keep(chunk, shown instanceof Promise ? await shown : shown)
      if (growing && chunk.type === 'text-delta') {
        const object = growing.grow(run.unfinishedText + recorder.text)
        if (object !== undefined) await run.publish(run.chunk('object', { object }))
      }
    }
  } finally {
    stream.close()
  }
}

/** Keeps the output of a stream that was cut, without its open calls. */
async function cutStep(run: Run, recorder: StepRecorder, cut: NonNullable<StreamedStep['cut']>): Promise<StreamedStep> {
  for (const chunk of recorder.closeOpen()) recorder.keep(chunk, await run.publish(chunk))
  recorder.dropOpenCalls()
  recorder.dropItems()
  await run.display.hideInTranscript(recorder.parts)
  return { recorder, cut }
}

type StepChange = Awaited<ReturnType<Run['processors']['inputStep']>>

function callOptions(run: Run, change: StepChange, settings: ModelSettings, signal: AbortSignal): LanguageModelV4CallOptions {
  const { maxRetries: _, ...sampling } = settings
  const tools = run.offerTools(change.activeTools ?? run.options.activeTools)
  const toolChoice = change.toolChoice ?? modelToolChoice(run.options.toolChoice)
  const providerOptions = change.providerOptions ?? run.options.providerOptions
  const prompt = run.history.prompt(change.systemMessages ?? run.system)
  const options: LanguageModelV4CallOptions = Object.assign(sampling, { prompt, abortSignal: signal })
  if (tools.length > 0) {
    options.tools = tools
    if (toolChoice !== undefined) options.toolChoice = toolChoice
  }
  if (run.structured) options.responseFormat = run.structured.responseFormat
  if (providerOptions !== undefined) options.providerOptions = providerOptions
  if (run.options.includeRawChunks) options.includeRawChunks = true
  return options
}

/** Calls the input hooks of tools while the model writes their calls. An error of a hook is logged and does not fail the run. */
class InputHooks {
  readonly #names = new Map<string, string>()
  readonly #run: Run

  constructor(run: Run) {
    this.#run = run
  }

  async call(part: LanguageModelV4StreamPart): Promise<void> {
    switch (part.type) {
      case 'tool-input-start': {
        this.#names.set(part.id, part.toolName)
        const tool = this.#run.offeredTools.get(part.toolName)?.tool
        return tool?.onInputStart && this.#guard(part.toolName, () => tool.onInputStart?.(this.#context(part.id)))
      }
      case 'tool-input-delta': {
        const name = this.#names.get(part.id) ?? ''
        const tool = this.#run.offeredTools.get(name)?.tool
        if (!tool?.onInputDelta) return
        return this.#guard(name, () => tool.onInputDelta?.({ ...this.#context(part.id), inputTextDelta: part.delta }))
      }
      case 'tool-call': {
        this.#names.delete(part.toolCallId)
        const resolved = this.#run.offeredTools.get(part.toolName)
        if (!resolved?.tool.onInputAvailable) return
        return this.#guard(part.toolName, async () => {
          const { args, invalid } = parseInput(part.input, () => otherInputOf(this.#run.tools, part.toolName))
          const checked = invalid === undefined ? ((await resolved.input?.validate(args)) ?? { ok: true as const, value: args }) : undefined
          // The model gets an error for invalid input.
          if (checked?.ok) await resolved.tool.onInputAvailable?.({ ...this.#context(part.toolCallId), input: checked.value })
        })
      }
    }
  }

  async #guard(toolName: string, hook: () => void | Promise<void>): Promise<void> {
    const { signal, logger, id: runId } = this.#run
    try {
      await this.#run.unlessAborted(hook())
    } catch (error) {
      if (!signal.aborted) logger.error(`an input hook of tool '${toolName}' failed`, { runId, error: describe(error) })
    }
  }

  #context(toolCallId: string): InputContext {
    const { signal: abortSignal, requestContext } = this.#run
    const sent = this.#run.history.sentMessages(true)
    return {
      toolCallId,
      abortSignal,
      requestContext,
      get messages() {
        return sent()
      },
    }
  }
}
