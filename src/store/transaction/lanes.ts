import type { LaneRow, LaneWrite } from '../contract.ts'
import { laneRow } from './decode.ts'
import type { LaneRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/** Nothing new: the lane's last signal said the same in the same way. */
export function laneHas(lane: LaneRecord, write: LaneWrite): boolean {
  return lane.cacheKey === write.cacheKey && lane.mode === write.mode
}

export function advanceLane(tables: ThreadTables, thread: ThreadRecord, write: LaneWrite, signalId: string): LaneRow {
  const before = tables.lane(thread, write.id)
  const lane: LaneRecord = {
    id: write.id,
    version: (before?.version ?? 0) + 1,
    cacheKey: write.cacheKey,
    mode: write.mode,
    lastSignalId: signalId,
    lastSnapshotId: write.mode === 'snapshot' ? signalId : (before?.lastSnapshotId ?? null),
  }
  tables.putLane(thread, lane)
  return laneRow(thread, lane)
}
