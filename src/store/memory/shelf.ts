import { TAIL_SEQ, type LaneRecord, type LaneSignalRecord, type MailRecord, type RowRecord, type RunRecord, type ThreadRecord } from '../core/records.ts'

/** Everything of one thread. */
export class Shelf {
  thread: ThreadRecord
  /** By `seq`; the tail band is at the end. */
  rows: RowRecord[] = []
  readonly #byId = new Map<string, RowRecord>()
  readonly #rowsOfMessage = new Map<string, number>()
  readonly mail = new Map<string, MailRecord>()
  /** What waits or was taken, by `ord`. */
  open: MailRecord[] = []
  /** With a number that grows from run to run, over all threads. */
  readonly runs = new Map<string, { begun: number; run: RunRecord }>()
  readonly lanes = new Map<string, LaneRecord>()
  /** By the signal's id. */
  readonly laneSignals = new Map<string, LaneSignalRecord>()

  constructor(thread: ThreadRecord) {
    this.thread = thread
  }

  row(id: string): RowRecord | undefined {
    return this.#byId.get(id)
  }

  hasMessage(messageId: string): boolean {
    return this.#rowsOfMessage.has(messageId)
  }

  /** Where `seq` is, or would be. */
  position(seq: number): number {
    let low = 0
    let high = this.rows.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.rows[middle]?.seq ?? 0) < seq) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Rows that have their place, oldest first. */
  placed(fromSeq = 0): RowRecord[] {
    return this.rows.slice(this.position(fromSeq), this.position(TAIL_SEQ))
  }

  /** Goes back over the counted rows until one is `past` the wanted; answers the one after it. */
  countedBefore(past: (row: RowRecord) => boolean): RowRecord | undefined {
    let found: RowRecord | undefined
    for (let index = this.position(TAIL_SEQ) - 1; index >= 0; index -= 1) {
      const row = this.rows[index]
      if (row?.counted !== 1) continue
      if (past(row)) break
      found = row
    }
    return found
  }

  add(row: RowRecord): void {
    this.rows.splice(this.position(row.seq), 0, row)
    this.#index(row)
  }

  revise(row: RowRecord): void {
    const there = this.#byId.get(row.id)
    if (!there) return
    this.#forget(there)
    this.rows[this.position(there.seq)] = row
    this.#index(row)
  }

  renumber(change: (row: RowRecord) => RowRecord): void {
    this.rows = this.rows.map((row) => {
      if (row.seq < TAIL_SEQ) return row
      const moved = change(row)
      this.#byId.set(row.id, moved)
      return moved
    })
  }

  /** Answers what went. */
  remove(goes: (row: RowRecord) => boolean): RowRecord[] {
    const gone = this.rows.filter(goes)
    if (gone.length === 0) return gone
    for (const row of gone) this.#forget(row)
    const ids = new Set(gone)
    this.rows = this.rows.filter((row) => !ids.has(row))
    return gone
  }

  settle(mail: MailRecord): void {
    this.mail.set(mail.id, mail)
    const stays = mail.state === 'pending' || mail.state === 'taken'
    this.open = this.open.flatMap((other) => (other.id !== mail.id ? other : stays ? mail : []))
  }

  #index(row: RowRecord): void {
    this.#byId.set(row.id, row)
    this.#rowsOfMessage.set(row.messageId, (this.#rowsOfMessage.get(row.messageId) ?? 0) + 1)
  }

  #forget(row: RowRecord): void {
    this.#byId.delete(row.id)
    const left = (this.#rowsOfMessage.get(row.messageId) ?? 1) - 1
    if (left === 0) this.#rowsOfMessage.delete(row.messageId)
    else this.#rowsOfMessage.set(row.messageId, left)
  }
}
