import { HeedError } from '../../base/errors.ts'
import type { AudioFormat, SpeakOptions, SpokenAudio, Voice } from '../contract.ts'
import { rateOfPcm } from '../sound/media-type.ts'
import { SampleStream } from '../sound/sample-stream.ts'
import { readWav } from '../sound/wav.ts'

/** A sound while it is made: samples of 16 bits, little-endian, one channel. */
export interface ItemSound {
  readonly rate: number
  readonly samples: SampleStream
}

/** The longest sound of one sentence. */
const maxBytes = 20_000_000

/** What gives the answers of the agent a sound. */
export interface Mouth {
  /** The sound of a sentence, when its first samples are there. Undefined where texts have no sound. */
  speak?(text: string, signal: AbortSignal): Promise<ItemSound>
  /** The sound of a text whose model speaks, by the id of the text; undefined for other texts. */
  soundOf?(textId: string): ItemSound | undefined
  /** All words of that text, as its model said them. */
  saidBy?(textId: string): string | undefined
  /** The user heard only so much of that sound. */
  truncate?(textId: string, ms: number): void
}

/** Speaks with `speak()` of a voice. */
export class VoiceMouth implements Mouth {
  readonly #voice: Pick<Voice, 'speak'>
  readonly #options: SpeakOptions

  constructor(voice: Pick<Voice, 'speak'>, format: AudioFormat, { speaker, language }: Pick<SpeakOptions, 'speaker' | 'language'>) {
    this.#voice = voice
    this.#options = { format, ...(speaker === undefined ? {} : { speaker }), ...(language === undefined ? {} : { language }) }
  }

  async speak(text: string, abortSignal: AbortSignal): Promise<ItemSound> {
    const audio = await this.#voice.speak(text, { ...this.#options, abortSignal })
    const rate = rateOfPcm(audio.mediaType)
    const samples = new SampleStream()
    if (rate !== undefined) {
      void copy(audio, samples)
      return { rate, samples }
    }
    const pieces: Uint8Array[] = []
    for await (const piece of audio) pieces.push(piece)
    const wav = readWav(Buffer.concat(pieces))
    if (!wav) {
      const { mediaType } = audio
      const message = `A session plays samples of 16 bits, and the model spoke ${mediaType}. Choose one that speaks audio/pcm or audio/wav.`
      throw new HeedError('invalid_audio', message, { details: { mediaType } })
    }
    samples.push(wav.pcm)
    samples.end()
    return { rate: wav.rate, samples }
  }
}

/** Copies bytes in pieces that divide no sample. A last byte without its sample is left out. */
async function copy(audio: SpokenAudio, to: SampleStream): Promise<void> {
  let rest: Uint8Array = new Uint8Array()
  try {
    for await (const piece of audio) {
      const all = rest.length === 0 ? piece : Buffer.concat([rest, piece])
      const even = all.length - (all.length % 2)
      rest = all.subarray(even)
      to.push(all.subarray(0, even))
      if (to.bytes > maxBytes) throw new HeedError('too_large', `The sound of a sentence has more than ${maxBytes} bytes.`)
    }
    to.end()
  } catch (error) {
    to.end(error)
  }
}
