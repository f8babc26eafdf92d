import type { JSONObject, JSONValue } from '../../base/json.ts'
import type { MessageRow } from '../../message/row.ts'
import type { LaneRow, MailboxRow, RunRow, SuspendedCall, ThreadRow } from '../contract/threads.ts'
import type { LaneRecord, MailRecord, RowRecord, RunRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/** Which thread a record is of, for records that don't say. */
export type Home = Pick<ThreadRecord, 'id' | 'resourceId'>

export function threadRow(thread: ThreadRecord, lanes: readonly LaneRecord[] = []): ThreadRow {
  const row: ThreadRow = {
    id: thread.id,
    resourceId: thread.resourceId,
    title: thread.title,
    metadata: Object.assign(thread.metadata === '{}' ? {} : (JSON.parse(thread.metadata) as Record<string, JSONValue>), tracking(lanes)),
    createdAt: new Date(thread.createdAt),
    updatedAt: new Date(thread.updatedAt),
    status: thread.status,
    epoch: thread.epoch,
  }
  if (thread.parentId !== null) row.parentId = thread.parentId
  if (thread.owner !== null) row.owner = thread.owner
  if (thread.runId !== null) row.runId = thread.runId
  if (thread.agentId !== null) row.agentId = thread.agentId
  return row
}

/** Where a thread's metadata tells of its lanes. It is made of them when it is read, so nobody can write it back stale. */
const trackingKey = 'heed'

function tracking(lanes: readonly LaneRecord[]): Record<string, JSONValue> | undefined {
  const told = lanes.filter(({ version }) => version > 0)
  if (told.length === 0) return undefined
  const stateSignals = Object.fromEntries(told.map(({ id, cacheKey, mode, version, lastSignalId, lastSnapshotId }) => [id, {
    currentCacheKey: cacheKey,
    currentMode: mode,
    version,
    lastSignalId,
    ...(lastSnapshotId !== null && { lastSnapshotSignalId: lastSnapshotId }),
  }]))
  return { [trackingKey]: { stateSignals } }
}

/** Metadata as it is stored. What lanes tell of themselves comes back with every metadata that was read and is written again. */
export function untracked<Value>({ [trackingKey]: _, ...metadata }: Record<string, Value>): Record<string, Value> {
  return metadata
}

/** A thread as readers see it. */
export function describedThread(tables: Pick<ThreadTables, 'lanes'>, thread: ThreadRecord): ThreadRow {
  return threadRow(thread, tables.lanes(thread))
}

export function messageRow(home: Home, row: RowRecord): MessageRow {
  const message: MessageRow = {
    id: row.id,
    messageId: row.messageId,
    role: row.role,
    createdAt: new Date(row.createdAt),
    threadId: home.id,
    resourceId: home.resourceId,
    content: JSON.parse(row.content) as MessageRow['content'],
    seq: row.seq,
  }
  if (row.type !== null) message.type = row.type
  if (row.runId !== null) message.runId = row.runId
  if (row.step !== null) message.step = row.step
  return message
}

/** A row that has no place yet, in a mailbox record; or the id of one that has. */
type MailedRow = (Pick<MessageRow, 'id' | 'messageId' | 'role' | 'type' | 'content'> & { createdAt: number }) | string

export function rowIds(rows: readonly MessageRow[]): string {
  return JSON.stringify(rows.map((row) => row.id))
}

/** The rows of a mailbox record, wherever they are now. Those that were removed from history are missing. */
export function rowsOfMail(tables: Pick<ThreadTables, 'row'>, thread: ThreadRecord, mail: MailRecord): MessageRow[] {
  if (mail.atHand) return mail.atHand.rows.map(({ row }) => row)
  return (JSON.parse(mail.rows) as MailedRow[]).flatMap((mailed) => {
    if (typeof mailed !== 'string') {
      return { ...mailed, createdAt: new Date(mailed.createdAt), threadId: thread.id, resourceId: thread.resourceId }
    }
    const row = tables.row(thread, mailed)
    return row ? messageRow(thread, row) : []
  })
}

export function mailboxRow(thread: ThreadRecord, mail: MailRecord, rows: MessageRow[]): MailboxRow {
  const row: MailboxRow = {
    threadId: thread.id,
    ord: mail.ord,
    id: mail.id,
    agentId: mail.agentId,
    route: mail.route,
    kind: mail.kind,
    state: mail.state,
    rows,
    acceptedAt: mail.acceptedAt,
  }
  if (mail.runId !== null) row.runId = mail.runId
  if (mail.step !== null) row.step = mail.step
  if (mail.options !== null) row.options = JSON.parse(mail.options) as JSONObject
  if (mail.boundTo !== null) row.boundTo = mail.boundTo
  if (mail.reason !== null) row.reason = mail.reason
  return row
}

export function runRow(home: Home, run: RunRecord): RunRow {
  const row: RunRow = {
    threadId: home.id,
    resourceId: home.resourceId,
    runId: run.runId,
    agentId: run.agentId,
    status: run.status,
    epoch: run.epoch,
    step: run.step,
    attempts: run.attempts,
    options: run.options === '{}' ? {} : (JSON.parse(run.options) as JSONObject),
    started: run.started === '[]' ? [] : (JSON.parse(run.started) as string[]),
    suspended: run.suspended === '[]' ? [] : (JSON.parse(run.suspended) as SuspendedCall[]),
    startedAt: run.startedAt,
    sealSeq: run.sealSeq,
  }
  if (run.lost !== null) row.lost = JSON.parse(run.lost) as string[]
  if (run.endedAt !== null) row.endedAt = run.endedAt
  if (run.suspendedAt !== null) row.suspendedAt = run.suspendedAt
  if (run.error !== null) row.error = JSON.parse(run.error) as JSONObject
  if (run.usage !== null) row.usage = JSON.parse(run.usage) as JSONObject
  return row
}

export function laneRow(home: Home, lane: LaneRecord): LaneRow {
  return {
    threadId: home.id,
    id: lane.id,
    version: lane.version,
    cacheKey: lane.cacheKey,
    mode: lane.mode,
    lastSignalId: lane.lastSignalId,
    ...(lane.lastSnapshotId !== null && { lastSnapshotId: lane.lastSnapshotId }),
  }
}

/** JSON text for a column that may be empty. */
export function jsonOrNull(value: object | undefined): string | null {
  return value === undefined ? null : JSON.stringify(value)
}
