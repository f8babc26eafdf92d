import { isWav } from './wav.ts'

/** The media type of a sound by its first bytes. Undefined for samples without a header and for what is no sound. */
export function mediaTypeOf(bytes: Uint8Array): string | undefined {
  if (isWav(bytes)) return 'audio/wav'
  const [a = 0, b = 0, c = 0, d = 0] = bytes
  if (a === 0x49 && b === 0x44 && c === 0x33) return 'audio/mpeg'
  // A frame of AAC has the layer 0, one of MP3 another.
  if (a === 0xff && (b & 0xf6) === 0xf0) return 'audio/aac'
  if (a === 0xff && (b & 0xe0) === 0xe0 && (b & 0x06) !== 0) return 'audio/mpeg'
  const tag = String.fromCharCode(a, b, c, d)
  if (tag === 'OggS') return 'audio/ogg'
  if (tag === 'fLaC') return 'audio/flac'
  if (a === 0x1a && b === 0x45 && c === 0xdf && d === 0xa3) return 'audio/webm'
  if (String.fromCharCode(...bytes.subarray(4, 8)) === 'ftyp') return 'audio/mp4'
  return undefined
}

/** The rate in `audio/pcm;rate=24000`; undefined for other types, and for one without a rate. */
export function rateOfPcm(mediaType: string): number | undefined {
  const [type = '', ...parameters] = mediaType.toLowerCase().split(';').map((part) => part.trim())
  if (type !== 'audio/pcm') return undefined
  const rate = Number(parameters.find((parameter) => parameter.startsWith('rate='))?.slice('rate='.length))
  return Number.isInteger(rate) && rate > 0 ? rate : undefined
}

export function pcmType(rate: number): string {
  return `audio/pcm;rate=${rate}`
}

/** The name of a format in the AI SDK's `outputFormat`, which has no media types. */
export function formatName(type: string): string {
  const name = type.toLowerCase().replace(/^audio\//, '')
  return name === 'mpeg' ? 'mp3' : name
}
