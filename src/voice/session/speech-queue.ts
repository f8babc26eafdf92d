import { sleep, type Clock } from '../../base/clock.ts'
import { estimatedMs, type PlayedItem } from './heard.ts'
import type { ItemSound } from './mouth.ts'

/** A sentence, or what a realtime model says at once, on its way to the player. */
export interface SpokenItem extends PlayedItem {
  readonly id: string
  readonly messageId: string
  /** The player knows of it. */
  begun: boolean
  /** When its first samples are played, by the clock; undefined before. */
  startsAt: number | undefined
  /** How much of it the player was given. */
  givenMs: number
}

/** Makes the sound of an item; undefined where it could not be made, which the maker has reported. */
export type MakeSound = (signal: AbortSignal) => Promise<ItemSound | undefined>

interface WaitingItem {
  item: SpokenItem
  make: MakeSound
  sound: Promise<ItemSound | undefined> | undefined
}

/** What a queue calls. */
export interface SpeechQueueHooks {
  clock: Clock
  /** The item is about to be played. Returns whether it may be. */
  begins(item: SpokenItem, rate: number): boolean
  samples(item: SpokenItem, audio: Uint8Array): void
  /** The player was given all of it. `failure`: its sound ended too early. */
  ends(item: SpokenItem, failure?: unknown): void
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
 * Speaks items one after the other, at the speed at which they are played: the sound of one item is made while the one before it
 * is played, and a player never has more than a little of it in advance. Without a reader of the events it waits.
 */
export class SpeechQueue {
  readonly #hooks: SpeechQueueHooks
  #waiting: WaitingItem[] = []
  /** Aborted by `stop()`. Each sequence of items has one of its own. */
  #stop = new AbortController()
  #playing: Promise<void> | undefined
  /** When the player will have played all that it was given. */
  #playsUntil = 0

  constructor(hooks: SpeechQueueHooks) {
    this.#hooks = hooks
  }

  /** True while an item waits or is played. */
  get busy(): boolean {
    return this.#playing !== undefined
  }

  add(item: SpokenItem, make: MakeSound): void {
    this.#waiting.push({ item, make, sound: undefined })
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
    if (next) next.sound ??= next.make(this.#stop.signal)
  }

  async #play(signal: AbortSignal): Promise<void> {
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      const sound = await next.sound
      if (signal.aborted) return
      this.#waiting.shift()
      this.#prepareNext()
      if (sound && this.#hooks.begins(next.item, sound.rate)) await this.#give(next.item, sound, signal)
      if (signal.aborted) return
    }
    await this.#until(this.#playsUntil, signal)
    if (signal.aborted) return
    this.#playing = undefined
    // Items may have come while the last one was played.
    if (this.#waiting.length > 0) this.#playing = this.#play(signal)
    else this.#hooks.silent()
  }

  async #give(item: SpokenItem, sound: ItemSound, signal: AbortSignal): Promise<void> {
    const { samples, rate } = sound
    const frameBytes = 2 * Math.ceil((rate * frameMs) / 1_000)
    try {
      for await (const piece of samples) {
        for (let at = 0; at < piece.length; at += frameBytes) {
          await this.#giveFrame(item, piece.subarray(at, at + frameBytes), sound, signal)
          if (signal.aborted) return
        }
      }
    } catch (error) {
      // Its duration stays an estimate: what was not said was not heard.
      if (!signal.aborted) this.#hooks.ends(item, error)
      return
    }
    if (signal.aborted) return
    item.durationMs = item.givenMs
    this.#hooks.ends(item)
  }

  async #giveFrame(item: SpokenItem, frame: Uint8Array, { samples, rate }: ItemSound, signal: AbortSignal): Promise<void> {
    const { clock } = this.#hooks
    await this.#until(this.#playsUntil - leadMs, signal)
    await this.#hooks.room()
    if (signal.aborted) return
    const begins = Math.max(clock.now(), this.#playsUntil)
    item.startsAt ??= begins
    this.#hooks.samples(item, frame)
    const ms = msOf(frame.length, rate)
    item.givenMs += ms
    const knownMs = msOf(samples.bytes, rate)
    item.durationMs = samples.complete ? knownMs : estimatedMs(item, knownMs)
    this.#playsUntil = begins + ms
  }

  async #until(time: number, signal: AbortSignal): Promise<void> {
    const ms = time - this.#hooks.clock.now()
    if (ms <= 0 || signal.aborted) return
    // Only `stop()` ends the wait early.
    await sleep(this.#hooks.clock, ms, signal).catch(() => {})
  }
}

function msOf(bytes: number, rate: number): number {
  return (bytes / 2 / rate) * 1_000
}
