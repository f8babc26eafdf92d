import type { MessageRow } from '../../message/row.ts'

/** A state as it is accepted or committed: the lane it is of, and what makes it news. */
export interface LaneWrite {
  id: string
  cacheKey: string
  mode: 'snapshot' | 'delta'
}

/** What a lane was told last. */
export interface LaneRow {
  threadId: string
  id: string
  /** Of the last signal. A version is never given twice, also when its signal is taken back. */
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
  /** Accepted, and not yet where a run reads it. */
  waiting: boolean
  row: MessageRow
}

export interface LaneState extends LaneRow {
  /** The last snapshot and every change since, oldest first. Of a chain above `maxLaneChain`, the snapshot and the newest. */
  signals: LaneSignalRow[]
  /** How many changes between the snapshot and the newest are not in `signals`. */
  left: number
}

/** How much of a lane is read at once. */
export const maxLaneChain = 1_000
