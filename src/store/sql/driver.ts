import type { Clock } from '../../base/clock.ts'
import type { Rewound, ThreadsEnded } from '../contract/threads.ts'
import type { SeenHeartbeats } from './seen-heartbeats.ts'
import type { Statements } from './statements.ts'
import type { SqlTables } from './tables.ts'

/** The connection of a store to its database, in this process or remote. A driver for another database implements this. */
export interface SqlConnection {
  /** Runs `work` in one transaction, which other writes may share. It may run several times, so it must not have other effects. */
  write<Result>(work: (tables: SqlTables, statements: Statements) => Result, steps?: TransactionSteps<Result>): Promise<Result>
  /** Runs `work` on one snapshot of the database. */
  read<Result>(work: (tables: SqlTables, statements: Statements) => Result): Promise<Result>
  /** The same for a single statement, which needs no transaction to see one snapshot. */
  peek?<Result>(work: (statements: Statements) => Result): Promise<Result>
  /** Resolves when all committed transactions would survive a power loss. */
  flush(): Promise<void>
  close(): Promise<void>
  /** Called after each transaction through this connection that ended threads: see `ThreadStore.onThreadsEnded`. */
  readonly threadsEnded: Set<ThreadsEnded>
  /** Names the database in errors, without credentials. */
  readonly name?: string
  /** Called when the database went back: see `ThreadStore.onRewound`. Absent where it can't. */
  readonly rewound?: Set<(rewound: Rewound) => void>
  /** Called after each transaction through this connection that changed messages. */
  readonly onMessages?: Set<() => void>
  /** Called when the connection closes, which waits for what they return: until then it still executes transactions. */
  readonly onClose?: Set<() => Promise<void>>
  /** Whether the database caused an error that a statement threw. Absent where statements do not throw within `work`. */
  isFailure?(error: unknown): boolean
}

/** The clock of a store. With `byServer`, what this process knows of heartbeats, they have the time of the database server instead. */
export interface StoreClock extends Clock {
  byServer?: SeenHeartbeats | undefined
  /** No lease is granted now: see `Rewound.restMs`. */
  isResting?: boolean
}

export interface TransactionSteps<Result> {
  /** Before all writes that are queued. */
  first?: boolean
  /** Runs in the same transaction after the work of all writes that share it, and returns the result. */
  last?(tables: SqlTables, result: Result): Result
}

/** An open connection, which several stores may share. */
export interface OpenedConnection {
  connection: SqlConnection
  /** Closes the connection, unless another store uses it. */
  release(): Promise<void>
}

/** The owner of a connection: a store. */
export interface ConnectionOwner {
  open(): Promise<void>
  close(): Promise<void>
  /** @internal */
  now(): number
  /** @internal */
  connection(): Promise<SqlConnection>
}
