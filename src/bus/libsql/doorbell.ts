import { watch, type FSWatcher } from 'node:fs'
import { systemClock, type Timer } from '../../clock.ts'

/** How often to look, in milliseconds: where the system tells of changes, only in case it forgets to. */
const told = { attentive: 1_000, idle: 5_000 }
const untold = { attentive: 20, idle: 1_000 }

/**
 * Calls `look` when something in a folder may have changed. The folder is watched and not a file in it: SQLite removes and makes its log
 * anew, and a watch on the old one would be dead. Owns the watch and the timer, until `close`.
 */
export class Doorbell {
  readonly #look: () => void
  readonly #attentive: () => boolean
  #watcher: FSWatcher | undefined
  #timer: Timer | undefined
  #closed = false

  constructor(folder: string, on: { look(): void; replaced(): void; attentive(): boolean }) {
    this.#look = on.look
    this.#attentive = on.attentive
    try {
      this.#watcher = watch(folder, { persistent: false }, (event, name) => {
        if (name === 'bus.db-wal') this.#look()
        else if (name === 'bus.db' && event === 'rename') on.replaced()
      })
      this.#watcher.on('error', () => this.#unwatch())
    } catch {
      // Not every file system can be watched, and systems limit how many are.
    }
    this.#schedule()
  }

  close(): void {
    this.#closed = true
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
