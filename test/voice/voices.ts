import type { SpeechModelV4, SpeechModelV4CallOptions, TranscriptionModelV4, TranscriptionModelV4CallOptions } from '@ai-sdk/provider'
import { readWav } from '../../src/voice/sound/wav.ts'

/** Samples a second of the voices here. */
export const rate = 24_000
/** How long a character sounds. */
export const characterMs = 50
const perCharacter = (rate * characterMs) / 1_000
/** Loud enough to be speech. */
const base = 8_000

/** The sound of a text: each character is a level of its own, so that it can be read back exactly. */
export function soundOf(text: string): Uint8Array {
  const samples = new Int16Array(text.length * perCharacter)
  for (let i = 0; i < text.length; i++) samples.fill(base + text.charCodeAt(i), i * perCharacter, (i + 1) * perCharacter)
  return new Uint8Array(samples.buffer)
}

export function silence(ms: number): Uint8Array {
  return new Uint8Array(2 * Math.round((rate * ms) / 1_000))
}

/** The text of a sound; silence before, after and within it is left out. */
export function textOf(pcm: Uint8Array): string {
  const view = new DataView(pcm.buffer, pcm.byteOffset, pcm.byteLength)
  let text = ''
  for (let at = 0; at + 1 < pcm.length;) {
    const level = view.getInt16(at, true)
    if (level < base) at += 2
    else {
      text += String.fromCharCode(level - base)
      at += 2 * perCharacter
    }
  }
  return text
}

/** A speech model whose sound says what it was asked for. */
export function toneSpeech(options: { onCall?: (call: SpeechModelV4CallOptions) => Promise<void> | void } = {}): SpeechModelV4 & { calls: SpeechModelV4CallOptions[] } {
  const calls: SpeechModelV4CallOptions[] = []
  return {
    specificationVersion: 'v4', provider: 'tone', modelId: 'tone-speech', calls,
    async doGenerate(call) {
      calls.push(call)
      await options.onCall?.(call)
      return { audio: soundOf(call.text), warnings: [], response: { timestamp: new Date(0), modelId: 'tone-speech' } }
    },
  }
}

/** A transcription model that reads that sound. */
export function toneTranscription(
  options: { onCall?: (call: TranscriptionModelV4CallOptions) => Promise<void> | void } = {},
): TranscriptionModelV4 & { calls: TranscriptionModelV4CallOptions[] } {
  const calls: TranscriptionModelV4CallOptions[] = []
  return {
    specificationVersion: 'v4', provider: 'tone', modelId: 'tone-transcription', calls,
    async doGenerate(call) {
      calls.push(call)
      await options.onCall?.(call)
      const text = textOf(readWav(call.audio as Uint8Array)?.pcm ?? new Uint8Array())
      return {
        text, segments: [], language: undefined, durationInSeconds: undefined, warnings: [], response: { timestamp: new Date(0), modelId: 'tone-transcription' },
      }
    },
  }
}
