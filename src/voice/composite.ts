import { Readable } from 'node:stream'
import { checkNames, checkText, checkWhole, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { isObject } from '../base/json.ts'
import type { TracingOptions } from '../tracing/options.ts'
import type {
  AudioFormat, AudioInput, ListenOptions, RealtimeConfig, RealtimeControls, SpeakOptions, Speaker, SpokenAudio, SpokenText, Voice,
  VoiceSession, VoiceSessionOptions,
  VoiceThread,
} from './contract.ts'
import {
  cannotStream, canStreamSpeech, canStreamTranscript, isAudioModel, speakText, streamSpeech, streamTranscript, transcribe, type Sound,
  type SpeechModel, type TranscriptionModel,
} from './models.ts'
import { SentenceCutter } from './sentences.ts'
import { isRealtimeModel, type RealtimeModel } from './realtime/link.ts'
import { RealtimeVoice } from './realtime/realtime-voice.ts'
import { VoiceEars } from './session/ears.ts'
import { VoiceMouth, type Mouth } from './session/mouth.ts'
import { ThreadSession } from './session/session.ts'
import { mediaTypeOf, rateOfPcm } from './sound/media-type.ts'
import { readWav, wavHeader } from './sound/wav.ts'

/** The models of a voice, and how it speaks where a call does not say otherwise. */
export interface CompositeVoiceOptions {
  /** Turns speech into text: a transcription model, or another voice. */
  input?: TranscriptionModel | Voice
  /** Turns text into speech: a speech model, or another voice. */
  output?: SpeechModel | Voice
  /** Converses in sessions: a realtime model, or another voice with sessions. `input` and `output` stay those of `listen` and `speak`. */
  realtime?: RealtimeModel | Voice
  /** How the realtime model writes down what the user says, and settings of its provider. */
  realtimeOptions?: Pick<RealtimeConfig, 'transcription' | 'providerOptions'>
  /** The voice of the provider. */
  speaker?: string
  language?: string
  /** Asked of the speech model. Sessions ask for `{ type: 'audio/pcm', rate: 24000 }` where this is none of `audio/pcm` and `audio/wav`. */
  format?: AudioFormat
  /** The longest sound that `listen` reads, in bytes. Defaults to 25 MB. */
  maxBytes?: number
}

const speakNames = ['speaker', 'language', 'format', 'speed', 'instructions', 'providerOptions', 'abortSignal', 'headers']
const listenNames = ['mediaType', 'onPartial', 'providerOptions', 'abortSignal', 'headers']
const sessionFormat: AudioFormat = { type: 'audio/pcm', rate: 24_000 }

/** A voice of a transcription model and a speech model of the AI SDK. It has no state: one voice may serve every request. */
export class CompositeVoice implements Voice {
  readonly #input: TranscriptionModel | Voice | undefined
  readonly #output: SpeechModel | Voice | undefined
  readonly #realtime: RealtimeModel | Voice | undefined
  readonly #speaking: SpeakOptions
  readonly #maxBytes: number
  readonly #given: CompositeVoiceOptions
  #tracing: TracingOptions | false | undefined

  constructor(options: CompositeVoiceOptions) {
    checkNames('new CompositeVoice()', options, [
      'input', 'output', 'realtime', 'realtimeOptions', 'speaker', 'language', 'format', 'maxBytes',
    ])
    const { input, output, realtime, speaker, language, format, maxBytes = 25_000_000 } = options
    if (input !== undefined && !isAudioModel(input) && !hasMethod(input, 'listen')) {
      throw refused('input', "a transcription model of the AI SDK, such as openai.transcription('gpt-4o-transcribe'), or a voice")
    }
    if (output !== undefined && !isAudioModel(output) && !hasMethod(output, 'speak')) {
      throw refused('output', "a speech model of the AI SDK, such as openai.speech('gpt-4o-mini-tts'), or a voice")
    }
    if (realtime !== undefined) checkRealtime(realtime)
    checkRealtimeOptions(options)
    if (!input && !output && !realtime) throw refused('input', 'given, or output, or realtime')
    const speaking: SpeakOptions = format ? { format } : {}
    if (speaker !== undefined) speaking.speaker = speaker
    if (language !== undefined) speaking.language = language
    checkSpeaking(speaking)
    checkWhole('maxBytes', maxBytes, 1)
    this.#input = input
    this.#output = output
    this.#realtime = realtime
    this.#speaking = speaking
    this.#maxBytes = maxBytes
    this.#given = options
  }

  /** @internal */
  traced(tracing: TracingOptions | false | undefined): CompositeVoice {
    const copy = new CompositeVoice(this.#given)
    copy.#tracing = tracing
    return copy
  }

  /** Resolves when the first sound is there. The model is called no more once the stream is destroyed. */
  async speak(text: SpokenText, options: SpeakOptions = {}): Promise<SpokenAudio> {
    checkNames('speak()', options, speakNames)
    checkSpeaking(options)
    const isText = typeof text === 'string' ? text.trim() !== '' : isStream(text)
    if (!isText) throw refused('text', 'a text that is not empty, or a stream of one')
    const output = this.#output ?? missing('output', 'speak')
    const asked = { ...this.#speaking, ...options }
    if (!isAudioModel(output)) return (output as Voice).speak(text, asked)
    const stop = new AbortController()
    const abortSignal = options.abortSignal ? AbortSignal.any([options.abortSignal, stop.signal]) : stop.signal
    return audioStream(soundsOf(output, text, { ...asked, abortSignal }, this.#tracing), stop)
  }

  async listen(audio: AudioInput, options: ListenOptions = {}): Promise<string> {
    checkNames('listen()', options, listenNames)
    const { mediaType, onPartial } = options
    if (mediaType !== undefined) checkText('mediaType', mediaType)
    if (onPartial !== undefined && typeof onPartial !== 'function') throw refused('onPartial', 'a function')
    if (!(audio instanceof Uint8Array) && !isStream(audio)) throw refused('audio', 'the bytes of a sound, or a stream of them')
    const input = this.#input ?? missing('input', 'listen')
    if (!isAudioModel(input)) return (input as Voice).listen(audio, options)
    const rate = mediaType === undefined ? undefined : rateOfPcm(mediaType)
    if (rate !== undefined && !(audio instanceof Uint8Array) && canStreamTranscript(input)) {
      try {
        return await streamTranscript(input, this.#limited(audio), rate, options, this.#tracing)
      } catch (error) {
        if (!cannotStream(input, error)) throw error
      }
    }
    const bytes = await this.#collected(audio)
    const type = mediaType ?? mediaTypeOf(bytes)
    if (type === undefined || (type.startsWith('audio/pcm') && rate === undefined)) {
      throw new HeedError('invalid_audio', 'The type of this sound is not known. Name it: { mediaType }; samples as audio/pcm;rate=24000.')
    }
    return transcribe(input, bytes, type, options, this.#tracing)
  }

  /** Models of the AI SDK don't list their voices: the list is empty. */
  async getSpeakers(): Promise<Speaker[]> {
    return this.#output === undefined || isAudioModel(this.#output) ? [] : (this.#output as Voice).getSpeakers()
  }

  async getListener(): Promise<{ enabled: boolean }> {
    return { enabled: this.#input !== undefined }
  }

  async openSession(thread: VoiceThread, options: VoiceSessionOptions): Promise<VoiceSession> {
    const realtime = this.#realtime
    if (isRealtimeModel(realtime)) return this.#openRealtime(realtime, thread, options)
    if (realtime?.openSession) return realtime.openSession(thread, options)
    if (!this.#input) missing('input', 'session')
    if (!this.#output) missing('output', 'session')
    return ThreadSession.open(thread, options, ({ rate, closing }) => ({
      ears: new VoiceEars(this, rate, closing),
      mouth: this.#mouth(options),
    }))
  }

  #mouth(options: VoiceSessionOptions): VoiceMouth {
    const { format } = this.#speaking
    const isPlain = format?.type === 'audio/wav' || (format?.type === 'audio/pcm' && format.rate !== undefined)
    return new VoiceMouth(this, isPlain ? format : sessionFormat, options)
  }

  /** The realtime model answers on the thread in place of that of the agent. Texts of other models are spoken by `output`, if given. */
  async #openRealtime(model: RealtimeModel, thread: VoiceThread, options: VoiceSessionOptions): Promise<VoiceSession> {
    const { inputRate = 24_000, speaker = this.#speaking.speaker, language = this.#speaking.language } = options
    checkWhole('inputRate', inputRate, 4_000)
    const voice = new RealtimeVoice(model, thread, { inputRate, speaker, language, ...this.#given.realtimeOptions })
    const controls = new SessionControls(voice)
    const release = thread.answerWith({ model: voice.model, instructions: () => controls.instructions, tools: () => controls.tools })
    try {
      await voice.open()
      const mouth = this.#output && this.#mouth(options)
      return await ThreadSession.open(thread, options, ({ closing }) => {
        closing.addEventListener('abort', () => {
          release()
          voice.release()
        }, { once: true })
        return { ears: voice, mouth: mouth ? withSpeech(voice, mouth) : voice, realtime: controls }
      })
    } catch (error) {
      release()
      voice.release()
      throw error
    }
  }

  /** The bytes of a stream, as long as there are not too many. */
  async *#limited(audio: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let length = 0
    for await (const bytes of audio) {
      if (!(bytes instanceof Uint8Array)) throw refused('audio', 'a stream of bytes')
      length += bytes.length
      if (length > this.#maxBytes) throw tooLarge(this.#maxBytes)
      yield bytes
    }
  }

  async #collected(audio: AudioInput): Promise<Uint8Array> {
    if (audio instanceof Uint8Array) {
      if (audio.length > this.#maxBytes) throw tooLarge(this.#maxBytes)
      return audio
    }
    const pieces: Uint8Array[] = []
    for await (const bytes of this.#limited(audio)) pieces.push(bytes)
    return Buffer.concat(pieces)
  }
}

/** The sounds of a text: as a model that streams makes them, else of the whole text, or of each sentence of one that comes in pieces. */
function soundsOf(
  model: SpeechModel, text: SpokenText, options: SpeakOptions, tracing: TracingOptions | false | undefined,
): AsyncIterable<Sound> {
  const speak = (spoken: string) => speakText(model, spoken, options, tracing)
  const whole = () => (typeof text === 'string' ? oneSound(() => speak(text)) : joinSounds(sentenceSounds(text, speak)))
  if (!canStreamSpeech(model)) return whole()
  return streamedOr(whole, model, streamSpeech(model, typeof text === 'string' ? only(text) : decoded(text), options, tracing))
}

/** The sounds that a model streams; where it can't after all, those of `whole`. */
async function* streamedOr(whole: () => AsyncIterable<Sound>, model: SpeechModel, streamed: AsyncIterable<Sound>): AsyncGenerator<Sound> {
  try {
    yield* streamed
    return
  } catch (error) {
    if (!cannotStream(model, error)) throw error
  }
  yield* whole()
}

async function* only(text: string): AsyncGenerator<string> {
  yield text
}

async function* oneSound(speak: () => Promise<Sound>): AsyncGenerator<Sound> {
  yield await speak()
}

async function* sentenceSounds(
  text: AsyncIterable<string | Uint8Array>, speak: (spoken: string) => Promise<Sound>,
): AsyncGenerator<Sound> {
  const cutter = new SentenceCutter()
  for await (const delta of decoded(text)) {
    for (const { spoken } of cutter.push(delta)) if (spoken !== '') yield await speak(spoken)
  }
  for (const { spoken } of cutter.end()) if (spoken !== '') yield await speak(spoken)
}

/** Types whose sounds, one after the other, are one sound. */
const joinable = /^audio\/(pcm|mpeg|aac)\b/

/** One stream of bytes of the sounds of several sentences, which have one type. Of WAV files it has one header, at its begin. */
async function* joinSounds(sounds: AsyncIterable<Sound>): AsyncGenerator<Sound> {
  let first: { mediaType: string; rate: number | undefined } | undefined
  for await (const { audio, mediaType } of sounds) {
    const wav = mediaType === 'audio/wav' ? readWav(audio) : undefined
    if (!first) {
      first = { mediaType, rate: wav?.rate }
      if (wav) yield { audio: wavHeader(wav.rate), mediaType }
    } else if (first.mediaType !== mediaType || first.rate !== wav?.rate) {
      throw new HeedError('invalid_audio', `The model changed the type of its sound from ${first.mediaType} to ${mediaType} within a text.`)
    } else if (!wav && !joinable.test(mediaType)) {
      const message = `Sounds of the type ${mediaType} can't be joined. Speak a stream as audio/pcm, audio/wav or audio/mpeg: { format }.`
      throw new HeedError('invalid_audio', message, { details: { mediaType } })
    }
    const piece = wav ? wav.pcm : audio
    if (piece.length > 0) yield { audio: piece, mediaType }
  }
}

async function* decoded(text: AsyncIterable<string | Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  for await (const piece of text) yield typeof piece === 'string' ? piece : decoder.decode(piece, { stream: true })
  // The begin of a character that never ended.
  const rest = decoder.decode()
  if (rest !== '') yield rest
}

/** A stream of Node with the type of its first sound. Rejects when there is none. */
async function audioStream(sounds: AsyncIterable<Sound>, stop: AbortController): Promise<SpokenAudio> {
  const iterator = sounds[Symbol.asyncIterator]()
  const first = await iterator.next()
  if (first.done) throw new HeedError('invalid_argument', 'The text has nothing to say.', { details: { field: 'text' } })
  let ready: Sound | undefined = first.value
  const stream = new Readable({
    read() {
      const next = ready ? Promise.resolve({ done: false as const, value: ready }) : iterator.next()
      ready = undefined
      next.then(({ done, value }) => this.push(done ? null : value.audio), (error: Error) => this.destroy(error))
    },
    destroy(error, done) {
      // The source ends with the call that is under way.
      stop.abort(new HeedError('aborted', 'The reader of the sound has ended it.'))
      done(error)
    },
  })
  return Object.assign(stream, { mediaType: first.value.mediaType })
}

/** What was added to a session. */
class SessionControls implements RealtimeControls {
  readonly #voice: RealtimeVoice
  instructions: readonly string[] = []
  tools: Readonly<Record<string, unknown>> = {}

  constructor(voice: RealtimeVoice) {
    this.#voice = voice
  }

  addInstructions(text: string): void {
    checkText('text', text)
    this.instructions = [...this.instructions, text]
  }

  addTools(tools: Readonly<Record<string, unknown>>): void {
    if (!isObject(tools)) throw refused('tools', 'an object of tools by their names: { weather: createTool(…) }')
    this.tools = { ...this.tools, ...tools }
  }

  updateConfig(config: RealtimeConfig): void {
    checkNames('updateConfig()', config, ['speaker', 'language', 'transcription', 'providerOptions'])
    this.#voice.update(config)
  }
}

/** Speaks texts of other models than its own too. */
function withSpeech(voice: RealtimeVoice, mouth: VoiceMouth): Mouth {
  return {
    speak: (text, signal) => mouth.speak(text, signal),
    soundOf: (textId) => voice.soundOf(textId),
    saidBy: (textId) => voice.saidBy(textId),
    truncate: (textId, ms) => voice.truncate(textId, ms),
  }
}

function checkRealtime(realtime: unknown): void {
  if (isRealtimeModel(realtime)) {
    if (realtime.capabilities?.conversation !== 'continuous') return
    throw refused('realtime', `a model with turns, and ${realtime.modelId} has none`)
  }
  if (isObject(realtime) && typeof (realtime as Partial<Voice>).openSession === 'function') return
  const models = "a realtime model of the AI SDK, such as openai.experimental_realtime('gpt-realtime')"
  throw refused('realtime', `${models}, or a voice with sessions`)
}

function checkRealtimeOptions({ realtime, realtimeOptions }: CompositeVoiceOptions): void {
  if (realtimeOptions === undefined) return
  checkNames('realtimeOptions', realtimeOptions, ['transcription', 'providerOptions'])
  const { transcription } = realtimeOptions
  if (transcription !== undefined) checkNames('realtimeOptions.transcription', transcription, ['model', 'prompt'])
  if (!isRealtimeModel(realtime)) throw refused('realtimeOptions', 'given with a realtime model alone')
}

function checkSpeaking({ speaker, language, format, speed, instructions }: SpeakOptions): void {
  for (const [field, text] of Object.entries({ speaker, language, instructions })) if (text !== undefined) checkText(field, text)
  if (speed !== undefined && !(typeof speed === 'number' && speed > 0)) throw refused('speed', 'a number above 0')
  if (format === undefined) return
  checkNames('format', format, ['type', 'rate'])
  const { type } = format
  if (typeof type !== 'string' || !/^audio\/[\w.+-]+$/.test(type)) throw refused('format.type', "a media type, such as 'audio/mpeg'")
  if (format.rate !== undefined) checkWhole('format.rate', format.rate, 1)
}

function hasMethod(value: unknown, name: 'speak' | 'listen'): boolean {
  return isObject(value) && typeof (value as Partial<Voice>)[name] === 'function'
}

function isStream(value: unknown): boolean {
  return typeof (value as Partial<AsyncIterable<unknown>> | null)?.[Symbol.asyncIterator] === 'function'
}

function missing(part: 'input' | 'output', method: string): never {
  const model = part === 'input' ? 'a transcription model' : 'a speech model'
  throw new HeedError('voice_missing', `${method}() needs ${model}: new CompositeVoice({ ${part} }).`, { details: { field: part } })
}

function tooLarge(maxBytes: number): HeedError {
  const message = `The sound has more than ${maxBytes} bytes. Send it in parts, or raise maxBytes of the voice.`
  return new HeedError('too_large', message, { details: { maxBytes } })
}
