import { DatabaseSync, type StatementSync } from 'node:sqlite'

/** Where the transactions of two threads meet, in shared memory: whether one waits, and the number of open calls of each thread. */
export interface Meeting {
  shared: SharedArrayBuffer
  /** Which of the two this is. */
  thread: 0 | 1
}

const empty = 0
/** Makes each wait of this thread another number, so that it ends when the other thread came, also if that waits again already. */
let waits = 0

export function newMeeting(): SharedArrayBuffer {
  return new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT)
}

/** Counts a call of a thread from when it is made until it is answered. */
export function countCall({ shared, thread }: Meeting, by: 1 | -1): void {
  const numbers = new Int32Array(shared)
  Atomics.add(numbers, 1 + thread, by)
  Atomics.notify(numbers, 0)
}

/**
 * Makes the stores of this thread take no lock before they read: their transactions begin with a read, and another connection may write
 * before they do. With a meeting, a transaction waits for one of the other thread while a call is open there: then both have read before
 * either writes. Returns how to undo it.
 */
export function takeNoLocks(meeting?: Meeting): () => void {
  const prepare = DatabaseSync.prototype.prepare
  DatabaseSync.prototype.prepare = function prepared(this: DatabaseSync, sql: string): StatementSync {
    if (sql !== 'BEGIN IMMEDIATE') return prepare.call(this, sql)
    const statement = prepare.call(this, 'BEGIN')
    const look = prepare.call(this, 'SELECT count(*) FROM sqlite_schema')
    const run = statement.run.bind(statement)
    statement.run = (...values: []) => {
      const result = run(...values)
      look.get()
      if (meeting) meet(meeting)
      return result
    }
    return statement
  }
  return () => {
    DatabaseSync.prototype.prepare = prepare
  }
}

function meet({ shared, thread }: Meeting): void {
  const numbers = new Int32Array(shared)
  waits += 1
  const mine = 2 * waits + thread
  const other = Atomics.compareExchange(numbers, 0, empty, mine)
  if (other !== empty) {
    Atomics.compareExchange(numbers, 0, other, empty)
    Atomics.notify(numbers, 0)
    return
  }
  // A notification may arrive before the wait begins, so the numbers are read again every few milliseconds.
  while (Atomics.load(numbers, 0) === mine && Atomics.load(numbers, 2 - thread) > 0) Atomics.wait(numbers, 0, mine, 5)
  Atomics.compareExchange(numbers, 0, mine, empty)
}
