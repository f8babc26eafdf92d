import { HeedError } from '../../base/errors.ts'
import { createdSignal, rowToSignal } from '../../signals/conversions.ts'
import type { CreatedAgentSignal } from '../../signals/signal.ts'
import type { LaneRow, LaneSignalRow, Scope, ThreadStore } from '../../store/contract/threads.ts'

/** One signal of a lane. */
export interface LaneSignal {
  version: number
  mode: 'snapshot' | 'delta'
  cacheKey: string
  /** The structured state, where its producer gave one; for a change, what it gave as the state after it. */
  value?: unknown
  delta?: unknown
  /** Accepted, and not yet where a run reads it. */
  waiting: boolean
  signal: CreatedAgentSignal
}

/** What a lane says now. */
export interface Lane extends LaneRow {
  /**
   * The `value` of the last signal. Absent when that was a change that brought none: then the state is `snapshot` with `deltas` in their order,
   * and how they come together is the producer's to know.
   */
  value?: unknown
  /** Absent when only changes were ever told, and when the one that they changed is gone. */
  snapshot?: LaneSignal
  /** Every change since the snapshot, oldest first; at most the last 999. */
  deltas: LaneSignal[]
}

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
  const told = signals.map(laneSignal)
  const snapshot = told[0]?.mode === 'snapshot' ? told[0] : undefined
  const value = told.at(-1)?.value
  return { ...row, ...(value === undefined ? {} : { value }), ...(snapshot ? { snapshot } : {}), deltas: snapshot ? told.slice(1) : told }
}

export async function readLanes(store: ThreadStore, scope: Scope, query: { after: string | undefined; limit: number | undefined }): Promise<LaneRow[]> {
  const limit = checkedLimit(query.limit)
  if (!(await store.getThread(scope))) return []
  return store.listLanes(scope, { limit, ...(query.after === undefined ? {} : { after: query.after }) })
}

export async function readLaneHistory(
  store: ThreadStore, scope: Scope, id: string, query: { before: number | undefined; limit: number | undefined },
): Promise<LaneHistory> {
  const limit = checkedLimit(query.limit)
  if (!(await store.getThread(scope))) return { signals: [], more: false }
  const { signals, more } = await store.listLaneSignals(scope, id, { limit, ...(query.before === undefined ? {} : { before: query.before }) })
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
