import type { Chunk } from '../run/chunk.ts'

/** What processes tell each other. JSON, and small: a bell says where to look, and the store what is there. */
export type BusMessage =
  /** A member is new: whoever watches something tells it. */
  | { kind: 'hello' }
  /** A member goes; threads that it ran may need another runner. */
  | { kind: 'goodbye' }
  /** Something waits on a thread that nobody runs. */
  | { kind: 'mail'; threadId: string }
  /** The inboxes of these resources changed. */
  | { kind: 'inbox'; resourceIds: string[] }
  /** What was sent elsewhere to this thread was taken, or will not be; `read`: what was taken, processors have let pass or refused. */
  | { kind: 'settled'; threadId: string; read?: true }
  /** A thread belongs to another resource now. */
  | { kind: 'transferred'; threadId: string; resourceId: string }
  /** To the runner: a signal came that is not to wait for the end of the step. */
  | { kind: 'interrupt'; threadId: string; signalId: string }
  /** To the runner, which answers with `aborted` under the same `ask`. */
  | { kind: 'abort'; threadId: string; ask: string; runId?: string; clearPending: boolean }
  | { kind: 'aborted'; ask: string; aborted: boolean; runId?: string }
  /** Threads that somebody watches at the sender's, from now on until `unwatch`, or until it is silent for too long. */
  | { kind: 'watch'; threadIds: string[] }
  | { kind: 'unwatch'; threadIds: string[] }
  /** To the runner: tell me what is live. It answers with `state`. */
  | { kind: 'catch-up'; threadId: string; after?: string }
  | { kind: 'state'; threadId: string; number: number; state: LiveState }
  /** What happened on a thread in this epoch: event number `first` of it, counted from 1, and those that followed. */
  | { kind: 'events'; threadId: string; resourceId?: string; epoch: number; first: number; events: LiveEvent[] }

/** What changes the live side of a thread. The same events in the same order make the same log everywhere. */
export type LiveEvent =
  | { type: 'chunk'; chunk: Chunk }
  | { type: 'run'; runId: string; seq: number }
  | { type: 'committed'; seq: number }
  /** The run is over, or waits; `more`: its runner goes on with another. */
  | { type: 'rest'; suspended: boolean; more?: boolean }
  /** What was said before no longer counts. */
  | { type: 'anew' }
  /** What was said before was refused: it is for those who have read it, and for nobody else. */
  | { type: 'withdrawn' }

/** The live side of a thread at one moment, as far as it is kept. */
export interface LiveState {
  resourceId?: string
  epoch: number
  index: number
  runId?: string
  running: boolean
  seq: number
  committed: number
  /** What the present step said so far, and the cursor before it. */
  step: Chunk[]
  stepCursor: string
  /** The newest chunks, none left out. */
  chunks: Chunk[]
  /** The cursor of the chunk before those; absent when that isn't known. */
  before?: string
  /** Whether `chunks` begin where the run began, or before. */
  whole: boolean
}
