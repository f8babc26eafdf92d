import type { Chunk, DataChunk } from '../message/chunk.ts'

/** JSON. A message that announces a change names the thread or resource; the receiver reads the change from the store. */
export type BusMessage =
  /** The sender connected, or lost messages: each peer answers with the threads that it watches. */
  | { kind: 'hello' }
  /** The sender disconnects; threads that it ran may need another runner. */
  | { kind: 'goodbye' }
  /** Signals are pending on a thread that no process runs. */
  | { kind: 'mail'; threadId: string }
  /** The inboxes of these resources changed. */
  | { kind: 'inbox'; resourceIds: string[] }
  /** Signals of this thread have an outcome, which senders may await; `read`: input processors accepted or refused what was taken. */
  | { kind: 'settled'; threadId: string; read?: true }
  /** A thread was transferred to another resource. */
  | { kind: 'transferred'; threadId: string; resourceId: string }
  /** These threads were deleted: their runs end, and subscribers start over. */
  | { kind: 'deleted'; threadIds: string[] }
  /** The same for all threads: the database was restored from a backup. */
  | { kind: 'restored' }
  /** A chunk beside the stream of a thread, for its subscribers. */
  | { kind: 'beside'; threadId: string; resourceId: string; chunk: DataChunk }
  /** To the runner: this signal interrupts the present step. */
  | { kind: 'interrupt'; threadId: string; signalId: string }
  /** To the runner, which answers with `aborted` under the same `ask`. `clearUpTo`: the `ord` of the last signal that was pending. */
  | { kind: 'abort'; threadId: string; ask: string; runId?: string; clearPending: boolean; clearUpTo?: number }
  | { kind: 'aborted'; ask: string; aborted: boolean; runId?: string }
  /** Threads with subscribers in the sender's process, until `unwatch`, or until the sender has not repeated it for six sweeps. */
  | { kind: 'watch'; threadIds: string[] }
  | { kind: 'unwatch'; threadIds: string[] }
  /** Asks the runner for the live state. It answers with `state`. */
  | { kind: 'catch-up'; threadId: string; after?: string }
  | { kind: 'state'; threadId: string; number: number; state: LiveState }
  /** Consecutive events of a thread in this epoch. `first` is the number of the first one; the first event of an epoch is 1. */
  | { kind: 'events'; threadId: string; resourceId?: string; epoch: number; first: number; events: LiveEvent[] }

/** Changes the live state of a thread. The same events in the same order give the same state in every process. */
export type LiveEvent =
  | { type: 'chunk'; chunk: Chunk }
  | { type: 'run'; runId: string; seq: number }
  | { type: 'committed'; seq: number }
  /** The run ended or is suspended; `more`: its runner continues with another run. */
  | { type: 'rest'; suspended: boolean; more?: boolean }
  /** Earlier chunks are no longer valid. */
  | { type: 'anew' }
  /** Earlier chunks were refused: they are not replayed to subscribers that have not read them. */
  | { type: 'withdrawn' }

/** The live state of a thread at one moment, as far as it is retained. */
export interface LiveState {
  resourceId?: string
  epoch: number
  index: number
  runId?: string
  running: boolean
  /** No run is active, and another begins in this epoch. */
  more?: boolean
  seq: number
  committed: number
  /** A run of this epoch is about to begin: its rows, those after `seq`, are still to be published. */
  coming?: { epoch: number; seq: number }
  /** The chunks of the present step so far, and the cursor before it. */
  step: Chunk[]
  stepCursor: string
  /** The newest chunks, without gaps. */
  chunks: Chunk[]
  /** The cursor of the chunk before those; absent when it is unknown. */
  before?: string
  /** Whether `chunks` begin at the start of the run or earlier. */
  whole: boolean
}
