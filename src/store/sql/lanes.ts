import type { LaneRecord, LaneSignalRecord, ThreadRecord } from '../core/records.ts'
import { sql } from './sql.ts'
import type { Statements } from './statements.ts'

/** The tables of lanes. Most threads have none, and their record says so: then nothing is asked. */
export class SqlLanes {
  readonly #statements: Statements
  /** As this transaction has put them. */
  readonly #put = new Map<string, LaneRecord>()

  constructor(statements: Statements) {
    this.#statements = statements
  }

  lane(thread: ThreadRecord, id: string): LaneRecord | undefined {
    const put = this.#put.get(`${thread.key} ${id}`)
    return put ? { ...put } : this.#statements.one<LaneRecord>(sql.lane, thread.key, id)
  }

  putLane(thread: ThreadRecord, lane: LaneRecord): void {
    thread.laned = 1
    this.#put.set(`${thread.key} ${lane.id}`, { ...lane })
    this.#statements.run(sql.putLane, thread.key, lane.id, lane.version, lane.cacheKey, lane.mode, lane.lastSignalId, lane.lastSnapshotId, lane.issued)
  }

  lanes(thread: ThreadRecord, after = '', limit = -1): LaneRecord[] {
    if (thread.laned === 0) return []
    return this.#statements.all<LaneRecord>(sql.lanes, thread.key, after, limit)
  }

  addLaneSignal(thread: ThreadRecord, { lane, version, signalId, cacheKey, mode }: LaneSignalRecord): void {
    this.#statements.run(sql.addLaneSignal, thread.key, lane, version, signalId, cacheKey, mode)
  }

  laneSignal(thread: ThreadRecord, signalId: string): LaneSignalRecord | undefined {
    return thread.laned === 0 ? undefined : this.#statements.one<LaneSignalRecord>(sql.laneSignal, thread.key, signalId)
  }

  removeLaneSignal(thread: ThreadRecord, { lane, version }: LaneSignalRecord): void {
    this.#statements.run(sql.removeLaneSignal, thread.key, lane, version)
  }

  laneSignals(thread: ThreadRecord, lane: string, before: number, limit: number): LaneSignalRecord[] {
    return this.#statements.all<LaneSignalRecord>(sql.laneSignals, thread.key, lane, Math.min(before, Number.MAX_SAFE_INTEGER), limit)
  }

  protected forgetLanes(): void {
    if (this.#put.size > 0) this.#put.clear()
  }
}
