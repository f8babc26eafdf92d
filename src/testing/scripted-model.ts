import type {
  LanguageModelV2, LanguageModelV2CallOptions, LanguageModelV3, LanguageModelV3CallOptions, LanguageModelV4, LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult, LanguageModelV4StreamPart,
} from '@ai-sdk/provider'
import { checkNames, refused } from '../base/arguments.ts'
import { systemClock, type Clock } from '../base/clock.ts'
import { toV2Part, toV2Result, toV3Part, toV3Result } from './earlier-specification.ts'
import { generated, readParts, stepParts } from './step-parts.ts'
import { beforeAnswer, checkPace, partStream, playback, type Pace } from './playback.ts'
import { scriptedAnswer, toProviderError, type Script, type ScriptedCall } from './script.ts'

/** The options of `scriptedModel()`. */
export interface ScriptedModelOptions {
  provider?: string
  modelId?: string
  /** Continues with the first step after the last. */
  loop?: boolean
  /** False: `calls` stays empty and the prompt is not read, so that a call costs the same for any prompt. */
  record?: boolean
  pace?: Pace
  /** For `pace` and `delayMs`. Defaults to the system's clock. */
  clock?: Clock
}

/** The calls that a scripted model received. */
export interface ScriptedCalls<Options> {
  /** The options of each call, copied when it was received. */
  readonly calls: readonly Options[]
  /** Calls are counted with `record: false` too. */
  readonly callCount: number
}

/** A model that answers from a script and keeps its calls. */
export type ScriptedModel = LanguageModelV4 & ScriptedCalls<LanguageModelV4CallOptions>
/** A scripted model in the third version of the provider interface. */
export type ScriptedModelV3 = LanguageModelV3 & ScriptedCalls<LanguageModelV3CallOptions>
/** A scripted model in the second version of the provider interface. */
export type ScriptedModelV2 = LanguageModelV2 & ScriptedCalls<LanguageModelV2CallOptions>

type ScriptV3 = Script<ScriptedCall<LanguageModelV3CallOptions>>
type ScriptV2 = Script<ScriptedCall<LanguageModelV2CallOptions>>
type AnyCallOptions = LanguageModelV4CallOptions | LanguageModelV3CallOptions | LanguageModelV2CallOptions

/**
 * A language model that answers with the steps of a script, without delay and deterministically.
 *
 * @example
 * const model = scriptedModel([{ toolCalls: [{ toolName: 'weather', input: { city: 'Bern' } }] }, 'It rains in Bern.'])
 * // … run your agent with it …
 * model.calls[1]?.prompt // the prompt of the second call
 */
export function scriptedModel(script: Script, options?: ScriptedModelOptions & { specificationVersion?: 'v4' }): ScriptedModel
export function scriptedModel(script: ScriptV3, options: ScriptedModelOptions & { specificationVersion: 'v3' }): ScriptedModelV3
export function scriptedModel(script: ScriptV2, options: ScriptedModelOptions & { specificationVersion: 'v2' }): ScriptedModelV2
export function scriptedModel(
  script: Script<never>,
  options: ScriptedModelOptions & { specificationVersion?: 'v4' | 'v3' | 'v2' } = {},
): ScriptedModel | ScriptedModelV3 | ScriptedModelV2 {
  checkNames('scriptedModel()', options, ['specificationVersion', 'provider', 'modelId', 'loop', 'record', 'pace', 'clock'])
  const { specificationVersion: version = 'v4', pace } = options
  if (!['v4', 'v3', 'v2'].includes(version)) throw refused('specificationVersion', 'v4, v3 or v2')
  if (pace !== undefined) checkPace(pace)
  // The overloads pair each version with a script for its calls.
  if (options.specificationVersion === 'v2') return new ModelV2(script as ScriptV2, options)
  if (options.specificationVersion === 'v3') return new ModelV3(script as ScriptV3, options)
  return new ModelV4(script as Script, options)
}

/** Counts and records calls, and converts the v4 parts of the script to the version of a model. */
class ScriptedCore<Options extends AnyCallOptions> implements ScriptedCalls<Options> {
  readonly provider: string
  readonly modelId: string
  readonly supportedUrls = {}
  readonly calls: Options[] = []
  callCount = 0
  readonly #script: Script<ScriptedCall<Options>>
  readonly #options: ScriptedModelOptions

  constructor(script: Script<ScriptedCall<Options>>, options: ScriptedModelOptions) {
    this.provider = options.provider ?? 'scripted'
    this.modelId = options.modelId ?? 'scripted'
    this.#script = script
    this.#options = options
  }

  protected async stream<Part>(
    received: Options,
    convert: (part: LanguageModelV4StreamPart) => Part | undefined,
  ): Promise<{ stream: ReadableStream<Part> }> {
    const { clock = systemClock, pace, loop, record = true } = this.#options
    const index = this.callCount++
    const options = record ? snapshot(received) : received
    if (record) this.calls.push(options)
    const signal = received.abortSignal
    signal?.throwIfAborted()

    const step = await scriptedAnswer(this.#script, lazyCall(index, options), { index, loop })
    const answer = stepParts(step, { index, inputCharacters: record ? promptCharacters(options.prompt) : 0 })
    const opening = step.parts ? [] : this.#opening(index)
    try {
      await beforeAnswer(step, { clock, signal: signal ?? new AbortController().signal })
    } catch (error) {
      throw toProviderError(error)
    }
    const parts = [...opening, ...answer]
    const due = (stop: AbortSignal) => playback(step, parts, { clock, signal: stop, pace, opening: opening.length })
    return { stream: partStream(parts, due, { part: convert, error: toProviderError }, signal) }
  }

  protected async generate(received: Options): Promise<LanguageModelV4GenerateResult> {
    const { stream } = await this.stream(received, (part) => part)
    return generated(await readParts(stream))
  }

  #opening(index: number): LanguageModelV4StreamPart[] {
    return [
      { type: 'stream-start', warnings: [] },
      { type: 'response-metadata', id: `response_${index}`, modelId: this.modelId },
    ]
  }
}

class ModelV4 extends ScriptedCore<LanguageModelV4CallOptions> implements LanguageModelV4 {
  readonly specificationVersion = 'v4'

  doStream(options: LanguageModelV4CallOptions) {
    return this.stream(options, (part) => part)
  }

  doGenerate(options: LanguageModelV4CallOptions) {
    return this.generate(options)
  }
}

class ModelV3 extends ScriptedCore<LanguageModelV3CallOptions> implements LanguageModelV3 {
  readonly specificationVersion = 'v3'

  doStream(options: LanguageModelV3CallOptions) {
    return this.stream(options, toV3Part)
  }

  async doGenerate(options: LanguageModelV3CallOptions) {
    return toV3Result(await this.generate(options))
  }
}

class ModelV2 extends ScriptedCore<LanguageModelV2CallOptions> implements LanguageModelV2 {
  readonly specificationVersion = 'v2'

  doStream(options: LanguageModelV2CallOptions) {
    return this.stream(options, toV2Part)
  }

  async doGenerate(options: LanguageModelV2CallOptions) {
    return toV2Result(await this.generate(options))
  }
}

/** Reads the prompt only when the script's function does. */
function lazyCall<Options extends AnyCallOptions>(index: number, options: Options): ScriptedCall<Options> {
  return {
    index,
    options,
    get prompt() {
      return options.prompt
    },
    get tools() {
      return options.tools
    },
  }
}

/** A deep copy. Objects that are no plain data, such as an abort signal, are shared. */
function snapshot<Value>(value: Value): Value
function snapshot(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item: unknown) => snapshot(item))
  if (value instanceof Uint8Array) return value.slice()
  if (value instanceof URL) return new URL(value)
  if (value instanceof Date) return new Date(value)
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, snapshot(item)]))
}

/** The number of characters of texts, tool inputs and tool outputs. Files don't count. */
function promptCharacters(prompt: ReadonlyArray<{ content: string | ReadonlyArray<object> }>): number {
  return prompt.reduce((sum, { content }) => sum + contentCharacters(content), 0)
}

function contentCharacters(content: string | ReadonlyArray<object>): number {
  if (typeof content === 'string') return content.length
  return content.reduce((sum, part) => sum + partCharacters(part), 0)
}

function partCharacters(part: object): number {
  if ('text' in part && typeof part.text === 'string') return part.text.length
  if ('input' in part) return JSON.stringify(part.input)?.length ?? 0
  if ('output' in part) return JSON.stringify(part.output)?.length ?? 0
  return 0
}
