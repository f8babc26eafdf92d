import type {
  Experimental_StreamingSpeechModelV4, Experimental_TranscriptionModelV4StreamPart, SpeechModelV2, SpeechModelV3, SpeechModelV4,
  TranscriptionModelV2, TranscriptionModelV3, TranscriptionModelV4,
} from '@ai-sdk/provider'
import { describe, HeedError, isHeedError, readable } from '../base/errors.ts'
import { isObject } from '../base/json.ts'
import { providerName } from '../tracing/chat-trace.ts'
import { Operation } from '../tracing/operation.ts'
import type { TracingOptions } from '../tracing/options.ts'
import { telemetryFor, type Attributes } from '../tracing/telemetry.ts'
import type { AudioFormat, ListenOptions, SpeakOptions } from './contract.ts'
import { formatName, mediaTypeOf, pcmType, rateOfPcm } from './sound/media-type.ts'
import { toWav } from './sound/wav.ts'

/** A speech model of the AI SDK: `openai.speech('gpt-4o-mini-tts')`. */
export type SpeechModel = SpeechModelV2 | SpeechModelV3 | SpeechModelV4
/** A transcription model of the AI SDK: `openai.transcription('gpt-4o-transcribe')`. */
export type TranscriptionModel = TranscriptionModelV2 | TranscriptionModelV3 | TranscriptionModelV4

/** A piece of sound with its type. */
export interface Sound {
  audio: Uint8Array
  mediaType: string
}

const versions: readonly unknown[] = ['v2', 'v3', 'v4']

/** True for a model of the AI SDK that may speak or transcribe: the interfaces have the same shape. Language models are none. */
export function isAudioModel(value: unknown): value is SpeechModel & TranscriptionModel {
  if (!isObject(value)) return false
  const { specificationVersion, doGenerate, supportedUrls } = value
  return versions.includes(specificationVersion) && typeof doGenerate === 'function' && supportedUrls === undefined
}

/** The sound of a text, in one call. The versions of the interface differ in their results, not in the call. */
export async function speakText(model: SpeechModel, text: string, options: SpeakOptions, tracing: Tracing): Promise<Sound> {
  const { format, speaker: voice, ...call } = options
  const asked = { ...call, text, ...(voice === undefined ? {} : { voice }), ...(format && { outputFormat: formatName(format.type) }) }
  return traced(tracing, 'speak', model, { 'heed.voice.characters': text.length }, async () => {
    const { audio } = await calling(model, options.abortSignal, async () => (model as SpeechModelV4).doGenerate(asked))
    const bytes = bytesOf(audio)
    if (bytes.length === 0) throw failure(model, 'it returned no sound')
    return { audio: bytes, mediaType: mediaTypeOf(bytes) ?? rawType(format) }
  })
}

/** Models that have `doStream` and can't do it: a provider has one class for all of its models. */
const notStreaming = new WeakSet<object>()

/** True for the error of a model that has `doStream` and can't do it. It is not streamed to again; nothing was read yet. */
export function cannotStream(model: SpeechModel | TranscriptionModel, error: unknown): boolean {
  const { name } = Object(isHeedError(error) ? error.cause : error) as { name?: unknown }
  if (name !== 'AI_UnsupportedFunctionalityError') return false
  notStreaming.add(model)
  return true
}

/** True for a model that speaks a text while it is being written. */
export function canStreamSpeech(model: SpeechModel): model is Experimental_StreamingSpeechModelV4 {
  return !notStreaming.has(model) && typeof (model as Partial<Experimental_StreamingSpeechModelV4>).doStream === 'function'
}

/** The sound of a text while it is being written, by a model that can. */
export async function* streamSpeech(
  model: Experimental_StreamingSpeechModelV4, text: AsyncIterable<string>, options: SpeakOptions, tracing: Tracing,
): AsyncGenerator<Sound> {
  const operation = begin(tracing, 'speak', model, { 'gen_ai.request.stream': true })
  try {
    yield* streamedSounds(model, text, options)
  } catch (error) {
    operation?.fail(error)
    throw error
  } finally {
    end(operation, 'speak', model)
  }
}

async function* streamedSounds(
  model: Experimental_StreamingSpeechModelV4, text: AsyncIterable<string>, options: SpeakOptions,
): AsyncGenerator<Sound> {
  const { format, speaker, ...call } = options
  const pieces = webStream(partsOf(text))
  const asked = { ...call, text: pieces, ...(speaker === undefined ? {} : { voice: speaker }), ...(format && { outputFormat: format }) }
  const { stream } = await calling(model, options.abortSignal, async () => model.doStream(asked))
  for await (const part of stream) {
    if (part.type === 'error') throw failure(model, describe(part.error), part.error)
    if (part.type !== 'audio') continue
    const audio = bytesOf(part.audio)
    const { type, rate } = part.audioFormat
    if (audio.length > 0) yield { audio, mediaType: type === 'audio/pcm' && rate !== undefined ? pcmType(rate) : type }
  }
}

async function* partsOf(text: AsyncIterable<string>): AsyncGenerator<{ type: 'text'; text: string }> {
  for await (const piece of text) yield { type: 'text', text: piece }
}

/** The interfaces of the AI SDK take streams of the web. A stream that is cancelled ends its source. */
function webStream<T>(source: AsyncIterable<T>): ReadableStream<T> {
  const iterator = source[Symbol.asyncIterator]()
  return new ReadableStream<T>({
    async pull(controller) {
      const { done, value } = await iterator.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    async cancel() {
      await iterator.return?.()
    },
  }, { highWaterMark: 0 })
}

/** The words in a sound, in one call. Samples without a header are sent as a WAV file, which every provider reads. */
export async function transcribe(
  model: TranscriptionModel, audio: Uint8Array, mediaType: string, options: ListenOptions, tracing: Tracing,
): Promise<string> {
  const rate = rateOfPcm(mediaType)
  const sound = rate === undefined ? { audio, mediaType } : { audio: toWav({ pcm: audio, rate }), mediaType: 'audio/wav' }
  const { mediaType: _, onPartial: _none, ...call } = options
  return traced(tracing, 'transcribe', model, { 'heed.voice.bytes': audio.length }, async () => {
    const asked = async () => (model as TranscriptionModelV4).doGenerate({ ...call, ...sound })
    const { text } = await calling(model, options.abortSignal, asked)
    if (typeof text !== 'string') throw failure(model, 'it returned no text')
    return text
  })
}

/** True for a model that reads samples as they come. */
export function canStreamTranscript(model: TranscriptionModel): boolean {
  return !notStreaming.has(model) && typeof (model as TranscriptionModelV4).doStream === 'function'
}

/** The words in samples that stream, by a model that reads them as they come. */
export async function streamTranscript(
  model: TranscriptionModel, audio: AsyncIterable<Uint8Array>, rate: number, options: ListenOptions, tracing: Tracing,
): Promise<string> {
  return traced(tracing, 'transcribe', model, { 'gen_ai.request.stream': true }, () => streamedWords(model, audio, rate, options))
}

async function streamedWords(
  model: TranscriptionModel, audio: AsyncIterable<Uint8Array>, rate: number, options: ListenOptions,
): Promise<string> {
  const { onPartial, mediaType: _, ...call } = options
  const asked = { ...call, audio: webStream(audio), inputAudioFormat: { type: 'audio/pcm', rate } }
  const streaming = model as TranscriptionModelV4
  const result = await calling(model, options.abortSignal, async () => streaming.doStream?.(asked))
  if (!result) throw failure(model, 'it does not stream')
  const transcript = new Transcript()
  for await (const part of result.stream) {
    if (part.type === 'error') throw failure(model, describe(part.error), part.error)
    if (transcript.add(part)) onPartial?.(transcript.text)
  }
  return transcript.text
}

/** What a streaming model has understood: parts that are final, and what it may still revise. */
class Transcript {
  #final = ''
  #open = ''
  #whole: string | undefined

  get text(): string {
    return this.#whole ?? [this.#final, this.#open].filter((text) => text !== '').join(' ')
  }

  /** Returns whether the text has changed. */
  add(part: Experimental_TranscriptionModelV4StreamPart): boolean {
    const before = this.text
    if (part.type === 'transcript-delta') this.#open += part.delta
    else if (part.type === 'transcript-partial') this.#open = part.text
    else if (part.type === 'transcript-final') {
      this.#final = [this.#final, part.text].filter((text) => text !== '').join(' ')
      this.#open = ''
    } else if (part.type === 'finish') this.#whole = part.text
    return this.text !== before
  }
}

function bytesOf(audio: string | Uint8Array): Uint8Array {
  return typeof audio === 'string' ? Buffer.from(audio, 'base64') : audio
}

/** The type of bytes that have no header. */
function rawType(format: AudioFormat | undefined): string {
  if (!format) return 'application/octet-stream'
  return format.type === 'audio/pcm' && format.rate !== undefined ? pcmType(format.rate) : format.type
}

type Tracing = TracingOptions | false | undefined
type Called = 'speak' | 'transcribe'

/** The span of a call; undefined unless an SDK is registered. */
function begin(tracing: Tracing, called: Called, model: SpeechModel | TranscriptionModel, attributes: Attributes): Operation | undefined {
  const telemetry = telemetryFor(tracing)
  return telemetry && new Operation(telemetry, {
    name: `${called} ${model.modelId}`,
    kind: 2,
    parent: telemetry.active(),
    attributes: { ...measured(called, model), ...attributes },
    options: tracing || {},
  })
}

function end(operation: Operation | undefined, called: Called, model: SpeechModel | TranscriptionModel): void {
  operation?.end(operation.telemetry.operationDuration, measured(called, model))
}

function measured(called: Called, { provider, modelId }: SpeechModel | TranscriptionModel): Attributes {
  return { 'gen_ai.operation.name': called, 'gen_ai.provider.name': providerName(provider), 'gen_ai.request.model': modelId }
}

async function traced<T>(
  tracing: Tracing, called: Called, model: SpeechModel | TranscriptionModel, attributes: Attributes, work: () => Promise<T>,
): Promise<T> {
  const operation = begin(tracing, called, model, attributes)
  try {
    return await (operation ? operation.within(work) : work())
  } catch (error) {
    operation?.fail(error)
    throw error
  } finally {
    end(operation, called, model)
  }
}

async function calling<T>(model: SpeechModel | TranscriptionModel, signal: AbortSignal | undefined, call: () => Promise<T>): Promise<T> {
  signal?.throwIfAborted()
  try {
    return await call()
  } catch (thrown) {
    if (signal?.aborted) throw signal.reason
    const error = readable(thrown)
    throw isHeedError(error) ? error : failure(model, describe(error), error)
  }
}

function failure({ provider, modelId }: SpeechModel | TranscriptionModel, reason: string, cause?: unknown): HeedError {
  const { isRetryable, statusCode } = Object(cause) as { isRetryable?: unknown; statusCode?: unknown }
  return new HeedError('provider_error', `${provider}/${modelId} failed: ${reason}`, {
    cause,
    retryable: isRetryable === true,
    details: { provider, modelId, ...(typeof statusCode === 'number' ? { statusCode } : {}) },
  })
}
