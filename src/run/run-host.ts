import type { MessageRow } from '../message/row.ts'
import type { Chunk, Usage } from './chunk.ts'
import type { WaitingCall } from './run-result.ts'

/** Where a run lives: in memory for one call, or on a durable thread. The loop asks it for three things and knows nothing else of it. */
export interface RunHost {
  /** Shows a chunk to whoever watches. */
  emit(chunk: Chunk): void
  /**
   * Stores what a step did, and takes what may enter. Resolves when it is stored. With `drain` and `end`, the run only ends if
   * nothing entered, and both are decided at once: nothing can slip in between.
   */
  commit(commit: RunCommit): Promise<RunCommitted>
  /** Stores other contents for rows that were taken as input, after processors changed them. */
  revise(rows: readonly MessageRow[]): Promise<void>
}

export interface RunCommit {
  step: number
  rows: MessageRow[]
  /** Tool calls that start as soon as this is stored. */
  started?: string[]
  drain?: boolean
  end?: RunCommitEnd
}

export type RunCommitEnd =
  | { status: 'finished' | 'failed' | 'aborted'; usage: Usage; error?: Error }
  /** A processor refused: nothing of the run is kept. */
  | { status: 'rejected'; reason: string }
  | { status: 'suspended'; calls: WaitingCall[]; usage: Usage }

export interface RunCommitted {
  /** The rows that entered, in their order, one group per signal. */
  entered: MessageRow[][]
  ended: boolean
}
