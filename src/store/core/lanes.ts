import type { MessageRow } from '../../message/row.ts'
import type { LaneRow, LaneSignalRow, LaneState, LaneWrite, Scope } from '../contract/threads.ts'
import { maxLaneChain } from '../contract/lanes.ts'
import { copyMark } from './copy-mark.ts'
import { laneRow, messageRow, rowsOfMail } from './decode.ts'
import { scopedThread } from './guard.ts'
import { TAIL_SEQ, type LaneRecord, type LaneSignalRecord, type ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/** Nothing new: the lane's last signal said the same in the same way. */
export function laneHas(lane: LaneRecord, write: LaneWrite): boolean {
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

/** A state signal carries the version that its lane has with it. */
export function withVersion(row: MessageRow, version: number): MessageRow {
  const signal = row.content.metadata?.signal as { metadata?: { state?: object } } | undefined
  if (row.role !== 'signal' || !signal?.metadata?.state) return row
  const versioned = { ...signal, metadata: { ...signal.metadata, state: { ...signal.metadata.state, version } } }
  return { ...row, content: { ...row.content, metadata: { ...row.content.metadata, signal: versioned } } }
}

/** The rows of a step, the one of a lane with the version that it will have. */
export function stated(tables: ThreadTables, thread: ThreadRecord, rows: readonly MessageRow[], lane: LaneWrite & { rowId: string }): MessageRow[] {
  const version = (tables.lane(thread, lane.id)?.issued ?? 0) + 1
  return rows.map((row) => (row.id === lane.rowId ? withVersion(row, version) : row))
}

/** These signals were taken back: their lanes are what they were before them, and what they said may be said again. */
export function forgetLaneSignals(tables: ThreadTables, thread: ThreadRecord, signalIds: readonly string[]): void {
  const going = new Map<string, LaneSignalRecord[]>()
  for (const id of signalIds) {
    const signal = tables.laneSignal(thread, id)
    const others = signal && going.get(signal.lane)
    if (others) others.push(signal)
    else if (signal) going.set(signal.lane, [signal])
  }
  for (const [id, signals] of going) forgetSignals(tables, thread, id, signals)
}

function forgetSignals(tables: ThreadTables, thread: ThreadRecord, id: string, going: readonly LaneSignalRecord[]): void {
  for (const signal of going) tables.removeLaneSignal(thread, signal)
  markGone(tables, thread, id, going)
  takeBack(tables, thread, id)
}

/** Keeps the place of each snapshot that went for as long as changes of it are left, and no longer. */
function markGone(tables: ThreadTables, thread: ThreadRecord, lane: string, going: readonly LaneSignalRecord[]): void {
  const gone = going.filter(({ mode }) => mode === 'snapshot').map(({ version }) => version).toSorted((a, b) => b - a)
  const oldest = going.reduce((least, { version }) => Math.min(least, version), Infinity)
  let newer: LaneSignalRecord['mode'] | undefined
  const markBefore = (version: number) => {
    for (; (gone[0] ?? 0) > version; gone.shift()) {
      if (newer !== 'delta') continue
      newer = 'gone'
      tables.addLaneSignal(thread, { lane, version: gone[0] as number, signalId: `${lane} ${gone[0]} gone`, cacheKey: '', mode: newer })
    }
  }
  for (const signal of signalsOf(tables, thread, lane)) {
    markBefore(signal.version)
    if (signal.mode === 'gone' && newer !== 'delta') tables.removeLaneSignal(thread, signal)
    else newer = signal.mode
    if (signal.version < oldest) return
  }
  markBefore(0)
}

/** All of history goes; what waits stays, in its lane as in its mailbox. */
export function forgetPlacedSignals(tables: ThreadTables, thread: ThreadRecord): void {
  for (const { id } of tables.lanes(thread)) {
    const signals = [...signalsOf(tables, thread, id)]
    forgetLaneSignals(tables, thread, signals.filter(({ signalId }) => tables.row(thread, signalId)).map(({ signalId }) => signalId))
  }
}

/** A copy of a thread has the lanes of what was copied. What waits stays with the first. */
export function copyLanes(tables: ThreadTables, from: ThreadRecord, to: ThreadRecord): void {
  for (const lane of tables.lanes(from)) {
    const signals = [...signalsOf(tables, from, lane.id)].map((signal) => ({ ...signal, signalId: signal.signalId + copyMark(to) }))
    const left = signals.filter(({ mode, signalId }) => mode !== 'gone' && !tables.row(to, signalId))
    if (signals.every((signal) => signal.mode === 'gone' || left.includes(signal))) continue
    tables.putLane(to, lane)
    for (const signal of signals) tables.addLaneSignal(to, signal)
    forgetSignals(tables, to, lane.id, left)
  }
}

function takeBack(tables: ThreadTables, thread: ThreadRecord, id: string): void {
  const lane = tables.lane(thread, id)
  if (!lane) return
  const [last] = tables.laneSignals(thread, id, Infinity, 1)
  let snapshot: LaneSignalRecord | undefined
  for (const signal of signalsOf(tables, thread, id)) {
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

const page = 100

/** Newest first. */
function* signalsOf(tables: ThreadTables, thread: ThreadRecord, lane: string, below = Infinity): Generator<LaneSignalRecord> {
  for (let before = below; ;) {
    const signals = tables.laneSignals(thread, lane, before, page)
    yield* signals
    if (signals.length < page) return
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
  for (const record of signalsOf(tables, thread, id)) {
    if (record.mode === 'gone') break
    const isSnapshot = record.mode === 'snapshot'
    if (newest.length >= maxLaneChain - 1 && !isSnapshot) {
      left += 1
      continue
    }
    const signal = signalRow(tables, thread, record)
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
  for (const record of signalsOf(tables, thread, id, before)) {
    if (record.mode !== 'gone') found.push(record)
    if (found.length > limit) break
  }
  return { signals: found.slice(0, limit).flatMap((record) => signalRow(tables, thread, record) ?? []), more: found.length > limit }
}

/** Its row is in history, or still in the mailbox. */
function signalRow(tables: ThreadTables, thread: ThreadRecord, { version, cacheKey, mode, signalId }: LaneSignalRecord): LaneSignalRow | undefined {
  if (mode === 'gone') return undefined
  const placed = tables.row(thread, signalId)
  if (placed) return { version, cacheKey, mode, waiting: placed.seq >= TAIL_SEQ, row: messageRow(thread, placed) }
  const mail = tables.mail(thread, signalId)
  const [row] = mail ? rowsOfMail(tables, thread, mail) : []
  return row && { version, cacheKey, mode, waiting: true, row }
}
