import fs, { closeSync, openSync, readSync, writeSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import type { Clock } from '../../../src/base/clock.ts'
import { fastClock } from '../fast-clock.ts'

/**
 * The clock of the machine, in a file that all processes read: a step reaches all of them in the same instant, also one that is stopped or
 * whose event loop is blocked. The first number is how far the machine's clock was set; the others are how far the clocks of single
 * processes differ from it.
 */
export class MachineClock {
  readonly #file: number
  readonly #offsets: Float64Array

  constructor(path: string, slots: number) {
    this.#file = openSync(path, 'w+')
    this.#offsets = new Float64Array(1 + slots)
    this.#write()
  }

  /** Sets the clock of the machine. */
  step(ms: number): void {
    this.#offsets[0] = (this.#offsets[0] ?? 0) + ms
    this.#write()
  }

  /** Lets the clock of one process differ from the machine's. */
  skew(slot: number, ms: number): void {
    this.#offsets[1 + slot] = ms
    this.#write()
  }

  close(): void {
    closeSync(this.#file)
  }

  #write(): void {
    writeSync(this.#file, this.#offsets, 0, this.#offsets.byteLength, 0)
  }
}

/** The clocks that one process reads: the machine's, which is the store's, and its own. */
export function clocksOf(path: string, slot: number, speed: number, origin: number): { machine: Clock; own: Clock } {
  const file = openSync(path, 'r')
  const fast = fastClock(speed, origin)
  const number = new Float64Array(1)
  const offset = (index: number) => {
    readSync(file, number, 0, 8, 8 * index)
    return number[0] ?? 0
  }
  return {
    machine: { ...fast, now: () => fast.now() + offset(0) },
    own: { ...fast, now: () => fast.now() + offset(0) + offset(1 + slot) },
  }
}

/** Lets every sync of a file take longer, from the call on. */
export function slowSyncs(): (ms: number) => void {
  const { fdatasync } = fs
  let delay = 0
  const slow = (file: number, done: fs.NoParamCallback) => {
    if (delay > 0) setTimeout(() => fdatasync(file, done), delay)
    else fdatasync(file, done)
  }
  Object.assign(fs, { fdatasync: slow })
  syncBuiltinESMExports()
  return (ms) => {
    delay = ms
  }
}

/** The file descriptors of this process: all of them can be taken, and given back. */
export class Descriptors {
  #files: number[] = []

  exhaust(): void {
    try {
      for (;;) this.#files.push(openSync('/dev/null', 'r'))
    } catch {
      // None is left.
    }
  }

  free(): void {
    for (const file of this.#files.splice(0)) closeSync(file)
  }
}
