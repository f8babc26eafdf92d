import type { MessageRow } from '../../message/row.ts'

/** The lane of a state signal that is accepted or committed, and the key by which a repeated state is recognised. */
export interface LaneWrite {
  id: string
  cacheKey: string
  mode: 'snapshot' | 'delta'
}

/** A lane, described by its last signal. */
export interface LaneRow {
  threadId: string
  id: string
  /** The version of the last signal. A version is never reused, even if its signal is removed. */
  version: number
  cacheKey: string
  mode: 'snapshot' | 'delta'
  lastSignalId: string
  lastSnapshotId?: string
}

/** One signal of a lane. */
export interface LaneSignalRow {
  version: number
  cacheKey: string
  mode: 'snapshot' | 'delta'
  /** The signal is accepted and not yet in the history that a run reads. */
  waiting: boolean
  row: MessageRow
}

export interface LaneState extends LaneRow {
  /** The last snapshot and all deltas since, oldest first. If they are more than `maxLaneChain`, the snapshot and the newest deltas. */
  signals: LaneSignalRow[]
  /** The number of deltas between the snapshot and the newest that are not in `signals`. */
  left: number
}

/** The maximum length of `LaneState.signals`. */
export const maxLaneChain = 1_000
