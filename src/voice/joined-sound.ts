import { HeedError } from '../base/errors.ts'
import type { Sound } from './models.ts'
import { readWav, wavHeader } from './sound/wav.ts'

/** Types whose sounds, one after the other, are one sound. */
const joinable = /^audio\/(pcm|mpeg|aac)\b/

/** One stream of bytes of the sounds of several sentences, which have one type. Of WAV files it has one header, at its begin. */
export async function* joinSounds(sounds: AsyncIterable<Sound>): AsyncGenerator<Sound> {
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
    yield { audio: wav ? wav.pcm : audio, mediaType }
  }
}
