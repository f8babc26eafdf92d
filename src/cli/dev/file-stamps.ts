import { statSync, watch, type FSWatcher } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** How long no watched file changes before a change is reported: editors write a file in several steps. */
const quietMs = 80

/** Differs after each write of a file; empty for a file that does not exist. */
export function stampOf(path: string): string {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stat ? `${stat.ino}:${stat.size}:${stat.mtimeNs}` : ''
}

/**
 * Reports changes of exactly these files. It watches their folders, since editors replace files, and compares stamps, since a folder
 * reports more than changes. The stamp of a file is taken before it is read, so that a write during the load is a change too.
 */
export class WatchedFiles {
  readonly #stamps = new Map<string, string>()
  readonly #folders = new Map<string, FSWatcher>()
  readonly #onChange: (paths: string[]) => void
  readonly #changed = new Set<string>()
  #timer: NodeJS.Timeout | undefined

  constructor(onChange: (paths: string[]) => void) {
    this.#onChange = onChange
  }

  /** Watches a file, also one that does not exist yet. */
  add(path: string, stamp: string): void {
    this.#stamps.set(path, stamp)
    this.#watchFolder(dirname(path))
    if (stampOf(path) !== stamp) this.#note(path)
  }

  /** Leaves all files but these. */
  retain(paths: ReadonlySet<string>): void {
    for (const path of this.#stamps.keys()) if (!paths.has(path)) this.#stamps.delete(path)
    const folders = new Set([...this.#stamps.keys()].map((path) => dirname(path)))
    for (const [folder, watcher] of this.#folders) {
      if (folders.has(folder)) continue
      watcher.close()
      this.#folders.delete(folder)
    }
  }

  close(): void {
    clearTimeout(this.#timer)
    this.retain(new Set())
  }

  #watchFolder(folder: string): void {
    if (this.#folders.has(folder)) return
    try {
      const watcher = watch(folder, (_event, name) => {
        // Some systems name no file: then all files of the folder are compared.
        const paths = name === null ? [...this.#stamps.keys()].filter((path) => dirname(path) === folder) : [join(folder, basename(name))]
        for (const path of paths) if (this.#stamps.has(path)) this.#compare(path)
      })
      watcher.on('error', () => this.#folders.delete(folder))
      this.#folders.set(folder, watcher)
    } catch {
      // The folder of a module that was not found may be missing too.
    }
  }

  #compare(path: string): void {
    if (stampOf(path) !== this.#stamps.get(path)) this.#note(path)
  }

  #note(path: string): void {
    this.#changed.add(path)
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      const changed = [...this.#changed].filter((one) => this.#stamps.has(one) && stampOf(one) !== this.#stamps.get(one))
      this.#changed.clear()
      for (const one of changed) this.#stamps.set(one, stampOf(one))
      if (changed.length > 0) this.#onChange(changed)
    }, quietMs)
  }
}
