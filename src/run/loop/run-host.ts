import type { MessageRow } from '../../message/row.ts'
import type { Tripwire } from '../../processors/processor.ts'
import type { Chunk, Usage } from '../chunk.ts'
import type { ContextBlock } from './context-source.ts'
import type { WaitingCall } from '../output/run-result.ts'

/** Where a run lives: in memory for one call, or on a durable thread. The loop asks it for a few things and knows nothing else of it. */
export interface RunHost {
  /** Shows a chunk to whoever watches. */
  emit(chunk: Chunk): void
  /**
   * Stores what a step did, and takes what may enter. Resolves when it is stored. With `drain` and `end`, the run only ends if
   * nothing entered, and both are decided at once: nothing can slip in between.
   */
  commit(commit: RunCommit): Promise<RunCommitted>
  /** A model is about to read what entered: processors have let it pass. */
  reading?(): void
  /** What was shown of the run so far was refused, and that is stored: nobody who comes later is to see it. */
  withdraw?(): void
  /** Asked right before a tool begins: aborts the run instead where its thread may be another's by now. */
  beforeTool?(): void
  /** Stores what processors made of input that was taken, before the model sees it. */
  revise(change: InputChange): Promise<void>
  /** The lanes that were there as the run began, with the last snapshot of each. */
  readonly lanes: ReadonlyArray<{ id: string; version: number; lastSnapshotId?: string }>
  /** Rows of the thread's history: the newest before a `seq`, or the oldest after one; in their order, without context. */
  history(query: { before: number; limit: number } | { after: number; limit: number }): Promise<MessageRow[]>
  /** The last snapshot of a lane and what changed since, oldest first, as far as history has them; `left`: how many are left out. */
  laneRows(id: string): Promise<{ rows: MessageRow[]; left: number }>
}

/** Input as processors left it. What they kept stays in its order; what they added follows, in history as in the prompt. */
export interface InputChange {
  /** Rows with other contents than they were taken with. */
  revised: MessageRow[]
  /** Ids of messages that are not to be kept. */
  removed: string[]
  added: MessageRow[]
}

export interface RunCommit {
  step: number
  rows: MessageRow[]
  /** What context rows of these quote. A row with a quote that is no longer so is left out. */
  quoted?: ReadonlyArray<NonNullable<ContextBlock['quoted']>[number] & { rowId: string }>
  /** Which of the rows is the state of a lane, and what makes it news. */
  lane?: { rowId: string; id: string; cacheKey: string; mode: 'snapshot' | 'delta' }
  /** Tool calls that start as soon as this is stored. */
  started?: string[]
  /** Rows that are stored and get other contents, and ids of those that go. */
  revised?: MessageRow[]
  removed?: string[]
  /** Take what may enter; `look`: only say whether anything would. Either way the step is over. */
  drain?: boolean | 'look'
  end?: RunCommitEnd
}

export type RunCommitEnd =
  | { status: 'finished' | 'failed' | 'aborted'; usage: Usage; error?: Error }
  /** A processor refused: nothing of the run is kept. */
  | { status: 'rejected'; tripwire: Tripwire }
  | { status: 'suspended'; calls: WaitingCall[]; usage: Usage }

export interface RunCommitted {
  /** The rows that entered, in their order, one group per signal. */
  entered: MessageRow[][]
  ended: boolean
  /** Something would have entered. */
  waits?: boolean
  /** The rows as they were stored; absent where nothing is. */
  rows?: MessageRow[]
}
