import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, ftruncateSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** Builds the layer with this C compiler, and returns its path. */
export function buildLayer(compiler: string, folder: string): string {
  const library = join(folder, 'unsynced.so')
  const source = join(import.meta.dirname, 'unsynced.c')
  const options = ['-shared', '-fPIC', '-O1', '-Wall', '-Werror', '-o', library, source, '-ldl', '-lpthread']
  execFileSync(compiler, options, { stdio: ['ignore', 'ignore', 'pipe'] })
  return library
}

/** What a process needs to be under the layer. */
export function underLayer(library: string, folder: string): Record<string, string> {
  return { LD_PRELOAD: library, UNSYNCED_FOLDER: folder, UNSYNCED_NOTES: notesIn(folder), UV_USE_IO_URING: '0' }
}

function notesIn(folder: string): string {
  return join(folder, 'unsynced.notes')
}

interface Write {
  order: number
  path: string
  offset: number
  oldSize: number
  old: Buffer
}

const WRITTEN = 1

/**
 * The power is cut: every write that no sync covered is undone, the last one first. Answers how many that were. The processes must be dead.
 */
export function cutPower(folder: string): { dropped: number; kept: number } {
  const notes = notesIn(folder)
  if (!existsSync(notes)) return { dropped: 0, kept: 0 }
  const { writes, synced } = read(readFileSync(notes))
  const lost = writes.filter(({ path, order }) => order > (synced.get(path) ?? 0))
  for (const { path, offset, oldSize, old } of lost.toReversed()) {
    const file = openSync(path, 'r+')
    if (old.length > 0) writeSync(file, old, 0, old.length, offset)
    ftruncateSync(file, oldSize)
    closeSync(file)
  }
  // The index of the log is in memory only; a machine that starts has none.
  for (const path of new Set(writes.map((write) => write.path))) rmSync(`${path.replace(/-wal$/, '')}-shm`, { force: true })
  rmSync(notes)
  return { dropped: lost.length, kept: writes.length - lost.length }
}

function read(notes: Buffer): { writes: Write[]; synced: Map<string, number> } {
  const writes: Write[] = []
  const synced = new Map<string, number>()
  for (let at = 0; at + 48 <= notes.length;) {
    const field = (index: number) => Number(notes.readBigInt64LE(at + 8 * index))
    const [kind, order, offset, oldSize, oldLength, pathLength] = [field(0), field(1), field(2), field(3), field(4), field(5)]
    const end = at + 48 + pathLength + oldLength
    // The kill came while this was noted: the write itself had not begun.
    if (end > notes.length) break
    const path = notes.toString('utf8', at + 48, at + 48 + pathLength)
    if (kind === WRITTEN) writes.push({ order, path, offset, oldSize, old: notes.subarray(at + 48 + pathLength, end) })
    else synced.set(path, Math.max(order, synced.get(path) ?? 0))
    at = end
  }
  return { writes, synced }
}
