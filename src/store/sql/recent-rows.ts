import { TAIL_SEQ } from '../contract/thread.ts'
import type { CountedRow, RowRecord } from '../core/records.ts'

/** So much is kept: for the threads that were used last, and not for those whose windows are large. */
const mostThreads = 128
const mostText = 1_000_000
const mostOfThread = 100_000

/** All rows of a thread from one on, without the tail band. */
interface Recent {
  from: number
  rows: RowRecord[]
  text: number
}

/**
 * The ends of threads as the database has them, so that a run need not read again what the one before it read or wrote. Knows about
 * appended rows only: whoever keeps this clears it when anything else happened to messages, here or in another process.
 */
export class RecentRows {
  readonly #threads = new Map<number, Recent>()
  #text = 0

  /** Rows from `seq` on, if all of them are here. */
  rowsFrom(thread: number, seq: number): RowRecord[] | undefined {
    const recent = this.#threads.get(thread)
    if (!recent || recent.from > seq) return undefined
    return recent.rows.slice(recent.rows.findLastIndex((row) => row.seq < seq) + 1)
  }

  /** These are all rows of a thread from `seq` on. */
  keep(thread: number, seq: number, rows: readonly RowRecord[]): void {
    this.#drop(thread)
    const text = rows.reduce((sum, { content }) => sum + content.length, 0)
    if (text > mostOfThread) return
    this.#threads.set(thread, { from: seq, rows: [...rows], text })
    this.#text += text
    for (const oldest of this.#threads.keys()) {
      if (this.#threads.size <= mostThreads && this.#text <= mostText) break
      this.#drop(oldest)
    }
  }

  appended(thread: number, row: RowRecord): void {
    const recent = row.seq < TAIL_SEQ ? this.#threads.get(thread) : undefined
    if (!recent) return
    recent.rows.push(row)
    recent.text += row.content.length
    this.#text += row.content.length
    if (recent.text > mostOfThread) this.#drop(thread)
  }

  /** The first counted message at or after `ordinal`, unless one that isn't here could come before it. */
  countedFrom(thread: number, ordinal: number): CountedRow | undefined {
    const rows = this.#threads.get(thread)?.rows ?? []
    let found: RowRecord | undefined
    // From the end: what is asked for is near it.
    for (let index = rows.length - 1; index >= 0; index -= 1) {
      const row = rows[index]
      if (row?.counted !== 1) continue
      if (row.ordinal < ordinal) return found
      found = row
    }
    return found?.ordinal === ordinal ? found : undefined
  }

  /** The `nth` counted message before and including `ordinal`, if it is here. */
  countedBack(thread: number, ordinal: number, nth: number): CountedRow | undefined {
    let left = nth
    return this.#threads.get(thread)?.rows.findLast((row) => {
      if (row.counted === 1 && row.ordinal <= ordinal) left -= 1
      return left === 0
    })
  }

  clear(): void {
    this.#threads.clear()
    this.#text = 0
  }

  #drop(thread: number): void {
    const recent = this.#threads.get(thread)
    if (recent) this.#text -= recent.text
    this.#threads.delete(thread)
  }
}
