import type { MessageRow } from '../../message/row.ts'
import { maxLaneChain, TAIL_SEQ } from '../contract/thread-row.ts'
import type { LaneRow, LaneSignalRow, LaneState, LaneWrite, Scope } from '../contract/threads.ts'
import { scopedThread } from './lease.ts'
import { laneRow, messageRow, rowsOfMail, type LaneRecord, type LaneSignalRecord, type ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/** Whether the last signal of the lane has the same contents in the same mode. */
export function isCurrentState(lane: LaneRecord, write: LaneWrite): boolean {
  return lane.version > 0 && lane.cacheKey === write.cacheKey && lane.mode === write.mode
}

export function advanceLane(tables: ThreadTables, thread: ThreadRecord, write: LaneWrite, signalId: string): LaneRow {
  const before = tables.lane(thread, write.id)
  const version = (before?.issued ?? 0) + 1
  const lane: LaneRecord = {
    id: write.id,
    version,
    cacheKey: write.cacheKey,
    mode: write.mode,
    lastSignalId: signalId,
    lastSnapshotId: write.mode === 'snapshot' ? signalId : (before?.lastSnapshotId ?? null),
    issued: version,
  }
  tables.putLane(thread, lane)
  tables.addLaneSignal(thread, { lane: write.id, version, signalId, cacheKey: write.cacheKey, mode: write.mode })
  return laneRow(thread, lane)
}

/** The row of a state signal, with the version that its lane gets from it. */
export function withVersion(row: MessageRow, version: number): MessageRow {
  const signal = row.content.metadata?.signal as { metadata?: { state?: object } } | undefined
  if (row.role !== 'signal' || !signal?.metadata?.state) return row
  const versioned = { ...signal, metadata: { ...signal.metadata, state: { ...signal.metadata.state, version } } }
  return { ...row, content: { ...row.content, metadata: { ...row.content.metadata, signal: versioned } } }
}

/** The rows of a step, with the next version of the lane in the row that is its state. */
export function withLaneVersion(
  tables: ThreadTables, thread: ThreadRecord, rows: readonly MessageRow[], lane: LaneWrite & { rowId: string },
): MessageRow[] {
  const version = (tables.lane(thread, lane.id)?.issued ?? 0) + 1
  return rows.map((row) => (row.id === lane.rowId ? withVersion(row, version) : row))
}

/** Removes these signals from their lanes. Each lane returns to its state before them, so an equal state is accepted again. */
export function removeLaneSignals(tables: ThreadTables, thread: ThreadRecord, signalIds: readonly string[]): void {
  const removed = new Map<string, LaneSignalRecord[]>()
  for (const id of signalIds) {
    const signal = tables.laneSignal(thread, id)
    const others = signal && removed.get(signal.lane)
    if (others) others.push(signal)
    else if (signal) removed.set(signal.lane, [signal])
  }
  for (const [id, signals] of removed) removeFromLane(tables, thread, id, signals)
}

function removeFromLane(tables: ThreadTables, thread: ThreadRecord, id: string, removed: readonly LaneSignalRecord[]): void {
  for (const signal of removed) tables.removeLaneSignal(thread, signal)
  markRemovedSnapshots(tables, thread, id, removed)
  rewindLane(tables, thread, id)
}

/** Keeps a `gone` record for each removed snapshot that still has deltas, and removes the `gone` records that have none left. */
function markRemovedSnapshots(tables: ThreadTables, thread: ThreadRecord, lane: string, removed: readonly LaneSignalRecord[]): void {
  const gone = removed.filter(({ mode }) => mode === 'snapshot').map(({ version }) => version).toSorted((a, b) => b - a)
  const oldest = removed.reduce((least, { version }) => Math.min(least, version), Infinity)
  let newer: LaneSignalRecord['mode'] | undefined
  const markBefore = (version: number) => {
    for (; (gone[0] ?? 0) > version; gone.shift()) {
      if (newer !== 'delta') continue
      newer = 'gone'
      tables.addLaneSignal(thread, { lane, version: gone[0] as number, signalId: `${lane} ${gone[0]} gone`, cacheKey: '', mode: newer })
    }
  }
  for (const signal of iterateSignals(tables, thread, lane)) {
    markBefore(signal.version)
    if (signal.mode === 'gone' && newer !== 'delta') tables.removeLaneSignal(thread, signal)
    else newer = signal.mode
    if (signal.version < oldest) return
  }
  markBefore(0)
}

/** Writes the lane as its remaining signals describe it. */
function rewindLane(tables: ThreadTables, thread: ThreadRecord, id: string): void {
  const lane = tables.lane(thread, id)
  if (!lane) return
  const [last] = tables.laneSignals(thread, id, Infinity, 1)
  let snapshot: LaneSignalRecord | undefined
  for (const signal of iterateSignals(tables, thread, id)) {
    if (signal.mode === 'delta') continue
    if (signal.mode === 'snapshot') snapshot = signal
    break
  }
  tables.putLane(thread, {
    ...lane,
    version: last?.version ?? 0,
    cacheKey: last?.cacheKey ?? '',
    mode: last?.mode === 'delta' ? 'delta' : 'snapshot',
    lastSignalId: last?.signalId ?? '',
    lastSnapshotId: snapshot?.signalId ?? null,
  })
}

/** Removes the signals that are in history, before all of history is deleted. Pending signals stay in their lanes. */
export function removeStoredLaneSignals(tables: ThreadTables, thread: ThreadRecord): void {
  for (const { id } of tables.lanes(thread)) {
    const signals = [...iterateSignals(tables, thread, id)]
    removeLaneSignals(tables, thread, signals.filter(({ signalId }) => tables.row(thread, signalId)).map(({ signalId }) => signalId))
  }
}

/** Copies the lanes of the signals that were copied, whose ids end with `suffix` in the copy. Pending signals are not copied. */
export function copyLanes(tables: ThreadTables, from: ThreadRecord, to: ThreadRecord, suffix: string): void {
  for (const lane of tables.lanes(from)) {
    const signals = [...iterateSignals(tables, from, lane.id)].map((signal) => ({ ...signal, signalId: signal.signalId + suffix }))
    const notCopied = signals.filter(({ mode, signalId }) => mode !== 'gone' && !tables.row(to, signalId))
    if (signals.every((signal) => signal.mode === 'gone' || notCopied.includes(signal))) continue
    tables.putLane(to, lane)
    for (const signal of signals) tables.addLaneSignal(to, signal)
    removeFromLane(tables, to, lane.id, notCopied)
  }
}

const pageSize = 100

/** The signals of a lane, newest first. */
function* iterateSignals(tables: ThreadTables, thread: ThreadRecord, lane: string, below = Infinity): Generator<LaneSignalRecord> {
  for (let before = below; ;) {
    const signals = tables.laneSignals(thread, lane, before, pageSize)
    yield* signals
    if (signals.length < pageSize) return
    before = signals.at(-1)?.version ?? 0
  }
}

export function listLanes(tables: ThreadTables, scope: Scope, { after, limit }: { after?: string; limit: number }): LaneRow[] {
  const thread = scopedThread(tables, scope)
  return tables.lanes(thread, after, limit).filter(({ version }) => version > 0).map((lane) => laneRow(thread, lane))
}

export function readLane(tables: ThreadTables, scope: Scope, id: string, { placed = false }: { placed?: boolean } = {}): LaneState | null {
  const thread = scopedThread(tables, scope)
  const lane = tables.lane(thread, id)
  if (!lane || lane.version === 0) return null
  const newest: LaneSignalRow[] = []
  let left = 0
  for (const record of iterateSignals(tables, thread, id)) {
    if (record.mode === 'gone') break
    const isSnapshot = record.mode === 'snapshot'
    if (newest.length >= maxLaneChain - 1 && !isSnapshot) {
      left += 1
      continue
    }
    const signal = laneSignalRow(tables, thread, record)
    if (!signal || (placed && signal.waiting)) continue
    newest.push(signal)
    if (isSnapshot) break
  }
  return { ...laneRow(thread, lane), signals: newest.toReversed(), left }
}

export function listLaneSignals(
  tables: ThreadTables, scope: Scope, id: string, { before = Infinity, limit }: { before?: number; limit: number },
): { signals: LaneSignalRow[]; more: boolean } {
  const thread = scopedThread(tables, scope)
  const found: LaneSignalRecord[] = []
  for (const record of iterateSignals(tables, thread, id, before)) {
    if (record.mode !== 'gone') found.push(record)
    if (found.length > limit) break
  }
  const signals = found.slice(0, limit).flatMap((record) => laneSignalRow(tables, thread, record) ?? [])
  return { signals, more: found.length > limit }
}

/** The row of a lane's signal, from history or from the mailbox. */
function laneSignalRow(
  tables: ThreadTables, thread: ThreadRecord, { version, cacheKey, mode, signalId }: LaneSignalRecord,
): LaneSignalRow | undefined {
  if (mode === 'gone') return undefined
  const stored = tables.row(thread, signalId)
  if (stored) return { version, cacheKey, mode, waiting: stored.seq >= TAIL_SEQ, row: messageRow(thread, stored) }
  const mail = tables.mail(thread, signalId)
  const [row] = mail ? rowsOfMail(tables, thread, mail) : []
  return row && { version, cacheKey, mode, waiting: true, row }
}
