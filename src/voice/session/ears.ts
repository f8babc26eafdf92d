import type { Voice } from '../contract.ts'
import { SampleStream } from '../sound/sample-stream.ts'
import { pcmType } from '../sound/media-type.ts'

/** What understands the turns of the user. */
export interface Ears {
  /** A turn begins. `onPartial` is called with what was understood so far, where that is known. */
  begin(onPartial: (text: string) => void): HeardTurn
}

/** A turn of the user while it goes on. */
export interface HeardTurn {
  write(pcm: Uint8Array): void
  /** The turn is over. Resolves with its words; with an empty text where there are none. */
  end(): Promise<string>
}

/** Understands turns by `listen()` of a voice, which is called as soon as a turn has sound: a model that streams reads it as it comes. */
export class VoiceEars implements Ears {
  readonly #voice: Pick<Voice, 'listen'>
  readonly #mediaType: string
  readonly #signal: AbortSignal

  constructor(voice: Pick<Voice, 'listen'>, rate: number, signal: AbortSignal) {
    this.#voice = voice
    this.#mediaType = pcmType(rate)
    this.#signal = signal
  }

  begin(onPartial: (text: string) => void): HeardTurn {
    const samples = new SampleStream()
    const onAbort = () => samples.end()
    let words: Promise<string> | undefined
    let over = false
    const begin = () => {
      this.#signal.addEventListener('abort', onAbort, { once: true })
      const listening = this.#voice.listen(samples, {
        mediaType: this.#mediaType,
        abortSignal: this.#signal,
        onPartial: (text) => {
          if (!over) onPartial(text)
        },
      })
      // The caller of `end()` gets the error.
      listening.catch(() => {})
      return listening
    }
    return {
      write: (pcm) => {
        samples.push(pcm)
        words ??= begin()
      },
      end: async () => {
        over = true
        samples.end()
        this.#signal.removeEventListener('abort', onAbort)
        return words ? (await words).trim() : ''
      },
    }
  }
}
