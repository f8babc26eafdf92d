import type { SpeechModelV4, SpeechModelV4CallOptions, TranscriptionModelV4, TranscriptionModelV4CallOptions } from '@ai-sdk/provider'
import { spelledRate, spelledSound, spelledText } from '../../src/testing/spelled-sound.ts'
import { readWav } from '../../src/voice/sound/wav.ts'

export { spelledMs as characterMs, spelledRate as rate, spelledSound as soundOf, spelledText as textOf } from '../../src/testing/spelled-sound.ts'

export function silence(ms: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(2 * Math.round((spelledRate * ms) / 1_000))
}

/** A speech model whose sound says what it was asked for. */
export function toneSpeech(options: { onCall?: (call: SpeechModelV4CallOptions) => Promise<void> | void } = {}): SpeechModelV4 & { calls: SpeechModelV4CallOptions[] } {
  const calls: SpeechModelV4CallOptions[] = []
  return {
    specificationVersion: 'v4', provider: 'tone', modelId: 'tone-speech', calls,
    async doGenerate(call) {
      calls.push(call)
      await options.onCall?.(call)
      return { audio: spelledSound(call.text), warnings: [], response: { timestamp: new Date(0), modelId: 'tone-speech' } }
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
      const text = spelledText(readWav(call.audio as Uint8Array)?.pcm ?? new Uint8Array())
      return {
        text, segments: [], language: undefined, durationInSeconds: undefined, warnings: [], response: { timestamp: new Date(0), modelId: 'tone-transcription' },
      }
    },
  }
}
