/** Samples of 16 bits, little-endian, one channel. */
export interface Samples {
  pcm: Uint8Array
  rate: number
}

const headerBytes = 44
/** The length in the header of a sound that is still being made. */
const unknownLength = 0xff_ff_ff_ff

/** The header of a WAV file with samples of 16 bits and one channel; without a length, that of one that is still being made. */
export function wavHeader(rate: number, length?: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(headerBytes))
  const text = (at: number, letters: string) => {
    for (let i = 0; i < letters.length; i++) view.setUint8(at + i, letters.charCodeAt(i))
  }
  text(0, 'RIFF')
  view.setUint32(4, length === undefined ? unknownLength : length + headerBytes - 8, true)
  text(8, 'WAVEfmt ')
  view.setUint32(16, 16, true)
  view.setUint16(20, 1, true)
  view.setUint16(22, 1, true)
  view.setUint32(24, rate, true)
  view.setUint32(28, rate * 2, true)
  view.setUint16(32, 2, true)
  view.setUint16(34, 16, true)
  text(36, 'data')
  view.setUint32(40, length ?? unknownLength, true)
  return new Uint8Array(view.buffer)
}

export function toWav({ pcm, rate }: Samples): Uint8Array {
  const wav = new Uint8Array(headerBytes + pcm.length)
  wav.set(wavHeader(rate, pcm.length))
  wav.set(pcm, headerBytes)
  return wav
}

export function isWav(bytes: Uint8Array): boolean {
  return letters(bytes, 0, 4) === 'RIFF' && letters(bytes, 8, 4) === 'WAVE'
}

/** The samples of a WAV file with 16 bits, several channels mixed into one. Undefined for other files and for damaged ones. */
export function readWav(bytes: Uint8Array): Samples | undefined {
  if (!isWav(bytes)) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let format: { channels: number; rate: number } | undefined
  for (let at = 12; at + 8 <= bytes.length;) {
    const [name, length] = [letters(bytes, at, 4), view.getUint32(at + 4, true)]
    const begin = at + 8
    if (name === 'fmt ') {
      if (begin + 16 > bytes.length) return undefined
      // 0xfffe: the format is in an extension of the header; the depth of the samples is in both.
      const kind = view.getUint16(begin, true)
      if ((kind !== 1 && kind !== 0xfffe) || view.getUint16(begin + 14, true) !== 16) return undefined
      format = { channels: view.getUint16(begin + 2, true), rate: view.getUint32(begin + 4, true) }
    } else if (name === 'data') {
      if (!format || format.channels === 0 || format.rate === 0) return undefined
      const data = bytes.subarray(begin, Math.min(bytes.length, begin + length))
      return { pcm: toMono(data, format.channels), rate: format.rate }
    }
    at = begin + length + (length % 2)
  }
  return undefined
}

function toMono(data: Uint8Array, channels: number): Uint8Array {
  if (channels === 1) return data.subarray(0, data.length - (data.length % 2))
  const from = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const frames = Math.floor(data.length / (2 * channels))
  const mono = new DataView(new ArrayBuffer(frames * 2))
  for (let frame = 0; frame < frames; frame++) {
    let sum = 0
    for (let channel = 0; channel < channels; channel++) sum += from.getInt16((frame * channels + channel) * 2, true)
    mono.setInt16(frame * 2, Math.round(sum / channels), true)
  }
  return new Uint8Array(mono.buffer)
}

function letters(bytes: Uint8Array, at: number, length: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + length))
}
