import { Readable } from 'node:stream'
import { checkNames, checkText, checkWhole, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { isObject } from '../base/json.ts'
import type {
  AudioFormat, AudioInput, ListenOptions, SpeakOptions, Speaker, SpokenAudio, SpokenText, Voice, VoiceSession, VoiceSessionOptions,
  VoiceThread,
} from './contract.ts'
import { joinSounds } from './joined-sound.ts'
import {
  canStreamSpeech, canStreamTranscript, isAudioModel, speakText, streamSpeech, streamTranscript, transcribe, type Sound, type SpeechModel,
  type TranscriptionModel,
} from './models.ts'
import { SentenceCutter } from './sentences.ts'
import { CascadeSession } from './session/session.ts'
import { mediaTypeOf, rateOfPcm } from './sound/media-type.ts'

/** The models of a voice, and how it speaks where a call does not say otherwise. */
export interface CompositeVoiceOptions {
  /** Turns speech into text: a transcription model, or another voice. */
  input?: TranscriptionModel | Voice
  /** Turns text into speech: a speech model, or another voice. */
  output?: SpeechModel | Voice
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
  readonly #speaking: SpeakOptions
  readonly #maxBytes: number

  constructor(options: CompositeVoiceOptions) {
    checkNames('new CompositeVoice()', options, ['input', 'output', 'speaker', 'language', 'format', 'maxBytes'])
    const { input, output, speaker, language, format, maxBytes = 25_000_000 } = options
    if (input !== undefined && !isAudioModel(input) && !hasMethod(input, 'listen')) {
      throw refused('input', "a transcription model of the AI SDK, such as openai.transcription('gpt-4o-transcribe'), or a voice")
    }
    if (output !== undefined && !isAudioModel(output) && !hasMethod(output, 'speak')) {
      throw refused('output', "a speech model of the AI SDK, such as openai.speech('gpt-4o-mini-tts'), or a voice")
    }
    if (!input && !output) throw refused('input', 'given, or output, or both')
    const speaking: SpeakOptions = format ? { format } : {}
    if (speaker !== undefined) speaking.speaker = speaker
    if (language !== undefined) speaking.language = language
    checkSpeaking(speaking)
    checkWhole('maxBytes', maxBytes, 1)
    this.#input = input
    this.#output = output
    this.#speaking = speaking
    this.#maxBytes = maxBytes
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
    return audioStream(soundsOf(output, text, { ...asked, abortSignal }), stop)
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
      return streamTranscript(input, this.#limited(audio), rate, options)
    }
    const bytes = await this.#collected(audio)
    const type = mediaType ?? mediaTypeOf(bytes)
    if (type === undefined || (type.startsWith('audio/pcm') && rate === undefined)) {
      throw new HeedError('invalid_audio', 'The type of this sound is not known. Name it: { mediaType }; samples as audio/pcm;rate=24000.')
    }
    return transcribe(input, bytes, type, options)
  }

  /** Models of the AI SDK don't list their voices: the list is empty. */
  async getSpeakers(): Promise<Speaker[]> {
    return this.#output === undefined || isAudioModel(this.#output) ? [] : (this.#output as Voice).getSpeakers()
  }

  async getListener(): Promise<{ enabled: boolean }> {
    return { enabled: this.#input !== undefined }
  }

  async openSession(thread: VoiceThread, options: VoiceSessionOptions): Promise<VoiceSession> {
    if (!this.#input) missing('input', 'session')
    if (!this.#output) missing('output', 'session')
    const { format } = this.#speaking
    const isPlain = format?.type === 'audio/wav' || (format?.type === 'audio/pcm' && format.rate !== undefined)
    return CascadeSession.open(this, thread, options, isPlain ? format : sessionFormat)
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

/** The sounds of a text: of one that streams, by a model that can stream, else sentence by sentence. */
function soundsOf(model: SpeechModel, text: SpokenText, options: SpeakOptions): AsyncIterable<Sound> {
  if (typeof text === 'string') return oneSound(model, text, options)
  if (canStreamSpeech(model)) return streamSpeech(model, decoded(text), options)
  return joinSounds(sentenceSounds(model, text, options))
}

async function* oneSound(model: SpeechModel, text: string, options: SpeakOptions): AsyncGenerator<Sound> {
  yield await speakText(model, text, options)
}

async function* sentenceSounds(model: SpeechModel, text: AsyncIterable<string | Uint8Array>, options: SpeakOptions): AsyncGenerator<Sound> {
  const cutter = new SentenceCutter()
  for await (const delta of decoded(text)) {
    for (const { spoken } of cutter.push(delta)) if (spoken !== '') yield await speakText(model, spoken, options)
  }
  for (const { spoken } of cutter.end()) if (spoken !== '') yield await speakText(model, spoken, options)
}

async function* decoded(text: AsyncIterable<string | Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  for await (const piece of text) yield typeof piece === 'string' ? piece : decoder.decode(piece, { stream: true })
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
