import { closeSync, constants, openSync, watch, writeSync, type FSWatcher } from 'node:fs'
import { join } from 'node:path'
import { systemClock, type Timer } from '../../base/clock.ts'

/** How often to look, in milliseconds: where the system tells of changes, only in case it forgets to. */
const told = { attentive: 1_000, idle: 5_000 }
const untold = { attentive: 20, idle: 1_000 }

/**
 * Calls `look` when another process rang. The folder is watched and not a file in it: a file that is removed and made anew would leave a
 * dead watch. A file of its own is written to ring, since what SQLite writes is seen before it counts: whoever looked then would find
 * nothing, and hear nothing more. Owns the watch, the file and the timer, until `close`.
 */
export class Doorbell {
  readonly #look: () => void
  readonly #attentive: () => boolean
  readonly #bell: number | undefined
  #watcher: FSWatcher | undefined
  #timer: Timer | undefined
  #closed = false

  constructor(folder: string, on: { look(): void; replaced(): void; attentive(): boolean }) {
    this.#look = on.look
    this.#attentive = on.attentive
    try {
      this.#bell = openSync(join(folder, 'bell'), constants.O_RDWR | constants.O_CREAT)
      this.#watcher = watch(folder, { persistent: false }, (event, name) => {
        if (name === 'bell') this.#look()
        else if (name === 'bus.db' && event === 'rename') on.replaced()
      })
      this.#watcher.on('error', () => this.#unwatch())
    } catch {
      // Not every file system can be watched, and systems limit how many are.
    }
    this.#schedule()
  }

  /** After what was written counts. */
  ring(): void {
    if (this.#bell === undefined) return
    try {
      writeSync(this.#bell, '.', 0)
    } catch {
      // A disk that is full; the others look by themselves, only later.
    }
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    if (this.#bell !== undefined) closeSync(this.#bell)
    this.#timer?.cancel()
    this.#unwatch()
  }

  #unwatch(): void {
    this.#watcher?.close()
    this.#watcher = undefined
    if (this.#closed) return
    this.#timer?.cancel()
    this.#schedule()
  }

  #schedule(): void {
    const pace = this.#watcher ? told : untold
    this.#timer = systemClock.after(this.#attentive() ? pace.attentive : pace.idle, () => {
      this.#look()
      if (!this.#closed) this.#schedule()
    }, { background: true })
  }
}
