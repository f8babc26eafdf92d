import { HeedError } from '../../base/errors.ts'
import { createdSignal, rowToSignal } from '../../signals/conversions.ts'
import type { CreatedAgentSignal } from '../../signals/signal.ts'
import type { LaneRow, LaneSignalRow, Scope, ThreadStore } from '../../store/contract/threads.ts'

/** One signal of a lane. */
export interface LaneSignal {
  version: number
  mode: 'snapshot' | 'delta'
  cacheKey: string
  /** The structured state, where its producer passed one; for a delta, the state after it. */
  value?: unknown
  delta?: unknown
  /** Accepted and not yet drained. */
  waiting: boolean
  signal: CreatedAgentSignal
}

/** The present state of a lane. */
export interface Lane extends LaneRow {
  /**
   * The `value` of the last signal. Absent where that is a delta without one: then the state is `snapshot` with `deltas` applied in their
   * order, by rules that the producer knows.
   */
  value?: unknown
  /** Absent when the lane has had deltas only, and when the snapshot was deleted. */
  snapshot?: LaneSignal
  /** The deltas since the snapshot, oldest first; at most the last 999. */
  deltas: LaneSignal[]
}

/** A page of the states that a lane received, newest first. */
export interface LaneHistory {
  signals: LaneSignal[]
  more: boolean
}

const defaultLimit = 100
const maxLimit = 1_000

export async function readLane(store: ThreadStore, scope: Scope, id: string): Promise<Lane | null> {
  const lane = (await store.getThread(scope)) && (await store.readLane(scope, id))
  if (!lane) return null
  const { signals, left: _, ...row } = lane
  const laneSignals = signals.map(laneSignal)
  const snapshot = laneSignals[0]?.mode === 'snapshot' ? laneSignals[0] : undefined
  const value = laneSignals.at(-1)?.value
  return {
    ...row,
    ...(value === undefined ? {} : { value }),
    ...(snapshot ? { snapshot } : {}),
    deltas: snapshot ? laneSignals.slice(1) : laneSignals,
  }
}

export async function readLanes(
  store: ThreadStore, scope: Scope, query: { after: string | undefined; limit: number | undefined },
): Promise<LaneRow[]> {
  const limit = checkedLimit(query.limit)
  if (!(await store.getThread(scope))) return []
  return store.listLanes(scope, { limit, ...(query.after === undefined ? {} : { after: query.after }) })
}

export async function readLaneHistory(
  store: ThreadStore, scope: Scope, id: string, query: { before: number | undefined; limit: number | undefined },
): Promise<LaneHistory> {
  const limit = checkedLimit(query.limit)
  if (!(await store.getThread(scope))) return { signals: [], more: false }
  const { signals, more } = await store.listLaneSignals(scope, id, {
    limit, ...(query.before === undefined ? {} : { before: query.before }),
  })
  return { signals: signals.map(laneSignal), more }
}

function laneSignal({ row, ...about }: LaneSignalRow): LaneSignal {
  const signal = createdSignal(rowToSignal(row))
  const { value, delta } = signal.metadata ?? {}
  return { ...about, ...(value === undefined ? {} : { value }), ...(delta === undefined ? {} : { delta }), signal }
}

function checkedLimit(limit = defaultLimit): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= maxLimit) return limit
  throw new HeedError('invalid_argument', `limit must be a whole number from 1 to ${maxLimit}.`, { details: { field: 'limit' } })
}
