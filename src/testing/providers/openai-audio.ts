import type { JSONObject } from '@ai-sdk/provider'
import { HeedError } from '../../base/errors.ts'
import { readWav, toWav } from '../../voice/sound/wav.ts'
import { spelledRate, spelledSound, spelledText } from '../spelled-sound.ts'

/** How a server speaks and listens: samples of 16 bits, little-endian, one channel, 24,000 a second. */
export interface ServerSpeech {
  speak(text: string): Uint8Array | Promise<Uint8Array>
  listen(pcm: Uint8Array): string | Promise<string>
}

/** A sound of which each character can be read back. */
export const spelledSpeech: ServerSpeech = { speak: spelledSound, listen: spelledText }

/** The sound of a request to `/v1/audio/speech`. */
export async function speech(body: JSONObject, voice: ServerSpeech): Promise<{ type: string; bytes: Uint8Array }> {
  const { input, response_format: format = 'mp3' } = body
  if (format !== 'pcm' && format !== 'wav') {
    const message = `The server speaks pcm and wav, not ${String(format)}: speak('…', { format: { type: 'audio/wav' } }).`
    throw new HeedError('unsupported_option', message)
  }
  const pcm = await voice.speak(String(input))
  return format === 'pcm' ? { type: 'audio/pcm', bytes: pcm } : { type: 'audio/wav', bytes: toWav({ pcm, rate: spelledRate }) }
}

/** The fields of a form to `/v1/audio/transcriptions`, and the sound in it. */
export async function readTranscription(bytes: Uint8Array, contentType: string): Promise<{ body: JSONObject; pcm: Uint8Array }> {
  const form = await new Response(bytes as Uint8Array<ArrayBuffer>, { headers: { 'content-type': contentType } }).formData()
  const file = form.get('file')
  if (!(file instanceof File)) throw new HeedError('invalid_argument', 'The form has no file.')
  const wav = readWav(new Uint8Array(await file.arrayBuffer()))
  if (wav?.rate !== spelledRate) throw new HeedError('invalid_argument', `The file must be WAV, with ${spelledRate} samples a second.`)
  const texts = [...form.entries()].flatMap(([name, value]) => (typeof value === 'string' ? [[name, value] as const] : []))
  return { body: { ...Object.fromEntries(texts), file: { name: file.name, type: file.type, size: file.size } }, pcm: wav.pcm }
}
