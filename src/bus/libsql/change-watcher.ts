import { closeSync, constants, openSync, watch, writeSync, type FSWatcher } from 'node:fs'
import { join } from 'node:path'
import { systemClock, type Timer } from '../../base/clock.ts'

/** How often to poll, in milliseconds: where the file system reports changes, only in case it misses one. */
const watched = { lowLatency: 1_000, idle: 5_000 }
const unwatched = { lowLatency: 20, idle: 1_000 }

/** Written after each commit. */
const notifyFile = 'notify'

interface ChangeEvents {
  changed(): void
  /** The queue's file was removed or made anew. */
  replaced(): void
  wantsLowLatency(): boolean
}

/**
 * Calls `changed` when another process has notified, and at intervals. It watches the folder, since a watch on a file ends when the file is
 * replaced. Processes write to a file of its own to notify: the file system reports the bytes of SQLite's log before they are committed,
 * so a reader would find nothing then and not be called again. Owns the watch, the file and the timer, until `close`.
 */
export class ChangeWatcher {
  readonly #events: ChangeEvents
  readonly #file: number | undefined
  #watcher: FSWatcher | undefined
  #timer: Timer | undefined
  #closed = false

  constructor(folder: string, events: ChangeEvents) {
    this.#events = events
    try {
      this.#file = openSync(join(folder, notifyFile), constants.O_RDWR | constants.O_CREAT)
      this.#watcher = watch(folder, { persistent: false }, (event, name) => {
        if (name === notifyFile) events.changed()
        else if (name === 'bus.db' && event === 'rename') events.replaced()
      })
      this.#watcher.on('error', () => this.#unwatch())
    } catch {
      // Some file systems can't be watched, and systems limit the number of watches: polling is enough.
    }
    this.#schedule()
  }

  /** Wakes the other processes. Call it after the commit. */
  notify(): void {
    if (this.#file === undefined) return
    try {
      writeSync(this.#file, '.', 0)
    } catch {
      // The disk is full. The other processes poll.
    }
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    if (this.#file !== undefined) closeSync(this.#file)
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
    const interval = this.#watcher ? watched : unwatched
    this.#timer = systemClock.after(this.#events.wantsLowLatency() ? interval.lowLatency : interval.idle, () => {
      this.#events.changed()
      if (!this.#closed) this.#schedule()
    }, { background: true })
  }
}
