import { sleep, type Clock } from '../../base/clock.ts'
import type { Sentence } from '../sentences.ts'
import type { Samples } from '../sound/wav.ts'
import type { PlayedItem } from './heard.ts'

/** A sentence on its way to the player. */
export interface SpokenItem extends PlayedItem {
  readonly id: string
  readonly messageId: string
  /** When its first samples are played, by the clock; undefined before. */
  startsAt: number | undefined
  /** How much of it the player was given. */
  givenMs: number
}

interface WaitingItem {
  sentence: Sentence
  item: SpokenItem
  sound: Promise<Samples | undefined> | undefined
}

/** What a queue calls. */
export interface SpeechQueueHooks {
  clock: Clock
  /** The sound of a sentence; undefined where it could not be made, which the caller has reported. */
  speak(text: string, signal: AbortSignal): Promise<Samples | undefined>
  /** The sentence is about to be played. Returns whether it may be. */
  begins(item: SpokenItem, text: string, rate: number): boolean
  samples(item: SpokenItem, audio: Uint8Array): void
  /** Resolves when the reader has room for sound. */
  room(): Promise<void> | undefined
  /** All that was given has been played, by the clock. */
  silent(): void
}

/** The player gets samples of so many milliseconds at once. */
const frameMs = 100
/** So much sound the player has in advance: enough for the delays of a network. */
const leadMs = 300

/**
 * Speaks sentences one after the other, at the speed at which they are played: the sound of one sentence is made while the one before it
 * is played, and a player never has more than a little of it in advance. Without a reader of the events it waits.
 */
export class SpeechQueue {
  readonly #hooks: SpeechQueueHooks
  #waiting: WaitingItem[] = []
  /** Aborted by `stop()`. Each sequence of sentences has one of its own. */
  #stop = new AbortController()
  #playing: Promise<void> | undefined
  /** When the player will have played all that it was given. */
  #playsUntil = 0

  constructor(hooks: SpeechQueueHooks) {
    this.#hooks = hooks
  }

  /** True while a sentence waits or is played. */
  get busy(): boolean {
    return this.#playing !== undefined
  }

  add(item: SpokenItem, sentence: Sentence): void {
    this.#waiting.push({ item, sentence, sound: undefined })
    this.#prepareNext()
    this.#playing ??= this.#play(this.#stop.signal)
  }

  /** Drops everything that was not given to the player. */
  stop(): void {
    this.#stop.abort()
    this.#stop = new AbortController()
    this.#waiting = []
    this.#playsUntil = 0
    this.#playing = undefined
  }

  #prepareNext(): void {
    const [next] = this.#waiting
    if (next) next.sound ??= this.#hooks.speak(next.sentence.spoken, this.#stop.signal)
  }

  async #play(signal: AbortSignal): Promise<void> {
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      const sound = await next.sound
      if (signal.aborted) return
      this.#waiting.shift()
      this.#prepareNext()
      if (sound && this.#hooks.begins(next.item, next.sentence.spoken, sound.rate)) await this.#give(next.item, sound, signal)
      if (signal.aborted) return
    }
    await this.#until(this.#playsUntil, signal)
    if (signal.aborted) return
    this.#playing = undefined
    // Sentences may have come while the last one was played.
    if (this.#waiting.length > 0) this.#playing = this.#play(signal)
    else this.#hooks.silent()
  }

  async #give(item: SpokenItem, { pcm, rate }: Samples, signal: AbortSignal): Promise<void> {
    const { clock } = this.#hooks
    item.durationMs = (pcm.length / 2 / rate) * 1_000
    const frameBytes = 2 * Math.ceil((rate * frameMs) / 1_000)
    for (let at = 0; at < pcm.length; at += frameBytes) {
      await this.#until(this.#playsUntil - leadMs, signal)
      await this.#hooks.room()
      if (signal.aborted) return
      const frame = pcm.subarray(at, at + frameBytes)
      const begins = Math.max(clock.now(), this.#playsUntil)
      item.startsAt ??= begins
      this.#hooks.samples(item, frame)
      const ms = (frame.length / 2 / rate) * 1_000
      item.givenMs += ms
      this.#playsUntil = begins + ms
    }
  }

  async #until(time: number, signal: AbortSignal): Promise<void> {
    const ms = time - this.#hooks.clock.now()
    if (ms <= 0 || signal.aborted) return
    // Only `stop()` ends the wait early.
    await sleep(this.#hooks.clock, ms, signal).catch(() => {})
  }
}
